import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manualClock } from '@toolgate/testing'
import { UpstreamError } from '../../model/upstream.ts'
import { ConnectionCredential } from './credential.ts'
import { ConnectProblem } from './problem.ts'

const CONNECTION = { id: 'c', of: 'o', server: 'mail', user: 'vera', issuer: 'https://login.example.com', since: 0 }

/** Returns why a request cannot be sent. */
async function whyNot(error: Error): Promise<string> {
  const credential = new ConnectionCredential(CONNECTION, {
    store: {
      find: () => CONNECTION,
      read: async () => {
        throw error
      },
      open: async () => undefined,
      write: () => assert.fail(),
    },
    clock: manualClock(),
    refresh: () => assert.fail(),
    exclusively: (_of, work) => work(),
    end: () => assert.fail(),
  })
  try {
    await credential.prepare()
    return ''
  } catch (thrown) {
    assert.ok(thrown instanceof UpstreamError)
    assert.equal(thrown.cause, error)
    return thrown.message
  }
}

describe('ConnectionCredential', () => {
  it('says why the authorization server cannot be used, and nothing of what failed inside the gateway', async () => {
    assert.match(
      await whyNot(new ConnectProblem('https://login.example.com/token cannot be reached')),
      /login\.example/,
    )
    const inside = await whyNot(new Error('connect ECONNREFUSED 10.0.0.5:5432'))
    assert.match(inside, /cannot be used with this account now/)
    assert.doesNotMatch(inside, /10\.0\.0\.5/)
  })
})
