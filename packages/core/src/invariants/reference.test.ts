import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, it } from 'node:test'
import { compareWithReference } from '../../../testing/support/differential.ts'

describe('the gate beside a naive evaluator', () => {
  it('lists, explains and calls as the plain reading of the design says, whatever has been asked before', async () => {
    assert.ok((await compareWithReference({ cases: 5000, seed: randomInt(2 ** 31) })) >= 5000)
  })
})
