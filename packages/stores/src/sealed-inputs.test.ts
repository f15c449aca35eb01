import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { type AuditRecord, createInputOpener, type SealedInputs } from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { checkUnused, draftFiles, filesInPlace, makeBackup, moveAside, placeFiles, readBackup } from './backup.ts'
import { boxesBeside } from './input-boxes.ts'
import { type Format, FORMATS, openAny } from './testing/open-any.ts'
import { readAll } from './testing/read-all.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.parse('2026-01-01T00:00:00Z')
const key = Buffer.alloc(32, 5).toString('base64')
const inputs: SealedInputs = { keep: 'sealed', key, keepForMs: 24 * HOUR_MS }
const open = createInputOpener({ key })
const SECRET = 'marker-7f3a91'

interface Sealed {
  readonly path: string
  open(hour?: number, options?: Partial<AuditFileOptions>): FileAudit
  /** Writes one call in each hour. */
  calls(hours: readonly number[]): Promise<void>
  boxes(sql: string): void
}

function sealed(t: TestContext, format: Format): Sealed {
  const path = join(scratchFolder(t), 'audit')
  const openAt: Sealed['open'] = (hour = 0, options = {}) =>
    openAny(format, { path, inputs, nowMs: () => START_MS + hour * HOUR_MS, ...options })
  return {
    path,
    open: openAt,
    async calls(hours) {
      for (const hour of hours) {
        const audit = openAt(hour)
        const wallMs = START_MS + hour * HOUR_MS
        await audit.write(auditEntry({ tool_call_id: `h${hour}`, wallMs, input: { note: `${SECRET} ${hour}` } }))
        await audit.close()
      }
    },
    boxes(sql) {
      const db = new DatabaseSync(format === 'sqlite' ? path : boxesBeside(path))
      db.exec(sql)
      db.close()
    },
  }
}

const callsOf = (records: readonly AuditRecord[]) => records.filter(({ event }) => event === 'tool_call')

/** Returns the text of each input that opens, and otherwise why it does not. */
async function opened(audit: FileAudit): Promise<readonly string[]> {
  const records = callsOf(await readAll(audit))
  const boxes = await audit.inputBoxes(records)
  return records.map((record, i) => {
    const box = boxes[i]
    const found = box === undefined ? undefined : open(record, box)
    return found?.status === 'opened' ? found.text : (found?.status ?? 'gone')
  })
}

