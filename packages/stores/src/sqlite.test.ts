import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { canonicalize } from '@toolgate/values/json'
import { auditEntry, auditSinkContract } from '@toolgate/testing'
import { openSqliteAudit } from './sqlite.ts'
import { readCallIds } from './testing/read-all.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

for (const mode of ['batched', 'required'] as const) {
  auditSinkContract(`openSqliteAudit, ${mode}`, async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    return { sink: openSqliteAudit({ path, mode }), reopen: async () => openSqliteAudit({ path, mode }) }
  })
}

/** Takes the lock that a writer needs, as another process would. */
function holdLock(path: string): () => void {
  const db = new DatabaseSync(path)
  db.exec('BEGIN IMMEDIATE')
  return () => db.close()
}

describe('openSqliteAudit', () => {
  it('keeps each record in its RFC 8785 form', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path })
    await audit.write(auditEntry({ user_id: 'vera', error: 'ä\u2028🙂', duration_ms: 0.1 }))
    await audit.close()
    const db = new DatabaseSync(path, { readOnly: true })
    t.after(() => db.close())
    const text = db.prepare('SELECT record FROM audit').get()?.['record'] as string
    assert.equal(text, canonicalize(JSON.parse(text)))
  })

  it('counts each record once, however many parts it reads them in', async (t) => {
    const audit = openSqliteAudit({ path: join(scratchFolder(t), 'audit.db'), checkpoints: false })
    t.after(() => audit.close())
    for (let i = 0; i < 10_500; i++) {
      await audit.write(auditEntry({ event: 'tool_result', wallMs: i }))
      if (i % 5000 === 0) await audit.flush()
    }
    const { buckets } = await audit.countOutcomes({ since: 0, until: 10_500, bucketMs: 5250 })
    assert.deepEqual(
      buckets.map(({ done }) => done),
      [5250, 5250],
    )
  })

  it('signs a long backlog in parts that leave turns to calls', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const unsigned = openSqliteAudit({ path, checkpoints: false })
    for (let i = 0; i < 5500; i++) await unsigned.write(auditEntry({ event: 'tool_result', wallMs: i }))
    await unsigned.close()
    const audit = openSqliteAudit({ path })
    await audit.write(auditEntry())
    let turns = 0
    let next = setImmediate(function count() {
      turns++
      next = setImmediate(count)
    })
    await audit.close()
    clearImmediate(next)
    assert.ok(turns >= 5, `${turns} turns`)
    const { status, checkpoints, lastSeq } = await verifyAudit({ path, mustBeSigned: true })
    assert.deepEqual([status, checkpoints.lastSeq], ['ok', lastSeq])
    assert.ok(lastSeq > 5500)
  })

  it('makes a file that only its owner may read, in a folder that need not exist', async (t) => {
    const path = join(scratchFolder(t), 'new', 'audit.db')
    const audit = openSqliteAudit({ path })
    t.after(() => audit.close())
    await audit.write(auditEntry())
    await audit.flush()
    for (const file of [path, `${path}-wal`]) assert.equal(statSync(file).mode & 0o777, 0o600, file)
  })

  it('keeps batched entries while another process holds the file, and stores them in order later', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path, maxWaiting: 5 })
    t.after(() => audit.close())
    const release = holdLock(path)
    for (let i = 1; i <= 5; i++) await audit.write(auditEntry({ tool_call_id: `c${i}`, input: { i } }))
    await assert.rejects(audit.flush(), { code: 'audit_unavailable' })
    assert.deepEqual(await readCallIds(audit), [])
    await assert.rejects(async () => audit.write(auditEntry({ tool_call_id: 'lost' })), { code: 'audit_unavailable' })
    assert.equal(audit.droppedCount, 1)
    release()
    await audit.flush()
    await audit.write(auditEntry({ tool_call_id: 'c6' }))
    assert.deepEqual(await readCallIds(audit), ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'])
    const [first] = await audit.query({ call: 'c1' })
    const [sixth] = await audit.query({ call: 'c6' })
    assert.match(first?.input_hash ?? '', /^hmac-sha256:/)
    assert.deepEqual([sixth?.input_hash, first?.input_preview], [undefined, '{"i":1}'])
    const [dropped] = await audit.query({ event: 'audit_dropped' })
    assert.equal(dropped?.detail, '1 record could not be written')
  })

  it('tries again by itself', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path })
    const reader = openSqliteAudit({ path, readOnly: true })
    t.after(async () => Promise.all([audit.close(), reader.close()]))
    const release = holdLock(path)
    await audit.write(auditEntry())
    await assert.rejects(audit.flush(), { code: 'audit_unavailable' })
    release()
    while ((await readCallIds(reader)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  })

  it('stores batched entries without being asked to', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path })
    const reader = openSqliteAudit({ path, readOnly: true })
    t.after(async () => Promise.all([audit.close(), reader.close()]))
    await audit.write(auditEntry())
    while ((await readCallIds(reader)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  })

  it('counts the lost entries when it is closed while the file cannot be written', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path })
    const release = holdLock(path)
    t.after(release)
    await audit.write(auditEntry())
    await assert.rejects(audit.close(), { code: 'audit_unavailable' })
    assert.equal(audit.droppedCount, 1)
  })

  it('waits a moment for another process before it refuses a required write', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path, mode: 'required' })
    t.after(() => audit.close())
    const release = holdLock(path)
    const written = audit.write(auditEntry({ tool_call_id: 'first' }))
    await new Promise((resolve) => setTimeout(resolve, 150))
    const joined = audit.write(auditEntry({ tool_call_id: 'second' }))
    release()
    await Promise.all([written, joined])
    assert.deepEqual(await readCallIds(audit), ['first', 'second'])
  })

  it('refuses a required write that another process keeps from the file, and goes on when it lets go', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const audit = openSqliteAudit({ path, mode: 'required' })
    t.after(() => audit.close())
    const release = holdLock(path)
    await assert.rejects(async () => audit.write(auditEntry({ tool_call_id: 'refused' })), {
      code: 'audit_unavailable',
    })
    assert.equal(audit.droppedCount, 1)
    release()
    await audit.write(auditEntry({ tool_call_id: 'kept' }))
    assert.deepEqual(await readCallIds(audit), ['kept'])
    assert.equal((await audit.query({ event: 'audit_dropped' })).length, 1)
  })

  it('can be read beside its writer, and not written through a reader', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const writer = openSqliteAudit({ path })
    const reader = openSqliteAudit({ path, readOnly: true })
    t.after(async () => Promise.all([writer.close(), reader.close()]))
    await writer.write(auditEntry())
    await writer.flush()
    assert.deepEqual(await readCallIds(reader), ['call-1'])
    await assert.rejects(async () => reader.write(auditEntry()), { code: 'audit_unavailable' })
  })

  it('refuses a file that is something else, and leaves it as it was', (t) => {
    const folder = scratchFolder(t)
    const text = join(folder, 'notes.txt')
    writeFileSync(text, 'my notes, which are longer than the header of a database\n'.repeat(20))
    assert.throws(() => openSqliteAudit({ path: text }), { code: 'audit_unavailable', message: /notes\.txt/ })
    const other = join(folder, 'other.db')
    const db = new DatabaseSync(other)
    db.exec('CREATE TABLE mine (a)')
    db.close()
    assert.throws(() => openSqliteAudit({ path: other }), { message: /not an audit database/ })
    const later = join(folder, 'later.db')
    const audit = openSqliteAudit({ path: later })
    audit.close().catch(() => {})
    const newer = new DatabaseSync(later)
    newer.exec('PRAGMA user_version = 99')
    newer.close()
    assert.throws(() => openSqliteAudit({ path: later }), { message: /version 99/ })
  })

  it('says which file it cannot open', (t) => {
    const folder = scratchFolder(t)
    assert.throws(() => openSqliteAudit({ path: folder }), { code: 'audit_unavailable', message: new RegExp(folder) })
    const missing = join(folder, 'missing.db')
    assert.throws(() => openSqliteAudit({ path: missing, readOnly: true }), { message: /missing\.db/ })
  })
})
