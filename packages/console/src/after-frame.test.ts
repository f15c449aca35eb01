import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { afterFrame, UNSEEN_MS } from './after-frame.ts'

describe('afterFrame', () => {
  for (const isSeen of [true, false])
    it(`works once, ${isSeen ? 'after the next frame' : 'also on a page that nobody sees'}`, (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const frames: (() => void)[] = []
      Object.assign(globalThis, { requestAnimationFrame: (draw: () => void) => frames.push(draw) })
      t.after(() => Reflect.deleteProperty(globalThis, 'requestAnimationFrame'))
      let done = 0
      afterFrame(100)(() => done++)
      t.mock.timers.tick(99)
      assert.deepEqual([frames.length, done], [0, 0])
      t.mock.timers.tick(1)
      assert.deepEqual([frames.length, done], [1, 0])
      if (isSeen) frames[0]?.()
      t.mock.timers.tick(1)
      assert.equal(done, isSeen ? 1 : 0)
      t.mock.timers.tick(UNSEEN_MS)
      assert.equal(done, 1)
    })
})
