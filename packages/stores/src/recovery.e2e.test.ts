import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import {
  type AuditRecord,
  createNoteVerifier,
  EMPTY_ROOT,
  newSigningKey,
  sealEntry,
  SOLE_WRITER,
} from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { keysIn, publicKeysOf } from './checkpoint-file.ts'
import { parseCheckpoint, pointIn } from './checkpoint-lines.ts'
import { checkpointsPath, privateKeyOf } from './evidence.ts'
import { openJsonlAudit } from './jsonl.ts'
import { openSqliteAudit } from './sqlite.ts'
import { FORMATS, openAny } from './testing/open-any.ts'
import { readAll } from './testing/read-all.ts'
import { runWriter } from './testing/run-writer.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

const eventsOf = (records: readonly AuditRecord[]): unknown[] =>
  records.map(({ event, reason, tool_call_id: id }) => [event, id ?? reason].filter(Boolean).join(' '))

/** Returns what the checkpoints say, with their notes. */
const checkpointsOf = (path: string) =>
  readFileSync(checkpointsPath(path), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => parseCheckpoint(line))
    .map((checkpoint) => ({ ...(pointIn(checkpoint) ?? assert.fail()), note: checkpoint.note }))

const keysOf = (path: string): readonly string[] => keysIn(readFileSync(publicKeysOf(checkpointsPath(path)), 'utf8'))

for (const format of FORMATS) {
  describe(`an audit in ${format}`, () => {
    it('says when it was opened and closed', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      for (let i = 0; i < 2; i++) await openAny(format, { path }).close()
      const audit = openAny(format, { path, readOnly: true })
      t.after(() => audit.close())
      const once = [`audit_opened ${SOLE_WRITER}`, 'audit_closed']
      assert.deepEqual(eventsOf(await readAll(audit)), [...once, ...once])
    })

    it('ends open calls when it is closed', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      const audit = openAny(format, { path })
      for (const id of ['a', 'b', 'b', 'c']) await audit.write(auditEntry({ tool_call_id: id, user_id: 'vera' }))
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'c' }))
      await audit.close()
      const reader = openAny(format, { path, readOnly: true })
      t.after(() => reader.close())
      const ended = await reader.query({ outcome: 'abandoned' })
      assert.deepEqual(
        ended.map(({ tool_call_id: id, reason, user_id: user, tool }) => [id, reason, user, tool]),
        ['b', 'b', 'a'].map((id) => [id, 'outcome_unknown', 'vera', 'files:read_file']),
      )
    })

    it('does not take the refusal of another attempt with the same id for the end of a call', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      const audit = openAny(format, { path })
      await audit.write(auditEntry({ tool_call_id: 'a' }))
      for (const event of ['tool_rate_limited', 'tool_approval_required'] as const)
        await audit.write(auditEntry({ event, tool_call_id: 'a' }))
      await audit.close()
      const reader = openAny(format, { path, readOnly: true })
      t.after(() => reader.close())
      assert.equal((await reader.query({ outcome: 'abandoned' })).length, 1)
    })

    it('ends the calls that a dead process left open, once', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      await runWriter({ format, mode: 'required', path, name: 'open', count: 1e6, killAfter: 1 })
      const first = openAny(format, { path })
      const ended = await first.query({ outcome: 'abandoned', limit: 1000 })
      assert.ok(ended.length > 0, 'some were open')
      await first.close()
      const second = openAny(format, { path })
      t.after(() => second.close())
      assert.equal((await second.query({ outcome: 'abandoned', limit: 1000 })).length, ended.length)
      assert.deepEqual((await verifyAudit({ path })).findings, [])
    })

    it('signs stored records after a number of records, after some time, and at its end', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      const audit = openAny(format, { path, checkpoints: { everyRecords: 10, everyMs: 20, writer: 'here' } })
      for (let i = 0; i < 25; i++) await audit.write(auditEntry({ event: 'tool_result' }))
      await audit.flush()
      const isSilent = ({ count }: { readonly count: number }): boolean => count === 0
      while (checkpointsOf(path).length < 3 || !checkpointsOf(path).some(isSilent))
        await new Promise((resolve) => setTimeout(resolve, 10))
      await audit.close()
      const checkpoints = checkpointsOf(path)
      assert.equal(checkpoints.at(-1)?.seq, 27, 'two for its opening and its closing')
      assert.equal(
        checkpoints.reduce((sum, { count }) => sum + count, 0),
        27,
      )
      assert.ok(
        checkpoints.some(({ count, merkleRoot }) => count === 0 && merkleRoot === EMPTY_ROOT),
        'silence shows',
      )
      assert.ok(checkpoints.every(({ note }) => note.startsWith('here\n')))
      const { status, checkpoints: signed } = await verifyAudit({ path })
      assert.deepEqual([status, signed.count, signed.lastSeq], ['ok', checkpoints.length, 27])
    })

    it('goes on signing where it ended, over openings and kills', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      for (const name of ['a', 'b']) {
        await runWriter({ format, mode: 'batched', path, name, count: 1e6, killAfter: 100 })
        await openAny(format, { path }).close()
      }
      const verdict = await verifyAudit({ path })
      assert.deepEqual([verdict.findings, verdict.checkpoints.lastSeq], [[], verdict.lastSeq])
      const counts = checkpointsOf(path).map(({ count }) => count)
      assert.equal(
        counts.reduce((sum, count) => sum + count),
        verdict.lastSeq,
      )
    })

    it('keeps its key for its owner, makes it once, and takes one that is given', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      await openAny(format, { path }).close()
      const made = readFileSync(privateKeyOf(checkpointsPath(path)), 'utf8')
      assert.equal(statSync(privateKeyOf(checkpointsPath(path))).mode & 0o777, 0o600)
      await openAny(format, { path }).close()
      assert.equal(readFileSync(privateKeyOf(checkpointsPath(path)), 'utf8'), made)
      const key = newSigningKey()
      await openAny(format, { path, checkpoints: { key } }).close()
      const [trusted = '', given = '', ...others] = keysOf(path)
      assert.deepEqual(others, [])
      assert.ok(createNoteVerifier(given).open(checkpointsOf(path).at(-1)?.note ?? ''))
      assert.equal((await verifyAudit({ path })).status, 'ok', 'both public keys are known')
      assert.equal((await verifyAudit({ path, verifiers: [trusted] })).status, 'tampered')
    })

    it('continues when its checkpoints cannot be written, reports it, and signs all when they can', async (t) => {
      const folder = scratchFolder(t)
      const path = join(folder, 'audit')
      mkdirSync(dirname(checkpointsPath(path)))
      symlinkSync('/dev/full', checkpointsPath(path))
      const faults: unknown[] = []
      const onFault = (error: unknown): void => void faults.push(error)
      const audit = openAny(format, { path, checkpoints: { everyRecords: 5 }, onFault })
      for (let i = 0; i < 20; i++) await audit.write(auditEntry({ event: 'tool_result' }))
      await audit.close()
      assert.ok(faults.length > 0)
      unlinkSync(checkpointsPath(path))
      await openAny(format, { path }).close()
      assert.equal((await verifyAudit({ path })).status, 'ok')
    })

    it('makes no checkpoints if they are switched off', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      await openAny(format, { path, checkpoints: false }).close()
      assert.equal(existsSync(checkpointsPath(path)), false)
      assert.equal((await verifyAudit({ path })).checkpoints.count, 0)
    })

    it('keeps no preview if it is switched off', async (t) => {
      const audit = openAny(format, { path: join(scratchFolder(t), 'audit'), preview: false })
      t.after(() => audit.close())
      await audit.write(auditEntry({ input: { a: 1 } }))
      await audit.flush()
      const [record] = await audit.query({})
      assert.deepEqual([record?.input_preview, typeof record?.input_hash], [undefined, 'string'])
    })
  })
}

