import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { HttpExchange, type HttpRequest } from './http-exchange.ts'
import { HttpPool } from './http-endpoint.ts'

/** A server that sends whatever bytes a test wants. It reads requests with a length. */
class RawServer {
  readonly requests: string[] = []
  readonly sockets = new Set<Socket>()
  connections = 0
  answer: (socket: Socket, request: string) => unknown = () => undefined
  readonly #server: Server

  constructor(t: TestContext) {
    this.#server = createServer((socket) => this.#serve(socket))
    t.after(() => this.close())
  }

  async open(): Promise<URL> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const address = this.#server.address()
    assert.ok(typeof address === 'object' && address)
    return new URL(`http://127.0.0.1:${address.port}/mcp`)
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy()
    this.#server.close()
  }

  #serve(socket: Socket): void {
    this.connections++
    this.sockets.add(socket)
    let text = ''
    socket.setNoDelay()
    socket.setEncoding('latin1')
    socket.on('error', () => {})
    socket.on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (end === -1 || text.length < end + 4 + length) return
      const request = text.slice(0, end + 4 + length)
      text = text.slice(request.length)
      this.requests.push(request)
      this.answer(socket, request)
    })
  }
}

const POST: HttpRequest = { method: 'POST', path: '/mcp', headers: ['content-type', 'application/json'], body: '{}' }

function ask(pool: HttpPool, request: HttpRequest = POST): HttpExchange {
  return new HttpExchange(pool, request, (data) => events.push(data))
}

const events: string[] = []
const textOf = async (exchange: HttpExchange): Promise<string> => (await exchange.answer).text

async function open(t: TestContext) {
  const server = new RawServer(t)
  const url = await server.open()
  const pool = new HttpPool(url)
  t.after(() => pool.destroy())
  return { server, url, pool }
}

/** Writes CRLF for each line's end, and a bare LF for `␊`. */
const bytes = (text: string) => Buffer.from(text.replaceAll('\n', '\r\n').replaceAll('␊', '\n'), 'latin1')

const ok = (body = '{}', header = 'x: y') =>
  bytes(`HTTP/1.1 200 OK\ncontent-type: application/json\n${header}\ncontent-length: ${body.length}\n\n${body}`)

interface Expected {
  readonly status?: number
  readonly contentType?: string
  readonly sessionId?: string
  readonly location?: string
  readonly text?: string
}

const GOOD: readonly (readonly [name: string, sent: string, expected: Expected, closes?: true])[] = [
  [
    'a body of a known length',
    'HTTP/1.1 200 OK\nContent-Type: application/json; charset=utf-8\nContent-Length: 7\n\n{"a":1}',
    { contentType: 'application/json', text: '{"a":1}' },
  ],
  [
    'chunks with extensions, and trailers',
    'HTTP/1.1 200 \nTransfer-Encoding: chunked\n\n3;a=b\nabc\n0A\n0123456789\n0\nx-sum: 1\n\n',
    { text: 'abc0123456789' },
  ],
  [
    'early hints before the answer',
    'HTTP/1.1 103 Early Hints\nlink: </a>\n\nHTTP/1.1 202 Accepted\nmcp-session-id: s-1 \t\ncontent-length: 0\n\n',
    { status: 202, sessionId: 's-1' },
  ],
  ['no content', 'HTTP/1.1 204 No Content\nmcp-session-id: s\n\n', { status: 204, sessionId: 's' }],
  [
    'the first of two places',
    'HTTP/1.1 307 Moved\nlocation: /a\nlocation: /b\ncontent-length: 0\n\n',
    { status: 307, location: '/a' },
  ],
  ['an error', 'HTTP/1.1 503 Busy\ncontent-length: 4\n\nbusy', { status: 503, text: 'busy' }],
  ['a reason of odd characters', 'HTTP/1.1 404 N\u00e9ant\ncontent-length: 0\n\n', { status: 404 }],
  [
    'a body that ends with the connection',
    'HTTP/1.1 200 OK\ncontent-type: text/plain\n\nto the end',
    { contentType: 'text/plain', text: 'to the end' },
    true,
  ],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\ncontent-length: 2\n\nok', { text: 'ok' }],
]

const CHUNKED = 'HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n'

