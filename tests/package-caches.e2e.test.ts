import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { createAuthority } from './support/certificates.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { type NpmRegistry, startNpmRegistry } from './support/npm-registry.ts'
import { MODERN } from './support/rpc.ts'
import { serverConfig } from './support/servers.ts'

/** A server that `npx` downloads from a registry of this test's own, for users with a HOME each. */

const NAME = 'toolgate-test-packed'
const folder = tempFolder()
const closing: (() => unknown)[] = []
let registry: NpmRegistry
const { HOME, npm_config_cache: cache, NPM_CONFIG_CACHE: otherCache } = process.env

before(async () => {
  registry = await startNpmRegistry(folder.path, NAME)
  // The gateway of this process must not use the packages of the person who runs the test.
  process.env['HOME'] = join(folder.path, 'home')
  mkdirSync(process.env['HOME'])
  delete process.env['npm_config_cache']
  delete process.env['NPM_CONFIG_CACHE']
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
after(async () => {
  for (const [name, value] of Object.entries({ HOME, npm_config_cache: cache, NPM_CONFIG_CACHE: otherCache }))
    if (value !== undefined) process.env[name] = value
  await registry?.close()
  folder.remove()
})

async function start(
  instances: string,
  given: Partial<GatewayConfig['servers'][number]> = {},
  from: NpmRegistry = registry,
): Promise<TestGateway> {
  const packed = serverConfig('packed', {
    command: 'npx',
    args: ['-y', `${NAME}@1.0.0`],
    env: { npm_config_registry: from.url, npm_config_update_notifier: 'false', npm_config_fetch_retries: '0' },
    per: 'user',
    startTimeoutMs: 30_000,
    ...given,
  })
  const { cwd: _, ...server } = packed
  const gateway = await startTestGateway({
    servers: [server as typeof packed],
    instances: { path: join(folder.path, instances) },
  })
  closing.push(gateway.close)
  return gateway
}

async function homeOf(gateway: TestGateway, who: 'viewer' | 'operator'): Promise<string> {
  const { result } = await gateway.call(who, MODERN, 'packed__home')
  return result?.content?.[0]?.text ?? ''
}

describe('a server that npx downloads', () => {
  it('is downloaded once for all users, who have a HOME each, and not at all by a warm cache', async () => {
    const gateway = await start('first')
    const homes = await Promise.all([homeOf(gateway, 'viewer'), homeOf(gateway, 'operator')])
    assert.match(homes[0] ?? '', /viewer~/)
    assert.match(homes[1] ?? '', /operator~/)
    assert.equal(registry.downloads, 1)
    await gateway.close()
    const again = await start('first')
    await homeOf(again, 'viewer')
    assert.equal(registry.downloads, 1)
  })

  it('is downloaded once too where each user has a list, though both start at once', async () => {
    const from = registry.downloads
    const gateway = await start('second', { listing: 'user' })
    const lists = await Promise.all([gateway.list('viewer', MODERN), gateway.list('operator', MODERN)])
    assert.deepEqual(lists, [['packed__home'], ['packed__home']])
    assert.equal(registry.downloads - from, 1)
  })

  it('has a cache for each user where the file says so, and tells the client of a call that it downloads', async () => {
    const from = registry.downloads
    const env = { npm_config_registry: registry.url, npm_config_cache: join(folder.path, 'own/${user}') }
    const gateway = await start('third', { env })
    const params = { name: 'packed__home', arguments: {}, _meta: { progressToken: 'p' } }
    const { text } = await gateway.ask('viewer', MODERN, 'tools/call', params)
    assert.match(text, /"message":"The server packed starts for the first time, and may download packages\."/)
    assert.match(text, /viewer~/)
    assert.equal(registry.downloads - from, 2)
  })

  it('is starting while it downloads, longer than its time limit, and says what it waits for', async () => {
    const held = Promise.withResolvers<void>()
    registry.hold = held.promise
    const from = registry.downloads
    const starting = start('fourth', { startTimeoutMs: 100 })
    while (registry.downloads === from) await new Promise((resolve) => setTimeout(resolve, 20))
    held.resolve()
    const gateway = await starting
    const [row] = gateway.servers()
    assert.equal(row?.status, 'ready')
    const line = gateway.log.find(({ message }) => message.startsWith('starts for the first time'))
    assert.match(line?.message ?? '', /it downloads, unless they are in a cache: toolgate-test-packed@1\.0\.0/)
  })
})

withBinaries(['openssl'], ({ openssl }) => {
  describe('a server that npx downloads from a site with a private certificate', () => {
    it('says so if the certificate is not trusted, and starts with NODE_EXTRA_CA_CERTS of the gateway', async (t) => {
      const own = join(folder.path, 'tls')
      mkdirSync(own)
      const authority = createAuthority(openssl, own)
      const secure = await startNpmRegistry(own, NAME, authority.issue('registry'))
      closing.push(secure.close)
      const given = process.env['NODE_EXTRA_CA_CERTS']
      t.after(() => {
        if (given === undefined) delete process.env['NODE_EXTRA_CA_CERTS']
        else process.env['NODE_EXTRA_CA_CERTS'] = given
      })
      delete process.env['NODE_EXTRA_CA_CERTS']
      const refused = await start('fifth', {}, secure)
      assert.match(refused.servers()[0]?.reason ?? '', /^exited with code 1 \(npm error code \w*CERT\w* /)
      await refused.close()
      process.env['NODE_EXTRA_CA_CERTS'] = authority.file
      const trusted = await start('sixth', {}, secure)
      assert.equal(trusted.servers()[0]?.status, 'ready')
    })
  })
})
