import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Revision } from '@toolgate/values'
import { createUnlocks } from './unlocks.ts'

const of = (user: string, session: string) => ({ user, session })

describe('createUnlocks', () => {
  it('forgets the oldest session of the user who has most, once there are too many in all', () => {
    const unlocks = createUnlocks({ changes: new Revision(), max: 4 })
    for (const session of ['1', '2', '3']) unlocks.open(of('omar', session), ['web'])
    unlocks.open(of('vera', '1'), ['web'])
    unlocks.open(of('ines', '1'), ['web'])
    const isOpen = (user: string, session: string) => unlocks.openFor(of(user, session)).has('web')
    assert.deepEqual(
      [isOpen('omar', '1'), isOpen('omar', '2'), isOpen('omar', '3'), isOpen('vera', '1'), isOpen('ines', '1')],
      [false, true, true, true, true],
    )
  })

  it('forgets the oldest session of a user who has more than a user may', () => {
    const unlocks = createUnlocks({ changes: new Revision(), maxOfUser: 2 })
    for (const session of ['1', '2', '3']) unlocks.open(of('omar', session), ['web'])
    assert.equal(unlocks.openFor(of('omar', '1')).size, 0)
    assert.equal(unlocks.openFor(of('omar', '3')).size, 1)
  })

  it('looks at no more entries for an unlock when many users have sessions than when few have', (t) => {
    const steps = (users: number): number => {
      const unlocks = createUnlocks({ changes: new Revision(), max: users })
      for (let i = 0; i < users; i++) unlocks.open(of(`user${i}`, '1'), ['web'])
      const counted = countSteps(t)
      unlocks.open(of('one more', '1'), ['web'])
      return counted.stop()
    }
    const few = steps(10)
    assert.ok(few > 0)
    assert.equal(steps(10_000), few)
  })
})

/** Counts what is taken out of iterators of maps and sets, which is how a walk looks at entries. */
function countSteps(t: { readonly mock: typeof import('node:test').mock }): { stop(): number } {
  const prototypes = [new Map().entries(), new Set().values()].map(
    (iterator) => Object.getPrototypeOf(iterator) as object,
  )
  const mocks = prototypes.map((prototype) => t.mock.method(prototype as { next(): unknown }, 'next'))
  return {
    stop() {
      const count = mocks.reduce((sum, { mock }) => sum + mock.callCount(), 0)
      for (const { mock } of mocks) mock.restore()
      return count
    },
  }
}
