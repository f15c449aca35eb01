import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'

const MIB = 1024 * 1024
const PIECE = Buffer.alloc(64 * 1024, 0x20)
/** More than the buffers of both systems hold, so that the gateway has answered before the client has sent all. */
const PIECES = (24 * MIB) / PIECE.length

let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({})
})

after(() => gateway?.close())

/** Sends a whole body before it reads anything, as many clients do. Returns the first line of the answer. */
async function sendThenRead(path: string, key: string, isChunked: boolean): Promise<string> {
  const socket = connect(gateway.port, '127.0.0.1')
  const closed = once(socket, 'close')
  try {
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: 127.0.0.1:${gateway.port}`,
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${PIECES * PIECE.length}`,
    ]
    const piece = isChunked ? Buffer.concat([Buffer.from('10000\r\n'), PIECE, Buffer.from('\r\n')]) : PIECE
    await write(socket, `${head.join('\r\n')}\r\n\r\n`)
    for (let i = 0; i < PIECES; i++) await write(socket, piece)
    if (isChunked) await write(socket, '0\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    return answer.toString().split('\r\n', 1)[0] ?? ''
  } finally {
    socket.destroy()
    await closed
  }
}

function write(socket: ReturnType<typeof connect>, data: string | Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.write(data, (error) => (error ? reject(error) : resolve()))
  return promise
}

describe('a body that is too large', () => {
  const doors = [
    ['/mcp', KEYS.admin],
    ['/api/call', KEYS.admin],
    ['/api/decide', KEYS.admin],
    ['/api/login', KEYS.console],
    ['/api/why', KEYS.console],
    ['/api/what-if', KEYS.console],
  ] as const
  for (const [path, key] of doors)
    for (const isChunked of [false, true])
      it(`is answered with 413 to a client that sends all of it first, ${isChunked ? 'in chunks ' : ''}at ${path}`, async () => {
        assert.equal(await sendThenRead(path, key, isChunked), 'HTTP/1.1 413 Payload Too Large')
      })

  it('is answered to a client with a wrong key, too', async () => {
    assert.equal(await sendThenRead('/mcp', 'wrong', true), 'HTTP/1.1 401 Unauthorized')
    assert.equal(await sendThenRead('/api/call', 'wrong', false), 'HTTP/1.1 401 Unauthorized')
  })
})
