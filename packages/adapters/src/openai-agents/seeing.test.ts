import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Agent, RunContext, Runner, tool, toolSearchTool } from '@openai/agents'
import { modelResponder, ScriptedModel } from '@openai/agents/testing'
import { createGate, defineCaller, defineTool, type ToolRecord, UnknownToolError } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import { fromOpenAIAgents, guard } from '../openai-agents.ts'
import {
  callOf,
  calls,
  createScene,
  createTools,
  DONE,
  NO_INPUT,
  runnerOf,
  sentTools,
  type Session,
  toldTexts,
} from '../testing/openai-agents-scene.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'

describe('guard: what a run sees', () => {
  it('is what its caller may see, and nothing else is sent to the model', async () => {
    const { agent, runner, model } = createScene({ script: [DONE, DONE] })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    await runner.run(agent, 'hi', { context: { caller: ADMIN } })
    assert.deepEqual(sentTools(model), [
      ['alpha', 'search'],
      ['alpha', 'delete_all', 'search'],
    ])
    assert.doesNotMatch(JSON.stringify(model.firstCall?.request), /delete_all/)
  })

  it('has request_tools where a group is locked, and what it opened from the next step on', async () => {
    const { agent, runner, model, witness } = createScene({
      script: [[callOf('request_tools', { group: 'found' })], calls('search'), DONE],
      groups: { found: { tools: ['search'], unlock: 'request' } },
    })
    await runner.run(agent, 'hi', { context: { caller: defineCaller({ ...VIEWER, session: 's1' }) } })
    assert.deepEqual(sentTools(model), [
      ['alpha', 'request_tools'],
      ['alpha', 'search'],
      ['alpha', 'search'],
    ])
    assert.deepEqual(toldTexts(model), [
      'The group "found" is open. In your list from your next step on: search.',
      'search done',
    ])
    assert.deepEqual(witness.ran, ['search'])
  })

  it('is its own on one shared agent, however many runs overlap', async () => {
    const { agent, runner, witness, audit, model } = createScene()
    const answer = modelResponder(async ({ request }) => {
      await turn()
      return Array.isArray(request.input) && request.input.length > 1 ? DONE : calls('delete_all', 'search')
    })
    const runs = Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? VIEWER : ADMIN))
    model.enqueue(...runs.flatMap(() => [answer, answer]))
    await Promise.all(runs.map((caller) => runner.run(agent, 'hi', { context: { caller } })))
    assert.deepEqual(countOf(sentTools(model).map(String)), { 'alpha,search': 60, 'alpha,delete_all,search': 60 })
    assert.deepEqual(countOf(witness.ran), { delete_all: 30, search: 60 })
    const deleted = audit.records.filter((one) => one.tool === 'delete_all' && one.event !== 'tool_result')
    assert.deepEqual(countOf(deleted.map(({ user_id, event }) => `${user_id} ${event}`)), {
      'ada tool_call': 30,
      'vera tool_blocked': 30,
    })
  })

  it('is no more than the user’s own isEnabled says', async () => {
    const hidden = tool({ ...ABOUT, name: 'hidden', isEnabled: false })
    const gate = createGate({ tools: fromOpenAIAgents([hidden, tool({ ...ABOUT, name: 'shown' })]) })
    const { tools, runConfig } = guard(gate, { caller: VIEWER })
    const model = new ScriptedModel([DONE])
    await runnerOf({ runConfig }).run(new Agent({ name: 'A', model, tools }), 'hi')
    assert.deepEqual(sentTools(model), [['shown']])
  })

  it('can be narrowed by activeTools and visibility, and names that nobody knows are an error at once', async () => {
    const { agent, runner, model, gate } = createScene({
      script: [DONE],
      guard: {
        activeTools: ['search', 'delete_all'],
        visibility: ({ tools }) => tools.filter(({ id }) => id !== 'alpha'),
      },
    })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(sentTools(model), [['search']])
    const misspelt = () => guard(gate, { caller: VIEWER, activeTools: ['serach'] })
    assert.throws(misspelt, (error) => error instanceof UnknownToolError && /"search"/.test(error.message))
  })

  it('is nothing where visibility fails', async () => {
    const fail = () => {
      throw new Error('down')
    }
    const { agent, runner, model } = createScene({ script: [DONE], guard: { visibility: fail } })
    await runner.run(agent, 'hi', { context: { caller: ADMIN } })
    assert.deepEqual(sentTools(model), [[]])
  })

  it('is nothing where nobody says who runs the agent: the run ends before the model is asked', async () => {
    const { agent, runner, model } = createScene({ script: [DONE] })
    await assert.rejects(runner.run(agent, 'hi', { context: {} }), /guard\.caller.*no caller/)
    await assert.rejects(runner.run(agent, 'hi', { context: { caller: { role: 'admin' } } }), {
      code: 'caller_untrusted',
    })
    assert.equal(model.calls.length, 0)
  })

  it('is asked for anew where it could not be opened', async () => {
    let isDown = true
    const runId = () => {
      if (isDown) throw new Error('no ids today')
      return 'r1'
    }
    const { agent, runner, model } = createScene({ script: [DONE], guard: { runId } })
    const context = new RunContext<Session>({ caller: VIEWER })
    await assert.rejects(runner.run(agent, 'hi', { context }), /no ids today/)
    isDown = false
    await runner.run(agent, 'hi', { context })
    assert.deepEqual(sentTools(model), [['alpha', 'search']])
  })

  it('follows what becomes unavailable between two steps, and its coming back', async () => {
    const availability = memoryAvailability()
    availability.set('web', { available: true })
    const { agent, runner, model, witness } = createScene({
      groups: { web: { tools: ['search'], visibility: 'conditional' } },
      availability,
    })
    const off = modelResponder(() => {
      availability.set('web', { available: false, reason: 'it is down', suggestion: 'Start it.' })
      return calls('alpha')
    })
    const on = modelResponder(() => {
      availability.set('web', { available: true })
      return [callOf('alpha', {}, 'again')]
    })
    model.enqueue(off, calls('search'), on, DONE)
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(sentTools(model), [['alpha', 'search'], ['alpha'], ['alpha'], ['alpha', 'search']])
    assert.deepEqual(witness.ran, ['alpha', 'alpha'])
    assert.equal(toldTexts(model)[1], 'search is unavailable: it is down. Start it.')
  })

  it('is the tighter of then and now: a policy that hides takes effect in the run, one that shows does not', async () => {
    const { agent, runner, model, gate, witness } = createScene()
    const hide = modelResponder(() => {
      gate.setPolicy({ deny: ['search'] })
      return calls('search')
    })
    const show = modelResponder(() => {
      gate.setPolicy({})
      return calls('delete_all')
    })
    model.enqueue(hide, show, DONE)
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(sentTools(model), [['alpha', 'search'], ['alpha'], ['alpha', 'search']])
    assert.deepEqual(witness.ran, [])
  })

  it('is another caller’s as soon as the context says that it is another who runs the agent', async () => {
    const { agent, runner, model, witness } = createScene()
    const context: Session = { caller: ADMIN }
    const downgrade = modelResponder(() => {
      context.caller = defineCaller({ ...ADMIN, roles: [] })
      return calls('delete_all')
    })
    model.enqueue(downgrade, DONE)
    await runner.run(agent, 'hi', { context })
    assert.deepEqual(sentTools(model), [
      ['alpha', 'delete_all', 'search'],
      ['alpha', 'search'],
    ])
    assert.deepEqual(witness.ran, [])
  })

  it('is listed anew by each step, and each call is recorded with its run and step', async () => {
    const { agent, runner, audit, model } = createScene({ script: [calls('search'), calls('alpha'), DONE] })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.equal(model.calls.length, 3)
    assert.deepEqual(
      audit.records.map(({ tool: id, event, step }) => [id, event, step]),
      [
        ['search', 'tool_call', 0],
        ['search', 'tool_result', 0],
        ['alpha', 'tool_call', 1],
        ['alpha', 'tool_result', 1],
      ],
    )
    assert.equal(new Set(audit.records.map(({ run_id }) => run_id)).size, 1)
  })

  it('has the run’s own id in the audit where the host gives one', async () => {
    const { agent, runner, audit } = createScene({
      script: [calls('search'), DONE],
      guard: { runId: ({ context }) => `run of ${context.caller.user}` },
    })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(new Set(audit.records.map(({ run_id }) => run_id)), new Set(['run of vera']))
  })

  it('holds in streamed runs too', async () => {
    const { agent, runner, model, witness, audit } = createScene({ script: [calls('delete_all', 'search'), DONE] })
    const stream = await runner.run(agent, 'hi', { context: { caller: VIEWER }, stream: true })
    for await (const _ of stream);
    await stream.completed
    assert.equal(stream.finalOutput, 'done')
    assert.deepEqual(sentTools(model)[0], ['alpha', 'search'])
    assert.deepEqual(witness.ran, ['search'])
    assert.equal(audit.attempts().at(-1), 'delete_all tool_blocked policy_denied')
  })

  it('is the same for the host’s own RunContext', async () => {
    const { agent, runner, model } = createScene({ script: [DONE] })
    await runner.run(agent, 'hi', { context: new RunContext<Session>({ caller: ADMIN }) })
    assert.deepEqual(sentTools(model), [['alpha', 'delete_all', 'search']])
  })
})

