import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { canonicalize } from '../canonical.ts'
import { sha256Hex } from '../hash.ts'
import type { AuditQuery, AuditReader, AuditRecord, AuditSink, MaybePromise } from '../ports.ts'
import { auditEntry } from './entries.ts'

type Audit = AuditSink & AuditReader

export interface AuditUnderTest {
  readonly sink: Audit
  /** Opens what was written once more, after `sink` was closed. Absent for a sink that forgets. */
  readonly reopen?: () => MaybePromise<Audit>
}

/**
 * Defines the tests that every audit sink passes. Call it once in a test file, for each way to open the sink.
 *
 * @example
 * auditSinkContract('memoryAudit', () => ({ sink: memoryAudit() }))
 */
export function auditSinkContract(name: string, make: (t: TestContext) => MaybePromise<AuditUnderTest>): void {
  describe(`${name} (audit sink contract)`, () => {
    const open = async (t: TestContext): Promise<Audit> => {
      const { sink } = await make(t)
      t.after(() => sink.close())
      return sink
    }

    it('gives records newest first, numbered from 1 without a gap in the order of writing', async (t) => {
      const sink = await open(t)
      for (let i = 1; i <= 450; i++) await sink.write(auditEntry({ tool_call_id: `c${i}` }))
      await sink.flush()
      const records = await sink.query({ limit: 1000 })
      assert.deepEqual(
        records.map((record) => [record.seq, record.tool_call_id]),
        Array.from({ length: 450 }, (_, i) => [450 - i, `c${450 - i}`]),
      )
    })

    it('gives back every field that was written, and no other', async (t) => {
      const sink = await open(t)
      await sink.write(auditEntry(EVERY_FIELD))
      await sink.write(auditEntry({ user_id: undefined as never, input: undefined }))
      await sink.flush()
      const [bare, full] = (await sink.query({})) as [AuditRecord, AuditRecord]
      const { wallMs, input, ...expected } = auditEntry(EVERY_FIELD)
      const ts = new Date(wallMs).toISOString()
      assert.deepEqual({ ...full }, { ...expected, seq: 1, ts, input_hash: sha256Hex(canonicalize(input)) })
      assert.deepEqual(Object.keys(bare).toSorted(), [
        'catalog_revision',
        'event',
        'policy_revision',
        'seq',
        'tool',
        'tool_call_id',
        'ts',
      ])
    })

    it('never keeps the input itself', async (t) => {
      const sink = await open(t)
      await sink.write(auditEntry({ input: { password: 'hunter2' } }))
      await sink.flush()
      assert.doesNotMatch(JSON.stringify(await sink.query({})), /hunter2|password/)
    })

    it('lets a record be read once its write or a flush has resolved', async (t) => {
      const sink = await open(t)
      await sink.write(auditEntry())
      assert.equal((await sink.query({})).length, 1)
      const written = sink.write(auditEntry())
      await sink.flush()
      assert.equal((await sink.query({})).length, 2)
      await written
    })

    it('flushes when nothing was written', async (t) => {
      const sink = await open(t)
      await sink.flush()
      assert.deepEqual(await sink.query({}), [])
    })

    it('takes writes that overlap, each once and in the order they were made', async (t) => {
      const sink = await open(t)
      await Promise.all(
        Array.from({ length: 300 }, async (_, i) => sink.write(auditEntry({ tool_call_id: `c${i + 1}` }))),
      )
      const records = await sink.query({ limit: 1000 })
      assert.deepEqual(
        records.map((record) => [record.seq, record.tool_call_id]),
        Array.from({ length: 300 }, (_, i) => [300 - i, `c${300 - i}`]),
      )
    })

    describe('query', () => {
      const asked: readonly [string, AuditQuery, readonly number[]][] = [
        ['everything without a filter', {}, [9, 8, 7, 6, 5, 4, 3, 2, 1]],
        ['the newest up to a limit', { limit: 2 }, [9, 8]],
        ['one tool, compared exactly', { tool: 'files:a' }, [7, 4, 1]],
        ['no tool for a part of its name', { tool: 'files:' }, []],
        ['no tool for a pattern', { tool: 'files:%' }, []],
        ['one user', { user: 'vera' }, [9, 7, 5, 3, 1]],
        ['nothing for a user who did nothing', { user: 'nobody' }, []],
        ['one event that is common', { event: 'tool_call' }, [8, 7, 5, 4, 2, 1]],
        ['one event that is rare', { event: 'tool_blocked' }, [9, 6, 3]],
        ['what is older than a seq: the next page', { beforeSeq: 4 }, [3, 2, 1]],
        ['what is newer than a seq', { afterSeq: 7 }, [9, 8]],
        ['what lies between two', { afterSeq: 3, beforeSeq: 6 }, [5, 4]],
        ['nothing newer than the newest', { afterSeq: 9 }, []],
        ['nothing older than the oldest', { beforeSeq: 1 }, []],
        ['the newest of what is newer, up to a limit', { afterSeq: 2, limit: 3 }, [9, 8, 7]],
        ['all filters together', { tool: 'files:c', user: 'vera', event: 'tool_blocked', afterSeq: 3 }, [9]],
        ['all filters and a page', { tool: 'files:c', event: 'tool_blocked', beforeSeq: 9, limit: 1 }, [6]],
      ]
      for (const [what, query, expected] of asked) {
        it(`finds ${what}`, async (t) => {
          const sink = await open(t)
          for (let i = 1; i <= 9; i++) {
            const user = i % 2 === 1 ? { user_id: 'vera' } : {}
            const event = i % 3 === 0 ? 'tool_blocked' : 'tool_call'
            await sink.write(auditEntry({ event, tool: `files:${'abc'[(i - 1) % 3]}`, ...user }))
          }
          await sink.flush()
          assert.deepEqual(
            (await sink.query(query)).map((record) => record.seq),
            expected,
          )
        })
      }

      it('gives 100 records by default and 1,000 at most', async (t) => {
        const sink = await open(t)
        for (let i = 0; i < 1001; i++) await sink.write(auditEntry())
        await sink.flush()
        assert.equal((await sink.query({})).length, 100)
        assert.equal((await sink.query({ limit: 1000 })).length, 1000)
      })

      const invalid: readonly AuditQuery[] = [
        { limit: 0 },
        { limit: 1001 },
        { limit: 1.5 },
        { limit: Number.NaN },
        { beforeSeq: -1 },
        { afterSeq: 0.5 },
        { event: 'tool_unknown' as 'tool_call' },
      ]
      for (const query of invalid) {
        const [field, value] = Object.entries(query)[0] as [string, unknown]
        it(`refuses ${field} ${String(value)}, naming the field`, async (t) => {
          const sink = await open(t)
          await assert.rejects(async () => sink.query(query), { code: 'query_invalid', message: new RegExp(field) })
        })
      }
    })

    describe('texts', () => {
      const odd: readonly [string, string, string][] = [
        ['an emoji', '🙂', '🙂'],
        ['a NUL', 'a\0b', 'a\0b'],
        ['quotes, backslashes and line breaks', '"\\\n\r\u2028', '"\\\n\r\u2028'],
        ['an unpaired surrogate, as U+FFFD', 'a\uD800b', 'a\uFFFDb'],
        ['SQL', "'; DROP TABLE audit; --", "'; DROP TABLE audit; --"],
        ['a name that objects own', '__proto__', '__proto__'],
        ['an empty text', '', ''],
      ]
      for (const [what, given, kept] of odd) {
        it(`keeps ${what}`, async (t) => {
          const sink = await open(t)
          await sink.write(auditEntry({ tool: given, user_id: given, error: given }))
          await sink.flush()
          const [record] = await sink.query({ tool: kept, user: kept })
          assert.deepEqual([record?.tool, record?.user_id, record?.error], [kept, kept, kept])
        })
      }

      it('caps a tool at 256 characters and other texts at 1,024, and says how long they were', async (t) => {
        const sink = await open(t)
        await sink.write(auditEntry({ tool: 't'.repeat(300), error: 'e'.repeat(1_000_000), detail: '🙂'.repeat(600) }))
        await sink.flush()
        const [record] = (await sink.query({})) as [AuditRecord]
        assert.match(record.tool ?? '', /^t+… \(300 characters\)$/)
        assert.equal(record.tool?.length, 256)
        assert.match(record.error ?? '', /^e+… \(1000000 characters\)$/)
        assert.equal(record.error?.length, 1024)
        assert.match(record.detail ?? '', /^(🙂)+… \(1200 characters\)$/u)
      })

      it('keeps the record of an input that has no canonical JSON, without its hash', async (t) => {
        const sink = await open(t)
        let deep: unknown = 'bottom'
        for (let i = 0; i < 100_000; i++) deep = [deep]
        for (const input of [deep, { n: Number.NaN }, { big: 1n }, '\uD800']) await sink.write(auditEntry({ input }))
        await sink.flush()
        const records = await sink.query({})
        assert.deepEqual(
          records.map((record) => record.input_hash),
          [undefined, undefined, undefined, undefined],
        )
      })
    })

    it('refuses a write after it was closed', async (t) => {
      const { sink } = await make(t)
      await sink.write(auditEntry())
      await sink.close()
      await assert.rejects(async () => sink.write(auditEntry()), { code: 'audit_closed' })
    })

    it('may be closed twice', async (t) => {
      const { sink } = await make(t)
      await sink.close()
      await sink.close()
    })

    it('finds everything again when it is opened anew, and counts on without a gap', async (t) => {
      const { sink, reopen } = await make(t)
      for (let i = 1; i <= 5; i++) await sink.write(auditEntry({ tool_call_id: `first-${i}` }))
      await sink.close()
      if (!reopen) return
      const again = await reopen()
      t.after(() => again.close())
      await again.write(auditEntry({ tool_call_id: 'second-1' }))
      await again.flush()
      const records = await again.query({})
      assert.deepEqual(
        records.map((record) => record.seq),
        [6, 5, 4, 3, 2, 1],
      )
      assert.deepEqual(
        records.slice(0, 2).map((record) => record.tool_call_id),
        ['second-1', 'first-5'],
      )
    })
  })
}

const EVERY_FIELD = {
  event: 'tool_result',
  chat_id: 'chat',
  user_id: 'vera',
  session_id: 'session',
  tenant: 'acme',
  agent: 'agent',
  app: 'app',
  run_id: 'run',
  reason: 'policy_denied',
  detail: 'the baseline policy',
  limit: '20/60',
  reset_ms: 14_000,
  duration_ms: 1.5,
  error: 'boom',
  approval_id: 'approval',
  policy_revision: 7,
  catalog_revision: 8,
  input: { b: 1, a: [-0, 'x'] },
} as const
