import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compareGate } from '../../../testing/support/run-gate-differential.ts'
import { compareRules, runProperties } from '../../../testing/support/run-differential.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('rules about what happened', () => {
  it('decide as the plain reading of the whole trace does', () => {
    const cases = 10_000
    assert.ok(compareRules({ cases, seed: randomInt(2 ** 31) }) >= cases)
  })

  it('decide so in a gate that keeps no more of a run than they ask for', async () => {
    const cases = 1000
    assert.ok((await compareGate({ cases, seed: randomInt(2 ** 31) })) >= cases)
  })

  it('are only tightened by a call that began', () => fc.assert(runProperties.onlyTightens, runs(1000, 1000)))

  it('give their strictest answer without the history', () =>
    fc.assert(runProperties.unknownIsStrictest, runs(1000, 1000)))
})
