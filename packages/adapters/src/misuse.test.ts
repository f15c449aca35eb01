import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { McpServer, Server } from '@modelcontextprotocol/server'
import { ConfigError, createGate, defineTool, type Gate } from '@toolgate/core'
import * as aiSdk from './ai-sdk.ts'
import * as anthropic from './anthropic.ts'
import * as claudeAgent from './claude-agent.ts'
import * as gemini from './gemini.ts'
import * as langchain from './langchain.ts'
import { langChainWorld } from './langchain/testing/agents.ts'
import * as mastra from './mastra.ts'
import * as mcp from './mcp.ts'
import * as openaiAgents from './openai-agents.ts'
import * as openai from './openai.ts'
import { createRun } from './run.ts'
import { createAiSdkWorld } from './testing/ai-sdk-world.ts'
import { createTools as createMastraTools } from './testing/mastra-scene.ts'
import { INFO } from './testing/mcp-ways.ts'
import { createTools as createAgentsTools } from './testing/openai-agents-scene.ts'
import { createWitness, VIEWER } from './testing/world.ts'

type Options = Record<string, unknown>
type Call = (...args: unknown[]) => unknown

const createTestGate = (): Gate =>
  createGate({ tools: ['alpha', 'search'].map((name) => defineTool({ name, execute: () => name })) })

/** Runs a function that may throw or reject, and returns the error. */
async function errorOf(work: () => unknown): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  return assert.fail('nothing was thrown')
}

async function assertConfigError(work: () => unknown, path: string, problem: RegExp): Promise<void> {
  const error = await errorOf(work)
  assert.ok(error instanceof ConfigError, `${String(error)} is no ConfigError`)
  assert.equal(error.path, path)
  assert.match(error.problem, problem)
}

/** Every `guard`, as (gate, options): with the caller where each adapter takes it. */
interface GuardRow {
  readonly name: string
  readonly guard: Call
  /** Whether the caller is an argument, and not an option. */
  readonly takesCaller: boolean
  readonly options?: Options
}
const loose = (call: unknown): Call => call as Call
const GUARDS: readonly GuardRow[] = [
  { name: 'ai-sdk', guard: loose(aiSdk.guard), takesCaller: true },
  { name: 'claude-agent', guard: loose(claudeAgent.guard), takesCaller: true },
  { name: 'openai', guard: loose(openai.guard), takesCaller: true },
  { name: 'anthropic', guard: loose(anthropic.guard), takesCaller: true },
  { name: 'gemini', guard: loose(gemini.guard), takesCaller: true },
  { name: 'langchain', guard: loose(langchain.guard), takesCaller: false },
  { name: 'langchain guardTools', guard: loose(langchain.guardTools), takesCaller: false },
  { name: 'mastra', guard: loose(mastra.guard), takesCaller: false },
  { name: 'mastra searchFilter', guard: loose(mastra.searchFilter), takesCaller: false },
  { name: 'openai-agents', guard: loose(openaiAgents.guard), takesCaller: false },
  { name: 'mcp', guard: loose(mcp.guard), takesCaller: false, options: { server: () => new Server(INFO) } },
]

const WHO = { mastra: () => VIEWER, 'mastra searchFilter': () => VIEWER } as Readonly<Record<string, unknown>>

function guardWith({ name, guard, takesCaller, options }: GuardRow, more: Options, gate: unknown = createTestGate()) {
  const caller = WHO[name] ?? VIEWER
  return takesCaller ? guard(gate, caller, { ...options, ...more }) : guard(gate, { caller, ...options, ...more })
}

