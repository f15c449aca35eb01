import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { listen, type ListenOptions } from './server.ts'

async function listening(t: TestContext, options: Partial<ListenOptions>): Promise<() => Socket> {
  const server = await listen({ host: '127.0.0.1', port: 0, ...options })
  t.after(() => server.close())
  return () => {
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    return socket
  }
}

async function ended(socket: Socket): Promise<string> {
  let said = ''
  socket.on('data', (chunk) => (said += String(chunk)))
  await new Promise((resolve) => socket.once('close', resolve))
  return said
}

const ask = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
/** Far less than Node's default of 30 s for its first check. */
const BEFORE_NODE_LOOKS = { timeout: 25_000 }

describe('listen', () => {
  it('ends a connection whose headers drip, soon after the time for them', BEFORE_NODE_LOOKS, async (t) => {
    const open = await listening(t, { headersTimeoutMs: 200 })
    const socket = open()
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Drip: ')
    const drip = setInterval(() => socket.write('x'), 100)
    t.after(() => clearInterval(drip))
    assert.match(await ended(socket), /^HTTP\/1\.1 408 /)
  })

  const malformed = [
    [
      'headers that are too large',
      `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    ['a query that is too long', `GET /?${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'headers_too_large'],
    ['what is no request', 'nonsense\r\n\r\n', 400, 'request_malformed'],
    ...['/api\\session', '*', '//[/x', 'http://[/x', 'ftp://x/api/session'].map(
      (target) =>
        [
          `the target ${target}`,
          `OPTIONS ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
          400,
          'request_malformed',
        ] as const,
    ),
  ] as const
  for (const [what, text, status, code] of malformed)
    it(`answers ${what} with a fault in JSON, also after another answer`, async (t) => {
      const open = await listening(t, {})
      for (const before of ['', ask]) {
        const socket = open()
        if (before !== '') {
          socket.write(before)
          await new Promise((resolve) => socket.once('data', resolve))
        }
        socket.write(text)
        const said = await ended(socket)
        assert.match(said, new RegExp(`^HTTP/1\\.1 ${status} [^]*content-type: application/json`))
        assert.equal(JSON.parse(said.slice(said.indexOf('{'))).error.code, code)
      }
    })

  it('ends connections beyond those that one address may have, and takes others once some have ended', async (t) => {
    const open = await listening(t, { maxOfAddress: 2 })
    const answered = async (socket: Socket) => {
      socket.write(ask)
      return new Promise<boolean>((resolve) => {
        socket.once('data', () => resolve(true))
        socket.once('close', () => resolve(false))
      })
    }
    const first = open()
    assert.equal(await answered(first), true)
    assert.equal(await answered(open()), true)
    assert.equal(await answered(open()), false)
    first.destroy()
    await new Promise((resolve) => first.once('close', resolve))
    for (let taken = false; !taken;) taken = await answered(open())
  })

  it('takes as many connections of a listed proxy as there are, since they are those of many clients', async (t) => {
    const open = await listening(t, { maxOfAddress: 1, proxies: ['127.0.0.0/8'] })
    for (let n = 0; n < 5; n++) {
      const socket = open()
      socket.write(ask)
      await new Promise((resolve, reject) => {
        socket.once('data', resolve)
        socket.once('close', () => reject(new Error(`connection ${n} was closed`)))
      })
    }
  })
})