const BAD: readonly (readonly [name: string, sent: string, closes?: true])[] = [
  ['two lengths', 'HTTP/1.1 200 OK\ncontent-length: 1\ncontent-length: 1\n\na'],
  ['two different lengths', 'HTTP/1.1 200 OK\ncontent-length: 1\ncontent-length: 2\n\nab'],
  ['a length beside chunks', 'HTTP/1.1 200 OK\ncontent-length: 3\ntransfer-encoding: chunked\n\n1\na\n0\n\n'],
  ['another coding', 'HTTP/1.1 200 OK\ntransfer-encoding: gzip, chunked\n\n1\na\n0\n\n'],
  ['a coding after chunks', 'HTTP/1.1 200 OK\ntransfer-encoding: chunked, gzip\n\n1\na\n0\n\n'],
  ['two codings', 'HTTP/1.1 200 OK\ntransfer-encoding: chunked\ntransfer-encoding: chunked\n\n1\na\n0\n\n'],
  ['a coding that ends with a no-break space', 'HTTP/1.1 200 OK\ntransfer-encoding: chunked\xA0\n\n1\na\n0\n\n'],
  ['a length that ends with a no-break space', 'HTTP/1.1 200 OK\ncontent-length: 1\xA0\n\na'],
  ['a signed length', 'HTTP/1.1 200 OK\ncontent-length: +1\n\na'],
  ['a list of lengths', 'HTTP/1.1 200 OK\ncontent-length: 1, 1\n\na'],
  ['a space before the colon', 'HTTP/1.1 200 OK\ncontent-length : 1\n\na'],
  ['a folded header', 'HTTP/1.1 200 OK\nx: a\n b\ncontent-length: 1\n\na'],
  ['a header without a colon', 'HTTP/1.1 200 OK\nabc\n\n'],
  ['a NUL in a header', 'HTTP/1.1 200 OK\nx: \0\ncontent-length: 1\n\na'],
  ['a bare LF', 'HTTP/1.1 200 OK\nx: a␊content-length: 1\n\na'],
  ['another protocol', 'SSH-2.0-OpenSSH_9.9\n\n'],
  ['HTTP/2', 'HTTP/2 200 OK\n\n'],
  ['another protocol over this one', 'HTTP/1.1 101 Switching\nupgrade: x\n\n'],
  ['a status that there is not', 'HTTP/1.1 099 None\ncontent-length: 1\n\na'],
  ['interim answers without end', 'HTTP/1.1 103 Early Hints\n\n'.repeat(17)],
  ['a chunk without a size', `${CHUNKED}\nabc`],
  ['a negative chunk', `${CHUNKED}-1\n`],
  ['a chunk that is too long', `${CHUNKED}1\nabc\n`],
  ['an invalid trailer', `${CHUNKED}0\n x\n\n`],
  ['a head of 17 KiB', `HTTP/1.1 200 OK\nx: ${'x'.repeat(17 * 1024)}`],
  ['trailers of 20 KB', `${CHUNKED}0\n${`x: ${'y'.repeat(500)}\n`.repeat(40)}`],
  ['a cut body', 'HTTP/1.1 200 OK\ncontent-length: 9\n\nab', true],
  ['cut chunks', `${CHUNKED}9\nab`, true],
  ['a cut head', 'HTTP/1.1 200 OK\ncontent-le', true],
  ['nothing', '', true],
]