describe('guard, in every adapter', () => {
  for (const row of GUARDS) {
    it(`${row.name}: takes what it knows`, async () => {
      await guardWith(row, {})
    })

    it(`${row.name}: an unknown option is an error that names the nearest`, async () => {
      const known = 'visibility'
      const misspelt = `${known}s`
      await assertConfigError(
        () => guardWith(row, { [misspelt]: [] }),
        `guard.${misspelt}`,
        new RegExp(`unknown option.*"${known}"`),
      )
    })

    it(`${row.name}: no caller is an error that says what is missing`, async () => {
      await assertConfigError(() => row.guard(createTestGate()), 'guard.caller', /is missing: say who the run is for/)
      const missing = row.takesCaller ? [undefined, {}] : [{ ...row.options }]
      await assertConfigError(() => row.guard(createTestGate(), ...missing), 'guard.caller', /is missing/)
    })

    it(`${row.name}: what is no gate is an error`, async () => {
      for (const gate of [undefined, VIEWER, await createTestGate().view(VIEWER)])
        await assertConfigError(
          () => (gate === undefined ? row.guard() : guardWith(row, {}, gate)),
          'guard.gate',
          /must be what createGate returned/,
        )
    })
  }

  it('createRun: checks its arguments, its options and its calls as well', async () => {
    const open = loose(createRun)
    await assertConfigError(() => open(), 'createRun.gate', /must be what createGate returned/)
    await assertConfigError(() => open(createTestGate()), 'createRun.caller', /is missing: say who the run is for/)
    const misspelt = { activTools: [] }
    await assertConfigError(
      () => open(createTestGate(), VIEWER, misspelt),
      'createRun.activTools',
      /unknown option.*"activeTools"/,
    )
    await assertConfigError(() => open(createTestGate(), VIEWER, { mode: 'mask' }), 'createRun.mode', /unknown option/)
    await assertConfigError(
      async () => createRun(createTestGate(), VIEWER, { target: {} as never }).then((run) => run.next()),
      'target',
      /defineTarget/,
    )
    const run = await createRun(createTestGate(), VIEWER)
    const call = { name: 'search', input: {} }
    await assertConfigError(() => run.call(call), 'run', /call next\(\)/)
    await assertConfigError(() => run.requestApproval(call), 'run', /call next\(\)/)
    await run.next()
    await assertConfigError(() => run.call({ ...call, callID: '1' } as never), 'call.callID', /unknown field.*"callId"/)
    await assertConfigError(
      () => run.requestApproval({ ...call, inputs: {} } as never),
      'requestApproval.inputs',
      /unknown field.*"input"/,
    )
  })

  it('options that a function returns for one run are checked as well', async () => {
    const misspelt = () => ({ activTools: [] }) as never
    const { visible } = langchain.guardTools(createTestGate(), { caller: VIEWER, view: misspelt })
    await assertConfigError(() => visible(), 'guard.view.activTools', /"activeTools"/)
    const { tools } = mastra.guard(createTestGate(), {
      caller: () => VIEWER,
      view: () => ({ activTools: [] }) as never,
    })
    const { RequestContext } = await import('@mastra/core/request-context')
    await assertConfigError(
      () => tools({ requestContext: new RequestContext() }),
      'guard.view.activTools',
      /"activeTools"/,
    )
    await assertConfigError(
      () => mastra.guard(createTestGate(), { caller: () => VIEWER, view: { activeTools: [] } as never }),
      'guard.view',
      /must be a function of the run/,
    )
  })
})

describe('wrapToolMapWithHooks', () => {
  const wrap = loose(aiSdk.wrapToolMapWithHooks)
  const hooks = { beforeToolCall() {} }
  for (const [misspelt, meant, use] of [
    ['userID', 'userId', () => wrap({}, hooks, { userID: 'vera' })],
    ['usrId', 'userId', () => wrap({}, hooks, { usrId: 'vera' })],
    ['beforeToolcall', 'beforeToolCall', () => wrap({}, { beforeToolcall() {} })],
  ] as const)
    it(`takes no "${misspelt}", and names ${meant}`, async () => {
      const error = await errorOf(use)
      assert.ok(error instanceof ConfigError)
      assert.ok(error.path.endsWith(misspelt))
      assert.match(error.problem, new RegExp(`"${meant}"`))
    })
})

