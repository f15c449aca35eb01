import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AIMessage } from 'langchain'
import { ADMIN, ADMINS_DELETE, VIEWER } from '../testing/world.ts'
import { createWorld, scripted, type ScriptedModel, toldOf, type WorldOptions } from './testing/agents.ts'

const DELETES = [[{ name: 'delete_all', id: 'c1' }]]
const AVAILABLE = 'Available tools: alpha, search.'

function setUp(model: ScriptedModel, options: WorldOptions = {}) {
  return createWorld(model, { policy: ADMINS_DELETE, ...options })
}

describe('guard (LangChain)', () => {
  it('sends the tools that the caller may see, by id, and nothing else', async () => {
    const model = scripted([{ name: 'search', args: { q: 'x' } }])
    const { run, witness } = setUp(model)
    await run(VIEWER)
    assert.deepEqual(model.sent, [
      ['alpha', 'search'],
      ['alpha', 'search'],
    ])
    assert.deepEqual(witness.ran, ['search'])
  })

  it('refuses a hidden tool that the model calls all the same, as one that does not exist', async () => {
    const { run, witness, audit } = setUp(scripted(...DELETES))
    const result = await run(VIEWER)
    assert.deepEqual(toldOf(result), [`delete_all error: Tool "delete_all" is not available. ${AVAILABLE}`])
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
  })

  for (const name of ['nope', 'constructor', '__proto__', 'toString', 'Delete_all', 'delete_all ', 'search:delete_all'])
    it(`refuses ${JSON.stringify(name)} in the same words, and records it`, async () => {
      const { run, witness, audit } = setUp(scripted([{ name, id: 'c1' }]))
      const result = await run(VIEWER)
      // The nearest names come first.
      const told = toldOf(result).map((text) => text.replace('search, alpha', 'alpha, search'))
      assert.deepEqual(told, [`${name} error: Tool "${name}" is not available. ${AVAILABLE}`])
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(audit.attempts(), [`${name} tool_blocked tool_not_found`])
    })

  it('offers request_tools if a group is locked, and the opened tools from the next step on', async () => {
    const model = scripted(
      [{ name: 'request_tools', args: { group: 'found' } }, { name: 'search' }],
      [{ name: 'search' }],
    )
    const { run, witness } = setUp(model, { groups: { found: { tools: ['search'], unlock: 'request' } } })
    const result = await run({ ...VIEWER, session: 's1' })
    assert.deepEqual(model.sent, [
      ['alpha', 'request_tools'],
      ['alpha', 'search'],
      ['alpha', 'search'],
    ])
    assert.deepEqual(toldOf(result), [
      'request_tools success: The group "found" is open. In your list from your next step on: search.',
      'search error: search is locked. Call request_tools with the group "found" to open it.',
      'search success: search done',
    ])
    assert.deepEqual(witness.ran, ['search'])
  })

  it('lets an admin run it', async () => {
    const model = scripted(...DELETES)
    const { run, witness, audit } = setUp(model)
    const result = await run(ADMIN)
    assert.deepEqual(model.sent[0], ['alpha', 'delete_all', 'search'])
    assert.deepEqual(toldOf(result), ['delete_all success: delete_all done'])
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(audit.attempts(), ['delete_all tool_call', 'delete_all tool_result'])
  })

  it('records a call whose arguments are no JSON, which LangChain itself drops', async () => {
    const broken = new AIMessage({
      content: '',
      invalid_tool_calls: [
        { type: 'invalid_tool_call', name: 'search', args: '{"q":', id: 'c9', error: 'Unexpected end' },
      ],
    })
    const { run, witness, audit } = setUp(scripted(broken))
    await run(VIEWER)
    assert.deepEqual(audit.attempts(), ['search tool_blocked input_invalid'])
    assert.equal(audit.records[0]?.tool_call_id, 'c9')
    assert.deepEqual(witness.ran, [])
  })

  it('never lets overlapping runs on one agent see each other', async () => {
    const model = scripted([{ name: 'delete_all' }], [{ name: 'search' }], [{ name: 'delete_all' }])
    const { run, witness, audit } = setUp(model)
    const callers = Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? ADMIN : VIEWER))
    const results = await Promise.all(callers.map((caller) => run(caller)))
    for (const [i, result] of results.entries()) {
      const refused = toldOf(result).filter((text) => text.includes('is not available'))
      assert.equal(refused.length, callers[i] === ADMIN ? 0 : 2)
    }
    assert.equal(witness.ran.filter((name) => name === 'delete_all').length, 40)
    const users = audit.records.filter(({ tool, event }) => tool === 'delete_all' && event === 'tool_call')
    assert.ok(users.every(({ user_id }) => user_id === 'ada'))
    const sent = model.sent.filter((names) => names.includes('delete_all')).length
    assert.equal(sent, 20 * 4)
  })
})
