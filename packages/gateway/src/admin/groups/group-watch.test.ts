import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { memoryAvailability } from '@toolgate/core/groups'
import { createGroupWatch, type WatchedGroupChange } from './group-watch.ts'

describe('createGroupWatch', () => {
  it('reports a change at once, and a flapping group at most once a second', (t) => {
    const { availability, told, tick } = setup(t)
    availability.set('web', { available: false, reason: 'gone' })
    tick(10)
    assert.deepEqual(told.map(toWord), ['web off'])
    for (let i = 0; i < 100; i++) {
      availability.set('web', { available: i % 2 === 0 })
      tick(5)
    }
    assert.deepEqual(told.map(toWord), ['web off'])
    availability.set('web', { available: true })
    tick(600)
    assert.deepEqual(told.map(toWord), ['web off', 'web on'])
  })

  it('reports nothing if the state is the same at the end of its second', (t) => {
    const { availability, told, tick } = setup(t)
    availability.set('web', { available: false })
    tick(10)
    availability.set('web', { available: true })
    tick(10)
    availability.set('web', { available: false })
    tick(5000)
    assert.deepEqual(told.map(toWord), ['web off'])
  })

  it('reports simultaneous changes together, and one group does not wait for another', (t) => {
    const { availability, told, calls, tick } = setup(t)
    availability.set('web', { available: false })
    availability.set('git', { available: false })
    tick(10)
    assert.deepEqual([told.map(toWord), calls()], [['web off', 'git off'], 1])
    tick(500)
    availability.set('sql', { available: false })
    tick(10)
    assert.deepEqual(told.slice(2).map(toWord), ['sql off'])
  })

  it('counts how often a group came or went, and not that its words changed', (t) => {
    const { availability, watch, tick } = setup(t)
    availability.set('web', { available: false, reason: 'a' })
    tick(2000)
    availability.set('web', { available: false, reason: 'b' })
    tick(2000)
    assert.deepEqual(
      [...watch.counts],
      [
        ['web', 1],
        ['git', 0],
        ['sql', 0],
      ],
    )
  })

  it('goes on when a listener throws, and stops when it is closed', (t) => {
    const { availability, watch, told, faults, tick } = setup(t, true)
    availability.set('web', { available: false })
    tick(10)
    assert.deepEqual([told.length, faults.length], [1, 1])
    watch.close()
    availability.set('git', { available: false })
    tick(5000)
    assert.equal(told.length, 1)
  })
})

function setup(t: TestContext, throws = false) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 1000
  const on = { available: true }
  const availability = memoryAvailability({ web: on, git: on, sql: on })
  const faults: unknown[] = []
  const watch = createGroupWatch({
    names: () => ['web', 'git', 'sql'],
    availability,
    clock: { monotonicMs: () => nowMs },
    onFault: (error) => faults.push(error),
  })
  t.after(() => watch.close())
  const told: WatchedGroupChange[] = []
  let calls = 0
  if (throws)
    watch.subscribe(() => {
      throw new Error('listener')
    })
  watch.subscribe((changes) => {
    calls++
    told.push(...changes)
  })
  const tick = (ms: number) => {
    for (let left = ms; left > 0; left -= 5) {
      nowMs += Math.min(5, left)
      t.mock.timers.tick(Math.min(5, left))
    }
  }
  return { availability, watch, told, faults, calls: () => calls, tick }
}

function toWord({ name, now }: WatchedGroupChange): string {
  return `${name} ${now?.available === true ? 'on' : 'off'}`
}
