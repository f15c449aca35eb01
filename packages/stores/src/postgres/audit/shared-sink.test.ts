import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { auditEntry } from '@toolgate/testing'
import type { SealedGroup } from './chain-store.ts'
import { newChain, SharedSink } from './shared-sink.ts'

describe('SharedSink', () => {
  /** A database that takes each group when it is told to, and a moment that passes when it is told to. */
  function open() {
    const groups: (PromiseWithResolvers<undefined> & { readonly size: number })[] = []
    const moments: PromiseWithResolvers<void>[] = []
    const append = async ({ records }: SealedGroup) => {
      const group = { ...Promise.withResolvers<undefined>(), size: records.length }
      groups.push(group)
      return group.promise
    }
    const wait = async () => {
      const moment = Promise.withResolvers<void>()
      moments.push(moment)
      return moment.promise
    }
    const store = { id: 1, append, leave: async () => {} }
    const sink = new SharedSink({ store, sealing: {}, ...newChain({}), nowMs: Date.now, maxWaiting: 100, wait })
    const written: Promise<void>[] = []
    /** Writes so many records, and lets pass what waits for nobody. */
    const write = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) written.push(sink.write(auditEntry({ event: 'tool_result' })))
      await endOfTurn()
      await endOfTurn()
    }
    /** The database takes the group. */
    const take = async (group: number): Promise<void> => {
      groups[group]?.resolve(undefined)
      await write(0)
    }
    const allWritten = async () => void (await Promise.all(written))
    return { take, moments, write, allWritten, sizes: () => groups.map(({ size }) => size) }
  }

  it('sends the first records at once, and those that arrived meanwhile in one group', async () => {
    const { take, moments, write, allWritten, sizes } = open()
    await write(3)
    await write(2)
    await write(2)
    await take(0)
    assert.deepEqual([sizes(), moments.length], [[3, 4], 0])
    await take(1)
    await allWritten()
  })

  it('waits a moment for more where many arrive', async () => {
    const { take, moments, write, allWritten, sizes } = open()
    await write(4)
    await write(4)
    await take(0)
    await write(2)
    assert.deepEqual([sizes(), moments.length], [[4], 1])
    moments[0]?.resolve()
    await write(0)
    assert.deepEqual(sizes(), [4, 6])
    await take(1)
    await allWritten()
    assert.equal(moments.length, 1)
  })
})
