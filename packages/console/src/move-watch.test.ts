import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { createMoveWatch, type MoveWatch } from './move-watch.ts'

describe('createMoveWatch', () => {
  let now: number
  let frames: (() => void)[]
  let watch: MoveWatch

  beforeEach(() => {
    now = 0
    frames = []
    watch = createMoveWatch({ stillMs: 500, nowMs: () => now, nextFrame: (work) => frames.push(work) })
  })

  it('is still when nothing has appeared or moved for the given time', () => {
    watch.watch(box())
    runFrame(499)
    assert.equal(watch.current, false)
    runFrame(500)
    assert.equal(watch.current, true)
  })

  it('notices every kind of move: across, down and in size', () => {
    const element = box()
    watch.watch(element)
    for (const [i, side] of (['left', 'top', 'width', 'height'] as const).entries()) {
      const at = (i + 1) * 1000
      runFrame(at)
      assert.equal(watch.current, true)
      element.rect[side] += 1
      runFrame(at + 16)
      assert.equal(watch.current, false)
      runFrame(at + 515)
      assert.equal(watch.current, false)
    }
  })

  it('notices a move before the next frame', () => {
    const element = box()
    watch.watch(element)
    runFrame(600)
    element.rect.top = 40
    assert.equal(watch.current, true)
    assert.equal(watch.check(), false)
  })

  it('notifies of changes, and stops when nothing is watched', () => {
    const heard: boolean[] = []
    watch.subscribe(() => heard.push(watch.current))
    const stop = watch.watch(box())
    runFrame(600)
    assert.deepEqual(heard, [false, true])
    stop()
    runFrame(616)
    assert.deepEqual(frames, [])
    watch.watch(box())
    assert.equal(frames.length, 1)
  })

  function runFrame(at: number): void {
    now = at
    for (const work of frames.splice(0)) work()
  }
})

function box() {
  const rect = { left: 0, top: 0, width: 80, height: 34 }
  return { rect, getBoundingClientRect: () => rect as DOMRect }
}
