import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { describe, it } from 'node:test'
import { openConfig } from '../project/config-file.ts'
import { findAgent } from '../project/callers.ts'
import { keysPath, readKeys, saveKey, writeKeys } from '../project/keys-file.ts'
import { clientFolder } from '../testing/client-folder.ts'
import { serveScripted } from '../testing/scripted-api.ts'

const OF_INIT = { user: 'reader', for: 'mcp', key: 'tg_of-init' } as const

describe('toolgate keys', () => {
  const asked: unknown[] = []
  const run = serveScripted(({ method, url, body }) => {
    asked.push([method, url, body])
    const row = { id: 'k-1', user: 'reader', for: 'mcp', isExpired: false }
    return { body: method === 'POST' ? { ...row, key: 'tg_made' } : row }
  })

  it('keeps a made key beside the configuration, prints it not, and forgets it when it is revoked', async (t) => {
    const { config } = clientFolder(t)
    writeKeys(config, [OF_INIT])
    const { code, out, err } = await run('keys', 'create', '--user', 'reader', '--save', '--config', config)
    assert.deepEqual([code, err], [0, ''])
    assert.ok(out.includes('k-1') && out.includes('keys.json') && !out.includes('tg_made'), out)
    assert.deepEqual(readKeys(config), [{ user: 'reader', for: 'mcp', key: 'tg_made', id: 'k-1' }, OF_INIT])
    assert.equal(findAgent(openConfig(config), 'reader').key, 'tg_made')
    assert.equal(statSync(keysPath(config)).mode & 0o777, 0o600)
    assert.equal((await run('keys', 'revoke', 'k-1', '--config', config)).code, 0)
    assert.deepEqual(readKeys(config), [OF_INIT])
  })

  it('makes no key that it cannot keep', async () => {
    asked.length = 0
    const { code, err } = await run('keys', 'create', '--user', 'reader', '--save')
    assert.equal(code, 2)
    assert.match(err, /--save keeps the key beside a configuration, and this folder has none/)
    assert.deepEqual(asked, [])
  })

  it('prints a key that is not kept', async () => {
    const { out } = await run('keys', 'create', '--user', 'reader')
    assert.equal(out, 'tg_made\n')
  })
})

describe('the keys beside a configuration', () => {
  it('are those that have not expired', (t) => {
    const { config } = clientFolder(t)
    writeKeys(config, [OF_INIT])
    saveKey(config, { ...OF_INIT, id: 'k-1', key: 'tg_old', expiresAt: Date.now() - 1 })
    assert.deepEqual(readKeys(config), [OF_INIT])
  })
})
