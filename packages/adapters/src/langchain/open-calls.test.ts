import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemorySaver } from '@langchain/langgraph'
import { AIMessage, HumanMessage, ToolMessage } from 'langchain'
import { VIEWER } from '../testing/world.ts'
import { answerOpenCalls } from './open-calls.ts'
import { calling, createWorld, ScriptedModel, toldOf } from './testing/agents.ts'

const WROTE = 'It did not run, because the user wrote instead of approving it. Call it again if it is still wanted.'
const BOTH = [
  { name: 'search', id: 's' },
  { name: 'delete_all', id: 'd' },
]

describe('a message of the user while a call waits (LangChain)', () => {
  for (const version of ['v1', 'v2'] as const)
    it(`runs nothing, keeps the history valid, and withdraws the approval: createAgent, version ${version}`, async () => {
      const model = new ScriptedModel((messages) => (messages.length === 1 ? calling(...BOTH) : new AIMessage('Fine.')))
      const { agent, gate, witness } = createWorld(model, {
        policy: { ask: ['delete_all'] },
        checkpointer: new MemorySaver(),
        version,
      })
      const config = { context: { caller: VIEWER } as never, configurable: { thread_id: 't1' } }
      const say = (text: string) => agent.invoke({ messages: [new HumanMessage(text)] }, config)
      await say('Delete all.')
      const [before] = await gate.approvals.list()
      const result = await say('Wait.')
      assert.deepEqual(toldOf(result), ['search success: search done', `delete_all error: ${WROTE}`])
      assert.deepEqual(
        model.requests.at(-1)?.messages.map((message) => message.getType()),
        ['human', 'ai', 'tool', 'tool', 'human'],
      )
      assert.deepEqual(witness.ran, ['search'])
      const withdrawn = await gate.approvals.get(before?.id ?? '')
      assert.deepEqual([withdrawn?.status, withdrawn?.reason], ['rejected', 'The user wrote instead of approving.'])
    })

  it('is answered in your own graph by answerOpenCalls, which leaves other messages as they are', () => {
    const asked = new AIMessage({ content: '', tool_calls: [{ name: 'pay', id: 'p', args: {}, type: 'tool_call' }] })
    const wait = new HumanMessage('Wait.')
    const [one, two, three] = answerOpenCalls([asked, wait])
    assert.deepEqual([one, three], [asked, wait])
    assert.ok(ToolMessage.isInstance(two))
    assert.deepEqual([two.content, two.status, two.tool_call_id, two.name], [WROTE, 'error', 'p', 'pay'])
    const answered = [asked, new ToolMessage({ content: 'paid', tool_call_id: 'p' }), wait]
    assert.deepEqual(answerOpenCalls(answered), answered)
    assert.deepEqual(answerOpenCalls([wait, asked]), [wait, asked])
  })
})
