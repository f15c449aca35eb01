import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { differencesOf, wordOfReplica } from './replicas.ts'
import type { ReplicaRowBody, ReplicasBody } from './wire.ts'

const ROW: ReplicaRowBody = {
  id: 'r1',
  version: '1',
  applied: 3,
  isLive: true,
  isSelf: false,
  joinedAt: 0,
  renewedAt: 0,
}
const BODY: ReplicasBody = {
  self: { id: 'r2', revision: { applied: 3, seen: 3 }, configuration: { id: 'c1', since: 0 } },
  replicas: [ROW],
}

describe('wordOfReplica', () => {
  it('says whether it takes calls', () => {
    assert.equal(wordOfReplica(ROW), 'takes calls')
    assert.equal(wordOfReplica({ ...ROW, refuses: 'the database does not answer' }), 'refuses')
    assert.equal(wordOfReplica({ ...ROW, isStopping: true }), 'stopping')
    assert.equal(wordOfReplica({ ...ROW, isLive: false, isStopping: true }), 'lost')
  })
})

describe('differencesOf', () => {
  it('names another configuration, in its file or running', () => {
    const configuration = { id: 'c1', since: 0 }
    assert.deepEqual(differencesOf(ROW, BODY), [])
    assert.deepEqual(differencesOf({ ...ROW, configuration }, BODY), [])
    assert.deepEqual(differencesOf({ ...ROW, configuration: { id: 'c0', since: 0 }, file: 'c2' }, BODY), [
      'runs c0, not c1',
      'its file is another one, c2',
    ])
    assert.deepEqual(differencesOf({ ...ROW, configuration, file: 'invalid' }, BODY), ['its file is invalid'])
  })
})
