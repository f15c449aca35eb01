import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { createAvailability } from '@toolgate/core/groups'
import { httpProbe, type HttpProbeOptions, tcpProbe, toAddress } from './network-probes.ts'
import { asking } from '../../testing/probes.ts'

describe('tcpProbe', () => {
  it('works if something listens, and gives a reason if nothing does', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const probe = tcpProbe({ host: '127.0.0.1', port })
    assert.equal(await probe.ask(asking()), true)
    server.close()
    await once(server, 'close')
    assert.deepEqual(await probe.ask(asking()), {
      available: false,
      reason: `nothing listens on 127.0.0.1:${port} (ECONNREFUSED)`,
    })
  })

  it('names the error if a host has several addresses', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    server.close()
    await once(server, 'close')
    const answer = await tcpProbe({ host: 'localhost', port }).ask(asking())
    assert.deepEqual(answer, { available: false, reason: `nothing listens on localhost:${port} (ECONNREFUSED)` })
  })

  it('ends when it is aborted', async () => {
    const controller = new AbortController()
    const answer = tcpProbe({ host: '192.0.2.1', port: 9 }).ask(asking(controller.signal))
    controller.abort()
    assert.match(((await answer) as { reason: string }).reason, /^192\.0\.2\.1:9 cannot be reached/)
  })

  it('is one probe for one address', () => {
    assert.equal(tcpProbe({ host: 'a', port: 1 }).key, tcpProbe({ host: 'a', port: 1 }, { timeoutMs: 5 }).key)
    assert.notEqual(tcpProbe({ host: 'a', port: 1 }).key, tcpProbe({ host: 'a', port: 2 }).key)
  })
})

describe('toAddress', () => {
  it('puts an IPv6 address in brackets', () => {
    assert.equal(toAddress({ host: '::1', port: 80 }), '[::1]:80')
    assert.equal(toAddress({ host: 'localhost', port: 80 }), 'localhost:80')
  })
})

async function serve(test: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

const ask = (url: string, options?: HttpProbeOptions) => httpProbe(url, options).ask(asking())

describe('httpProbe', () => {
  it('asks with a GET, and works at any status from 200 to 299', async (test) => {
    const seen: IncomingMessage[] = []
    const base = await serve(test, (request, response) => {
      seen.push(request)
      response.writeHead(Number(request.url?.slice(1))).end()
    })
    for (const status of [200, 204, 299]) assert.equal(await ask(`${base}/${status}`), true)
    for (const status of [304, 404, 500])
      assert.deepEqual(await ask(`${base}/${status}`), {
        available: false,
        reason: `${base}/${status} answers with status ${status}, not 200 to 299`,
      })
    assert.ok(seen.every(({ method }) => method === 'GET'))
  })

  it('works for the configured statuses only', async (test) => {
    const base = await serve(test, (_, response) => response.writeHead(401).end())
    assert.equal(await ask(base, { status: 401 }), true)
    assert.equal(await ask(base, { status: [200, 401] }), true)
    assert.deepEqual(await ask(base, { status: [200, 204] }), {
      available: false,
      reason: `${base} answers with status 401, not 200 or 204`,
    })
  })

  it('follows no redirect', async (test) => {
    let asked = 0
    const base = await serve(test, (request, response) => {
      asked++
      if (request.url === '/') response.writeHead(302, { location: '/other' }).end()
      else response.end()
    })
    assert.match(((await ask(`${base}/`)) as { reason: string }).reason, /status 302/)
    assert.equal(asked, 1)
  })

  it('reads no body, however long, and does not wait for its end', async (test) => {
    let sent = 0
    const closed = Promise.withResolvers<void>()
    const base = await serve(test, (_, response) => {
      response.on('close', closed.resolve)
      const chunk = Buffer.alloc(64 * 1024)
      const pump = () => {
        while (!response.destroyed && sent < 1e9) {
          sent += chunk.length
          if (!response.write(chunk)) return response.once('drain', pump)
        }
        return undefined
      }
      pump()
    })
    assert.equal(await ask(base), true)
    await closed.promise
    assert.ok(sent < 50e6, `${sent}`)
  })

  it('sends its headers, and shows neither them nor a query', async (test) => {
    let authorization: string | undefined
    const base = await serve(test, (request, response) => {
      authorization = request.headers.authorization
      response.writeHead(403).end()
    })
    const probe = httpProbe(`${base}/health?token=very-secret`, { headers: { authorization: 'Bearer very-secret' } })
    const { reason } = (await probe.ask(asking())) as { reason: string }
    assert.equal(authorization, 'Bearer very-secret')
    assert.equal(reason, `${base}/health answers with status 403, not 200 to 299`)
    assert.equal(probe.what, `${base}/health`)
  })

  it('gives the reason if there is no answer', async (test) => {
    const dead = await serve(test, (_, response) => response.destroy())
    assert.match(((await ask(dead)) as { reason: string }).reason, /cannot be reached \(ECONNRESET\)$/)
    const babbling = createTcpServer((socket) => socket.end('220 smtp ready\r\n')).listen(0, '127.0.0.1')
    await once(babbling, 'listening')
    test.after(() => babbling.close())
    const { port } = babbling.address() as { port: number }
    const { reason } = (await ask(`http://127.0.0.1:${port}/`)) as { reason: string }
    assert.match(reason, /^http:\/\/127\.0\.0\.1:\d+ does not speak HTTP \(HPE_/)
    assert.match(
      ((await ask('https://127.0.0.1:1/')) as { reason: string }).reason,
      /^nothing listens on 127\.0\.0\.1:1 /,
    )
  })

  it('does not take endless headers', async (test) => {
    const flood = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      const pump = () => {
        while (!socket.destroyed && socket.write(`x-${'y'.repeat(1000)}: z\r\n`));
      }
      socket.on('drain', pump)
      socket.write('HTTP/1.1 200 OK\r\n')
      pump()
    }).listen(0, '127.0.0.1')
    await once(flood, 'listening')
    test.after(() => flood.close())
    const { port } = flood.address() as { port: number }
    assert.match(((await ask(`http://127.0.0.1:${port}/`)) as { reason: string }).reason, /HPE_HEADER_OVERFLOW/)
  })

  it('that never gets an answer is late at its deadline, and leaves no connection', async (test) => {
    const silent = createTcpServer((socket) => {
      socket.resume().on('error', () => undefined)
    }).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const url = `http://127.0.0.1:${(silent.address() as { port: number }).port}`
    const availability = createAvailability({
      web: { tools: [], availableWhen: [httpProbe(url, { timeoutMs: 50 })] },
    })
    await availability.check()
    assert.equal(availability.get('web')?.reason, `${url} did not answer within 0.05 s`)
    availability.close()
    // A server is closed when its last connection is.
    silent.close()
    await once(silent, 'close')
    assert.ok(test.name)
  })

  it('is one probe for one question', () => {
    const key = (options: HttpProbeOptions = {}) => httpProbe('http://a/', options).key
    assert.equal(key(), httpProbe('http://a').key)
    assert.equal(new Set([key(), key({ status: 200 }), key({ headers: { a: 'b' } })]).size, 3)
  })
})
