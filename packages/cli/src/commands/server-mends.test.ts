import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { loadConfig, startGateway } from '@toolgate/gateway'
import { mendServer } from './server-mends.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-mends-'))
after(() => rmSync(folder, { recursive: true }))
const file = path.join(folder, 'toolgate.yaml')

const write = (url: string, more = '') => {
  writeFileSync(
    file,
    `# a comment
servers:
  own: { command: node }
  sums:
    url: ${url}
    ${more}
callers: [{ key: demo-vera, user: vera }]
policy: [{ allow: ["*"] }]
listen: { port: 0 }
audit: { store: memory }
`,
  )
}

/** Returns what mends the server "sums" if it is down for this reason. */
function mend(reason: string, more = ''): string | undefined {
  write('https://sums.example.com/mcp', more)
  const server = loadConfig(file, { env: {} }).servers.find(({ name }) => name === 'sums')
  assert.ok(server)
  return mendServer(file, server, reason)?.replace(file, 'toolgate.yaml')
}

describe('mendServer', () => {
  const PROXY = 'cannot be reached: the proxy proxy:3128'
  const UNKNOWN = 'has a certificate of an unknown authority; name the file'
  for (const [reason, expected, more] of [
    [
      'redirects to https://sums.example.com/v2; write that as "url"',
      'edit toolgate.yaml, line 5: servers.sums.url: https://sums.example.com/v2',
    ],
    [
      'redirects to http://sums.example.com/mcp/; write https://sums.example.com/mcp/ as "url"',
      'edit toolgate.yaml, line 5: servers.sums.url: https://sums.example.com/mcp/',
    ],
    [UNKNOWN, 'edit toolgate.yaml, line 4: servers.sums.ca: <a PEM file with its authority>'],
    [`${PROXY} (HTTPS_PROXY) ${UNKNOWN}`, 'export NODE_EXTRA_CA_CERTS=<a PEM file with its authority>'],
    [
      `${PROXY} (HTTPS_PROXY) asked for a login (HTTP 407); write`,
      'export HTTPS_PROXY=http://<user>:<password>@<proxy>:<port>',
    ],
    [
      `${PROXY} (servers.sums.proxy) asked for a login (HTTP 407); write`,
      'edit toolgate.yaml, line 6: servers.sums.proxy: http://<user>:<password>@<proxy>:<port>',
      'proxy: http://proxy:3128',
    ],
    [`${PROXY} (https_proxy) refused the connection: nothing`, 'export https_proxy=http://<another proxy>:<port>'],
    [
      'cannot be reached: the proxy in ALL_PROXY is not one of http or https, such as',
      'export ALL_PROXY=http://<another proxy>:<port>',
    ],
    [
      `${PROXY} (proxy) did not open a connection to sums.example.com:443 (HTTP 403)`,
      'edit toolgate.yaml, line 4: servers.sums.proxy: http://<another proxy>:<port>, or none',
    ],
    ['was not found: no such host', 'edit toolgate.yaml, line 4: servers.sums.proxy: http://<proxy>:<port>'],
    [
      'does not speak TLS there; if that is right, write http:// in its URL',
      'edit toolgate.yaml, line 5: servers.sums.url: http://sums.example.com/mcp',
    ],
    [
      'asked for other credentials (HTTP 401)',
      "edit toolgate.yaml, line 4: servers.sums.headers: { Authorization: 'Bearer ${…}' }",
    ],
    ['asked for other credentials (HTTP 401)', undefined, 'oauth: {}'],
    [
      'does not know the session that it gave',
      'edit toolgate.yaml, line 5: servers.sums.url: <the URL of one process of it, or of a balancer that routes by Mcp-Session-Id>',
    ],
    ['answered HTTP 500', undefined],
  ] as const)
    it(`knows what mends "${reason}"${more === undefined ? '' : ` with ${more}`}`, () =>
      assert.equal(mend(reason, more), expected))

  it('leaves a server that is started to its own messages', () => {
    write('https://sums.example.com/mcp')
    const server = loadConfig(file, { env: {} }).servers.find(({ name }) => name === 'own')
    assert.ok(server)
    assert.equal(mendServer(file, server, 'redirects to x; write that as "url"'), undefined)
  })

  it('reads the reason of a server as it is', async (t) => {
    const http = createServer((_, answer) => answer.writeHead(308, { location: '/v2/mcp' }).end())
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
    t.after(() => http.close())
    const { port } = http.address() as AddressInfo
    write(`http://127.0.0.1:${port}/mcp`)
    const config = loadConfig(file, { env: {} })
    const server = config.servers.find(({ name }) => name === 'sums')
    assert.ok(server)
    const gateway = await startGateway({ ...config, servers: [server] }, { log: () => {} })
    t.after(() => gateway.close())
    await gateway.ready
    const reason = gateway.servers()[0]?.reason ?? ''
    assert.equal(
      mendServer(file, server, reason),
      `edit ${file}, line 5: servers.sums.url: http://127.0.0.1:${port}/v2/mcp`,
    )
  })
})
