import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import {
  type AuditEntry,
  type AuditRecord,
  checkTlogProof,
  createLeaf,
  createNoteSigner,
  createNoteVerifier,
  createSealer,
  newSigningKey,
  readSeq,
} from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { keysIn, publicKeysOf } from './checkpoint-file.ts'
import { type Checkpoint, formatCheckpoint, parseCheckpoint, pointIn, treeAfter } from './checkpoint-lines.ts'
import { checkpointsPath } from './evidence.ts'
import { closedFiles } from './jsonl/log-files.ts'
import { extendLog } from './shared-audit/source.ts'
import { type Format, FORMATS, openAny } from './testing/open-any.ts'
import { proveCall } from './testing/prove-call.ts'
import { readAll } from './testing/read-all.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

const DAY_MS = 86_400_000
const START_MS = Date.parse('2026-01-01T00:00:00Z')
const RETAIN = { retainMs: 10 * DAY_MS }

interface Days {
  readonly path: string
  /** Opens the audit on a day. */
  open(day: number, options?: Partial<AuditFileOptions>): FileAudit
  /** Makes calls on a day, in a session of its own. Its last checkpoint signs all of them. */
  calls(day: number, ids: readonly string[]): Promise<void>
}

function days(t: TestContext, format: Format): Days {
  const path = join(scratchFolder(t), 'audit')
  const open: Days['open'] = (day, options = {}) =>
    openAny(format, { path, rotate: { bytes: 1 }, nowMs: () => START_MS + day * DAY_MS, ...options })
  return {
    path,
    open,
    async calls(day, ids) {
      const audit = open(day)
      for (const id of ids) {
        await audit.write(auditEntry({ tool_call_id: id }))
        await audit.write(auditEntry({ event: 'tool_result', tool_call_id: id }))
      }
      await audit.close()
    },
  }
}

/** Prunes on a day and closes. Returns what is left. */
async function prune({ open }: Days, day: number): Promise<readonly AuditRecord[]> {
  const audit = open(day, RETAIN)
  try {
    await audit.prune()
    return await readAll(audit)
  } finally {
    await audit.close()
  }
}

const linesOf = (path: string): readonly string[] =>
  readFileSync(checkpointsPath(path), 'utf8').split('\n').filter(Boolean)
const checkpointsOf = (path: string): readonly Checkpoint[] => linesOf(path).map((line) => parseCheckpoint(line))

/** Writes checkpoints in place of those that are there. */
function replaceCheckpoints(path: string, edit: (lines: readonly string[]) => readonly string[]): void {
  writeFileSync(
    checkpointsPath(path),
    edit(linesOf(path))
      .map((line) => `${line}\n`)
      .join(''),
  )
}

/** Returns the line of a checkpoint with other leaves, which another key has signed. */
function resigned(line: string): string {
  const checkpoint = parseCheckpoint(line)
  const leaves = checkpoint.leaves.map((leaf) => leaf.replace('"ts":"2026', '"ts":"2025'))
  const tree = extendLog(checkpoint.before, leaves)
  const forger = createNoteSigner('audit', newSigningKey())
  const note = forger.sign({ origin: 'audit', size: tree.size, root: tree.root() })
  return formatCheckpoint({ ...checkpoint, leaves, note })
}

/** Returns a checkpoint that goes on from the others and says that records up to 4 may be removed, signed by `sign`. */
function forgedPruning(path: string, sign: (before: string, size: number, root: string) => string): string {
  const last = checkpointsOf(path).at(-1) ?? assert.fail()
  const before = treeAfter(last) ?? assert.fail()
  const { seq, headHash: head, merkleRoot: root, ts } = pointIn(last) ?? assert.fail()
  const leaves = [
    createLeaf({ type: 'live', seq, head, count: 0, root, ts }),
    createLeaf({ type: 'pruned', seq: 4, head, root, ts }),
  ]
  const tree = extendLog(before, leaves)
  return formatCheckpoint({ before, leaves, note: sign(last.note, tree.size, tree.root()) })
}

