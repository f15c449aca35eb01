import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemorySaver } from '@langchain/langgraph'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { createGate } from '@toolgate/core'
import { AIMessage, HumanMessage, ToolMessage } from 'langchain'
import { createWitness, VIEWER } from '../testing/world.ts'
import { guardTools } from './guard-tools.ts'
import { fromLangChain } from './import-tools.ts'
import { answerOpenCalls } from './open-calls.ts'
import { calling, createWorld, langChainWorld, ScriptedModel, toldOf } from './testing/agents.ts'

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

  for (const version of ['v1', 'v2'] as const)
    it(`is answered in your own graph by answerOpenCalls, once: createReactAgent, version ${version}`, async () => {
      const witness = createWitness()
      const gate = createGate({ tools: fromLangChain(langChainWorld(witness)), policy: { ask: ['delete_all'] } })
      const model = new ScriptedModel((messages) => (messages.length === 1 ? calling(...BOTH) : new AIMessage('Fine.')))
      let changes = 0
      const agent = createReactAgent({
        llm: model,
        tools: guardTools(gate, { caller: VIEWER }).tools,
        checkpointer: new MemorySaver(),
        version,
        async preModelHook({ messages }, config) {
          const change = await answerOpenCalls(messages, config)
          changes += change.length > 0 ? 1 : 0
          return { messages: change }
        },
      })
      const say = (text: string) =>
        agent.invoke({ messages: [new HumanMessage(text)] }, { configurable: { thread_id: 't1' } })
      for (const text of ['Delete all.', 'Wait.']) await say(text)
      assert.deepEqual(toldOf(await say('And?')), ['search success: search done', `delete_all error: ${WROTE}`])
      assert.deepEqual(
        model.requests.at(-1)?.messages.map((message) => message.getType()),
        ['human', 'ai', 'tool', 'tool', 'human', 'ai', 'human'],
      )
      assert.deepEqual([witness.ran, changes], [['search'], 1])
    })

  it('leaves messages as they are in which each call has an answer, or after which the user has not written', async () => {
    const asked = new AIMessage({ content: '', tool_calls: [{ name: 'pay', id: 'p', args: {}, type: 'tool_call' }] })
    const wait = new HumanMessage('Wait.')
    const paid = new ToolMessage({ content: 'paid', tool_call_id: 'p' })
    for (const messages of [[], [wait], [wait, asked], [asked, paid, wait]])
      assert.deepEqual(await answerOpenCalls(messages), [])
    assert.equal((await answerOpenCalls([asked, wait])).length, 4)
  })
})
