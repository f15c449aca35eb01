import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ToolMessage } from 'langchain'
import { answerOf, tellFailures } from './calls.ts'

const CALL = { name: 'broken', args: {}, id: 'c1' }

async function failureOf(error: unknown): Promise<unknown> {
  const failed = { status: 'failed', callId: 'c1', code: 'tool_failed', error, durationMs: 1, text: 'told' } as const
  return answerOf(failed, CALL, undefined).catch((thrown: unknown) => thrown)
}

describe('answerOf', () => {
  it('throws the tool’s own error, changed only in its message', async () => {
    class Own extends Error {
      readonly #secret = 7
      get secret(): number {
        return this.#secret
      }
    }
    const own = await failureOf(Object.freeze(new Own('boom')))
    assert.ok(own instanceof Own)
    assert.deepEqual([own.message, own.secret], ['told', 7])
    const timeout = await failureOf(new DOMException('late', 'TimeoutError'))
    assert.ok(timeout instanceof DOMException)
    assert.deepEqual([timeout.message, timeout.name], ['told', 'TimeoutError'])
    const text = await failureOf('just a text')
    assert.ok(text instanceof Error)
    assert.equal(text.message, 'told')
  })
})

describe('tellFailures', () => {
  it('makes a message of them where LangChain would end the run, however they were wrapped', async () => {
    const cause = await failureOf(new RangeError('boom'))
    const answer = await tellFailures(CALL, Promise.reject(new Error('wrapped', { cause })), false)
    assert.ok(ToolMessage.isInstance(answer))
    assert.deepEqual([answer.status, answer.content], ['error', 'told'])
  })

  it('leaves other errors to LangChain, and all errors if LangChain reports them itself', async () => {
    const others = new RangeError('not the tool’s')
    await assert.rejects(tellFailures(CALL, Promise.reject(others), false), others)
    const own = (await failureOf(new RangeError('boom'))) as Error
    await assert.rejects(tellFailures(CALL, Promise.reject(own), true), own)
  })
})
