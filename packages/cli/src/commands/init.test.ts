import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { loadConfig } from '@toolgate/gateway'
import { readKeys } from '../project/keys-file.ts'
import { fakeIo } from '../testing/fake-io.ts'
import { initCommand } from './init.ts'

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-init-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

describe('toolgate init', () => {
  it('writes a valid configuration with two roles, and their keys beside it', async (t) => {
    const folder = emptyFolder(t)
    const io = fakeIo()
    assert.equal(await initCommand(folder, {}, io), 'ok')
    const file = path.join(folder, 'toolgate.yaml')
    const config = loadConfig(file, { env: {} })
    const keys = readKeys(file)
    assert.deepEqual(
      config.callers.map(({ caller, for: use }) => [caller.user, caller.roles, use]),
      [
        ['reader', ['reader'], 'mcp'],
        ['writer', ['writer'], 'mcp'],
        ['owner', ['approver', 'operator'], 'console'],
      ],
    )
    for (const [i, { key }] of keys.entries())
      assert.deepEqual(Buffer.from(config.callers[i]?.keyHash ?? []), hash('sha256', key, 'buffer'))
    assert.deepEqual(config.servers, [])
    assert.equal(config.audit.inputs, 'facts')
    assert.ok(
      config.policy.flatMap(({ ask = [] }) => ask).every((clause) => typeof clause === 'object' && 'message' in clause),
    )
    assert.match(io.out(), /toolgate add files -- npx/)
  })

  it('prints no key, and writes none that others could read', async (t) => {
    const folder = emptyFolder(t)
    const io = fakeIo()
    await initCommand(folder, {}, io)
    const secrets = path.join(folder, '.toolgate/keys.json')
    assert.equal(statSync(secrets).mode & 0o777, 0o600)
    assert.equal(readFileSync(path.join(folder, '.toolgate/.gitignore'), 'utf8'), '*\n')
    const seen = io.out() + io.err() + readFileSync(path.join(folder, 'toolgate.yaml'), 'utf8')
    for (const { key } of readKeys(path.join(folder, 'toolgate.yaml'))) assert.ok(!seen.includes(key))
  })

  it('replaces nothing', async (t) => {
    const folder = emptyFolder(t)
    const file = path.join(folder, 'toolgate.yaml')
    writeFileSync(file, 'mine')
    await assert.rejects(initCommand(folder, {}, fakeIo()), {
      exit: 'usage',
      message: `${file} exists already. Nothing was changed.`,
    })
    assert.equal(readFileSync(file, 'utf8'), 'mine')
    assert.deepEqual(readKeys(file), [])
  })

  it('makes the folder, and tells programs what it made', async (t) => {
    const folder = path.join(emptyFolder(t), 'a/b')
    const io = fakeIo()
    assert.equal(await initCommand(folder, { json: true }, io), 'ok')
    assert.deepEqual(JSON.parse(io.out()).users, ['reader', 'writer', 'owner'])
  })
})
