import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type BaseCheckpointSaver,
  Command,
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { createReactAgent, ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { createGate } from '@toolgate/core'
import { type ApprovalStore, memoryApprovals } from '@toolgate/core/stores'
import { createAgent, tool, ToolMessage } from 'langchain'
import { z } from 'zod'
import { until } from '../testing/until.ts'
import { VIEWER } from '../testing/world.ts'
import { decideApprovals } from './approvals.ts'
import { guard } from './guard.ts'
import { guardTools } from './guard-tools.ts'
import { fromLangChain } from './import-tools.ts'
import { HELLO, loose, scripted, type ScriptedModel, toldOf } from './testing/agents.ts'

type Body = () => unknown

interface Made {
  readonly model: ScriptedModel
  readonly checkpointer: BaseCheckpointSaver
  readonly bodies: Readonly<Record<string, Body>>
  readonly approvals?: ApprovalStore
}

interface Graph {
  invoke(input: unknown, config: object): Promise<{ readonly messages: [] }>
}

/** Each way to run all calls of a message in one node of LangGraph, and the ways that have a node for each. */
const WAYS: Readonly<Record<string, (gate: ReturnType<typeof gateOf>, made: Made) => Graph>> = {
  'a ToolNode': (gate, made) => nodeGraph(gate, made),
  'a ToolNode in a subgraph': (gate, { checkpointer, ...made }) =>
    new StateGraph(MessagesAnnotation)
      .addNode('desk', nodeGraph(gate, made) as never)
      .addEdge(START, 'desk')
      .compile({ checkpointer }) as never,
  'createReactAgent, version 1': (gate, made) => reactAgent(gate, made, 'v1'),
  'createReactAgent, version 2': (gate, made) => reactAgent(gate, made, 'v2'),
  'createAgent, version 1': (gate, made) => agentOf(gate, made, 'v1'),
  'createAgent, version 2': (gate, made) => agentOf(gate, made, 'v2'),
}

function gateOf({ bodies, approvals }: Made) {
  const tools = Object.entries(bodies).map(([name, body]) => tool(body as never, { name, schema: z.object({}) }))
  const native = fromLangChain(tools)
  return {
    tools,
    gate: createGate({
      tools: native,
      policy: { ask: ['pay', 'refund'].filter((name) => name in bodies) } as object,
      ...(approvals && { approvals }),
    }),
  }
}

const caller = VIEWER

function nodeGraph(
  { gate }: ReturnType<typeof gateOf>,
  { model, checkpointer }: Omit<Made, 'checkpointer'> & Partial<Made>,
): Graph {
  const guarded = guardTools(gate, { caller })
  return new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }, config) => ({
      messages: [await model.bindTools(await guarded.visible(config)).invoke(messages)],
    }))
    .addNode('tools', new ToolNode(guarded.tools))
    .addEdge(START, 'model')
    .addConditionalEdges('model', toolsCondition)
    .addEdge('tools', 'model')
    .compile(checkpointer && { checkpointer }) as never
}

function reactAgent({ gate }: ReturnType<typeof gateOf>, { model, checkpointer }: Made, version: 'v1' | 'v2'): Graph {
  return createReactAgent({ llm: model, tools: guardTools(gate, { caller }).tools, checkpointer, version }) as never
}

function agentOf(
  { gate, tools }: ReturnType<typeof gateOf>,
  { model, checkpointer }: Made,
  version: 'v1' | 'v2',
): Graph {
  return createAgent({ model, tools, checkpointer, version, middleware: [loose(guard(gate, { caller }))] }) as never
}

const THREE = [
  { name: 'mail', id: 'm' },
  { name: 'pay', id: 'p' },
  { name: 'refund', id: 'r' },
]
const CONFIG = { configurable: { thread_id: 't1' } }
const PERSON = { user: 'vera' }
const DONE = ['mail success: mail done', 'pay success: pay done', 'refund success: refund done']

function witness() {
  const ran: string[] = []
  const body = (name: string) => () => {
    ran.push(name)
    return `${name} done`
  }
  return { ran, body, bodies: { mail: body('mail'), pay: body('pay'), refund: body('refund') } }
}

/** Approves what a run waits for until it waits for nothing. */
async function finish(
  graph: Graph,
  gate: ReturnType<typeof gateOf>['gate'],
  paused: object,
  config: object = CONFIG,
): Promise<readonly string[]> {
  let result = paused
  for (let left = 5; left > 0 && (await gate.approvals.list({ status: 'pending' })).length > 0; left--) {
    await decideApprovals(gate, PERSON, result, { decision: 'approve' })
    result = await graph.invoke(null, config)
  }
  return toldOf(result as { messages: [] })
}

