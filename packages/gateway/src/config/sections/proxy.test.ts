import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { AUTHORITY } from '../../../fixtures/test-certificates.ts'
import { THIS_MACHINE } from '../../util/proxy-rules.ts'
import { createGatewayRedactor } from '../redaction.ts'
import type { GatewayConfig } from '../config.ts'
import { loadConfig } from '../load-config.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-proxy-'))
after(() => rmSync(folder, { recursive: true }))
writeFileSync(path.join(folder, 'company.pem'), AUTHORITY)

const REST = `
callers: [{ key: demo-vera, user: vera }]
policy: [{ allow: ["*"] }]
`
const TWO = `
servers:
  mail: { url: https://mcp.example.com/mcp }
  own: { command: node, args: [x.js] }
oauth: { issuers: [{ issuer: https://login.example.com }] }
`
const load = (text: string, env: Record<string, string> = {}): GatewayConfig =>
  loadConfig(path.join(folder, 'toolgate.yaml'), { text: text + REST, env })
const serverOf = (config: GatewayConfig, name: string) => config.servers.find((one) => one.name === name)

describe('the proxy of a configuration', () => {
  it('is that of the environment, for servers with a URL alone and for issuers', () => {
    const config = load(TWO, { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '.corp.example' })
    const rules = {
      https: { url: 'http://proxy:3128', from: 'HTTPS_PROXY' },
      except: [...THIS_MACHINE, '.corp.example'],
    }
    assert.deepEqual(serverOf(config, 'mail')?.proxy, rules)
    assert.deepEqual(config.oauth?.issuers[0]?.proxy, rules)
    assert.equal(serverOf(config, 'own')?.proxy, undefined)
  })

  it('is none without an environment that names one', () => {
    const config = load(TWO)
    assert.equal('proxy' in config, false)
    assert.deepEqual(
      config.servers.map((server) => 'proxy' in server),
      [false, false],
    )
  })

  it('is that of the file, with the exceptions of the environment unless it has its own', () => {
    const env = { HTTPS_PROXY: 'http://other:1', NO_PROXY: 'a.example' }
    const named = { url: 'http://proxy:3128', from: 'proxy' }
    assert.deepEqual(serverOf(load(`proxy: http://proxy:3128\n${TWO}`, env), 'mail')?.proxy, {
      http: named,
      https: named,
      except: [...THIS_MACHINE, 'a.example'],
    })
    const own = load(`proxy: { url: http://proxy:3128, except: [b.example] }\n${TWO}`, env)
    assert.deepEqual(serverOf(own, 'mail')?.proxy?.except, [...THIS_MACHINE, 'b.example'])
  })

  it('may be none, for all or for one server', () => {
    const env = { HTTPS_PROXY: 'http://proxy:3128' }
    assert.equal(serverOf(load(`proxy: none\n${TWO}`, env), 'mail')?.proxy, undefined)
    const config = load('servers: { a: { url: https://a.example, proxy: none }, b: { url: https://b.example } }\n', env)
    assert.equal(serverOf(config, 'a')?.proxy, undefined)
    assert.equal(serverOf(config, 'b')?.proxy?.https?.from, 'HTTPS_PROXY')
  })

  it('may be another for one server, for all of its hosts', () => {
    const text = 'servers: { a: { url: https://a.example, proxy: proxy:3128 } }\n'
    const config = load(text, { HTTPS_PROXY: 'http://other:1', NO_PROXY: '*' })
    const named = { url: 'proxy:3128', from: 'servers.a.proxy' }
    assert.deepEqual(serverOf(config, 'a')?.proxy, { http: named, https: named, except: [] })
  })

  it('has a login that is redacted everywhere, in each of its forms', () => {
    const config = load(TWO, { HTTPS_PROXY: 'http://vera:p%40ssword@proxy:3128' })
    const { redactText } = createGatewayRedactor(config)
    for (const form of ['p%40ssword', 'p@ssword', Buffer.from('vera:p@ssword').toString('base64')])
      assert.doesNotMatch(redactText(`x ${form} x`), /ssword|dmVy/, form)
    assert.equal(redactText('mcp.corp.example and proxy:3128'), 'mcp.corp.example and proxy:3128')
  })

  it('is never shown by a problem of the file', () =>
    assert.throws(
      () => load(`proxy: "ftp://vera:secret@proxy"\n${TWO}`),
      (error: Error) => /found text of 23 characters/.test(error.message) && !/secret/.test(error.message),
    ))
})

describe('the authorities of a server', () => {
  it('are read from a file beside the configuration', () => {
    const config = load('servers: { a: { url: https://a.example, ca: company.pem } }\n')
    assert.equal(serverOf(config, 'a')?.ca, AUTHORITY)
  })

  it('must be certificates', () => {
    writeFileSync(path.join(folder, 'broken.pem'), '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n')
    assert.throws(
      () => load('servers: { a: { url: https://a.example, ca: broken.pem } }\n'),
      /found "broken.pem", expected a file with certificates in PEM/,
    )
  })
})