/** Changes or removes records by hand. `edit` returns the new text of a record, or nothing. */
function tamper(format: Format, path: string, edit: (text: string, seq: number) => string | undefined): void {
  if (format === 'jsonl') {
    for (const file of [...closedFiles(path).map((closed) => closed.path), path]) {
      const texts = readFileSync(file, 'utf8').split('\n').filter(Boolean)
      const kept = texts.flatMap((text) => edit(text, readSeq(text)) ?? [])
      writeFileSync(file, kept.map((text) => `${text}\n`).join(''))
    }
    return
  }
  const db = new DatabaseSync(path)
  for (const row of db.prepare('SELECT seq, record FROM audit').all()) {
    const text = edit(String(row['record']), Number(row['seq']))
    if (text === undefined) db.prepare('DELETE FROM audit WHERE seq = ?').run(Number(row['seq']))
    else db.prepare('UPDATE audit SET record = ? WHERE seq = ?').run(text, Number(row['seq']))
  }
  db.close()
}

/** Adds a record of an attacker's that the chain goes on from. */
function append(format: Format, path: string, entry: AuditEntry, last: AuditRecord): void {
  const sealer = createSealer({}, { seq: last.seq, head: last.hash ?? '' })
  const text = sealer.seal(entry)
  if (format === 'jsonl') return appendFileSync(path, `${text}\n`)
  const { tool = null, user_id: user = null, session_id: session = null, ts } = JSON.parse(text) as AuditRecord
  const db = new DatabaseSync(path)
  const insert = db.prepare('INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)')
  insert.run(sealer.seq, entry.event, tool, user, session, Date.parse(ts), text)
  db.close()
}

/** Keeps the oldest records, and returns what puts them back. */
function keepOldest(format: Format, path: string): () => void {
  if (format === 'jsonl') {
    const [oldest] = closedFiles(path)
    assert.ok(oldest)
    const text = readFileSync(oldest.path)
    return () => writeFileSync(oldest.path, text)
  }
  const db = new DatabaseSync(path)
  const rows = db.prepare('SELECT * FROM audit').all()
  db.close()
  return () => {
    const again = new DatabaseSync(path)
    const insert = again.prepare('INSERT OR IGNORE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)')
    for (const row of rows) insert.run(...Object.values(row))
    again.close()
  }
}

const sizeOf = (path: string): number =>
  [path, ...closedFiles(path).map((closed) => closed.path)].reduce((sum, file) => sum + statSync(file).size, 0)