for (const format of FORMATS) {
  describe(`sealed inputs of an audit in ${format}`, () => {
    it('open with the key, after a restart too, and are nowhere in clear', async (t) => {
      const one = sealed(t, format)
      await one.calls([0, 1])
      const audit = openAny(format, { path: one.path, readOnly: true })
      t.after(() => audit.close())
      assert.deepEqual(await opened(audit), [`{"note":"${SECRET} 0"}`, `{"note":"${SECRET} 1"}`])
      const { status, inputs: found } = await verifyAudit({ path: one.path })
      assert.deepEqual([status, found], ['ok', { present: 2, gone: 0, missing: 0, altered: 0 }])
    })

    it('are in no file in clear where previews are off', async (t) => {
      const one = sealed(t, format)
      const audit = one.open(0, { preview: false })
      await audit.write(auditEntry({ input: { note: SECRET } }))
      await audit.flush()
      const folder = join(one.path, '..')
      for (const name of readdirSync(folder, { recursive: true }) as string[]) {
        const file = join(folder, name)
        if (!statSync(file).isFile()) continue
        assert.ok(!readFileSync(file, 'latin1').includes(SECRET), name)
        if (/audit(.inputs.*)?$/.test(name)) assert.equal(statSync(file).mode & 0o077, 0, name)
      }
      await audit.close()
    })

    it('go by their own retention, which a record says; the others and the chain still verify', async (t) => {
      const one = sealed(t, format)
      await one.calls([0, 1, 30])
      const audit = one.open(30.5)
      await audit.prune()
      await audit.prune()
      const records = await readAll(audit)
      assert.deepEqual(
        records.flatMap(({ event, inputs_before: before }) => (event === 'inputs_pruned' ? [before] : [])),
        ['2026-01-01T06:00:00.000Z'],
      )
      assert.deepEqual(await opened(audit), ['gone', 'gone', `{"note":"${SECRET} 30"}`])
      await audit.close()
      const { status, findings, inputs: found } = await verifyAudit({ path: one.path })
      assert.deepEqual([status, findings], ['ok', []])
      assert.deepEqual(found, { present: 1, gone: 2, missing: 0, altered: 0 })
    })

    it('are found missing where nothing says that they were removed', async (t) => {
      const one = sealed(t, format)
      await one.calls([0, 1, 30])
      const audit = one.open(30.5)
      await audit.prune()
      await audit.close()
      one.boxes('DELETE FROM input_boxes')
      const { status, findings, inputs: found } = await verifyAudit({ path: one.path })
      assert.deepEqual([status, found], ['gap', { present: 0, gone: 2, missing: 1, altered: 0 }])
      assert.match(findings[0]?.text ?? '', /^The sealed input of record \d+ is missing: no record says/)
    })

    it('are found altered: a flipped bit, a cut end, another one of the same audit, two that were swapped', async (t) => {
      for (const [sql, altered] of [
        [
          "UPDATE input_boxes SET box = replace(box, substr(box, -9, 1), iif(substr(box, -9, 1) = 'A', 'B', 'A')) WHERE seq = (SELECT min(seq) FROM input_boxes)",
          1,
        ],
        [
          'UPDATE input_boxes SET box = substr(box, 1, length(box) - 4) WHERE seq = (SELECT min(seq) FROM input_boxes)',
          1,
        ],
        ['UPDATE input_boxes SET box = (SELECT box FROM input_boxes ORDER BY seq DESC LIMIT 1)', 1],
        [
          'CREATE TEMP TABLE other AS SELECT * FROM input_boxes; UPDATE input_boxes SET box = (SELECT box FROM other WHERE other.seq <> input_boxes.seq)',
          2,
        ],
      ] as const) {
        const one = sealed(t, format)
        await one.calls([0, 1])
        one.boxes(sql)
        const { status, findings, inputs: found } = await verifyAudit({ path: one.path })
        assert.deepEqual([status, found?.altered], ['tampered', altered], sql)
        assert.match(findings[0]?.text ?? '', /^The sealed input of record \d+ is not the one that was recorded\.$/)
        const audit = openAny(format, { path: one.path, readOnly: true })
        assert.equal((await opened(audit)).filter((text) => text === 'altered').length, altered)
        await audit.close()
      }
    })

    it('go with their records, where those are removed', async (t) => {
      const one = sealed(t, format)
      const rotate = { bytes: 1 }
      for (const hour of [0, 1]) {
        const audit = one.open(hour, { rotate })
        await audit.write(auditEntry({ wallMs: START_MS + hour * HOUR_MS, input: SECRET }))
        await audit.write(auditEntry({ event: 'tool_result', wallMs: START_MS + hour * HOUR_MS }))
        await audit.close()
      }
      const { keepForMs: _, ...forEver } = inputs
      const audit = one.open(100, { rotate, inputs: forEver, retainMs: 10 * HOUR_MS })
      await audit.prune()
      assert.deepEqual(callsOf(await readAll(audit)), [])
      await audit.close()
      const db = new DatabaseSync(format === 'sqlite' ? one.path : boxesBeside(one.path))
      assert.equal(db.prepare('SELECT count(*) AS count FROM input_boxes').get()?.['count'], 0)
      db.close()
    })

    it('go in parts where many records are removed, so that calls come in between', async (t) => {
      const one = sealed(t, format)
      const { keepForMs: _, ...forEver } = inputs
      const rotate = { bytes: 1 }
      const before = one.open(0, { rotate, inputs: forEver })
      const calls = Array.from({ length: 600 }, (_call, i) => auditEntry({ wallMs: START_MS, input: i }))
      await Promise.all(calls.map(async (call) => before.write({ ...call, event: 'tool_blocked' })))
      await before.close()
      const audit = one.open(100, { rotate, inputs: forEver, retainMs: 10 * HOUR_MS })
      const db = new DatabaseSync(format === 'sqlite' ? one.path : boxesBeside(one.path), { readOnly: true })
      const left: unknown[] = []
      const work = { isDone: false }
      const pruning = audit.prune().finally(() => (work.isDone = true))
      while (!work.isDone) {
        await endOfTurn()
        left.push(db.prepare('SELECT count(*) AS count FROM input_boxes').get()?.['count'])
      }
      await pruning
      db.close()
      await audit.close()
      assert.ok(new Set(left).size > 2, `${[...new Set(left)].join()} were left`)
      assert.equal(left.at(-1), 0)
    })

    it('are kept still, and kept no more, where the audit is opened without the key again', async (t) => {
      const one = sealed(t, format)
      await one.calls([0])
      const audit = one.open(1, { inputs: 'facts' })
      await audit.write(auditEntry({ wallMs: START_MS + HOUR_MS, input: SECRET }))
      assert.deepEqual(await opened(audit), [`{"note":"${SECRET} 0"}`, 'gone'])
      await audit.close()
      assert.deepEqual((await verifyAudit({ path: one.path })).inputs, { present: 1, gone: 0, missing: 0, altered: 0 })
    })

    it('are in a backup and after a restore', async (t) => {
      const one = sealed(t, format)
      await one.calls([0, 1])
      const config = join(one.path, '../toolgate.yaml')
      writeFileSync(config, '')
      const files = { config, audit: { store: format, path: one.path, hasCheckpoints: true } }
      const folder = join(scratchFolder(t), 'backup')
      const manifest = await makeBackup(files, folder, START_MS)
      rmSync(format === 'sqlite' ? one.path : boxesBeside(one.path))
      checkUnused(files)
      const inPlace = filesInPlace(files)
      await readBackup(folder)
      const drafts = draftFiles(folder, manifest, files, inPlace)
      moveAside(inPlace, 'x')
      placeFiles(drafts)
      const audit = openAny(format, { path: one.path, readOnly: true })
      assert.deepEqual(await opened(audit), [`{"note":"${SECRET} 0"}`, `{"note":"${SECRET} 1"}`])
      await audit.close()
      assert.equal(existsSync(boxesBeside(one.path)), format === 'jsonl')
      assert.deepEqual((await verifyAudit({ path: one.path })).inputs?.present, 2)
    })
  })
}