describe('openSqliteAudit beside a process that lives', () => {
  it('does not end the calls of that process', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const first = openSqliteAudit({ path })
    await first.write(auditEntry({ tool_call_id: 'running' }))
    await first.flush()
    const second = openSqliteAudit({ path })
    t.after(() => second.close())
    assert.deepEqual(eventsOf(await readAll(second)), [
      `audit_opened ${SOLE_WRITER}`,
      'tool_call running',
      'audit_opened',
    ])
    await first.write(auditEntry({ event: 'tool_result', tool_call_id: 'running' }))
    await first.close()
    assert.deepEqual(await second.query({ outcome: 'abandoned' }), [])
  })

  it('ends them when it is alone at last', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const living = openSqliteAudit({ path })
    await runWriter({ format: 'sqlite', mode: 'required', path, name: 'open', count: 1e6, killAfter: 1 })
    await openSqliteAudit({ path }).close()
    assert.deepEqual(await living.query({ outcome: 'abandoned' }), [])
    await living.close()
    const alone = openSqliteAudit({ path })
    t.after(() => alone.close())
    assert.notEqual((await alone.query({ outcome: 'abandoned' })).length, 0)
  })
})

describe('an audit of an earlier version', () => {
  const old = [1, 2, 3].map((seq) =>
    sealEntry(
      auditEntry({ event: 'tool_result', tool_call_id: `old-${seq}`, session_id: 's', wallMs: seq * 1500 }),
      seq,
    ),
  )

  it('of JSON lines goes on with a chain', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    writeFileSync(path, old.map((record) => `${JSON.stringify(record)}\n`).join(''))
    await openJsonlAudit({ path }).close()
    const verdict = await verifyAudit({ path })
    assert.deepEqual([verdict.status, verdict.unchainedBefore, verdict.lastSeq], ['ok', 4, 5])
  })

  it('in SQLite is read as it is, and brought up to date when it is written', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const db = new DatabaseSync(path)
    db.exec(`CREATE TABLE audit (seq INTEGER PRIMARY KEY, event TEXT NOT NULL, tool TEXT, user_id TEXT, record TEXT NOT NULL) STRICT;
      PRAGMA application_id = 1413955924; PRAGMA user_version = 1`)
    for (const record of old) {
      const values = [record.seq, record.event, record.tool ?? null, null, JSON.stringify(record)]
      db.prepare('INSERT INTO audit VALUES (?, ?, ?, ?, ?)').run(...values)
    }
    db.close()
    const query = { session: 's', since: 1500, until: 4500 }
    for (const readOnly of [true, false]) {
      const audit = openSqliteAudit({ path, readOnly })
      assert.deepEqual(
        (await audit.query(query)).map(({ seq }) => seq),
        [2, 1],
      )
      await audit.close()
    }
    const verdict = await verifyAudit({ path })
    assert.deepEqual([verdict.status, verdict.unchainedBefore, verdict.lastSeq], ['ok', 4, 5])
  })
})

