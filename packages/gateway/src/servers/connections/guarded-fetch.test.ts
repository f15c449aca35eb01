import assert from 'node:assert/strict'
import dns from 'node:dns/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { syncBuiltinESMExports } from 'node:module'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { after, before, describe, it, type TestContext } from 'node:test'
import { startScripted, status } from '../../../fixtures/scripted-http.ts'
import { AUTHORITY, SERVER } from '../../../fixtures/test-certificates.ts'
import { startProxy } from '../../../fixtures/test-proxy.ts'
import { proxiesOf } from '../../util/proxy-rules.ts'
import { createGuardedFetch, isPublic } from './guarded-fetch.ts'
import { ConnectProblem } from './problem.ts'

let http: Server
let base: string
const asked: string[] = []
let answer: (response: ServerResponse) => void = (response) => response.end('{}')

before(async () => {
  http = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    answer(response)
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
})
after(() => {
  http.closeAllConnections()
  http.close()
})

const problem = (text: RegExp) => (error: unknown) => error instanceof ConnectProblem && text.test(error.message)

describe('createGuardedFetch', () => {
  const trusting = createGuardedFetch({ trusted: ['127.0.0.1'] })

  it('sends to a host that the configuration names, on loopback without TLS', async () => {
    answer = (response) => response.writeHead(201, { 'x-two': ['a', 'b'] }).end('{"a":1}')
    const response = await trusting(`${base}/x?y`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) })
    assert.equal(response.status, 201)
    assert.equal(response.headers.get('x-two'), 'a, b')
    assert.deepEqual(await response.json(), { a: 1 })
    assert.equal(asked.at(-1), 'POST /x?y')
  })

  it('reads JSON as every other door does', async () => {
    const json = { 'content-type': 'application/json; charset=utf-8' }
    answer = (response) => response.writeHead(200, json).end('\ufeff{"a":1}')
    assert.deepEqual(await (await trusting(`${base}/x`)).json(), { a: 1 })
    for (const body of [String.raw`{"issuer":"a","\u0069ssuer":"b"}`, Buffer.from([0x22, 0xff, 0x22]), '{'])
      await assert.rejects(
        async () => {
          answer = (response) => response.writeHead(200, json).end(body)
          await trusting(`${base}/x`)
        },
        problem(/answered JSON that/),
      )
  })

  it('reads an answer that is compressed, within the same bounds', async () => {
    for (const [coding, zip] of [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', brotliCompressSync],
    ] as const) {
      const headers = { 'content-type': 'application/json', 'content-encoding': coding }
      answer = (response) => response.writeHead(200, headers).end(zip('{"a":1}'))
      assert.deepEqual(await (await trusting(`${base}/x`)).json(), { a: 1 })
      answer = (response) => response.writeHead(200, headers).end(zip(Buffer.alloc(10 * 2 ** 20, ' ')))
      await assert.rejects(trusting(`${base}/x`), problem(/more than 524288 bytes/))
      answer = (response) => response.writeHead(200, headers).end('{"a":1}')
      await assert.rejects(trusting(`${base}/x`), problem(new RegExp(`a body that is not ${coding}`)))
    }
  })

  it('asks no other host without TLS or on a private address', async () => {
    const strict = createGuardedFetch({ trusted: ['mail.example.com'] })
    const count = asked.length
    for (const url of [base, base.replace('127.0.0.1', 'localhost'), 'http://example.com/', 'ftp://example.com/', 'x'])
      await assert.rejects(strict(url), problem(/is not https|is no URL/), url)
    for (const url of [
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://169.254.169.254/',
      'https://[::ffff:10.0.0.1]/',
    ])
      await assert.rejects(strict(url), problem(/not public/), url)
    await assert.rejects(strict('https://localhost:1/'), problem(/not public/), 'a name of a private address')
    await assert.rejects(strict('https://user@example.com/'), problem(/is no URL/))
    await assert.rejects(
      createGuardedFetch({ trusted: ['tools.internal'] })('http://tools.internal/'),
      problem(/not https/),
    )
    assert.equal(asked.length, count)
  })

  it('follows no redirect', async () => {
    answer = (response) => response.writeHead(302, { location: `${base}/elsewhere` }).end()
    assert.equal((await trusting(`${base}/here`)).status, 302)
    assert.equal(asked.at(-1), 'GET /here')
  })

  it('reads so many bytes, and waits so long', async () => {
    const bounded = createGuardedFetch({ trusted: ['127.0.0.1'], maxBytes: 1000, timeoutMs: 200 })
    answer = (response) => response.end('x'.repeat(1001))
    await assert.rejects(bounded(base), problem(/more than 1000 bytes/))
    answer = (response) => void response.write('x')
    await assert.rejects(bounded(base), problem(/within 200 ms/))
    answer = (response) => response.destroy()
    await assert.rejects(bounded(base), problem(/cannot be reached/))
  })
})

describe('isPublic', () => {
  it('knows the addresses of the public internet', () => {
    for (const address of ['1.1.1.1', '93.184.215.14', '2606:4700::1111'])
      assert.equal(isPublic(address), true, address)
    for (const address of [
      '0.0.0.0',
      '10.1.2.3',
      '100.64.0.1',
      '127.0.0.1',
      '169.254.169.254',
      '172.31.255.255',
      '192.168.0.1',
      '198.19.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      '::ffff:127.0.0.1',
      '64:ff9b::7f00:1',
      '2001:db8::1',
      '2002:7f00:1::',
      'fc00::1',
      'fe80::1',
      'ff02::1',
      'no address',
    ])
      assert.equal(isPublic(address), false, address)
  })
})

