import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { json, startScripted, status } from '../../../fixtures/scripted-http.ts'
import { AUTHORITY, SERVER } from '../../../fixtures/test-certificates.ts'
import { startProxy } from '../../../fixtures/test-proxy.ts'
import { proxiesOf } from '../../util/proxy-rules.ts'
import { fetchJson } from './fetch-json.ts'

describe('fetchJson behind a proxy', () => {
  const usual = getCACertificates('default')

  it('reads the answer of an issuer whose name only the proxy knows', async (t) => {
    setDefaultCACertificates([...usual, AUTHORITY])
    t.after(() => setDefaultCACertificates(usual))
    const server = await startScripted(t, { GET: ({ res }) => json(res, { keys: [] }) }, 0, undefined, SERVER)
    const proxy = await startProxy(t, { hosts: { 'login.example.com:443': server.port } })
    const answer = await fetchJson('https://login.example.com/jwks', { proxy: proxiesOf({ ALL_PROXY: proxy.url }) })
    assert.deepEqual(answer, { status: 200, body: { keys: [] } })
    assert.deepEqual(proxy.asked, ['CONNECT login.example.com:443'])
    assert.equal(server.seen[0]?.headers.accept, 'application/json')
  })

  it('follows no redirect, and bounds the answer', async (t) => {
    setDefaultCACertificates([...usual, AUTHORITY])
    t.after(() => setDefaultCACertificates(usual))
    let answer = status(302, '', { location: 'https://login.example.com/other' })
    const server = await startScripted(t, { GET: (exchange) => answer(exchange) }, 0, undefined, SERVER)
    const proxy = proxiesOf({
      ALL_PROXY: (await startProxy(t, { hosts: { 'login.example.com:443': server.port } })).url,
    })
    assert.equal((await fetchJson('https://login.example.com/', { proxy })).status, 302)
    answer = status(200, ' '.repeat(600 * 1024))
    await assert.rejects(fetchJson('https://login.example.com/', { proxy }), {
      name: 'IssuerError',
      message: 'https://login.example.com/ answered more than 524288 bytes',
    })
  })

  it('names the proxy that refuses', async (t) => {
    const proxy = await startProxy(t, { hosts: {}, refuses: 403 })
    await assert.rejects(
      fetchJson('https://login.example.com/jwks', { proxy: proxiesOf({ HTTPS_PROXY: proxy.url }) }),
      {
        name: 'IssuerError',
        message: `https://login.example.com/jwks cannot be reached: the proxy 127.0.0.1:${proxy.port} (HTTPS_PROXY) did not open a connection to login.example.com:443 (HTTP 403)`,
      },
    )
  })

  it('says why an issuer without a proxy is not trusted', async (t) => {
    const server = await startScripted(t, {}, 0, undefined, SERVER)
    await assert.rejects(fetchJson(server.url), /cannot be reached: it has a certificate of an unknown authority/)
  })
})
