import assert from 'node:assert/strict'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
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
