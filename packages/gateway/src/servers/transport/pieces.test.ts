import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { createEventStream } from './lines.ts'
import { Pieces } from './pieces.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Returns the bytes that are held after some work. */
function heldAfter(work: () => unknown): number {
  const used = () => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = used()
  const held = work()
  const after = used()
  assert.ok(held)
  return after - before
}

const COUNT = 1_000_000
const SENT = Buffer.from('x'.repeat(64 * 1024))

describe('Pieces', () => {
  it('returns the bytes in order, once', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 5 })), fc.nat(3000), (parts, more) => {
        const all = [...parts.map((part) => Buffer.from(part)), ...Array.from({ length: more }, (_, i) => Buffer.of(i))]
        const pieces = new Pieces()
        for (const part of all) pieces.push(part)
        const whole = Buffer.concat(all)
        assert.deepEqual([pieces.bytes, pieces.take()], [whole.length, whole])
        assert.deepEqual([pieces.bytes, pieces.take().length], [0, 0])
      }),
      { numRuns: 30 },
    )
  })

  it('takes little more than a body that arrives byte by byte', () => {
    const held = heldAfter(() => {
      const pieces = new Pieces()
      for (let i = 0; i < COUNT; i++) pieces.push(SENT.subarray(i & 0xffff, (i & 0xffff) + 1))
      return pieces
    })
    assert.ok(held < 8 * COUNT, `${held} bytes`)
  })

  it('takes little more than an event that arrives byte by byte', () => {
    const held = heldAfter(() => {
      const events = createEventStream(2 * COUNT, () => {})
      events.push(Buffer.from('data: '))
      for (let i = 0; i < COUNT; i++) events.push(SENT.subarray(i & 0xffff, (i & 0xffff) + 1))
      return events
    })
    assert.ok(held < 8 * COUNT, `${held} bytes`)
  })
})