describe('options that are spread before they are awaited', () => {
  const spread = (given: object): object => ({ ...given })

  it('throws: guard of the Claude Agent SDK', () => {
    const gate = createGate({ tools: claudeAgent.fromClaudeAgent(['Bash']) })
    assert.throws(() => spread(claudeAgent.guard(gate, VIEWER)), { name: 'ConfigError', message: /\(await guard/ })
  })

  for (const [name, guard] of Object.entries({
    openai: openai.guard,
    anthropic: anthropic.guard,
    gemini: gemini.guard,
  }))
    it(`throws: next() of a run of ${name}`, async () => {
      const run = await loose(guard)(createTestGate(), VIEWER)
      const { next } = run as { next(): object }
      assert.throws(() => spread(next()), { name: 'ConfigError', message: /\(await run\.next\(\)\)/ })
    })
})

/** Every `from…` with an overlay. */
const witness = createWitness()
const FROMS: Readonly<Record<string, (overlay: Options) => unknown>> = {
  fromAiSdk: (overlay) => aiSdk.fromAiSdk(createAiSdkWorld().tools, overlay as never),
  fromLangChain: (overlay) => langchain.fromLangChain(langChainWorld(witness), overlay as never),
  fromMastra: (overlay) => mastra.fromMastra(createMastraTools(witness), overlay as never),
  fromOpenAIAgents: (overlay) =>
    openaiAgents.fromOpenAIAgents(Object.values(createAgentsTools(witness)) as never, overlay as never),
  fromClaudeAgent: (overlay) => claudeAgent.fromClaudeAgent(['search', 'alpha'], overlay as never),
}
const fromServer = (options: unknown) => {
  const server = new McpServer(INFO)
  server.registerTool('search', {}, () => ({ content: [] }))
  return mcp.fromMcpServer(server, options as never)
}

describe('from…, in every adapter', () => {
  for (const [name, from] of Object.entries(FROMS)) {
    it(`${name}: an unknown field of an overlay is an error that names the nearest`, () =>
      assertConfigError(() => from({ search: { tag: ['x'] } }), 'overlay.search.tag', /unknown field.*"tags"/))

    it(`${name}: a name that no tool has is an error that names the nearest`, () =>
      assertConfigError(() => from({ serach: { tags: ['x'] } }), 'overlay.serach', /"search"/))
  }

  for (const [name, from] of Object.entries(FROMS))
    it(`${name}: an overlay that nobody awaited is an error`, () =>
      assertConfigError(() => from(Promise.resolve({ search: { tags: ['x'] } }) as never), 'overlay', /await it first/))

  it('fromMcpServer: an overlay that nobody awaited is an error', () =>
    assertConfigError(() => fromServer({ overlay: Promise.resolve({}) }), 'overlay', /await it first/))

  it('fromMcpServer: an unknown option or field is an error', async () => {
    await assertConfigError(() => fromServer({ namespce: 'x' }), 'fromMcpServer.namespce', /"namespace"/)
    await assertConfigError(() => fromServer({ overlay: { search: { tag: ['x'] } } }), 'overlay.search.tag', /"tags"/)
  })

  it('fromMcpClient: an unknown option is an error', async () => {
    const client = { listTools: () => ({ tools: [] }), callTool: () => ({}) }
    await assertConfigError(
      () => mcp.fromMcpClient(client as never, { trustHint: true } as never),
      'fromMcpClient.trustHint',
      /"trustHints"/,
    )
  })
})

describe('decisions about approvals, in every adapter', () => {
  const YES = { approve: true }
  it('takes an approval or a rejection, and nothing like it', async () => {
    const gate = createTestGate()
    const paused = { __interrupt__: [] }
    await assertConfigError(
      () => langchain.decideApprovals(gate, VIEWER, paused, YES as never),
      'answer.approve',
      /unknown option/,
    )
    await assertConfigError(
      () => langchain.decideApprovals(gate, VIEWER, paused, { decision: 'aprove' } as never),
      'answer.decision',
      /must be "approve" or "reject"/,
    )
    const guarded = openaiAgents.guard(gate, { caller: VIEWER })
    await assertConfigError(
      () => guarded.answer({} as never, {} as never, VIEWER, YES as never),
      'answer.approve',
      /unknown option/,
    )
    await assertConfigError(
      () => mastra.answerToolCall({} as never, {} as never, { by: VIEWER, decision: 'aprove' } as never),
      'answer.decision',
      /must be "approve" or "reject"/,
    )
  })

  it('applyApprovals: an unknown option is an error that names the nearest', () =>
    assertConfigError(
      () => aiSdk.applyApprovals(createTestGate(), VIEWER, [], { requestor: VIEWER } as never),
      'applyApprovals.requestor',
      /"requester"/,
    ))
})

describe('imports, in every adapter', () => {
  const list: readonly (readonly [string, Call, unknown, RegExp])[] = [
    ['AI SDK: a list', aiSdk.fromAiSdk as Call, [{}], /must be a record of tools by name/],
    ['AI SDK: nothing', aiSdk.fromAiSdk as Call, undefined, /must be a record of tools by name/],
    ['LangChain: a record', langchain.fromLangChain as Call, { search: {} }, /must be a list of LangChain tools/],
    ['LangChain: a name', langchain.fromLangChain as Call, ['search'], /"search" is a name: pass the tool itself/],
    ['Mastra: a list', mastra.fromMastra as Call, [{}], /must be a record of tools made with createTool by name/],
    ['OpenAI Agents: nothing', openaiAgents.fromOpenAIAgents as Call, undefined, /must be a list of function tools/],
    ['OpenAI Agents: a name', openaiAgents.fromOpenAIAgents as Call, ['search'], /"search" is a name/],
    ['Claude Agent SDK: nothing', claudeAgent.fromClaudeAgent as Call, undefined, /must be a list of names/],
  ]
  for (const [what, run, tools, problem] of list)
    it(`refuses what cannot be imported: ${what}`, () => assertConfigError(() => run(tools), 'tools', problem))
})
