import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/core/testing'
import { callerConfig } from '../../../../tests/support/keys.ts'
import { Revisions } from '../revision.ts'
import type { Credential } from './credential.ts'
import type { RunRecord } from './made-run.ts'
import { Runs } from './runs.ts'

const HOUR_MS = 3_600_000
const HOST: Credential = { id: 'host', for: 'host', caller: { user: 'runner' }, issuer: 'key' }

/** Two processes with the same store. */
async function setStage() {
  const clock = manualClock()
  const state = memoryState({ clock })
  const records: RunRecord[] = []
  const hosts = new Set(['host'])
  const revisions = new Revisions({ callers: [callerConfig('k', { user: 'vera' })] } as never)
  const keys = { current: (id: string) => (hosts.has(id) ? HOST : undefined) }
  const open = async () => {
    const runs = new Runs({ revisions, clock, keys, onFault: assert.ifError })
    await runs.open(state, (record) => records.push(record))
    return runs
  }
  const [one, two] = [await open(), await open()]
  const ends = () => records.flatMap(({ event, run_id: id, reason }) => (event === 'run_ended' ? [[id, reason]] : []))
  const close = () => [one, two].forEach((runs) => runs.close())
  return { clock, one, two, hosts, ends, close }
}

describe('Runs.conclude', () => {
  it('records once over all processes that a run has expired, and those that were not used there', async () => {
    const { clock, one, two, ends, close } = await setStage()
    const { id } = await one.start({ user: 'vera', policy: [] }, HOST)
    const later = await one.start({ user: 'vera', policy: [], ttlMs: 2 * HOUR_MS }, HOST)
    await Promise.all([one.conclude(), two.conclude()])
    assert.deepEqual(ends(), [])
    clock.advance(HOUR_MS)
    await Promise.all([two.conclude(), one.conclude()])
    assert.deepEqual(ends(), [[id, 'expired']])
    assert.deepEqual(
      (await two.list()).map((run) => run.id),
      [later.id],
    )
    close()
  })

  it('records that the key of the host is gone, once others must know of the key', async () => {
    const { clock, one, two, hosts, ends, close } = await setStage()
    const { id } = await one.start({ user: 'vera', policy: [] }, HOST)
    hosts.clear()
    await two.conclude()
    assert.deepEqual(ends(), [])
    clock.advance(60_000)
    await two.conclude()
    assert.deepEqual(ends(), [[id, 'host_ended']])
    close()
  })
})
