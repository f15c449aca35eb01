import { type Caller, createGate, type Gate } from '@toolgate/core'
import { fromAiSdk, guard } from '@toolgate/adapters/ai-sdk'
import { generateText, isStepCount, jsonSchema, tool, ToolLoopAgent, type ToolSet } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { digits, type Figure, heapMb, measure, printFigures, printTable } from './lib.ts'

/** What a guard adds to the AI SDK's own steps: the SDK alone with all tools, against the SDK with what the caller sees. */
const SEEN = 20
const VIEWER: Caller = { user: 'vera', roles: ['viewer'] }

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** The SDK's own fake model. It keeps each request, which nobody reads here. */
function modelOf(answers: readonly (string | { toolName: string; input: string })[]): MockLanguageModelV4 {
  let turn = 0
  const model: MockLanguageModelV4 = new MockLanguageModelV4({
    doGenerate: async () => {
      model.doGenerateCalls.length = 0
      const answer = answers[turn++ % answers.length]
      if (typeof answer === 'object')
        return {
          content: [{ type: 'tool-call', toolCallId: `call-${turn}`, ...answer }],
          finishReason: { unified: 'tool-calls', raw: undefined },
          usage,
          warnings: [],
        }
      const text = answer ?? ''
      return {
        content: [{ type: 'text', text }],
        finishReason: { unified: 'stop', raw: undefined },
        usage,
        warnings: [],
      }
    },
  })
  return model
}

type SchemaOf = () => ToolSet[string]['inputSchema']
const plain: SchemaOf = () =>
  jsonSchema({ type: 'object', properties: { path: { type: 'string' } }, required: ['path'] })
const zod: SchemaOf = () => z.object({ path: z.string() })

function toolsOf(count: number, schemaOf: SchemaOf): ToolSet {
  const named = Array.from({ length: count }, (_, i) => {
    const description = `Does something to thing ${i}.`
    return [`tool_${i}`, tool({ description, inputSchema: schemaOf(), execute: () => 'done' })] as const
  })
  return Object.fromEntries(named)
}

/** The viewer sees the first twenty; the admin all. */
function gateOf(tools: ToolSet): Gate {
  const seen = Object.keys(tools).slice(0, SEEN)
  const allow = [...seen, { match: '*', when: "'admin' in caller.roles" }]
  return createGate({ tools: fromAiSdk(tools), policy: { allow } }) as unknown as Gate
}

let texts = 0
const text = modelOf(['done'])
const loop = modelOf([{ toolName: 'tool_3', input: '{"path":"/a"}' }, 'done'])

async function alone(tools: ToolSet, model: MockLanguageModelV4): Promise<void> {
  texts += (await generateText({ model, prompt: 'p', tools, stopWhen: isStepCount(2) })).text.length
}

async function guarded(gate: Gate, caller: Caller, model: MockLanguageModelV4): Promise<void> {
  const options = { model, prompt: 'p', stopWhen: isStepCount(2) }
  texts += (await generateText({ ...options, ...(await guard(gate, caller)) })).text.length
}

async function times(count: number, once: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i++) await once()
}

interface Pair {
  readonly what: string
  readonly budget: string
  readonly alone: string
  readonly guarded: string
}

async function compare(title: string, count: number, schemaOf: SchemaOf): Promise<Figure[]> {
  const tools = toolsOf(count, schemaOf)
  const gate = gateOf(tools)
  const shared = await guard(gate, VIEWER)
  const figures = await measure(
    [
      { name: 'a step, SDK alone', run: (n) => times(n, () => alone(tools, text)) },
      { name: `a step, guarded: ${SEEN} seen`, run: (n) => times(n, () => guarded(gate, VIEWER, text)) },
      {
        name: 'a step, one guard for all',
        run: (n) =>
          times(n, async () => {
            texts += (await generateText({ model: text, prompt: 'p', ...shared })).text.length
          }),
      },
      ...(count > SEEN
        ? [
            {
              name: `a step, guarded: all ${count} seen`,
              run: (n: number) => times(n, () => guarded(gate, { user: 'ada', roles: ['admin'] }, text)),
            },
          ]
        : []),
      { name: 'two steps and a call, SDK alone', run: (n) => times(n, () => alone(tools, loop)) },
      { name: 'two steps and a call, guarded', run: (n) => times(n, () => guarded(gate, VIEWER, loop)) },
      { name: 'guard() itself', run: (n) => times(n, () => guard(gate, VIEWER)) },
    ],
    // Some microseconds in a hundred: rounds are long, so that they are those of compiled code.
    { rounds: 11, roundMs: 150 },
  )
  printFigures(title, figures, 'a step, SDK alone')
  return [...figures]
}

/** By the best rounds: what is sought is a few microseconds of a hundred, and noise only adds. */
function added(figures: readonly Figure[], { what, budget, alone: a, guarded: b }: Pair): readonly string[] {
  const of = (name: string) => figures.find((figure) => figure.name === name)?.lowUs ?? Number.NaN
  return [what, digits(of(a)), digits(of(b)), digits(of(b) - of(a)), budget]
}

const STEP: Pair = {
  what: 'a step with a guard of its own',
  budget: '≤ 10 µs',
  alone: 'a step, SDK alone',
  guarded: `a step, guarded: ${SEEN} seen`,
}
const CALL: Pair = {
  what: 'two steps and a call',
  budget: '≤ 20 µs',
  alone: 'two steps and a call, SDK alone',
  guarded: 'two steps and a call, guarded',
}

const rows: (readonly string[])[] = []
for (const [count, schemaOf, kind] of [
  [20, plain, 'JSON Schema'],
  [20, zod, 'zod'],
  [200, plain, 'JSON Schema'],
  [1000, plain, 'JSON Schema'],
] as const) {
  const figures = await compare(`AI SDK with ${count} tools, ${kind}`, count, schemaOf)
  for (const pair of [STEP, CALL])
    rows.push(
      added(figures, {
        ...pair,
        what: `${count} tools (${kind}): ${pair.what}`,
        budget: count > 20 ? '< 0' : pair.budget,
      }),
    )
}
printTable(
  'What a guard adds to the AI SDK',
  ['what, in the best round', 'alone, µs', 'guarded, µs', 'added', 'budget'],
  rows,
)

/** Many runs at once on one gate and one agent, of which every other sees less: what they leave in memory. */
async function overlapping(): Promise<void> {
  const tools = toolsOf(SEEN, plain)
  const gate = createGate({
    tools: fromAiSdk(tools),
    policy: { deny: [{ match: 'tool_3', unless: "'admin' in caller.roles" }] },
  }) as unknown as Gate
  const agent = new ToolLoopAgent({
    model: modelOf(['done']),
    tools,
    callOptionsSchema: z.object({ user: z.string(), roles: z.array(z.string()) }),
    prepareCall: async ({ options, ...settings }) => ({ ...settings, ...(await guard(gate, options)) }),
  })
  const run = async (number: number) => {
    const roles = [number % 2 === 0 ? 'admin' : 'viewer']
    texts += (await agent.generate({ prompt: 'p', options: { user: `user-${number % 100}`, roles } })).text.length
  }
  const batch = async (total: number) => {
    for (let i = 0; i < total; i += 1000) await Promise.all(Array.from({ length: 1000 }, (_, n) => run(i + n)))
  }
  await batch(2000)
  const before = await heapMb()
  await batch(10_000)
  const mb = (await heapMb()) - before
  printTable('10,000 overlapping runs on one agent', ['what', 'MB', 'budget'], [['kept after them', digits(mb), '≤ 1']])
}

await overlapping()
if (texts === 0) throw new Error('the runs said nothing')
