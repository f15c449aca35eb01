import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createEventStream } from './event-stream.ts'

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
  it('gives the data of each message, its lines joined', () => {
    assert.deepEqual(read('data: a\n\ndata:b\ndata: c\n\n').data, ['a', 'b\nc'])
  })

  it('leaves out comments, other types, empty events and what has not ended', () => {
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
