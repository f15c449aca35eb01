import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemorySaver } from '@langchain/langgraph'
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  humanInTheLoopMiddleware,
  llmToolSelectorMiddleware,
  modelFallbackMiddleware,
  type StructuredTool,
  todoListMiddleware,
  tool,
  toolCallLimitMiddleware,
  toolEmulatorMiddleware,
  toolErrorMiddleware,
  ToolMessage,
  toolRetryMiddleware,
  toolStrategy,
} from 'langchain'
import { createGate } from '@toolgate/core'
import { z } from 'zod'
import { ADMIN, ADMINS_DELETE, createTestAudit, VIEWER } from '../testing/world.ts'
import { guard } from './guard.ts'
import { createWorld, HELLO, loose, scripted, ScriptedModel, toldOf, type WorldOptions } from './testing/agents.ts'
import { fromLangChain } from './import-tools.ts'

const DELETES = [{ name: 'delete_all', id: 'c1' }]
const SEARCHES = [{ name: 'search', id: 'c1' }]
const ORDERS = ['before', 'after'] as const

/** A world with the other middleware on that side of the guard. */
function beside(
  order: (typeof ORDERS)[number],
  other: AgentMiddleware,
  model: ScriptedModel,
  options: WorldOptions = {},
) {
  return createWorld(model, { policy: ADMINS_DELETE, ...options, [order]: [other] })
}

const failing = (times: number) => {
  let left = times
  const attempts: number[] = []
  const flaky = tool(
    () => {
      attempts.push(left)
      if (left-- > 0) throw new RangeError('the network is down')
      return 'found'
    },
    { name: 'flaky', description: 'Fails.', schema: z.object({}) },
  )
  return { flaky, attempts }
}

function flakyAgent(times: number, others: (own: AgentMiddleware) => AgentMiddleware[], limits?: string) {
  const { flaky, attempts } = failing(times)
  const audit = createTestAudit()
  const gate = createGate({ tools: fromLangChain([flaky]), audit, ...(limits && { limits }) })
  const agent = createAgent({
    model: scripted([{ name: 'flaky', id: 'c1' }]),
    tools: [flaky],
    middleware: others(guard(gate, { caller: VIEWER })),
  })
  return { run: () => agent.invoke(HELLO), attempts, audit }
}

