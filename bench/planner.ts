import { createPlanner, type PlannerOptions } from '@toolgate/planner'
import { type Caller, createGate, defineTool, memoryAudit } from '@toolgate/core'
import { memoryLock } from '@toolgate/core/stores'
import { generateText, isStepCount, jsonSchema, tool, type ToolSet } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { digits, heapMb, measure, printFigures, printTable } from './lib.ts'

/** What a planner adds to the AI SDK's own loop, and what many overlapping runs leave behind. */
const TOOLS = 20
const RUNS = 10_000
const AT_ONCE = 500
const VERA: Caller = { user: 'vera', roles: ['viewer'] }

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
const names = Array.from({ length: TOOLS }, (_, i) => `tool_${i}`)

/** Calls a tool when a person spoke last, and answers when a tool did. It keeps nothing of what it was asked. */
function modelOf(toCall: (prompt: string) => readonly string[], waitTurns = 0): MockLanguageModelV4 {
  const model: MockLanguageModelV4 = new MockLanguageModelV4({
    async doGenerate({ prompt }) {
      model.doGenerateCalls.length = 0
      for (let i = 0; i < waitTurns; i++) await new Promise((resolve) => setImmediate(resolve))
      const last = prompt.at(-1)
      const text = last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : undefined
      return {
        content:
          text === undefined
            ? [{ type: 'text', text: 'Ok.' }]
            : toCall(text).map((toolName, i) => ({
                type: 'tool-call' as const,
                toolCallId: `c${i}`,
                toolName,
                input: '{}',
              })),
        finishReason:
          text === undefined ? { unified: 'stop', raw: undefined } : { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      }
    },
  })
  return model
}

const gateOf = (policy: object = {}) =>
  createGate({
    tools: names.map((name) => defineTool({ name, description: `Does ${name}.`, execute: () => 'ok' })),
    policy,
    audit: memoryAudit({ capacity: 1000 }),
  })
const sdkTools: ToolSet = Object.fromEntries(
  names.map((name) => [
    name,
    tool({ description: `Does ${name}.`, inputSchema: jsonSchema({ type: 'object' }), execute: () => 'ok' }),
  ]),
)

const model = modelOf(() => ['tool_3'])
const plannerOf = (options: Partial<PlannerOptions> = {}) => createPlanner({ model, gate: gateOf(), ...options })
const plain = plannerOf()
const asking = plannerOf({ gate: gateOf({ ask: ['tool_3'] }) })
let done = 0

async function times(count: number, run: () => Promise<{ readonly text: string }>): Promise<void> {
  for (let i = 0; i < count; i++) done += (await run()).text.length
}

const figures = await measure(
  [
    {
      name: 'the AI SDK alone',
      run: (count) =>
        times(count, () => generateText({ model, prompt: 'x', tools: sdkTools, stopWhen: isStepCount(20) })),
    },
    { name: 'a run of a planner', run: (count) => times(count, () => plain.run({ prompt: 'x', caller: VERA })) },
    {
      name: 'in a session, narrowed, with prepareStep',
      run: (count) =>
        times(count, () =>
          plain.run({
            prompt: 'x',
            caller: { ...VERA, session: 's1' },
            visibility: ({ tools }) => tools,
            prepareStep: () => ({ activeTools: names.slice(0, 10) }),
          }),
        ),
    },
    {
      name: 'with a pause, its token and its resume',
      run: (count) =>
        times(count, async () => {
          const result = await asking.run({ prompt: 'x', caller: VERA })
          if (result.status !== 'paused') throw new Error(`it is ${result.status}`)
          return asking.resume(result.resumeToken, { caller: VERA, approve: true })
        }),
    },
  ],
  { rounds: 5 },
)
printFigures(`A run of two steps and one call, with ${TOOLS} tools`, figures, 'the AI SDK alone')
if (done === 0) throw new Error('nothing was said')

/** Each sees another third of the tools and calls all; what ran without being seen is counted. */
async function overlap(runs: number): Promise<{ readonly leaks: number; readonly held: number }> {
  const sessions = memoryLock()
  let leaks = 0
  const shownTo = (i: number) => names.filter((_, n) => (n + i) % 3 === 0)
  const gate = createGate({
    tools: names.map((name, n) =>
      defineTool({
        name,
        execute(_, { caller }) {
          if ((n + Number(caller.user)) % 3 !== 0) leaks++
          return 'ok'
        },
      }),
    ),
    audit: memoryAudit({ capacity: 1000 }),
  })
  const planner = createPlanner({ model: modelOf(() => names, 2), gate, sessions })
  let next = 0
  const worker = async () => {
    while (next < runs) {
      const i = next++
      const caller = { user: String(i), session: `s${i % AT_ONCE}` }
      await planner.run({ prompt: 'x', caller, visibility: shownTo(i) })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return { leaks, held: sessions.size }
}

await overlap(AT_ONCE)
const before = await heapMb()
const cpu = process.cpuUsage()
const { leaks, held } = await overlap(RUNS)
const { user, system } = process.cpuUsage(cpu)
const kept = (await heapMb()) - before
printTable(
  `${RUNS.toLocaleString('en')} runs that overlap, ${AT_ONCE} at once, each with a visibility of its own`,
  ['what', 'figure'],
  [
    ['calls that ran unseen', String(leaks)],
    ['sessions still held', String(held)],
    ['memory kept, MB', digits(Math.max(0, kept))],
    [`µs CPU a run, with ${TOOLS} calls`, digits((user + system) / RUNS)],
  ],
)
if (leaks > 0 || held > 0) process.exitCode = 1