describe('guard: the tools of a gate', () => {
  it('keep their names, schemas and strictness as the SDK sends them', async () => {
    const witness = createWitness()
    const { search } = createTools(witness)
    const gate = createGate({ tools: fromOpenAIAgents([search]) })
    const models = [new ScriptedModel([DONE]), new ScriptedModel([DONE])] as const
    const guarded = guard(gate, { caller: VIEWER })
    const runner = new Runner({ tracingDisabled: true })
    await runner.run(new Agent({ name: 'A', model: models[0], tools: [search] }), 'hi', { context: { caller: VIEWER } })
    await runner.run(new Agent({ name: 'A', model: models[1], tools: guarded.tools }), 'hi')
    assert.deepEqual(models[1].firstCall?.request.tools, models[0].firstCall?.request.tools)
  })

  it('may be defined for the gate itself: names that the wire refuses are mapped, and mapped back', async () => {
    const witness = createWitness()
    const own = defineTool({
      namespace: 'files',
      name: 'read.file',
      inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      execute: witness.body('files:read.file'),
    })
    const gate = createGate({ tools: [own, defineTool({ name: 'alpha', execute: () => 'a' })] })
    const guarded = guard(gate, { caller: VIEWER })
    const model = new ScriptedModel()
    const name = guarded.tools.map((one) => one.name).find((one) => one.startsWith('files')) ?? ''
    assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
    model.enqueue(
      [{ type: 'function_call', callId: 'c1', name, arguments: '{"path":"a"}' }],
      [{ type: 'function_call', callId: 'c2', name: 'files:read.file', arguments: '{"path":"a"}' }],
      DONE,
    )
    await runnerOf(guarded).run(new Agent({ name: 'A', model, tools: guarded.tools }), 'hi')
    assert.deepEqual(witness.ran, ['files:read.file'])
    assert.equal(toldTexts(model)[0], 'files:read.file done')
  })

  it('of which an agent needs only some may be picked', async () => {
    const { guarded, runner, audit, witness } = createScene()
    const model = new ScriptedModel([calls('alpha'), DONE])
    const tools = guarded.tools.filter(({ name }) => name === 'search')
    await runner.run(new Agent<Session>({ name: 'B', model, tools }), 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(sentTools(model)[0], ['search'])
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(toldTexts(model), ["Tool 'alpha' not found."])
    assert.deepEqual(audit.attempts(), ['alpha tool_blocked input_invalid'])
  })

  it('must have names that differ in the SDK too', () => {
    const { search } = createTools(createWitness())
    const native: ToolRecord = fromOpenAIAgents([{ ...search, name: 'files__search' }])
    const gate = createGate({ tools: { ...native, 'files:search': { execute: () => 'x' } } })
    assert.throws(() => guard(gate, { caller: VIEWER }), /"files:search" and "files__search" are both "files__search"/)
  })

  it('that are deferred are sent to those who may see them, and run only once the SDK has loaded them', async () => {
    const ran: string[] = []
    const make = (name: string) => tool({ ...ABOUT, name, deferLoading: true, execute: () => ran.push(name) })
    const audit = createTestAudit()
    const gate = createGate({
      tools: fromOpenAIAgents([make('search'), make('delete_all')]),
      policy: ADMINS_DELETE,
      audit,
    })
    const guarded = guard(gate, { caller: VIEWER, ungoverned: [toolSearchTool()] })
    const model = new ScriptedModel([calls('search', 'delete_all'), DONE])
    await runnerOf(guarded).run(new Agent({ name: 'A', model, tools: guarded.tools }), 'hi')
    assert.deepEqual(sentTools(model)[0], ['search', 'tool_search'])
    assert.deepEqual(ran, [])
    assert.match(toldTexts(model)[0] ?? '', /search is not loaded.*Call tool_search/)
    assert.equal(toldTexts(model)[1], 'Tool "delete_all" is not available. Available tools: search.')
    assert.deepEqual(audit.attempts(), ['search tool_blocked input_invalid', 'delete_all tool_blocked policy_denied'])
  })

  it('stand beside the hosted tools that everybody may use', async () => {
    const hosted = { type: 'hosted_tool', name: 'web_search', providerData: { type: 'web_search' } } as const
    const { guarded, runner } = createScene({ guard: { ungoverned: [hosted] } })
    const model = new ScriptedModel([DONE])
    const agent = new Agent<Session>({ name: 'A', model, tools: guarded.tools })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(sentTools(model), [['alpha', 'search', 'web_search']])
  })
})

const ABOUT = { description: 'x', parameters: NO_INPUT, execute: () => 'x' }

function countOf(values: readonly string[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return Object.fromEntries(counts)
}