for (const format of FORMATS) {
  describe(`retention of an audit in ${format}`, () => {
    it('removes whole signed groups that are older, and what is left verifies and says who vouches', async (t) => {
      const audit = days(t, format)
      await audit.calls(0, ['a', 'b'])
      await audit.calls(5, ['c'])
      await audit.calls(20, ['d'])
      const left = await prune(audit, 21)
      assert.equal(left[0]?.seq, 11)
      assert.deepEqual(
        left.filter(({ event }) => event === 'tool_call').map(({ tool_call_id: id }) => id),
        ['d'],
      )
      const pruned = left.find(({ event }) => event === 'audit_pruned')
      assert.match(
        pruned?.detail ?? '',
        /^records 1 to 10, signed by the checkpoint [\da-f]{64} of 2026-01-06T00:00:00\.000Z$/,
      )
      const verdict = await verifyAudit({ path: audit.path })
      assert.deepEqual([verdict.status, verdict.findings, verdict.firstSeq], ['ok', [], 11])
      assert.deepEqual(verdict.pruned, { seq: 10, checkpoint: 2, ts: '2026-01-06T00:00:00.000Z' })
    })

    it('goes on from there, and keeps what is young', async (t) => {
      const audit = days(t, format)
      await audit.calls(0, ['a'])
      assert.equal((await prune(audit, 9))[0]?.seq, 1)
      await prune(audit, 11)
      await audit.calls(12, ['b'])
      await prune(audit, 30)
      const verdict = await verifyAudit({ path: audit.path })
      assert.equal(verdict.status, 'ok')
      assert.ok(verdict.pruned && verdict.pruned.seq > 8)
      assert.equal(verdict.records, verdict.lastSeq - verdict.pruned.seq)
    })

    it('names the calls whose beginning goes and whose end stays, and waits for calls of its own that still run', async (t) => {
      const audit = days(t, format)
      await audit.calls(0, ['a'])
      let day = 1
      const running = audit.open(0, {
        ...RETAIN,
        nowMs: () => START_MS + day * DAY_MS,
        checkpoints: { everyRecords: 1 },
      })
      await running.write(auditEntry({ tool_call_id: 'long', wallMs: START_MS + DAY_MS }))
      while ((running.evidence().checkpoints?.signedSeq ?? 0) < 6)
        await new Promise((resolve) => setTimeout(resolve, 5))
      day = 30
      await running.prune()
      assert.ok((await readAll(running)).some(({ tool_call_id: id }) => id === 'long'))
      await running.write(auditEntry({ event: 'tool_result', tool_call_id: 'long' }))
      await running.prune()
      const left = await readAll(running)
      assert.deepEqual(
        left.filter(({ tool_call_id: id }) => id === 'long').map(({ event }) => event),
        ['tool_result'],
      )
      const details = left.filter(({ event }) => event === 'audit_pruned').map(({ detail }) => detail)
      assert.match(details.at(-1) ?? '', /these calls begin there and do not end there: long$/)
      await running.close()
      assert.equal((await verifyAudit({ path: audit.path })).status, 'ok')
    })

    it('removes nothing of a new audit whose checkpoints are those of one before', async (t) => {
      const audit = days(t, format)
      for (const day of [0, 20]) await audit.calls(day, ['a', 'b', 'c'])
      assert.ok(((await prune(audit, 21))[0]?.seq ?? 0) > 3)
      for (const file of [audit.path, ...closedFiles(audit.path).map((closed) => closed.path)]) rmSync(file)
      await audit.calls(22, ['new'])
      await assert.rejects(prune(audit, 23), /retention removes nothing, as record \d+ is not/)
      const now = audit.open(23)
      t.after(() => now.close())
      assert.equal((await readAll(now))[0]?.seq, 1)
    })

    it('goes on where it was killed before anything was removed', async (t) => {
      const audit = days(t, format)
      await audit.calls(0, ['a', 'b'])
      await audit.calls(20, ['c'])
      const putBack = keepOldest(format, audit.path)
      await prune(audit, 21)
      putBack()
      const left = await prune(audit, 21)
      assert.deepEqual(
        left.filter(({ event }) => event === 'tool_call').map(({ tool_call_id: id }) => id),
        ['c'],
      )
      assert.equal((await verifyAudit({ path: audit.path })).status, 'ok')
    })

    it('still proves the calls that are left', async (t) => {
      const audit = days(t, format)
      await audit.calls(0, ['a'])
      await audit.calls(20, ['b'])
      await prune(audit, 21)
      const keys = keysIn(readFileSync(publicKeysOf(checkpointsPath(audit.path)), 'utf8')).map(createNoteVerifier)
      const { proofs, unsigned } = await proveCall('b', audit.path)
      assert.deepEqual([proofs.map((proof) => checkTlogProof(proof, keys)), unsigned], [[undefined, undefined], 0])
      assert.deepEqual((await proveCall('a', audit.path)).proofs, [])
    })

    it('gives the space back to the disk', async (t) => {
      const audit = days(t, format)
      const many = audit.open(0)
      for (let i = 0; i < 4000; i++)
        await many.write(auditEntry({ event: 'tool_result', tool_call_id: `c${i}`, detail: 'x'.repeat(900) }))
      await many.close()
      const before = sizeOf(audit.path)
      const pruning = audit.open(20, RETAIN)
      await pruning.prune()
      const after = sizeOf(audit.path)
      await pruning.close()
      assert.ok(before > 4_000_000 && after < before / 20, `${before} bytes became ${after}`)
    })

    it('needs checkpoints', () => {
      assert.throws(() => openAny(format, { path: '/nowhere', retainMs: 1, checkpoints: false }), /needs checkpoints/)
      assert.throws(() => openAny(format, { path: '/nowhere', retainMs: 0 }), /whole number/)
    })

    describe('removes nothing from an audit', () => {
      const tampered: (readonly [what: string, meddle: (path: string) => void, why: RegExp])[] = [
        ['with an edited record', (path) => tamper(format, path, (text) => text.replace('"a"', '"x"')), /was changed/],
        [
          'that was cut at its beginning',
          (path) => tamper(format, path, (text, seq) => (seq <= 2 ? undefined : text)),
          /record 1 is not its first/,
        ],
        ['with a gap', (path) => tamper(format, path, (text, seq) => (seq === 3 ? undefined : text)), /was changed/],
        [
          'whose checkpoints were forged',
          (path) =>
            replaceCheckpoints(path, ([first = '', ...rest]) => [first.replace('\\"seq\\":', '\\"seq\\":1'), ...rest]),
          /is not valid/,
        ],
        [
          'whose first checkpoint is of another log',
          (path) => replaceCheckpoints(path, ([first = '', ...rest]) => [resigned(first), ...rest]),
          /is not valid/,
        ],
        [
          'whose checkpoints were cut at their beginning',
          (path) => replaceCheckpoints(path, (lines) => lines.slice(1)),
          /is not valid/,
        ],
      ]
      // In JSON lines, no checkpoint ends a file that was cut, so it stays.
      if (format === 'sqlite')
        tampered.push([
          'whose end was cut',
          (path) => tamper(format, path, (text, seq) => (seq > 5 ? undefined : text)),
          /records before 8 are missing|are not those/,
        ])
      for (const [what, meddle, why] of tampered) {
        it(what, async (t) => {
          const audit = days(t, format)
          await audit.calls(0, ['a'])
          await audit.calls(1, ['b'])
          meddle(audit.path)
          const { firstSeq } = await verifyAudit({ path: audit.path })
          await assert.rejects(prune(audit, 30), why)
          const verdict = await verifyAudit({ path: audit.path })
          assert.equal(verdict.firstSeq, firstSeq)
          assert.notEqual(verdict.status, 'ok')
        })
      }
    })

    describe('is told apart from a deletion by hand', () => {
      it('of the beginning', async (t) => {
        const audit = days(t, format)
        await audit.calls(0, ['a'])
        await audit.calls(1, ['b'])
        tamper(format, audit.path, (text, seq) => (seq <= 4 ? undefined : text))
        const { status, findings, pruned } = await verifyAudit({ path: audit.path })
        assert.deepEqual(
          [status, findings[0]?.text, pruned],
          ['gap', 'Records 1 to 4 are missing before line 1.', undefined],
        )
      })

      it('of more than was pruned', async (t) => {
        const audit = days(t, format)
        await audit.calls(0, ['a'])
        await audit.calls(20, ['b'])
        await prune(audit, 21)
        tamper(format, audit.path, (text, seq) => (seq <= 6 ? undefined : text))
        const { status, findings } = await verifyAudit({ path: audit.path })
        assert.deepEqual([status, findings[0]?.text], ['gap', 'Records 5 to 6 are missing before line 1.'])
      })

      it('with an audit_pruned record that the writer went on from and signed', async (t) => {
        const audit = days(t, format)
        await audit.calls(0, ['a'])
        await audit.calls(1, ['b'])
        const reader = openAny(format, { path: audit.path, readOnly: true })
        const [last = assert.fail()] = await reader.query({ limit: 1 })
        await reader.close()
        const wallMs = START_MS + DAY_MS
        append(format, audit.path, auditEntry({ event: 'audit_pruned', detail: 'records 1 to 4', wallMs }), last)
        tamper(format, audit.path, (text, seq) => (seq <= 4 ? undefined : text))
        await audit.calls(2, ['c'])
        assert.equal((await verifyAudit({ path: audit.path })).status, 'gap')
      })

      it('with a statement that another key signed, or nobody', async (t) => {
        const forger = createNoteSigner('audit', newSigningKey())
        for (const sign of [
          (_note: string, size: number, root: string) => forger.sign({ origin: 'audit', size, root }),
          // The signature of the checkpoint before it.
          (note: string, size: number, root: string) =>
            `audit\n${size}\n${Buffer.from(root, 'hex').toString('base64')}\n${note.slice(note.indexOf('\n\n') + 1)}`,
        ]) {
          const audit = days(t, format)
          await audit.calls(0, ['a'])
          await audit.calls(1, ['b'])
          appendFileSync(checkpointsPath(audit.path), `${forgedPruning(audit.path, sign)}\n`)
          const forged = checkpointsOf(audit.path).at(-1) ?? assert.fail()
          assert.deepEqual([pointIn(forged)?.prunedSeq, treeAfter(forged)?.size], [4, 4])
          // The writer neither takes the statement for its own nor acts on it.
          await assert.rejects(prune(audit, 30), /is not valid/)
          const newest = checkpointsOf(audit.path).at(-1) ?? assert.fail()
          assert.deepEqual(
            [pointIn(newest)?.prunedSeq, newest.before.size],
            [undefined, 2],
            'it skips what it has not signed',
          )
          tamper(format, audit.path, (text, seq) => (seq <= 4 ? undefined : text))
          const { status, pruned, findings } = await verifyAudit({ path: audit.path })
          assert.deepEqual([status, pruned], ['tampered', undefined])
          assert.ok(findings.some(({ kind }) => kind === 'missing'))
        }
      })
    })
  })
}
