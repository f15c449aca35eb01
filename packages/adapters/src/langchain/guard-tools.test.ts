import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Annotation, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { createGate } from '@toolgate/core'
import { tool, type ToolMessage } from 'langchain'
import { z } from 'zod'
import { RefusedCall } from '../shared/refused.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'
import { decideApprovals } from './approvals.ts'
import { guardTools } from './guard-tools.ts'
import { HELLO, langChainWorld, scripted, type ScriptedModel, toldOf } from './testing/agents.ts'
import { fromLangChain } from './import-tools.ts'

function graphOf(model: ScriptedModel, { ask = false } = {}) {
  const witness = createWitness()
  const audit = createTestAudit()
  const gate = createGate({
    tools: fromLangChain(langChainWorld(witness)),
    policy: (ask ? { ask: ['delete_all'] } : ADMINS_DELETE) as object,
    audit,
  })
  const guarded = guardTools(gate, { caller: (runtime) => runtime.context.caller })
  const graph = new StateGraph(MessagesAnnotation, Annotation.Root({ caller: Annotation<object> }))
    .addNode('model', async ({ messages }, config) => ({
      messages: [await model.bindTools(await guarded.visible(config)).invoke(messages)],
    }))
    .addNode('tools', new ToolNode(guarded.tools))
    .addEdge(START, 'model')
    .addConditionalEdges('model', toolsCondition)
    .addEdge('tools', 'model')
    .compile({ checkpointer: new MemorySaver() })
  const config = (caller: object) => ({ context: { caller }, configurable: { thread_id: '1' } })
  return { witness, audit, gate, guarded, graph, config }
}

describe('guardTools (LangGraph’s ToolNode)', () => {
  it('binds what the run may see, and refuses the rest in the gate’s words', async () => {
    const model = scripted([
      { name: 'delete_all', id: 'c1' },
      { name: 'search', id: 'c2' },
    ])
    const { graph, config, witness, audit } = graphOf(model)
    const result = await graph.invoke(HELLO, config(VIEWER))
    assert.deepEqual(model.sent[0], ['alpha', 'search'])
    assert.deepEqual(toldOf(result), [
      'delete_all error: Tool "delete_all" is not available. Available tools: alpha, search.',
      'search success: search done',
    ])
    assert.deepEqual(witness.ran, ['search'])
    assert.equal(audit.attempts()[0], 'delete_all tool_blocked policy_denied')
  })

  it('serves overlapping runs of one graph, each by its own caller', async () => {
    const model = scripted([{ name: 'delete_all' }])
    const { graph, witness } = graphOf(model)
    const callers = Array.from({ length: 20 }, (_, i) => (i % 2 ? ADMIN : VIEWER))
    const results = await Promise.all(
      callers.map((caller, i) => graph.invoke(HELLO, { context: { caller }, configurable: { thread_id: `${i}` } })),
    )
    for (const [i, result] of results.entries())
      assert.equal(toldOf(result)[0]?.startsWith('delete_all error'), callers[i] === VIEWER)
    assert.equal(witness.ran.length, 10)
  })

  it('pauses for approvals as an agent does', async () => {
    const { graph, gate, config, witness } = graphOf(scripted([{ name: 'delete_all', id: 'c1' }]), { ask: true })
    const paused = await graph.invoke(HELLO, config(VIEWER))
    assert.deepEqual(witness.ran, [])
    await decideApprovals(gate, { user: 'vera' }, paused, { decision: 'approve' })
    assert.deepEqual(toldOf(await graph.invoke(null, config(VIEWER))), ['delete_all success: delete_all done'])
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('may be called directly: a refusal is then an error with the model’s text', async () => {
    const { guarded, witness } = graphOf(scripted())
    const byHand = (name: string, caller: object) =>
      guarded.tools.find((one) => one.name === name)?.invoke({}, { context: { caller } } as object)
    assert.equal(await byHand('search', VIEWER), 'search done')
    await assert.rejects(
      async () => byHand('delete_all', VIEWER),
      (error) => error instanceof RefusedCall && String(error).startsWith('Tool "delete_all" is not available.'),
    )
    assert.deepEqual(witness.ran, ['search'])
  })

  it('reports a tool that throws as an agent does, and ends with its signal', async () => {
    const controller = new AbortController()
    const gone = new Error('gone')
    const broken = tool(() => Promise.reject(new RangeError('boom')), { name: 'broken', schema: z.object({}) })
    const slow = tool(
      () => {
        controller.abort(gone)
        return new Promise(() => {})
      },
      { name: 'slow', schema: z.object({}) },
    )
    const gate = createGate({ tools: fromLangChain([broken, slow]) })
    const { tools } = guardTools(gate, { caller: VIEWER })
    const invoke = async (name: string, signal?: AbortSignal): Promise<ToolMessage> => {
      const call = { type: 'tool_call', name, args: {}, id: 'c1' }
      return tools.find((one) => one.name === name)?.invoke(call, signal && { signal }) as Promise<ToolMessage>
    }
    const told = await invoke('broken')
    assert.deepEqual([told.status, told.content], ['error', 'broken failed: boom'])
    await assert.rejects(invoke('broken', AbortSignal.abort(new Error('left'))), /left/)
    await assert.rejects(invoke('slow', controller.signal), (error) => error === gone)
  })
})