describe('sealed inputs that the disk refuses', () => {
  it('refuse the call in JSON lines, and what was recorded before still verifies', async (t) => {
    const one = sealed(t, 'jsonl')
    const audit = one.open(0, { mode: 'required' })
    await audit.write(auditEntry({ tool_call_id: 'kept', wallMs: START_MS, input: 1 }))
    const before = new DatabaseSync(boxesBeside(one.path))
    before.exec("CREATE TRIGGER full BEFORE INSERT ON input_boxes BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END")
    await assert.rejects(async () => audit.write(auditEntry({ tool_call_id: 'refused', input: SECRET })), {
      code: 'audit_unavailable',
      detail: /disk I\/O error/,
    })
    before.exec('DROP TRIGGER full')
    before.close()
    await audit.write(auditEntry({ tool_call_id: 'later', wallMs: START_MS, input: 2 }))
    assert.deepEqual(await opened(audit), ['1', '2'])
    await audit.close()
    assert.deepEqual((await verifyAudit({ path: one.path })).inputs, { present: 2, gone: 0, missing: 0, altered: 0 })
  })

  it('wait up to a number of characters, and then refuse', async (t) => {
    const one = sealed(t, 'jsonl')
    const audit = one.open(0, { mode: 'batched' })
    const db = new DatabaseSync(boxesBeside(one.path))
    db.exec("CREATE TRIGGER full BEFORE INSERT ON input_boxes BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END")
    const input = 'x'.repeat(6 * 1024 * 1024)
    let written = 0
    const fill = async () => {
      for (; written < 20; written++) await audit.write(auditEntry({ input }))
    }
    await assert.rejects(fill, { code: 'audit_unavailable' })
    assert.equal(written, 8)
    db.exec('DROP TRIGGER full')
    db.close()
    await audit.close()
  })
})
