import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ToolSearchProcessor } from '@mastra/core/processors'
import { answerToolCall, guard, pausedRun, searchFilter } from './mastra.ts'
import { byContext, callOf, contextOf, createScene, createStored } from './testing/mastra-scene.ts'
import type { Turn } from './testing/mock-model.ts'
import { ADMIN, VIEWER } from './testing/world.ts'

const META = ['search_tools', 'load_tool']
const FINDS: Turn = [callOf('search_tools', { query: 'delete all search' })]
const LOADS: Turn = [callOf('load_tool', { toolNames: ['delete_all', 'search'] })]
const DELETES: Turn = [callOf('delete_all', {}, 'call-delete')]

type Scene = ReturnType<typeof createScene>

/** An agent whose tools are found and loaded before they are sent. */
function createSearching({ gate }: Scene, turns: readonly Turn[]) {
  const search = new ToolSearchProcessor({
    tools: {},
    includeResolvedTools: true,
    search: { topK: 10 },
    filter: searchFilter(gate, byContext),
  })
  const options = { ...byContext, ungoverned: META }
  const { inputProcessors } = guard(gate, options)
  return createStored(gate, turns, { ungoverned: META, after: { inputProcessors: [search, ...inputProcessors] } })
}

describe("guard and Mastra's ToolSearchProcessor", () => {
  it('finds, loads and sends the tools that the caller sees, and nothing else', async () => {
    const scene = createScene()
    const { agent, model } = createSearching(scene, [FINDS, LOADS, DELETES, 'done'])
    await agent.generate('go', { requestContext: contextOf(VIEWER) })
    assert.deepEqual(model.sent()[0], META)
    assert.deepEqual(model.sent().at(-1)?.toSorted(), [...META, 'search'].toSorted())
    assert.ok(!JSON.stringify(model.told()['call-search_tools']).includes('"delete_all"'))
    assert.deepEqual(scene.witness.ran, [])
    assert.deepEqual(scene.audit.attempts(), ['delete_all tool_blocked policy_denied'])
  })

  it('runs a found tool for a caller who may', async () => {
    const scene = createScene()
    const { agent } = createSearching(scene, [FINDS, LOADS, DELETES, 'done'])
    await agent.generate('go', { requestContext: contextOf(ADMIN) })
    assert.deepEqual(scene.witness.ran, ['delete_all'])
  })

  it('asks for approvals of found tools too', async () => {
    const scene = createScene({ policy: { ask: ['delete_all'] } })
    const { agent } = createSearching(scene, [FINDS, LOADS, DELETES, 'done'])
    const requestContext = contextOf(VIEWER)
    const paused = await agent.generate('go', { requestContext })
    assert.deepEqual([paused.finishReason, scene.witness.ran], ['suspended', []])
    await answerToolCall(agent, pausedRun(paused), { by: VIEWER, decision: 'approve', requestContext })
    assert.deepEqual(scene.witness.ran, ['delete_all'])
  })

  it('allows what the caller sees now: nothing hidden, nothing locked, no tool from elsewhere', async () => {
    const { gate } = createScene({ groups: { later: { tools: ['alpha'], unlock: 'request' } } })
    const allows = searchFilter(gate, byContext)
    const allowed = (toolName: string) => allows({ toolName, requestContext: contextOf({ ...VIEWER, session: 's1' }) })
    assert.equal(await allowed('search'), true)
    for (const name of ['delete_all', 'alpha', 'other', 'constructor']) assert.equal(await allowed(name), false)
  })
})