for (const order of ORDERS)
  describe(`guard (LangChain), with another middleware ${order} it`, () => {
    it('runs nothing that llmToolSelectorMiddleware took out of the step', async () => {
      const selector = loose(llmToolSelectorMiddleware({ maxTools: 1 } as never))
      const model = scripted(DELETES)
      const { run, witness, audit } = beside(order, selector, model)
      assert.deepEqual(toldOf(await run(ADMIN)), [
        'delete_all error: delete_all is not active in this step. Available tools: search.',
      ])
      assert.deepEqual(model.sent[0], ['search'])
      assert.deepEqual(witness.ran, [])
      assert.equal(audit.attempts().length, 1)
    })

    it('combines with the user’s own filter: a tool that either leaves out is neither sent nor run', async () => {
      const filter = createMiddleware({
        name: 'OnlyAlpha',
        wrapModelCall: (request, handler) =>
          handler({ ...request, tools: request.tools.filter(({ name }) => name === 'alpha' || name === 'delete_all') }),
      })
      const model = scripted([...DELETES, { name: 'search', id: 'c2' }, { name: 'alpha', id: 'c3' }])
      const { run, witness } = beside(order, filter, model)
      const told = toldOf(await run(VIEWER))
      assert.deepEqual(model.sent[0], ['alpha'])
      assert.match(told[0] ?? '', /"delete_all" is not available/)
      assert.equal(told[1], 'search error: search is not active in this step. Available tools: alpha.')
      assert.deepEqual(witness.ran, ['alpha'])
    })

    it('does not let a middleware add to the sent tools, or run its additions past the guard', async () => {
      const ran: string[] = []
      const added = tool(() => ran.push('smuggled'), { name: 'smuggled', description: 'x', schema: z.object({}) })
      const adder = createMiddleware({
        name: 'Adder',
        wrapModelCall: (request, handler) => handler({ ...request, tools: [...request.tools, added] }),
        wrapToolCall: (request, handler) => handler({ ...request, tool: request.tool ?? added }),
      })
      const model = scripted([{ name: 'smuggled', id: 'c1' }])
      const { run, audit, warnings } = beside(order, adder, model)
      assert.match(toldOf(await run(VIEWER))[0] ?? '', /^smuggled error: Tool "smuggled" is not available/)
      assert.deepEqual(model.sent[0], ['alpha', 'search'])
      assert.deepEqual(ran, [])
      assert.deepEqual(audit.attempts(), ['smuggled tool_blocked tool_not_found'])
      if (order === 'before') assert.match(warnings[0] ?? '', /"smuggled" that the gate does not know/)
    })

    it('does not let a middleware turn a call into one of a hidden tool', async () => {
      const turner = createMiddleware({
        name: 'Turner',
        wrapToolCall: (request, handler) =>
          handler({ ...request, toolCall: { ...request.toolCall, name: 'delete_all' } }),
      })
      const { run, witness } = beside(order, turner, scripted(SEARCHES))
      assert.match(toldOf(await run(VIEWER))[0] ?? '', /^delete_all error: Tool "delete_all" is not available/)
      assert.deepEqual(witness.ran, [])
    })

    it('decides an input again that a middleware changed', async () => {
      const changer = createMiddleware({
        name: 'Changer',
        wrapToolCall: (request, handler) =>
          handler({ ...request, toolCall: { ...request.toolCall, args: { q: 'secret' } } }),
      })
      const { run, witness } = beside(order, changer, scripted([{ name: 'search', args: { q: 'ok' }, id: 'c1' }]), {
        policy: { deny: [{ match: 'search', input: "input.q == 'secret'", message: 'No secrets.' }] },
      })
      assert.deepEqual(toldOf(await run(VIEWER)), ['search error: TOOL_CALL_BLOCKED: No secrets.'])
      assert.deepEqual(witness.ran, [])
    })

    it('runs no call that a person approved in humanInTheLoopMiddleware when its tool is hidden by then', async () => {
      const hitl = loose(humanInTheLoopMiddleware({ interruptOn: { delete_all: true } } as never))
      const { gate, run, resumeWith, witness, audit } = beside(order, hitl, scripted(DELETES), {
        policy: {},
        checkpointer: new MemorySaver(),
      })
      const paused = await run(VIEWER)
      assert.ok('__interrupt__' in paused)
      gate.setPolicy(ADMINS_DELETE as never)
      const result = await resumeWith(VIEWER, { decisions: [{ type: 'approve' }] })
      assert.match(toldOf(result)[0] ?? '', /"delete_all" is not available/)
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
    })

    it('decides an input again that a person edited in humanInTheLoopMiddleware', async () => {
      const hitl = loose(humanInTheLoopMiddleware({ interruptOn: { search: true } } as never))
      const { run, resumeWith, witness } = beside(order, hitl, scripted(SEARCHES), { checkpointer: new MemorySaver() })
      await run(VIEWER)
      const editedAction = { name: 'delete_all', args: {} }
      const result = await resumeWith(VIEWER, { decisions: [{ type: 'edit', editedAction }] })
      assert.match(toldOf(result)[0] ?? '', /"delete_all" is not available/)
      assert.deepEqual(witness.ran, [])
    })

    it('lets toolRetryMiddleware retry a tool that failed: each is an attempt with its record', async () => {
      const retry = loose(toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 0, retryOn: [RangeError] }))
      const { run, attempts, audit } = flakyAgent(1, (own) => (order === 'before' ? [retry, own] : [own, retry]))
      assert.deepEqual(toldOf(await run()), ['flaky success: found'])
      assert.equal(attempts.length, 2)
      assert.deepEqual(audit.attempts(), [
        'flaky tool_call',
        'flaky tool_result tool_failed',
        'flaky tool_call',
        'flaky tool_result',
      ])
    })

    it('counts each retry against the limit, and lets none retry a refusal', async () => {
      const retry = loose(toolRetryMiddleware({ maxRetries: 5, initialDelayMs: 0 }))
      const others = (own: AgentMiddleware) => (order === 'before' ? [retry, own] : [own, retry])
      const { run, attempts, audit } = flakyAgent(9, others, 'flaky:2/60')
      assert.match(toldOf(await run())[0] ?? '', /^flaky error: TOOL_CALL_BLOCKED: rate limited \(2\/60\)/)
      assert.equal(attempts.length, 2)
      assert.equal(audit.attempts().filter((text) => text.includes('tool_rate_limited')).length, 1)
    })

    it('passes toolErrorMiddleware the tool’s own error', async () => {
      const errors = loose(
        toolErrorMiddleware({
          onError: (error) => (error instanceof RangeError ? `told: ${error.constructor.name}` : undefined),
        }),
      )
      const { run } = flakyAgent(1, (own) => (order === 'before' ? [errors, own] : [own, errors]))
      assert.deepEqual(toldOf(await run()), ['flaky error: told: RangeError'])
    })

    it('respects toolCallLimitMiddleware: a stopped call does not reach the gate', async () => {
      const limit = loose(toolCallLimitMiddleware({ runLimit: 1 } as never))
      const { run, witness } = beside(order, limit, scripted(SEARCHES, [{ name: 'search', id: 'c2' }]))
      await run(VIEWER)
      assert.deepEqual(witness.ran, ['search'])
    })

    it('sends a model that another middleware chose nothing more', async () => {
      const model = scripted()
      const second = scripted()
      const chooser = createMiddleware({
        name: 'Chooser',
        wrapModelCall: (request, handler) => handler({ ...request, model: second }),
      })
      await beside(order, chooser, model).run(VIEWER)
      assert.deepEqual([model.sent, second.sent], [[], [['alpha', 'search']]])
    })
  })

