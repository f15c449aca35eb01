import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { Http1Pool, type Http1PoolOptions, type PoolHandler, type PoolRequest } from './http1-pool.ts'
import { UndiciPool } from './undici-pool.ts'

type Pool = Pick<Http1Pool, 'send'> & { destroy(error?: Error): void | Promise<void> }

interface Got {
  readonly status: number
  readonly type: string | undefined
  readonly session: string | undefined
  readonly body: string
}

/** A server that sends whatever bytes a test wants. It reads requests with a length. */
class RawServer {
  readonly requests: string[] = []
  connections = 0
  answer: (socket: Socket, request: string) => unknown = () => undefined
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

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
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #serve(socket: Socket): void {
    this.connections++
    this.#sockets.add(socket)
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

const OPTIONS: Http1PoolOptions = { maxConnections: 4, connectTimeoutMs: 5_000 }
const POST: PoolRequest = { method: 'POST', path: '/mcp', headers: ['content-type', 'application/json'], body: '{}' }

function ask(pool: Pool, request: PoolRequest = POST, onStart: PoolHandler['onStart'] = () => {}) {
  return new Promise<Got>((resolve, reject) => {
    let head: Omit<Got, 'body'> | undefined
    const parts: Buffer[] = []
    pool.send(request, {
      onStart,
      onHead: (status, headers) =>
        (head = { status, type: headers['content-type'], session: headers['mcp-session-id'] }),
      onBody: (bytes) => parts.push(bytes),
      onEnd: () => resolve({ ...head!, body: Buffer.concat(parts).toString() }),
      onError: reject,
    })
  })
}

async function open(t: TestContext, options = OPTIONS) {
  const server = new RawServer(t)
  const url = await server.open()
  const pool = new Http1Pool(url, options)
  t.after(() => pool.destroy())
  return { server, url, pool }
}

const ok = (body = '{}') =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** Answers of servers, of which both pools make the same. */
const ANSWERS: readonly (readonly [name: string, text: string, closes?: true])[] = [
  ['a body of a known length', ok('{"a":"é"}')],
  ['chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{"\r\n5\r\na":1}\r\n0\r\n\r\n'],
  ['trailers', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-sum: 2\r\n\r\n'],
  [
    'an event stream',
    'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n',
  ],
  ['early hints', `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ok()}`],
  ['accepted', 'HTTP/1.1 202 Accepted\r\nmcp-session-id: s-1\r\ncontent-length: 0\r\n\r\n'],
  ['no content', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['an error', 'HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy'],
  ['a body that ends with the connection', 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nto the end', true],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok', true],
  ['a reason of odd characters', 'HTTP/1.1 404 N\u00e9ant\r\ncontent-length: 0\r\n\r\n'],
]

/** What no pool takes for an answer. */
const REFUSED: readonly (readonly [name: string, text: string, closes?: true])[] = [
  ['two different lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
  [
    'a length beside chunks',
    'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n',
  ],
  ['a cut body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab', true],
  ['cut chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nab', true],
  ['a cut head', 'HTTP/1.1 200 OK\r\ncontent-le', true],
  ['nothing', '', true],
  ['another protocol', '220 mail.example.com ESMTP\r\n\r\n', true],
]

describe('Http1Pool', () => {
  for (const [name, text, closes] of ANSWERS)
    it(`makes the same as undici of ${name}, in whatever pieces it arrives`, async (t) => {
      const { server, url, pool } = await open(t)
      const oracle = new UndiciPool(url, OPTIONS)
      t.after(() => oracle.destroy())
      const expected = await askWith(server, oracle, [Buffer.from(text, 'utf8')], closes)
      const bytes = Buffer.from(text, 'utf8')
      const cuts = fc.array(fc.integer({ min: 1, max: bytes.length }), { maxLength: 3 })
      await fc.assert(
        fc.asyncProperty(cuts, async (places) => {
          assert.deepEqual(await askWith(server, pool, pieces(bytes, places), closes), expected)
        }),
        { numRuns: 10 },
      )
    })

  for (const [name, text, closes] of REFUSED)
    it(`refuses ${name}, as undici does`, async (t) => {
      const { server, url, pool } = await open(t)
      const oracle = new UndiciPool(url, OPTIONS)
      t.after(() => oracle.destroy())
      for (const one of [oracle, pool]) await assert.rejects(askWith(server, one, [Buffer.from(text)], closes))
    })

  it('sends what undici sends', async (t) => {
    const { server, url, pool } = await open(t)
    const oracle = new UndiciPool(url, OPTIONS)
    t.after(() => oracle.destroy())
    server.answer = (socket) => socket.write(ok())
    const requests: PoolRequest[] = [
      { ...POST, ownHeaders: ['mcp-method', 'tools/call'], body: '{"text":"é"}' },
      { ...POST, body: 'x'.repeat(100_000) },
      { method: 'GET', path: '/mcp?a=b', headers: ['accept', 'text/event-stream'] },
      { method: 'DELETE', path: '/mcp', headers: [] },
    ]
    for (const request of requests) {
      server.requests.length = 0
      await ask(pool, request)
      await ask(oracle, request)
      const [ours, theirs] = server.requests.map((text) => {
        const [head = '', body] = text.split('\r\n\r\n')
        return { head: head.toLowerCase().split('\r\n').toSorted(), body }
      })
      assert.deepEqual(ours, theirs)
    }
  })

  it('keeps a connection for the next request', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(ok())
    for (let i = 0; i < 5; i++) await ask(pool)
    assert.equal(server.connections, 1)
  })

  it('closes a connection that its server will close soon, and one that is told to', async (t) => {
    const { server, pool } = await open(t)
    for (const header of ['connection: close', 'keep-alive: timeout=1']) {
      const before = server.connections
      server.answer = (socket) => socket.write(ok().replace('\r\n', `\r\n${header}\r\n`))
      await ask(pool)
      await ask(pool)
      assert.equal(server.connections, before + 2, header)
    }
  })

  it('gives no answer to a request that another server message came before', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(ok('"mine"') + ok('"smuggled"'))
    assert.equal((await ask(pool)).body, '"mine"')
    server.answer = (socket) => socket.write(ok('"second"'))
    assert.equal((await ask(pool)).body, '"second"')
    assert.equal(server.connections, 2)
  })

  it('drops a connection on which a server speaks unasked', async (t) => {
    const { server, pool } = await open(t)
    let late: Socket | undefined
    server.answer = (socket) => {
      late = socket
      socket.write(ok('"first"'))
    }
    await ask(pool)
    assert.ok(late)
    const closed = once(late, 'close')
    late.write(ok('"unasked"'))
    await closed
    server.answer = (socket) => socket.write(ok('"second"'))
    assert.equal((await ask(pool)).body, '"second"')
  })

  it('ends a connection that is no longer trusted, with what is on it', async (t) => {
    const { server, pool } = await open(t)
    server.answer = (socket) => socket.write(ok())
    let distrust: (() => void) | undefined
    await ask(pool, POST, (_, given) => (distrust = given))
    server.answer = () => undefined
    const next = ask(pool)
    distrust?.()
    await assert.rejects(next, { code: 'ECONNRESET' })
    server.answer = (socket) => socket.write(ok('"third"'))
    assert.equal((await ask(pool)).body, '"third"')
    assert.equal(server.connections, 2)
  })

  it('opens no more connections than it may, and serves the rest in order', async (t) => {
    const { server, pool } = await open(t)
    const opened: Socket[] = []
    server.answer = (socket) => void opened.push(socket)
    const asked = Array.from({ length: 10 }, (_, i) => ask(pool, { ...POST, body: String(i) }))
    while (server.requests.length < 4) await new Promise(setImmediate)
    assert.equal(server.connections, 4)
    server.answer = (socket, request) => socket.write(ok(request.slice(-1)))
    opened.forEach((socket, i) => socket.write(ok(server.requests[i]?.slice(-1))))
    assert.deepEqual(
      (await Promise.all(asked)).map(({ body }) => body),
      Array.from({ length: 10 }, (_, i) => String(i)),
    )
    assert.equal(server.connections, 4)
  })

  it('ends an aborted request and its connection, and one that waits', async (t) => {
    const { server, pool } = await open(t, { ...OPTIONS, maxConnections: 1 })
    const arrived = new Promise<Socket>((resolve) => (server.answer = resolve))
    let abortFirst: (reason: Error) => void = () => {}
    let abortSecond: (reason: Error) => void = () => {}
    const first = ask(pool, POST, (abort) => (abortFirst = abort))
    const second = ask(pool, POST, (abort) => (abortSecond = abort))
    const third = ask(pool)
    const closed = once(await arrived, 'close')
    server.answer = (socket) => socket.write(ok('"third"'))
    abortSecond(new Error('second'))
    await assert.rejects(second, /second/)
    abortFirst(new Error('first'))
    await assert.rejects(first, /first/)
    await closed
    assert.equal((await third).body, '"third"')
    assert.equal(server.requests.length, 2)
  })

  it('reports a server that is not there, and goes on once it is', async (t) => {
    const { server, pool, url } = await open(t)
    server.answer = (socket) => socket.destroy()
    await assert.rejects(ask(pool), { code: 'ECONNRESET' })
    server.answer = (socket) => socket.write(ok())
    assert.equal((await ask(pool)).status, 200)
    server.close()
    const nowhere = new Http1Pool(url, OPTIONS)
    await assert.rejects(ask(nowhere), { code: 'ECONNREFUSED' })
    nowhere.destroy()
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
      assert.throws(() => pool.send({ ...POST, ownHeaders }, {} as never), /invalid header/)
    assert.equal(server.connections, 0)
  })

  it('ends everything when it is destroyed, and takes no more', async (t) => {
    const { pool } = await open(t, { ...OPTIONS, maxConnections: 1 })
    const both = [ask(pool), ask(pool)]
    pool.destroy(new Error('stopped'))
    for (const one of both) await assert.rejects(one, /stopped/)
    await assert.rejects(ask(pool), /stopped/)
  })
})

function pieces(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places.toSorted((a, b) => a - b), bytes.length]
  return cuts.slice(1).map((end, i) => bytes.subarray(cuts[i], end))
}

async function askWith(server: RawServer, pool: Pool, parts: readonly Buffer[], closes?: boolean): Promise<Got> {
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
