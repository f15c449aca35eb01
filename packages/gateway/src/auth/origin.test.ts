import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkAgentOrigin, checkOrigin, createOriginRules } from './origin.ts'

describe('checkOrigin', () => {
  const rules = createOriginRules({ host: '127.0.0.1', port: 8787 })

  it('lets the three loopback names pass, with and without an Origin of ours', () => {
    for (const host of ['127.0.0.1:8787', 'localhost:8787', '[::1]:8787', 'LocalHost:8787']) {
      assert.equal(checkOrigin({ host }, rules), undefined)
      assert.equal(checkOrigin({ host, origin: 'http://localhost:8787' }, rules), undefined)
    }
  })

  it('refuses a foreign Host, with a good Origin or none', () => {
    for (const host of [
      undefined,
      '',
      'evil.example:8787',
      'localhost',
      'localhost:80',
      '127.0.0.1:8787.evil.example',
      'localhost:8787@evil',
    ])
      for (const origin of [undefined, 'http://localhost:8787'])
        assert.equal(checkOrigin({ host, origin }, rules)?.header, 'Host', String(host))
  })

  it('refuses a foreign Origin although the Host is good', () => {
    const foreign = [
      'http://evil.example',
      'null',
      '',
      'https://localhost:8787',
      'http://localhost',
      'http://localhost:8787/',
      'http://localhost:8787, http://localhost:8787',
    ]
    for (const origin of foreign)
      assert.equal(checkOrigin({ host: 'localhost:8787', origin }, rules)?.header, 'Origin', origin)
  })

  it('names the header and its value, cut to a bounded length', () => {
    const problem = checkOrigin({ host: 'x'.repeat(10_000) }, rules)
    assert.match(problem?.message ?? '', /^The Host header "x+" is not a name of this gateway\.$/)
    assert.ok((problem?.message.length ?? 0) < 200)
  })
})

describe('checkAgentOrigin', () => {
  const corsOrigins = ['https://Inspector.example.com:443/', 'vscode-webview://1ab2']
  const rules = createOriginRules({ host: '127.0.0.1', port: 8787, corsOrigins })
  const host = 'localhost:8787'

  it('lets the pages of listen.corsOrigins pass, which checkOrigin refuses', () => {
    for (const origin of ['https://inspector.example.com', 'vscode-webview://1ab2']) {
      assert.equal(checkAgentOrigin({ host, origin }, rules), undefined)
      assert.equal(checkAgentOrigin({ host: 'evil.example', origin }, rules)?.header, 'Host')
      assert.equal(checkOrigin({ host, origin }, rules)?.header, 'Origin')
    }
  })

  it('refuses every other page', () => {
    for (const origin of ['http://inspector.example.com', 'https://evil.example', 'null', '', 'vscode-webview://1AB2'])
      assert.equal(checkAgentOrigin({ host, origin }, rules)?.header, 'Origin', origin)
  })
})

describe('createOriginRules', () => {
  it('adds the address it listens on, unless that means every address', () => {
    assert.ok(createOriginRules({ host: '192.168.1.5', port: 80 }).hosts.has('192.168.1.5'))
    assert.ok(createOriginRules({ host: 'fe80::1', port: 9000 }).origins.has('http://[fe80::1]:9000'))
    assert.ok(![...createOriginRules({ host: '0.0.0.0', port: 9000 }).hosts].some((host) => host.startsWith('0.0.0.0')))
  })

  it('adds configured origins, with and without the default port', () => {
    const rules = createOriginRules({ host: '0.0.0.0', port: 9000, origins: ['https://tools.example.com'] })
    for (const host of ['tools.example.com', 'tools.example.com:443'])
      assert.equal(checkOrigin({ host, origin: 'https://tools.example.com' }, rules), undefined)
    assert.equal(
      checkOrigin({ host: 'tools.example.com', origin: 'http://tools.example.com' }, rules)?.header,
      'Origin',
    )
  })

  it('refuses invalid origins', () => {
    for (const origin of ['tools.example.com', 'ftp://x', 'https://x/path', 'https://user@x', '*', ''])
      assert.throws(
        () => createOriginRules({ host: '', port: 1, origins: [origin] }),
        { code: 'config_invalid' },
        origin,
      )
  })
})
