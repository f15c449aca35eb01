import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { checkpointsPath } from './evidence.ts'
import { publicKeysOf } from './checkpoint-file.ts'
import { openJsonlAudit } from './jsonl.ts'
import { openSqliteAudit } from './sqlite.ts'
import { openSqliteStores } from './state/open-stores.ts'

function setup(t: TestContext) {
  const base = mkdtempSync(path.join(tmpdir(), 'toolgate-links-'))
  t.after(() => rmSync(base, { recursive: true }))
  const target = path.join(base, 'outside')
  return { file: path.join(base, 'store'), target }
}

const LINK = /is a link to a file that does not exist/

describe('a link whose target does not exist', () => {
  const opens = {
    'the state': (file: string) => openSqliteStores({ path: file }),
    'an audit in SQLite': (file: string) => openSqliteAudit({ path: file }),
    'an audit in JSON lines': (file: string) => openJsonlAudit({ path: file }),
  }
  for (const [what, open] of Object.entries(opens))
    it(`is no place for ${what}`, async (t) => {
      const { file, target } = setup(t)
      symlinkSync(target, file)
      await assert.rejects(async () => open(file), LINK)
      assert.equal(existsSync(target), false)
    })

  for (const nameOf of [(file: string) => file, publicKeysOf])
    it(`is no place for checkpoints and their keys: ${path.basename(nameOf('checkpoints'))}`, async (t) => {
      const { file, target } = setup(t)
      const link = nameOf(checkpointsPath(file))
      mkdirSync(path.dirname(link), { recursive: true })
      symlinkSync(target, link)
      await assert.rejects(async () => openSqliteAudit({ path: file, checkpoints: {} }), LINK)
      assert.equal(existsSync(target), false)
    })
})
