import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { readKeys, saveKey } from './keys-file.ts'
import { announce, newIdentity, readRunning } from './running-file.ts'

/** A configuration, and a file that belongs to somebody else. */
function setup(t: TestContext) {
  const root = mkdtempSync(path.join(tmpdir(), 'toolgate-own-'))
  t.after(() => rmSync(root, { recursive: true }))
  const config = path.join(root, 'toolgate.yaml')
  const folder = path.join(root, '.toolgate')
  const theirs = path.join(root, 'theirs')
  mkdirSync(folder)
  for (const file of [config, theirs]) writeFileSync(file, '')
  const inFolder = (name: string) => path.join(folder, name)
  return { config, theirs, keys: inFolder('keys.json'), running: inFolder('toolgate.yaml.running.json'), inFolder }
}

const KEY = { user: 'vera', for: 'mcp', key: 'tg_secret' } as const
const modeOf = (file: string) => statSync(file).mode & 0o777

describe('files beside a configuration', () => {
  it('are written through no link', (t) => {
    const { config, theirs, keys, running, inFolder } = setup(t)
    for (const link of [keys, running, inFolder('.gitignore')]) symlinkSync(theirs, link)
    saveKey(config, KEY)
    announce(config, { url: 'http://127.0.0.1:9000', secret: newIdentity() })
    assert.equal(readFileSync(theirs, 'utf8'), '')
    assert.deepEqual(readKeys(config), [KEY])
    assert.equal(readRunning(config)?.url, 'http://127.0.0.1:9000')
  })

  it('have the mode of a secret, whatever was there', (t) => {
    const { config, keys } = setup(t)
    writeFileSync(keys, '{}', { mode: 0o644 })
    saveKey(config, KEY)
    assert.equal(modeOf(keys), 0o600)
  })

  it('name no gateway that another account wrote, or could have written', (t) => {
    const { config, running } = setup(t)
    announce(config, { url: 'http://127.0.0.1:9000', secret: newIdentity() })
    assert.ok(readRunning(config))
    chmodSync(running, 0o622)
    assert.equal(readRunning(config), undefined)
    chmodSync(running, 0o600)
    // Only root can give a file away.
    if (process.getuid?.() !== 0) return
    chownSync(running, 65534, 65534)
    assert.equal(readRunning(config), undefined)
  })
})
