import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { type AuditRecord, createSealer, parseCheckpoint, parseVerifyingKey, checkProof } from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/core/testing'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { publicKeysOf } from './checkpoint-file.ts'
import { checkpointsPath } from './evidence.ts'
import { openSqliteAudit } from './sqlite.ts'
import { readAll } from './testing/read-all.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { proveCall, verifyAudit } from './verify.ts'

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

function days(t: TestContext): Days {
  const path = join(scratchFolder(t), 'audit')
  const open: Days['open'] = (day, options = {}) =>
    openSqliteAudit({ path, nowMs: () => START_MS + day * DAY_MS, ...options })
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

const checkpointLines = (path: string): string[] =>
  readFileSync(checkpointsPath(path), 'utf8').split('\n').filter(Boolean)
const change = (path: string, sql: string): void => {
  const db = new DatabaseSync(path)
  db.exec(sql)
  db.close()
}

describe('retention of an audit in SQLite', () => {
  it('removes whole signed groups that are older, and what is left verifies and says who vouches', async (t) => {
    const audit = days(t)
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
    const audit = days(t)
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
    const audit = days(t)
    await audit.calls(0, ['a'])
    let day = 1
    const running = audit.open(0, {
      ...RETAIN,
      nowMs: () => START_MS + day * DAY_MS,
      checkpoints: { everyRecords: 1 },
    })
    await running.write(auditEntry({ tool_call_id: 'long', wallMs: START_MS + DAY_MS }))
    while ((running.evidence().checkpoints?.signedSeq ?? 0) < 6) await new Promise((resolve) => setTimeout(resolve, 5))
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

  it('still proves the calls that are left', async (t) => {
    const audit = days(t)
    await audit.calls(0, ['a'])
    await audit.calls(20, ['b'])
    await prune(audit, 21)
    const keys = [parseVerifyingKey(readFileSync(publicKeysOf(checkpointsPath(audit.path)), 'utf8'))]
    const { proofs, unsigned } = await proveCall('b', { path: audit.path })
    assert.deepEqual([proofs.map((proof) => checkProof(proof, keys)), unsigned], [[undefined, undefined], 0])
    assert.deepEqual((await proveCall('a', { path: audit.path })).proofs, [])
  })

  it('gives the space back to the disk', async (t) => {
    const audit = days(t)
    const many = audit.open(0)
    for (let i = 0; i < 4000; i++)
      await many.write(auditEntry({ event: 'tool_result', tool_call_id: `c${i}`, detail: 'x'.repeat(900) }))
    await many.close()
    const before = statSync(audit.path).size
    await prune(audit, 20)
    const after = statSync(audit.path).size
    assert.ok(before > 4_000_000 && after < before / 20, `${before} bytes became ${after}`)
  })

  it('needs checkpoints', () => {
    assert.throws(() => openSqliteAudit({ path: '/nowhere', retainMs: 1, checkpoints: false }), /needs checkpoints/)
    assert.throws(() => openSqliteAudit({ path: '/nowhere', retainMs: 0 }), /whole number of milliseconds/)
  })

  describe('removes nothing from an audit', () => {
    const tampered: readonly (readonly [what: string, tamper: (path: string) => void, why: RegExp])[] = [
      [
        'with an edited record',
        (path) => change(path, `UPDATE audit SET record = replace(record, '"a"', '"x"')`),
        /was changed/,
      ],
      [
        'that was cut at its beginning',
        (path) => change(path, 'DELETE FROM audit WHERE seq <= 2'),
        /record 1 is not its first/,
      ],
      ['with a gap', (path) => change(path, 'DELETE FROM audit WHERE seq = 3'), /was changed/],
      [
        'whose checkpoints were forged',
        (path) =>
          writeFileSync(
            checkpointsPath(path),
            checkpointLines(path).join('\n').replace('"epoch":1', '"epoch":2') + '\n',
          ),
        /is not valid/,
      ],
      [
        'whose checkpoints were cut at their beginning',
        (path) => writeFileSync(checkpointsPath(path), `${checkpointLines(path).slice(1).join('\n')}\n`),
        /is not valid/,
      ],
    ]
    for (const [what, tamper, why] of tampered) {
      it(what, async (t) => {
        const audit = days(t)
        await audit.calls(0, ['a'])
        await audit.calls(1, ['b'])
        tamper(audit.path)
        const count = (): unknown =>
          new DatabaseSync(audit.path).prepare('SELECT min(seq) AS first FROM audit').get()?.['first']
        const first = count()
        await assert.rejects(prune(audit, 30), why)
        assert.equal(count(), first)
        assert.notEqual((await verifyAudit({ path: audit.path })).status, 'ok')
      })
    }
  })

  describe('is told apart from a deletion by hand', () => {
    it('of the beginning', async (t) => {
      const audit = days(t)
      await audit.calls(0, ['a'])
      await audit.calls(1, ['b'])
      change(audit.path, 'DELETE FROM audit WHERE seq <= 4')
      const { status, findings, pruned } = await verifyAudit({ path: audit.path })
      assert.deepEqual(
        [status, findings[0]?.text, pruned],
        ['gap', 'Records 1 to 4 are missing before line 1.', undefined],
      )
    })

    it('of more than was pruned', async (t) => {
      const audit = days(t)
      await audit.calls(0, ['a'])
      await audit.calls(20, ['b'])
      await prune(audit, 21)
      change(audit.path, 'DELETE FROM audit WHERE seq <= 6')
      const { status, findings } = await verifyAudit({ path: audit.path })
      assert.deepEqual([status, findings[0]?.text], ['gap', 'Records 5 to 6 are missing before line 1.'])
    })

    it('with an audit_pruned record that the writer went on from and signed', async (t) => {
      const audit = days(t)
      await audit.calls(0, ['a'])
      await audit.calls(1, ['b'])
      const db = new DatabaseSync(audit.path)
      const last = db.prepare('SELECT seq, record FROM audit ORDER BY seq DESC LIMIT 1').get()
      const { hash } = JSON.parse(String(last?.['record'])) as { hash: string }
      const sealer = createSealer({}, { seq: Number(last?.['seq']), head: hash })
      const wallMs = START_MS + DAY_MS
      const text = sealer.seal(auditEntry({ event: 'audit_pruned', detail: 'records 1 to 4', wallMs }))
      const { tool, user_id: user, session_id: session, ts } = JSON.parse(text) as Record<string, string>
      db.prepare('INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)').run(
        sealer.seq,
        'audit_pruned',
        tool ?? null,
        user ?? null,
        session ?? null,
        Date.parse(ts ?? ''),
        text,
      )
      db.exec('DELETE FROM audit WHERE seq <= 4')
      db.close()
      await audit.calls(2, ['c'])
      assert.equal((await verifyAudit({ path: audit.path })).status, 'gap')
    })

    it('with a statement that another key signed, or nobody', async (t) => {
      for (const forge of [(text: string) => text, (text: string) => text.replace(/"sig":"....../, '"sig":"AAAAAA')]) {
        const audit = days(t)
        await audit.calls(0, ['a'])
        await audit.calls(1, ['b'])
        const lines = checkpointLines(audit.path)
        const forged = forge((lines.at(-1) ?? '').replace(',"seq":', ',"prunedSeq":4,"seq":'))
        assert.equal(parseCheckpoint(forged)?.prunedSeq, 4)
        appendFileSync(checkpointsPath(audit.path), `${forged}\n`)
        // The writer neither takes the statement for its own nor acts on it.
        await assert.rejects(prune(audit, 30), /is not valid/)
        assert.equal(parseCheckpoint(checkpointLines(audit.path).at(-1) ?? '')?.prunedSeq, undefined)
        change(audit.path, 'DELETE FROM audit WHERE seq <= 4')
        const { status, pruned, findings } = await verifyAudit({ path: audit.path })
        assert.deepEqual([status, pruned], ['tampered', undefined])
        assert.ok(findings.some(({ kind }) => kind === 'missing'))
      }
    })
  })
})
