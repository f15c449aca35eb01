import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryState } from '../memory/state.ts'
import type { StateChange, StateEntry, StateStore } from '../ports/ports.ts'
import { createEmitter } from '@toolgate/values'
import { Mirror, type MirrorOptions } from './mirror.ts'

function open(parts: Partial<StateStore> = {}, options: Partial<MirrorOptions> = {}) {
  const state: StateStore = { ...memoryState(), ...parts }
  const readings: string[] = []
  const failures: number[] = []
  const mirror = new Mirror({
    state,
    prefix: 'a:',
    deadlineMs: 1000,
    retryMs: 1,
    onRead: (entries) => void readings.push(entries.map(({ key, value }) => `${key}=${String(value)}`).join(' ')),
    onFailed: (_, times) => failures.push(times),
    ...options,
  })
  return { state, mirror, readings, failures }
}

/** A store whose lists are answered by hand. */
function listedByHand() {
  const kept = memoryState()
  const lists: PromiseWithResolvers<readonly StateEntry[]>[] = []
  const list = () => {
    const asked = Promise.withResolvers<readonly StateEntry[]>()
    lists.push(asked)
    return asked.promise
  }
  return { state: { ...kept, list }, lists }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('Mirror', () => {
  it('reads at the start, at each change and after each own write, at once where the store answers at once', async () => {
    const { state, mirror, readings } = open()
    mirror.start()
    assert.deepEqual([mirror.isRead, mirror.isBusy], [true, false])
    void state.set('a:1', 'x')
    assert.deepEqual(readings, ['', 'a:1=x'])
    await mirror.write('a:2', () => state.set('a:2', 'y'))
    assert.equal(readings.at(-1), 'a:1=x a:2=y')
    mirror.close()
    void state.set('a:1', 'z')
    assert.equal(readings.at(-1), 'a:1=x a:2=y')
  })

  it('has one reading at a time, and reads again what changed meanwhile', async () => {
    const { state, lists } = listedByHand()
    const { mirror, readings } = open(state)
    mirror.start()
    void state.set('a:1', 'x')
    void state.set('a:1', 'y')
    assert.equal(lists.length, 1)
    lists[0]?.resolve([])
    await turn()
    assert.deepEqual([lists.length, readings], [2, ['']])
  })

  it('replaces a reading that does not answer after the store has changed, once', async () => {
    const { state, lists } = listedByHand()
    const { mirror, readings } = open(state, { deadlineMs: 2000 })
    mirror.start()
    void state.set('a:1', 'x')
    await sleep(400)
    assert.equal(lists.length, 2)
    void state.set('a:1', 'y')
    await sleep(400)
    assert.equal(lists.length, 2)
    lists[0]?.resolve([])
    lists[1]?.resolve([{ key: 'a:1', value: 'x' }])
    await turn()
    assert.deepEqual([lists.length, readings], [3, ['a:1=x']])
    mirror.close()
  })

  it('drops a reading during which a write of this process began or ended', async () => {
    const { state, lists } = listedByHand()
    const { mirror, readings } = open(state)
    mirror.start()
    await mirror.write('a:1', () => state.set('a:1', 'x'))
    lists[0]?.resolve([])
    await turn()
    assert.deepEqual([lists.length, readings, mirror.isRead], [2, [], false])
    lists[1]?.resolve([{ key: 'a:1', value: 'x' }])
    await turn()
    assert.deepEqual([readings, mirror.isRead], [['a:1=x'], true])
  })

  it('writes to one key one after the other, and to others meanwhile', async () => {
    const { mirror } = open()
    const order: string[] = []
    const first = Promise.withResolvers<void>()
    const writes = [
      mirror.write('a:1', () => first.promise.then(() => order.push('first'))),
      mirror.write('a:1', () => order.push('second')),
      mirror.write('a:2', () => order.push('other')),
    ]
    await turn()
    first.resolve()
    await Promise.all(writes)
    assert.deepEqual(order, ['other', 'first', 'second'])
  })

  it('keeps what it read while the store fails, counts the failures, and reads again until it works', async () => {
    const kept = memoryState()
    let isBroken = true
    let recovered = 0
    const list = (prefix: string) => {
      if (isBroken) throw new Error('unreachable')
      return kept.list(prefix)
    }
    const { mirror, readings, failures } = open({ ...kept, list }, { onRecovered: () => recovered++ })
    mirror.start()
    assert.deepEqual([mirror.isRead, mirror.isFailing, mirror.isBusy], [false, true, false])
    while (failures.length < 3) await sleep(1)
    isBroken = false
    while (mirror.isFailing) await sleep(1)
    assert.deepEqual([failures.slice(0, 3), readings, recovered], [[1, 2, 3], [''], 1])
    mirror.close()
  })

  for (const [what, answer] of [
    ['no list', 'x'],
    ['entries that cannot be used', [null]],
  ] as const) {
    it(`takes ${what} for a failure, and not for an answer`, () => {
      const { mirror, failures } = open({ list: () => answer as unknown as readonly StateEntry[] })
      mirror.start()
      assert.deepEqual([mirror.isRead, failures], [false, [1]])
      mirror.close()
    })
  }

  it('does not wait longer for a reading than its deadline', async () => {
    const { mirror, failures } = open({ list: () => new Promise(() => {}) }, { deadlineMs: 1 })
    mirror.start()
    while (failures.length < 2) await sleep(1)
    mirror.close()
  })

  it('reads a store that cannot be subscribed to again and again', async () => {
    const subscribe = () => {
      throw new Error('no connection')
    }
    const { mirror, readings, failures } = open({ subscribe })
    mirror.start()
    while (readings.length < 3) await sleep(1)
    assert.deepEqual([failures.slice(0, 2), mirror.isFailing], [[1, 2], false])
    mirror.close()
  })

  it('reads changes that follow each other together, unless somebody asks', async () => {
    const { state, mirror, readings } = open({}, { gapMs: 1_000_000 })
    mirror.start()
    for (let i = 0; i < 10; i++) void state.set(`a:${i}`, i)
    assert.deepEqual([readings.length, mirror.isBusy], [1, true])
    await mirror.idle()
    assert.deepEqual([readings.length, mirror.isBusy], [2, false])
    mirror.refresh()
    assert.equal(readings.length, 3)
    mirror.close()
  })

  it('writes what is missing and reads it again, once', () => {
    const kept = memoryState()
    const readings: number[] = []
    const { mirror } = open(kept, {
      onRead: (entries) => {
        readings.push(entries.length)
        return (done) => {
          void kept.add(`b:${readings.length}`, 1)
          void kept.add('a:1', 1)
          done({ value: undefined })
        }
      },
      gapMs: 1_000_000,
    })
    mirror.start()
    assert.deepEqual(readings, [0, 1])
    mirror.close()
  })
})

/** A store whose changes are announced by hand, each with the promise that it is applied. */
function announcing(list: StateStore['list']) {
  const changes = createEmitter<[StateChange]>()
  const announce = () => {
    const applied: Promise<void>[] = []
    changes.emit({ waitUntil: (promise) => applied.push(promise) })
    return Promise.all(applied)
  }
  return { state: { list, subscribe: changes.subscribe }, announce }
}

describe('a change that a store waits for', () => {
  it('is applied once it was read, also where another reading was under way', async () => {
    const { state, lists } = listedByHand()
    const { announce, state: parts } = announcing(state.list)
    const { mirror, readings } = open(parts)
    mirror.start()
    let isApplied = false
    const applied = announce().then(() => (isApplied = true))
    lists[0]?.resolve([])
    await turn()
    assert.deepEqual([readings, isApplied, lists.length], [[''], false, 2])
    lists[1]?.resolve([{ key: 'a:1', value: 'x' }])
    await applied
    assert.deepEqual(readings, ['', 'a:1=x'])
    mirror.close()
  })

  it('is read at once, also in the gap after a reading', async () => {
    let value = 0
    const { announce, state } = announcing(() => [{ key: 'a:1', value: ++value }])
    const { mirror, readings } = open(state, { gapMs: 60_000 })
    mirror.start()
    assert.deepEqual(readings, ['a:1=1'])
    assert.equal((await announce()).length, 1)
    assert.deepEqual(readings, ['a:1=1', 'a:1=2'])
    mirror.close()
  })

  it('is not applied where the store fails, and is at the next try', async () => {
    let isBroken = false
    const { announce, state } = announcing(() => {
      if (isBroken) throw new Error('gone')
      return []
    })
    const { mirror } = open(state, { retryMs: 60_000 })
    mirror.start()
    isBroken = true
    await assert.rejects(announce(), /gone/)
    isBroken = false
    await announce()
    mirror.close()
  })
})
