import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { type GatewayConfig, loadConfig, type ServerRow } from '@toolgate/gateway'
import { checkSurroundings, mendOf } from './doctor-servers.ts'

const FILE = '/srv/toolgate.yaml'
const PROXY = { HTTPS_PROXY: 'http://vera:secret@proxy.example.com:3128' }

function read(server: string, env: Readonly<Record<string, string>> = {}): GatewayConfig {
  const text = `servers: { files: ${server} }\npolicy: [{ allow: ["*"] }]\n`
  return loadConfig(FILE, { text, env })
}

describe('what mends a server that does not start', () => {
  const npx = '{ command: npx, args: [-y, "@example/files@1.0.0"] }'
  const uvx = '{ command: uvx, args: [files==1.0.0] }'
  const cases: readonly (readonly [server: string, reason: string, mend: string, env?: Record<string, string>])[] = [
    [npx, 'exited with code 1 (npm error code SELF_SIGNED_CERT_IN_CHAIN)', 'env: { NODE_EXTRA_CA_CERTS: <file>.pem }'],
    [
      uvx,
      'exited with code 1 (error: Request failed Caused by: invalid peer certificate: UnknownIssuer)',
      'env: { SSL_CERT_FILE: <file>.pem, REQUESTS_CA_BUNDLE: <file>.pem }',
    ],
    ['{ command: /opt/files }', 'x509: certificate signed by unknown authority', 'env: { SSL_CERT_FILE: <file>.pem }'],
    [
      npx,
      'exited with code 1 (npm error code E404 404 Not Found)',
      'pass: [npm_config_registry, HTTPS_PROXY]',
      { npm_config_registry: 'https://npm.example.com', ...PROXY },
    ],
    [npx, 'did not answer in 330 s', 'startTimeoutMs: 300000'],
    ['{ url: "https://mail.example.com/mcp" }', 'answered 401 Unauthorized', 'oauth: {}'],
  ]
  for (const [server, reason, mend, env = {}] of cases)
    it(`is a line of the file for: ${reason}`, () => {
      const row = { name: 'files', status: 'down', reason } as ServerRow
      assert.equal(mendOf(read(server), row, env), `edit ${FILE}: servers.files.${mend}`)
    })

  it('is the command that shows what it says, where no line is known', () => {
    const row = { name: 'files', status: 'down', reason: 'exited with code 1 (no such folder)' } as ServerRow
    assert.equal(mendOf(read(npx), row, {}), 'npx -y @example/files@1.0.0')
    const away = { ...row, reason: 'exited with code 1 (ENOTFOUND)' }
    assert.equal(mendOf(read('{ command: node, args: [a.js] }'), away, PROXY), 'node a.js')
  })
})

describe('the surroundings of servers', () => {
  it('name what is downloaded, and a proxy with a password that its process does not get', async () => {
    const npx = (more: string) => `{ command: npx, args: [-y, a@1.0.0]${more} }`
    assert.deepEqual(await checkSurroundings(read(npx('')), PROXY), [
      {
        level: 'ok',
        about: 'server files',
        text: 'the first start of "files" downloads a@1.0.0, unless a cache has it',
      },
      {
        level: 'warn',
        about: 'server files',
        text: 'its process does not get HTTPS_PROXY, which has a password',
        mend: `edit ${FILE}: servers.files.pass: [HTTPS_PROXY]`,
      },
    ])
    const passed = await checkSurroundings(read(npx(', pass: [HTTPS_PROXY]'), PROXY), PROXY)
    assert.deepEqual(
      passed.map(({ level }) => level),
      ['ok'],
    )
    assert.deepEqual(await checkSurroundings(read('{ command: node }'), PROXY), [])
  })

  it('name where no OAuth metadata was found, and the line that names the issuer', async (t) => {
    const url = await startSite(t, () => undefined)
    const [found] = await checkSurroundings(read(`{ url: "${url}/mcp", oauth: {} }`), {})
    assert.equal(found?.level, 'error')
    assert.match(found?.text ?? '', /oauth-protected-resource\/mcp answered 404; .*openid-configuration answered 404/)
    assert.equal(found?.mend, `edit ${FILE}: servers.files.oauth.issuer: <url>`)
  })

  it('name an issuer that does not announce PKCE, and the line that vouches for it', async (t) => {
    const url = await startSite(t, (path, origin) =>
      path === '/.well-known/openid-configuration'
        ? { issuer: origin, authorization_endpoint: `${origin}/auth`, token_endpoint: `${origin}/token` }
        : undefined,
    )
    const [found] = await checkSurroundings(read(`{ url: "${url}/mcp", oauth: {} }`), {})
    assert.equal(found?.mend, `edit ${FILE}: servers.files.oauth: { issuer: "${url}", pkce: S256 }`)
    const vouched = `{ url: "${url}/mcp", oauth: { issuer: "${url}", pkce: S256 } }`
    assert.deepEqual(await checkSurroundings(read(vouched), {}), [])
  })
})

/** A site that answers JSON or 404. */
async function startSite(t: TestContext, body: (path: string, origin: string) => object | undefined): Promise<string> {
  const site = createServer(({ url = '' }, response) => {
    const found = body(url, origin)
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(found ?? {}))
  })
  t.after(() => {
    site.closeAllConnections()
    site.close()
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  return origin
}
