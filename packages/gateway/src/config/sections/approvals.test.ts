import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { describe, it } from 'node:test'
import { loadConfig } from '../load-config.ts'

const HOOK = 'https://hooks.slack.com/services/T0/B0/abcdefgh'

function load(notify: string, more = '') {
  const text = `servers: {}\npolicy: [{ allow: ["*"] }]\ncallers: [{ key: "key-of-ada", user: ada, tenant: acme }]\n${more}\napprovals: { notify: ${notify} }\n`
  return loadConfig('/test/toolgate.yaml', { text, env: { HOOK, SECRET: 'a secret of receivers' } })
}

const problemsOf = (notify: string) => assert.throws.bind(undefined, () => load(notify))

describe('approvals.notify', () => {
  it('names receivers by their hosts, and reaches them through the proxy of the file', () => {
    const written = `[{ url: "${HOOK}", format: slack }, { url: "${HOOK}2", format: slack }, { url: "http://[::1]:9/x", format: json, name: own }]`
    const { notify = [] } = load(written, 'proxy: http://proxy.example:3128').approvals ?? {}
    assert.deepEqual(
      notify.map(({ name, proxy }) => [name, proxy?.https?.url]),
      [
        ['hooks.slack.com', 'http://proxy.example:3128'],
        ['hooks.slack.com#2', 'http://proxy.example:3128'],
        ['own', 'http://proxy.example:3128'],
      ],
    )
  })

  it('counts URLs and secrets as secrets', () => {
    const { secrets = [] } = load(`[{ url: "${HOOK}", format: json, secret: "\${SECRET}" }]`)
    assert.ok(secrets.includes(HOOK) && secrets.includes('a secret of receivers'))
    assert.doesNotMatch(inspect(secrets), /hooks\.slack/)
  })

  for (const [written, problem] of [
    [
      '[{ url: "ftp://x", format: json }]',
      /notify\[0\]\.url: found text of 7 characters, expected a URL of http or https/,
    ],
    [`[{ url: "${HOOK}" }]`, /notify\[0\]\.format: is missing, expected one of slack, teams, json/],
    [`[{ url: "${HOOK}", format: slak }]`, /expected one of slack, teams, json; did you mean "slack"\?/],
    [
      `[{ url: "${HOOK}", format: slack, secret: "0123456789abcdef" }]`,
      /secret for the format "slack", which has no signature/,
    ],
    ['[{ url: "https://x.example", format: json, secret: short }]', /expected at least 16 characters/],
    ['[{ url: "https://x.example", format: json, secret: "whsec_not base64 at all" }]', /expected whsec_ and base64/],
    [
      `[{ url: "${HOOK}", format: slack }, { url: "${HOOK}", format: slack, for: [acme] }]`,
      /found the URL of an earlier receiver/,
    ],
    [
      `[{ url: "${HOOK}", format: slack, name: a }, { url: "${HOOK}2", format: slack, name: a }]`,
      /found the name of an earlier receiver/,
    ],
    [`[{ url: "${HOOK}", format: slack, for: [] }]`, /expected a tenant at least/],
    [
      `[{ url: "${HOOK}", format: slack, tenants: [acme] }]`,
      /unknown key, expected one of url, format, name, for, secret, input/,
    ],
  ] as const)
    it(`refuses ${written.replace(HOOK, '…').slice(0, 70)}`, () => {
      problemsOf(written)((error: Error) => {
        assert.match(error.message, problem)
        assert.doesNotMatch(error.message, /abcdefgh|0123456789abcdef/)
        return true
      })
    })

  it('warns about links, plain HTTP, a chat with another format and an unknown tenant', () => {
    const written = `[{ url: "${HOOK}", format: json, for: [acmee] }, { url: "http://pager.example/x", format: json }, { url: "http://127.0.0.1:9/", format: json }]`
    assert.deepEqual(
      (load(written).warnings ?? []).map(({ path, message }) => `${path}: ${message}`),
      [
        'approvals.notify: messages get no link that other machines can open: add "publicUrl", the origin by which people reach the gateway',
        'approvals.notify[0].format: hooks.slack.com takes the format "slack" only',
        'approvals.notify[0].for[0]: no caller is of the tenant "acmee"; did you mean "acme"?',
        'approvals.notify[1].url: messages to pager.example can be read on their way, and so can the URL: write https://',
      ],
    )
    assert.equal(
      load(`[{ url: "${HOOK}", format: slack, for: [acme] }]`, 'publicUrl: https://tools.example.com').warnings,
      undefined,
    )
  })
})

describe('approvals.wait', () => {
  it('takes five minutes at most', () => {
    const text = (ms: number) => `servers: {}\npolicy: [{ allow: ["*"] }]\napprovals: { wait: { ms: ${ms} } }\n`
    const of = (ms: number) => loadConfig('/test/toolgate.yaml', { text: text(ms), env: {} }).approvals
    assert.deepEqual(of(300_000), { wait: { ms: 300_000 } })
    assert.throws(() => of(300_001), /wait\.ms: found 300001, expected a number of milliseconds from 0 to 300000/)
  })
})