describe('createGuardedFetch behind a proxy', () => {
  const rules = (url: string) => proxiesOf({ ALL_PROXY: url })

  /** A proxy to a server that answers JSON, at a name that only the proxy knows. */
  async function proxied(t: TestContext) {
    const server = await startScripted(t, { GET: status(200, '{"a":1}') }, 0, undefined, SERVER)
    const hosts = { 'login.example.com:443': server.port, 'other.example.com:443': server.port }
    const proxy = await startProxy(t, { hosts })
    return { server, proxy }
  }

  it('asks a host of the configuration through it, with the authorities of its server', async (t) => {
    const { proxy } = await proxied(t)
    const fetch = createGuardedFetch({ trusted: ['login.example.com'], proxy: rules(proxy.url), ca: AUTHORITY })
    assert.deepEqual(await (await fetch('https://login.example.com/x')).json(), { a: 1 })
    assert.deepEqual(proxy.asked, ['CONNECT login.example.com:443'])
  })

  it('asks a host of the configuration without TLS through a tunnel too', async (t) => {
    const server = await startScripted(t, { GET: status(200, 'plain') })
    const proxy = await startProxy(t, { hosts: { [`127.0.0.1:${server.port}`]: server.port } })
    const named = { url: proxy.url, from: 'servers.mail.proxy' }
    const fetch = createGuardedFetch({ trusted: ['127.0.0.1'], proxy: { http: named, https: named, except: [] } })
    assert.equal(await (await fetch(`http://127.0.0.1:${server.port}/x`)).text(), 'plain')
    assert.deepEqual(proxy.asked, [`CONNECT 127.0.0.1:${server.port}`])
  })

  it('checks the name in the certificate, as without it', async (t) => {
    const { proxy, server } = await proxied(t)
    const fetch = createGuardedFetch({ trusted: ['other.example.com'], proxy: rules(proxy.url), ca: AUTHORITY })
    await assert.rejects(fetch('https://other.example.com/x'), problem(/certificate for other names/))
    assert.equal(server.seen.length, 0)
  })

  it('trusts the authorities of a server for no host that the configuration does not name', async (t) => {
    const { proxy, server } = await proxied(t)
    const fetch = createGuardedFetch({ trusted: [], proxy: rules(proxy.url), ca: AUTHORITY })
    await assert.rejects(fetch('https://login.example.com/x'), problem(/certificate of an unknown authority/))
    assert.deepEqual(
      proxy.asked,
      ['CONNECT login.example.com:443'],
      'a name that resolves nowhere is left to the proxy',
    )
    assert.equal(server.seen.length, 0)
  })

  it('asks it for no address and no name that cannot be public', async (t) => {
    const { proxy } = await proxied(t)
    const fetch = createGuardedFetch({ trusted: [], proxy: rules(proxy.url) })
    for (const url of [
      'https://127.0.0.1/',
      'https://0x7f.1/',
      'https://[::1]/',
      'https://10.1.2.3/',
      'https://169.254.169.254/latest',
      'https://[::ffff:10.0.0.1]/',
      'https://localhost/',
      'https://intranet/',
      'https://intranet./',
      'https://metadata.google.internal/',
      'https://printer.local/',
      'https://router.home.arpa./',
    ])
      await assert.rejects(fetch(url), problem(/not public/), url)
    await assert.rejects(fetch('http://login.example.com/'), problem(/not https/))
    assert.deepEqual(proxy.asked, [])
  })

  it('asks it for no name that resolves to a private address here', async (t) => {
    const { proxy } = await proxied(t)
    t.mock.method(dns, 'lookup', async () => [
      { address: '93.184.215.14', family: 4 },
      { address: '10.0.0.7', family: 4 },
    ])
    syncBuiltinESMExports()
    try {
      const fetch = createGuardedFetch({ trusted: [], proxy: rules(proxy.url) })
      await assert.rejects(fetch('https://login.example.com/'), problem(/not public/))
      assert.deepEqual(proxy.asked, [])
    } finally {
      t.mock.restoreAll()
      syncBuiltinESMExports()
    }
  })

  it('checks the addresses of a host that NO_PROXY excepts, as without it', async (t) => {
    const { proxy } = await proxied(t)
    const excepted = proxiesOf({ ALL_PROXY: proxy.url, NO_PROXY: '*' })
    await assert.rejects(
      createGuardedFetch({ trusted: [], proxy: excepted })('https://localhost:1/'),
      problem(/not public/),
    )
    assert.deepEqual(proxy.asked, [])
  })

  it('names the proxy that cannot be used, and shows no login', async (t) => {
    const proxy = await startProxy(t, { hosts: {}, login: 'vera:secret' })
    const url = proxy.url.replace('//', '//vera:wrong@')
    const fetch = createGuardedFetch({ trusted: ['login.example.com'], proxy: rules(url) })
    await assert.rejects(fetch('https://login.example.com/x?code=abc'), (error: Error) => {
      assert.equal(
        error.message,
        `https://login.example.com/x cannot be reached: the proxy 127.0.0.1:${proxy.port} (ALL_PROXY) asked for a login (HTTP 407); write its user and password in the URL of ALL_PROXY`,
      )
      return true
    })
  })

  it('waits for a proxy no longer than for a server', async (t) => {
    const silent = createServer()
    silent.on('connect', () => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      silent.closeAllConnections()
      silent.close()
    })
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const fetch = createGuardedFetch({ trusted: ['login.example.com'], proxy: rules(url), timeoutMs: 50 })
    await assert.rejects(fetch('https://login.example.com/'), problem(/did not open a connection in time/))
  })
})
