import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createEventStream, createLineSplitter } from './lines.ts'

function split(chunks: readonly Buffer[], maxBytes = 1_000): string[] {
  const lines: string[] = []
  const push = createLineSplitter(maxBytes, (line) => lines.push(line))
  for (const chunk of chunks) push(chunk)
  return lines
}

describe('createLineSplitter', () => {
  it('returns the same lines however the bytes are split', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll(/[\r\n]/g, ' '))),
        fc.integer({ min: 1, max: 7 }),
        (lines, size) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
          const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
            bytes.subarray(i * size, (i + 1) * size),
          )
          assert.deepEqual(split(chunks), lines)
        },
      ),
    )
  })

  it('finds each line that is not UTF-8, wherever the bytes are split', () => {
    const bytes = Buffer.concat([Buffer.from('ä\n"'), Buffer.from([0xff, 0xe2, 0x82]), Buffer.from('"\nö\n')])
    for (const size of [1, 2, 3, 100]) {
      const lines: [string, boolean][] = []
      const push = createLineSplitter(1_000, (line, _, isUtf8) => lines.push([line, isUtf8]))
      for (let i = 0; i < bytes.length; i += size) push(bytes.subarray(i, i + size))
      assert.deepEqual(
        lines.map(([line, isUtf8]) => (isUtf8 ? line : isUtf8)),
        ['ä', false, 'ö'],
      )
    }
  })

  it('takes CRLF off too', () => {
    assert.deepEqual(split([Buffer.from('a\r\nb\n'), Buffer.from('c\r'), Buffer.from('\n')]), ['a', 'b', 'c'])
  })

  it('hands on a line that is too long, piece by piece, and keeps the lines around it', () => {
    const lines: string[] = []
    const pieces: string[] = []
    const ends: number[] = []
    const push = createLineSplitter(
      1_000,
      (line) => lines.push(line),
      () => ({ push: (text) => pieces.push(text), end: (bytes) => ends.push(bytes) }),
    )
    push(Buffer.from('a\n'))
    for (let i = 1; i <= 100; i++) {
      push(Buffer.from('ä'.repeat(100)))
      assert.equal(pieces.join('').length, i > 5 ? i * 100 : 0)
    }
    push(Buffer.from('\nb\n'))
    assert.deepEqual([lines, ends], [['a', 'b'], [20_000]])
  })

  it('refuses a line that is too long before it has ended', () => {
    assert.throws(() => split([Buffer.alloc(600), Buffer.alloc(600)]), { code: 'upstream_too_large' })
  })
})

function read(
  text: string,
  maxBytes = 1_000,
): { data: string[]; lastEventId: string | undefined; retryMs: number | undefined } {
  const data: string[] = []
  const events = createEventStream(maxBytes, (event) => data.push(event))
  for (const byte of Buffer.from(text)) events.push(Buffer.of(byte))
  return { data, lastEventId: events.lastEventId, retryMs: events.retryMs }
}

describe('createEventStream', () => {
  it('returns the data of each message, with its lines joined', () => {
    assert.deepEqual(read('data: a\n\ndata:b\ndata: c\n\n').data, ['a', 'b\nc'])
  })

  it('ends lines at LF, CR and CRLF, wherever the bytes are split', () => {
    const bytes = Buffer.from('\uFEFFdata: a\rdata: b\r\ndata: c\n\r\rdata: d\r\n\r\ndata:\r\rdata: ü\r\r')
    for (let size = 1; size <= bytes.length; size++) {
      const seen: string[] = []
      const stream = createEventStream(100, (data) => seen.push(data))
      for (let at = 0; at < bytes.length; at += size) stream.push(bytes.subarray(at, at + size))
      assert.deepEqual(seen, ['a\nb\nc', 'd', 'ü'], `pieces of ${size}`)
    }
  })

  it('returns an event at its CR, without waiting for what follows', () => {
    const seen: string[] = []
    createEventStream(100, (data) => seen.push(data)).push(Buffer.from('data: a\r\r'))
    assert.deepEqual(seen, ['a'])
  })

  it('leaves out comments, other types, empty events and incomplete events', () => {
    assert.deepEqual(read(': hi\n\nevent: ping\ndata: x\n\ndata\n\nunknown: y\ndata: z\n\ndata: cut').data, ['z'])
  })

  it('goes back to the type message after an event of another', () => {
    assert.deepEqual(read('event: ping\ndata: x\n\ndata: y\n\nevent: message\ndata: z\n\n').data, ['y', 'z'])
  })

  it('keeps the latest id and the wait that the server asks for', () => {
    const { lastEventId, retryMs } = read('id: 7\nretry: 250\ndata:\n\nid: 8\nretry: soon\n\n')
    assert.deepEqual([lastEventId, retryMs], ['8', 250])
  })

  it('refuses an event that is too large, in one line or many', () => {
    assert.throws(() => read(`data: ${'x'.repeat(2_000)}`), { code: 'upstream_too_large' })
    assert.throws(() => read('data: xxxxxxxxxx\n'.repeat(200)), { code: 'upstream_too_large' })
    assert.throws(() => read('data\n'.repeat(2_000)), { code: 'upstream_too_large' })
  })
})
