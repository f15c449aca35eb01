import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { HeldStreams, type HeldStreamsOptions } from './held-streams.ts'
import { Sessions } from '../calls/sessions.ts'

const VERA = Object.freeze({ user: 'vera' })
const clock = { monotonicMs: () => 0, wallMs: () => 0 }

function setUp(options: Partial<HeldStreamsOptions> = {}) {
  const held = new HeldStreams({ clock, ...options })
  const sessions = new Sessions({ clock })
  const session = sessions.begin(VERA, { capabilities: {}, protocolVersion: '2025-11-25' })
  const abandoned: number[] = []
  const attached: (readonly [number, number])[] = []
  const open = (number: number, of = session) =>
    held.open(of, VERA, {
      attach: (_, after) => attached.push([number, after]),
      abandon: () => abandoned.push(number),
    })
  return { held, sessions, session, abandoned, attached, open }
}

describe('HeldStreams', () => {
  it('holds the latest events that may be lost, and every other', () => {
    const { held, open } = setUp()
    const stream = open(1)
    stream?.add('question', false)
    for (let n = 0; n < 1000; n++) stream?.add(`${n}`, true)
    const events = stream?.after(0) ?? []
    assert.equal(events.length, 64)
    assert.match(events[0] ?? '', /data: question\n/)
    assert.match(events.at(-1) ?? '', /data: 999\n/)
    stream?.add('x'.repeat(256 * 1024), true)
    assert.equal(stream?.after(0).length, 1)
    assert.ok(held.chars < 1000, String(held.chars))
  })

  it('makes room by what one user holds, not by the streams of others', () => {
    const { held, sessions, abandoned, open } = setUp({ maxChars: 10_000 })
    const own = open(1)
    own?.add('a'.repeat(500), false)
    own?.setConnected(false)
    const eve = sessions.begin({ user: 'eve' }, { capabilities: {}, protocolVersion: '2025-11-25' })
    for (let n = 2; n < 30; n++) open(n, eve)?.add('x'.repeat(2000), false)
    open(99, eve)?.add('x'.repeat(20_000), false)
    assert.ok(own?.isHeld)
    assert.deepEqual(abandoned, [])
    assert.ok(held.chars < 10_000)
  })

  it('counts what it holds, to nothing when all have ended', () => {
    const { held, open } = setUp()
    const streams = [open(1), open(2)]
    const added = streams.map((stream) => stream?.add('a', false).number)
    assert.ok(held.chars > 0)
    streams[0]?.forget(added[0] ?? 0)
    streams[0]?.forget(added[0] ?? 0)
    for (const stream of streams) stream?.end()
    for (const stream of streams) stream?.end()
    assert.deepEqual([held.chars, held.count], [0, 0])
  })

  it('holds so many streams of a session, and so many in all, of which the finished ones go first', () => {
    const { held, sessions, session, open } = setUp({ maxStreams: 3, maxOfSession: 2 })
    assert.ok(open(1) && open(2))
    assert.equal(open(3), undefined)
    const other = sessions.begin(VERA, { capabilities: {}, protocolVersion: '2025-11-25' })
    const first = open(4, other)
    assert.ok(first)
    assert.equal(open(5, other), undefined)
    first.finish()
    assert.ok(open(6, other))
    assert.deepEqual([held.count, session.uses.size, first.isHeld], [3, 2, false])
  })

  it('ends streams beyond the bound of characters: finished ones first, then those that wait, then the oldest', () => {
    const { open, abandoned } = setUp({ maxChars: 10_000 })
    const [connected, waiting, finished, last] = [open(1), open(2), open(3), open(4)]
    for (const stream of [connected, waiting, finished]) stream?.add('x'.repeat(3000), false)
    waiting?.setConnected(false)
    finished?.finish()
    const isHeld = () => [connected, waiting, finished, last].map((stream) => stream?.isHeld)
    last?.add('x'.repeat(3000), false)
    assert.deepEqual(isHeld(), [true, true, false, true])
    last?.add('x'.repeat(3000), false)
    assert.deepEqual(isHeld(), [true, false, false, true])
    assert.deepEqual(abandoned, [2])
    last?.add('x'.repeat(3000), false)
    assert.deepEqual(isHeld(), [false, false, false, true])
    last?.add('x'.repeat(20_000), false)
    assert.deepEqual(isHeld(), [false, false, false, false])
    assert.deepEqual(abandoned, [2])
  })

  it('resumes after the event of an id', () => {
    const { held, session, open, attached } = setUp()
    const stream = open(1)
    const id = /^id: (.+)$/m.exec(stream?.add('a', false).event ?? '')?.[1] ?? ''
    assert.equal(held.resume(session, VERA, id, {} as ServerResponse), true)
    assert.deepEqual(attached, [[1, 1]])
    stream?.end()
    assert.equal(held.resume(session, VERA, id, {} as ServerResponse), false)
  })
})