describe('HttpPool', () => {
  for (const [name, sent, expected, closes] of GOOD)
    it(`reads ${name}, in whatever pieces it arrives`, async (t) => {
      const { server, pool } = await open(t)
      const whole = bytes(sent)
      const answer = { status: 200, contentType: '', sessionId: undefined, location: undefined, text: '', ...expected }
      const cuts = fc.array(fc.integer({ min: 1, max: whole.length }), { maxLength: 3 })
      await fc.assert(
        fc.asyncProperty(cuts, async (places) => {
          const got = await askWith(server, pool, pieces(whole, places), closes).answer
          assert.deepEqual(got, { ...answer, lastEventId: undefined, retryMs: undefined })
        }),
        { numRuns: 10 },
      )
    })

  for (const [name, sent, closes] of BAD)
    it(`refuses ${name}, in whatever pieces it arrives, and ends its connection`, async (t) => {
      const { server, pool } = await open(t)
      const whole = bytes(sent)
      const cuts = fc.array(fc.integer({ min: 1, max: Math.max(whole.length, 1) }), { maxLength: 3 })
      await fc.assert(
        fc.asyncProperty(cuts, async (places) => {
          await assert.rejects(askWith(server, pool, pieces(whole, places), closes).answer, { code: 'upstream_down' })
        }),
        { numRuns: 10 },
      )
      server.answer = (socket) => socket.write(ok('"next"'))
      assert.equal(await textOf(ask(pool)), '"next"')
      assert.equal(server.connections, server.requests.length)
    })

  it('says why it refuses an answer', async (t) => {
    const { server, pool } = await open(t)
    for (const [sent, message] of [
      ['HTTP/1.1 200 OK\ntransfer-encoding: gzip, chunked\n\n', /sent a body whose end is unclear/],
      ['HTTP/1.1 200 OK\ncontent-length: 1\ncontent-length: 1\n\na', /sent a body of another length than it named/],
      ['HTTP/1.1 101 Switching\nupgrade: x\n\n', /answered HTTP 101/],
      [`HTTP/1.1 200 OK\nx: ${'x'.repeat(17 * 1024)}\n\n`, /sent too many headers/],
      ['SSH-2.0-OpenSSH_9.9\n\n', /does not match the HTTP\/1.1 protocol/],
    ] as const)
      await assert.rejects(askWith(server, pool, [bytes(sent)]).answer, { code: 'upstream_down', message })
  })

  it('passes on the events of a stream as they come', async (t) => {
    const { server, pool } = await open(t)
    let stream: Socket | undefined
    const type = 'content-type: text/event-stream'
    server.answer = (socket) => {
      stream = socket
      socket.write(bytes(`HTTP/1.1 200 OK\n${type}\ntransfer-encoding: chunked\n\n9\n`))
      socket.write('data: 1\n\n\r\n')
    }
    const before = events.length
    const { answer } = ask(pool)
    while (events.length === before) await new Promise(setImmediate)
    assert.equal(events.at(-1), '1')
    stream?.write(bytes('0\n\n'))
    assert.equal((await answer).contentType, 'text/event-stream')
  })

  it('sends requests as RFC 9112 writes them', async (t) => {
    const { server, url, pool } = await open(t)
    server.answer = (socket) => socket.write(ok())
    const type = 'content-type: application/json'
    const general = [`host: ${url.host}`, 'connection: keep-alive']
    for (const [request, head, body] of [
      [
        { ...POST, ownHeaders: ['mcp-method', 'tools/call'], body: '{"text":"é"}' },
        ['POST /mcp HTTP/1.1', ...general, type, 'mcp-method: tools/call', 'content-length: 13'],
        Buffer.from('{"text":"é"}').toString('latin1'),
      ],
      [
        { ...POST, body: 'x'.repeat(100_000) },
        ['POST /mcp HTTP/1.1', ...general, type, 'content-length: 100000'],
        'x'.repeat(100_000),
      ],
      [
        { method: 'GET', path: '/mcp?a=b', headers: ['accept', 'text/event-stream'] },
        ['GET /mcp?a=b HTTP/1.1', ...general, 'accept: text/event-stream'],
        '',
      ],
      [{ method: 'DELETE', path: '/mcp', headers: [] }, ['DELETE /mcp HTTP/1.1', ...general], ''],
    ] as const) {
      await ask(pool, request).answer
      const [sent = '', ...rest] = (server.requests.at(-1) ?? '').split('\r\n\r\n')
      assert.deepEqual(sent.toLowerCase().split('\r\n').toSorted(), head.map((line) => line.toLowerCase()).toSorted())
      assert.equal(rest.join('\r\n\r\n'), body)
    }
  })

  it('keeps connections for later requests: one that comes at once may need a second', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(ok())
    for (let i = 0; i < 20; i++) await ask(pool).answer
    assert.ok(server.connections <= 2, String(server.connections))
  })

  for (const header of ['connection: close', 'connection: x, Close', 'keep-alive: timeout=1'])
    it(`uses no connection again that its server ends (${header})`, async (t) => {
      const { server, pool } = await open(t)
      server.answer = (socket) => socket.write(ok('{}', header))
      for (let i = 0; i < 2; i++) await ask(pool).answer
      assert.equal(server.connections, 2)
    })

  for (const head of [
    '204 None\ncontent-length: 5',
    '304 None\ntransfer-encoding: chunked',
    '204 None\ncontent-length: 1',
  ])
    it(`uses no connection again after HTTP ${head.replace('\n', ' with ')}, whose body may follow`, async (t) => {
      const { server, pool } = await open(t)
      server.answer = (socket) => socket.write(bytes(`HTTP/1.1 ${head}\n\n`))
      for (let i = 0; i < 2; i++) await ask(pool).answer
      assert.equal(server.connections, 2)
    })

  it('gives no answer to a request that another server message came before', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(Buffer.concat([ok('"mine"'), ok('"smuggled"')]))
    assert.equal(await textOf(ask(pool)), '"mine"')
    server.answer = (socket) => socket.write(ok('"second"'))
    assert.equal(await textOf(ask(pool)), '"second"')
    assert.equal(server.connections, 2)
  })

  it('drops a connection on which a server speaks unasked', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(ok('"first"'))
    await ask(pool).answer
    const [late] = server.sockets
    assert.ok(late)
    const closed = once(late, 'close')
    late.write(ok('"unasked"'))
    await closed
    server.answer = (socket) => socket.write(ok('"second"'))
    assert.equal(await textOf(ask(pool)), '"second"')
  })

  it('sends a request on another connection where its server has closed the kept one', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.end(ok('"first"'))
    assert.equal(await textOf(ask(pool)), '"first"')
    server.answer = (socket) => socket.write(ok('"second"'))
    assert.equal(await textOf(ask(pool)), '"second"')
    assert.equal(server.requests.length, 2)
  })

  it('sends no request again that its server may have read', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(ok())
    await ask(pool).answer
    server.answer = (socket) => socket.destroy()
    for (const request of [POST, { ...POST, method: 'GET', body: undefined } as const]) {
      const before = server.requests.length
      await assert.rejects(ask(pool, request).answer, { code: 'upstream_down', message: 'closed the connection' })
      assert.equal(server.requests.length, before + 1)
    }
  })

  it('cuts a connection after its answer, before the next request is on it', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(ok())
    const first = ask(pool)
    await first.answer
    const closed = Promise.all([...server.sockets].map((socket) => once(socket, 'close')))
    const next = ask(pool)
    first.cutConnection?.()
    await closed
    assert.equal(await textOf(next), '{}')
    assert.equal(server.connections, 2)
  })

  it('cuts a connection with the request that is on it', async (t) => {
    const { server, pool } = await open(t)
    server.answer = () => undefined
    const running = ask(pool)
    while (server.requests.length === 0) await new Promise(setImmediate)
    running.cutConnection?.()
    await assert.rejects(running.answer, { code: 'upstream_down', message: 'closed the connection' })
  })

  it('opens no more than 256 connections, and serves the rest in order', async (t) => {
    const { server, pool } = await open(t)
    const opened: [Socket, string][] = []
    server.answer = (socket, request) => void opened.push([socket, request])
    const asked = Array.from({ length: 270 }, (_, i) => textOf(ask(pool, { ...POST, body: `"${i}"` })))
    while (opened.length < 256) await new Promise(setImmediate)
    const answer = (socket: Socket, request: string) => socket.write(ok(request.slice(request.indexOf('\r\n\r\n') + 4)))
    server.answer = answer
    for (const [socket, request] of opened) answer(socket, request)
    assert.deepEqual(
      await Promise.all(asked),
      Array.from({ length: 270 }, (_, i) => `"${i}"`),
    )
    assert.equal(server.connections, 256)
  })

  it('ends an aborted request and its connection, and sends none that was aborted before', async (t) => {
    const { server, pool } = await open(t)
    const arrived = new Promise<Socket>((resolve) => (server.answer = resolve))
    const first = ask(pool)
    const closed = once(await arrived, 'close')
    const second = ask(pool)
    second.abort()
    await assert.rejects(second.answer, { code: 'aborted' })
    first.abort()
    await assert.rejects(first.answer, { code: 'aborted' })
    await closed
    server.answer = (socket) => socket.write(ok('"third"'))
    assert.equal(await textOf(ask(pool)), '"third"')
    assert.equal(server.requests.length, 2)
  })

  it('reports a server that is not there, and goes on once it is', async (t) => {
    const { server, pool, url } = await open(t)
    server.answer = (socket) => socket.destroy()
    await assert.rejects(ask(pool).answer, { code: 'upstream_down', message: 'closed the connection' })
    server.answer = (socket) => socket.write(ok())
    assert.equal((await ask(pool).answer).status, 200)
    server.close()
    const nowhere = new HttpPool(url)
    await assert.rejects(ask(nowhere).answer, { message: 'refused the connection: nothing listens there' })
    await nowhere.destroy()
  })

  it('refuses headers that would end the head', async (t) => {
    const { server, pool } = await open(t)
    for (const ownHeaders of [
      ['mcp-name', 'a\r\nx: y'],
      ['a b', 'c'],
      ['x', 'a\0'],
      ['x', '\u0100'],
      ['x\n', 'a'],
    ])
      await assert.rejects(ask(pool, { ...POST, ownHeaders }).answer, { code: 'upstream_down' })
    assert.equal(server.requests.length, 0)
  })

  it('ends everything when it is destroyed, and takes no more', async (t) => {
    const { server, pool } = await open(t)
    const running = ask(pool)
    while (server.requests.length === 0) await new Promise(setImmediate)
    const destroyed = pool.destroy(new Error('stopped'))
    await Promise.all([running, ask(pool)].map((one) => assert.rejects(one.answer, /stopped/)))
    await destroyed
    await assert.rejects(ask(pool).answer, /stopped/)
    assert.equal(server.requests.length, 1)
  })
})

function pieces(whole: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places.toSorted((a, b) => a - b), whole.length]
  return cuts.slice(1).map((end, i) => whole.subarray(cuts[i], end))
}

function askWith(server: RawServer, pool: HttpPool, parts: readonly Buffer[], closes?: boolean): HttpExchange {
  server.answer = async (socket) => {
    for (const part of parts) {
      if (part.length > 0) socket.write(part)
      // Nagle is off, so that each part is a packet of its own.
      await new Promise(setImmediate)
    }
    if (closes) socket.end()
  }
  return ask(pool)
}
