import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sha256Hex } from '@toolgate/values'
import { memoryState } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import { callerConfig } from '../../../../tests/support/keys.ts'
import { Revisions } from './revision.ts'
import type { Credential } from './credential.ts'
import type { RunRecord } from './made-run.ts'
import { Runs } from './runs.ts'

const HOUR_MS = 3_600_000
const HOST: Credential = { id: 'host', for: 'host', caller: { user: 'runner' }, issuer: 'key' }
/** Another key of the same host, which a person has made. */
const MADE: Credential = { id: 'made', for: 'host', caller: { user: 'runner', keyMadeBy: 'ann' }, issuer: 'key' }

/** Two processes with the same store. */
async function setStage() {
  const clock = manualClock()
  const state = memoryState({ clock })
  const records: RunRecord[] = []
  const hosts = new Set(['host'])
  const revisions = new Revisions({ callers: [callerConfig('k', { user: 'vera' })] } as never)
  const keys = { current: (id: string) => (id === 'made' ? MADE : hosts.has(id) ? HOST : undefined) }
  const open = async () => {
    const runs = new Runs({ revisions, clock, keys, onFault: assert.ifError })
    await runs.open(state, (record) => records.push(record))
    return runs
  }
  const [one, two] = [await open(), await open()]
  const ends = () => records.flatMap(({ event, run_id: id, reason }) => (event === 'run_ended' ? [[id, reason]] : []))
  const close = () => [one, two].forEach((runs) => runs.close())
  const callerOf = async (runs: Runs, token: string) => {
    const digest = Buffer.from(sha256Hex(token), 'hex').toString('base64')
    return (await runs.find({ token, digest }))?.caller
  }
  return { clock, state, open, one, two, hosts, ends, close, callerOf }
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

describe('The token of a run', () => {
  const RUN = { user: 'vera', policy: [] }

  it('stays ended if an earlier read of the store answers later', async () => {
    const { state, one, two, close, callerOf } = await setStage()
    const { id, token } = await one.start(RUN, HOST)
    assert.ok(await callerOf(two, token))
    const { list } = state
    const late: (() => void)[] = []
    state.list = async (prefix) => {
      const entries = await list(prefix)
      await new Promise<void>((resolve) => late.push(resolve))
      return entries
    }
    await state.set('something', 1)
    await new Promise(setImmediate)
    state.list = list
    // The other process has ended the run, and has not yet removed what belongs to it.
    await state.set(`run-ended:${id}`, { reason: 'ended' })
    await new Promise(setImmediate)
    assert.equal(await callerOf(two, token), undefined)
    assert.ok(late.length > 0)
    for (const answer of late) answer()
    await new Promise(setImmediate)
    assert.deepEqual(await two.list(), [])
    assert.equal(await callerOf(two, token), undefined)
    close()
  })

  it('carries the user of its host, in every process', async () => {
    const { one, two, close, callerOf } = await setStage()
    const { token } = await one.start(RUN, HOST)
    for (const runs of [one, two]) {
      const { keyMadeBy, makerChain } = (await callerOf(runs, token)) ?? {}
      assert.deepEqual([keyMadeBy, makerChain], ['runner', undefined])
    }
    close()
  })

  it('carries the makers of the key of its host, and so do the tokens of its children by any key', async () => {
    const { one, two, close, callerOf } = await setStage()
    const root = await one.start(RUN, MADE)
    const child = await one.start({ parent: root.id, policy: [] }, HOST)
    const below = await two.start({ parent: child.id, policy: [] }, HOST)
    for (const runs of [one, two])
      for (const { token } of [root, child, below]) {
        const { keyMadeBy, makerChain } = (await callerOf(runs, token)) ?? {}
        assert.deepEqual([keyMadeBy, makerChain], ['runner', ['runner', 'ann']])
      }
    close()
  })

  it('carries them where an earlier version has started the run, from the key of its host', async () => {
    const { state, open, one, two, close, callerOf } = await setStage()
    const { token } = await one.start(RUN, MADE)
    const [row] = await state.list('run-token:')
    assert.ok(row)
    const { makers: _, ...earlier } = row.value as { makers: unknown }
    await state.set(row.key, earlier)
    const { keyMadeBy, makerChain } = (await callerOf(two, token)) ?? {}
    assert.deepEqual([keyMadeBy, makerChain], ['runner', ['runner', 'ann']])
    await state.set(row.key, { ...earlier, makers: 'ann' })
    const third = await open()
    assert.equal(await callerOf(third, token), undefined)
    third.close()
    close()
  })

  it('names nobody where the host is the user', async () => {
    const { one, close, callerOf } = await setStage()
    const { token } = await one.start(RUN, { ...HOST, caller: { user: 'vera' } })
    assert.equal((await callerOf(one, token))?.keyMadeBy, undefined)
    close()
  })
})

describe('A run that was seen to have expired', () => {
  it('opens nothing again where the clock is set back, in no process', async () => {
    const { clock, state, open, one, two, close, callerOf } = await setStage()
    const { token } = await one.start({ user: 'vera', policy: [] }, HOST)
    assert.ok(await callerOf(two, token))
    clock.advance(HOUR_MS)
    assert.equal(await callerOf(one, token), undefined)
    clock.advance(-HOUR_MS)
    assert.equal(await callerOf(one, token), undefined)
    await one.conclude()
    assert.deepEqual(await state.list('run-token:'), [])
    const third = await open()
    assert.equal(await callerOf(third, token), undefined)
    third.close()
    close()
  })
})