describe('a message with several calls (LangGraph)', () => {
  for (const [way, make] of Object.entries(WAYS))
    it(`makes each call once, whatever pauses beside it: ${way}`, async () => {
      const { ran, bodies } = witness()
      const made = { model: scripted(THREE), checkpointer: new MemorySaver(), bodies }
      const of = gateOf(made)
      const graph = make(of, made)
      await graph.invoke(HELLO, CONFIG)
      const again = await graph.invoke(new Command({ resume: 'yes' }), CONFIG)
      assert.deepEqual(ran, ['mail'])
      assert.deepEqual(await finish(graph, of.gate, again), DONE)
      assert.deepEqual(ran.toSorted(), ['mail', 'pay', 'refund'])
    })

  it('holds in another process, with the same checkpointer and store', async () => {
    for (const durability of ['async', 'sync', 'exit']) {
      const { ran, bodies } = witness()
      const shared = { checkpointer: new MemorySaver(), bodies, approvals: memoryApprovals() }
      const config = { ...CONFIG, durability }
      const start = (): { graph: Graph; gate: ReturnType<typeof gateOf>['gate'] } => {
        const made = { ...shared, model: scripted(THREE) }
        const of = gateOf(made)
        return { graph: nodeGraph(of, made), gate: of.gate }
      }
      const paused = await start().graph.invoke(HELLO, config)
      const { graph, gate } = start()
      assert.deepEqual(await finish(graph, gate, paused, config), DONE, durability)
      assert.deepEqual(ran, ['mail', 'pay', 'refund'], durability)
    }
  })

  it('waits for a call that runs before it passes on the pause of another', async () => {
    const { ran, body, bodies } = witness()
    const mail = async () => {
      await until(async () => (await of.gate.approvals.list({ status: 'pending' })).length === 2)
      return body('mail')()
    }
    const made = { model: scripted(THREE), checkpointer: new MemorySaver(), bodies: { ...bodies, mail } }
    const of = gateOf(made)
    const graph = nodeGraph(of, made)
    const paused = await graph.invoke(HELLO, CONFIG)
    assert.deepEqual(ran, ['mail'])
    assert.deepEqual(await finish(graph, of.gate, paused), DONE)
    assert.deepEqual(ran, ['mail', 'pay', 'refund'])
  })

  it('gives the failure, the refusal and the jump of a call again', async () => {
    const ran: string[] = []
    const bodies = {
      mail: () => {
        ran.push('mail')
        throw new Error('no server')
      },
      jump: () => {
        ran.push('jump')
        return new Command({
          update: { messages: [new ToolMessage({ content: 'jumped', tool_call_id: 'j', name: 'jump' })] },
        })
      },
      pay: () => 'pay done',
    }
    for (const way of ['a ToolNode', 'createAgent, version 1']) {
      ran.length = 0
      const calls = ['mail', 'jump', 'nope', 'pay'].map((name) => ({ name, id: name[0] ?? '' }))
      const made = { model: scripted(calls), checkpointer: new MemorySaver(), bodies }
      const of = gateOf(made)
      const graph = WAYS[way]?.(of, made)
      assert.ok(graph)
      const told = await finish(graph, of.gate, await graph.invoke(HELLO, CONFIG))
      assert.deepEqual(
        [told[0], told[1], told[3]],
        ['mail error: mail failed: no server', 'jump success: jumped', 'pay success: pay done'],
        way,
      )
      assert.deepEqual(ran, ['mail', 'jump'], way)
    }
  })

  it('holds for a tool that pauses itself, such as one that runs another agent', async () => {
    const inner = witness()
    const innerMade = { model: scripted(THREE), bodies: inner.bodies }
    const innerOf = gateOf(innerMade as never)
    const innerGraph = nodeGraph(innerOf, innerMade)
    const { ran, body } = witness()
    const bodies = {
      mail: body('mail'),
      confirm: () => interrupt('which account?'),
      delegate: async () => toldOf(await innerGraph.invoke(HELLO, {})).join('; '),
    }
    const asks = [
      [
        { name: 'mail', id: 'm' },
        { name: 'delegate', id: 'd' },
      ],
      [
        { name: 'mail', id: 'm2' },
        { name: 'confirm', id: 'c' },
      ],
    ]
    const made = { model: scripted(...asks), checkpointer: new MemorySaver(), bodies }
    const of = gateOf(made)
    const graph = nodeGraph(of, made)
    const paused = await graph.invoke(HELLO, CONFIG)
    await finish(graph, innerOf.gate, paused)
    assert.deepEqual(inner.ran, ['mail', 'pay', 'refund'])
    const result = await graph.invoke(new Command({ resume: 'the first' }), CONFIG)
    assert.deepEqual(toldOf(result), [
      'mail success: mail done',
      `delegate success: ${DONE.join('; ')}`,
      'mail success: mail done',
      'confirm success: the first',
    ])
    assert.deepEqual(ran, ['mail', 'mail'])
  })
})