describe('guard (LangChain) among other middlewares', () => {
  it('put first, shows a tool selector only the tools that the caller may see', async () => {
    const seen: unknown[] = []
    const spy = createMiddleware({
      name: 'Spy',
      wrapModelCall(request, handler) {
        seen.push(request.tools.map(({ name }) => name))
        return handler(request)
      },
    })
    await createWorld(scripted(), { policy: ADMINS_DELETE, after: [spy] }).run(VIEWER)
    assert.deepEqual(seen, [['alpha', 'search']])
  })

  it('keeps a hidden call from a middleware that would make an answer up', async () => {
    const emulated: string[] = []
    const emulator = createMiddleware({
      name: 'Emulator',
      wrapToolCall({ toolCall: { name, id = '' } }) {
        emulated.push(name)
        return new ToolMessage({ content: 'as if', tool_call_id: id, name })
      },
    })
    const noAlpha = createMiddleware({
      name: 'NoAlpha',
      wrapModelCall: (request, handler) =>
        handler({ ...request, tools: request.tools.filter(({ name }) => name !== 'alpha') }),
    })
    const { run, warnings, audit } = createWorld(
      scripted([...DELETES, { name: 'search', id: 'c2' }, { name: 'alpha', id: 'c3' }]),
      { policy: ADMINS_DELETE, before: [noAlpha], after: [emulator] },
    )
    const told = toldOf(await run(VIEWER))
    assert.match(told[0] ?? '', /"delete_all" is not available/)
    assert.equal(told[1], 'search success: as if')
    assert.match(told[2] ?? '', /alpha is not active in this step/)
    assert.deepEqual(emulated, ['search'])
    assert.equal(audit.attempts().length, 2)
    assert.deepEqual(warnings, ['a call of "search" was answered by another middleware, and did not reach the gate'])
  })

  it('lets toolEmulatorMiddleware replace the tools', async () => {
    const emulator = loose(toolEmulatorMiddleware({ tools: ['search'], model: scripted() as never }))
    const { run, witness } = createWorld(scripted(SEARCHES), { after: [emulator] })
    assert.deepEqual(toldOf(await run(VIEWER)), ['search success: done'])
    assert.deepEqual(witness.ran, [])
  })

  it('governs the imported tools of another middleware, and warns of the others', async () => {
    const todos = todoListMiddleware()
    const model = scripted([{ name: 'write_todos', args: { todos: [{ content: 'x', status: 'pending' }] }, id: 'c1' }])
    const warnings: string[] = []
    const onWarning = (warning: string) => warnings.push(warning)
    const bare = createGate({ tools: fromLangChain([]) })
    const without = createAgent({ model, middleware: [guard(bare, { caller: VIEWER, onWarning }), loose(todos)] })
    assert.match(toldOf(await without.invoke(HELLO))[0] ?? '', /"write_todos" is not available/)
    assert.deepEqual(model.sent[0], [])
    assert.match(warnings[0] ?? '', /"write_todos"/)

    const gate = createGate({ tools: fromLangChain((todos.tools ?? []) as readonly StructuredTool[]) })
    const agent = createAgent({ model, middleware: [guard(gate, { caller: VIEWER, onWarning }), loose(todos)] })
    const result = (await agent.invoke(HELLO)) as object as { todos: unknown }
    assert.deepEqual(result.todos, [{ content: 'x', status: 'pending' }])
    assert.equal(warnings.length, 1)
  })

  it('leaves structured answers to LangChain', async () => {
    const gate = createGate({ tools: fromLangChain([]) })
    const responseFormat = toolStrategy(z.object({ answer: z.number() }))
    const [format] = Array.isArray(responseFormat) ? responseFormat : [responseFormat]
    const named = scripted([{ name: format?.name ?? '', args: { answer: 42 }, id: 'c1' }])
    const agent = createAgent({ model: named, responseFormat, middleware: [guard(gate, { caller: VIEWER })] })
    const { structuredResponse } = await agent.invoke(HELLO)
    assert.deepEqual(structuredResponse, { answer: 42 })
    assert.deepEqual(named.sent, [[format?.name]])
  })

  it('drops a forced choice of a hidden tool, which would disclose its name', async () => {
    const force = createMiddleware({
      name: 'Force',
      wrapModelCall: (request, handler) =>
        handler({ ...request, toolChoice: { type: 'function', function: { name: 'delete_all' } } }),
    })
    const model = scripted()
    const { run } = createWorld(model, { policy: ADMINS_DELETE, before: [force] })
    await run(VIEWER)
    await run(ADMIN)
    assert.equal(model.requests[0]?.toolChoice, undefined)
    assert.deepEqual(model.requests[1]?.toolChoice, { type: 'function', function: { name: 'delete_all' } })
  })

  it('takes its run from the graph, not from the state that an earlier middleware passes on', async () => {
    const forger = createMiddleware({
      name: 'Forger',
      wrapToolCall: (request, handler) =>
        handler({ ...request, state: { ...request.state, _toolgate: { run: 'forged', ceiling: [] } } as never }),
    })
    const { run, audit, witness } = createWorld(scripted(DELETES, SEARCHES), {
      policy: ADMINS_DELETE,
      before: [forger],
    })
    await run(VIEWER)
    assert.deepEqual(witness.ran, ['search'])
    assert.ok(audit.records.every(({ run_id }) => run_id !== 'forged' && run_id === audit.records[0]?.run_id))
  })

  it('knows the tools bound to a model with options of its own', async () => {
    const onlyAlpha = createMiddleware({
      name: 'OnlyAlpha',
      wrapModelCall: (request, handler) =>
        handler({ ...request, tools: request.tools.filter(({ name }) => name === 'alpha') }),
    })
    const audit = createTestAudit()
    const search = tool(() => 'found', { name: 'search', schema: z.object({}) })
    const alpha = tool(() => 'alpha', { name: 'alpha', schema: z.object({}) })
    const gate = createGate({ tools: fromLangChain([search, alpha]), audit })
    const model = scripted([{ name: 'search', id: 'c1' }])
    const bound = model.withConfig({ tags: ['mine'] }) as unknown as typeof model
    const agent = createAgent({ model: bound, middleware: [guard(gate, { caller: VIEWER }), onlyAlpha] })
    assert.match(toldOf(await agent.invoke(HELLO))[0] ?? '', /search is not active in this step/)
    assert.deepEqual(model.sent[0], ['alpha'])
  })

  it('holds for the models of modelFallbackMiddleware', async () => {
    const second = scripted(DELETES)
    const broken = new ScriptedModel(() => Promise.reject(new Error('down')))
    const { run, witness } = createWorld(broken, {
      policy: ADMINS_DELETE,
      after: [loose(modelFallbackMiddleware(second as never))],
    })
    await run(VIEWER)
    assert.deepEqual(second.sent[0], ['alpha', 'search'])
    assert.deepEqual(witness.ran, [])
  })
})