describe('a disk that fails and comes back', () => {
  it('records how many records were dropped, as soon as it accepts any (required)', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path, mode: 'required' })
    t.after(() => audit.close())
    const db = new DatabaseSync(path)
    db.exec('BEGIN IMMEDIATE')
    await assert.rejects(async () => audit.write(auditEntry()), { code: 'audit_unavailable' })
    db.close()
    while ((await audit.query({ event: 'audit_dropped' })).length === 0)
      await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal((await audit.query({ event: 'audit_dropped' }))[0]?.detail, '1 record could not be written')
    await audit.close()
    const reader = openSqliteAudit({ path, readOnly: true })
    t.after(() => reader.close())
    assert.deepEqual(await reader.query({ outcome: 'abandoned' }), [], 'a call that did not go ahead is not open')
  })
})

describe('verifyAudit', () => {
  it('finds a column that was changed to hide a record', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path })
    await audit.write(auditEntry({ event: 'tool_result', user_id: 'vera', session_id: 's' }))
    await audit.close()
    const changes = [
      'tool = NULL',
      "user_id = 'eve'",
      "session_id = 'x'",
      "event = 'tool_call'",
      'at = at + 1',
      'seq = 9',
    ]
    for (const change of changes) {
      const db = new DatabaseSync(path)
      db.exec('BEGIN')
      db.exec(`UPDATE audit SET ${change} WHERE seq = 2`)
      db.exec('COMMIT')
      assert.equal((await verifyAudit({ path })).status, 'tampered', change)
      db.exec(`UPDATE audit SET seq = 2, event = 'tool_result', tool = 'files:read_file', user_id = 'vera', session_id = 's',
        at = 1700000000123 WHERE seq IN (2, 9)`)
      db.close()
      assert.equal((await verifyAudit({ path })).status, 'ok')
    }
  })

  it('finds an invalid UTF-8 byte in the place of one that would decode alike', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    const audit = openJsonlAudit({ path })
    await audit.write(auditEntry({ event: 'tool_result', tool: 'a\uFFFDb' }))
    await audit.close()
    const bytes = readFileSync(path)
    const at = bytes.indexOf('\uFFFD')
    writeFileSync(path, Buffer.concat([bytes.subarray(0, at), Buffer.of(0xff), bytes.subarray(at + 3)]))
    assert.equal((await verifyAudit({ path })).status, 'tampered')
  })

  it('reports a torn end', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    await openJsonlAudit({ path }).close()
    appendFileSync(path, '{"catalog_rev')
    assert.equal((await verifyAudit({ path })).status, 'torn')
  })

  it('names a file that it cannot read', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    await assert.rejects(verifyAudit({ path }), { code: 'audit_unavailable', message: /ENOENT/ })
    new DatabaseSync(path).exec('CREATE TABLE mine (a)')
    await assert.rejects(verifyAudit({ path }), { code: 'audit_invalid', message: /audit\.db is not an audit/ })
    const jsonl = join(scratchFolder(t), 'audit.jsonl')
    await openJsonlAudit({ path: jsonl }).close()
    for (const [verifiers, message] of [
      [['nonsense'], /is not "name\+id\+key"/],
      [[], /no public key/],
    ] as const)
      await assert.rejects(verifyAudit({ path: jsonl, verifiers }), { code: 'config_invalid', message })
  })
})
