import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { canonicalize } from '@toolgate/values/json'
import { sha256Hex } from '@toolgate/values'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'
import type {
  AuditCounter,
  AuditCountQuery,
  AuditCounts,
  AuditEntry,
  AuditExporter,
  AuditExportQuery,
  AuditQuery,
  AuditReader,
  AuditRecord,
  AuditOutcome,
  AuditSink,
} from '@toolgate/core/audit'
import { auditEntry } from './entries.ts'

type Audit = AuditSink & AuditReader & AuditExporter & AuditCounter

export interface AuditUnderTest {
  readonly sink: Audit
  /** Opens the same audit again, after `sink` was closed. Absent for a sink that keeps nothing. */
  readonly reopen?: () => Promise<Audit>
}

/**
 * Defines the tests that every audit sink passes. Call it once in a test file, for each way to open the sink.
 *
 * @example
 * auditSinkContract('memoryAudit', async () => ({ sink: memoryAudit() }))
 */
export function auditSinkContract(name: string, make: (t: TestContext) => Promise<AuditUnderTest>): void {
  describe(`${name} (audit sink contract)`, () => {
    const open = async (t: TestContext): Promise<Audit> => {
      const { sink } = await make(t)
      t.after(() => sink.close())
      return afterOpening(sink)
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
      const { wallMs, input, read, ...expected } = auditEntry(EVERY_FIELD)
      assert.match(full.input_hash ?? '', /^hmac-sha256:[0-9a-f]{64}$/)
      const ts = new Date(wallMs).toISOString()
      assert.deepEqual(withoutChain(full), {
        ...expected,
        seq: 1,
        ts,
        input_hash: full.input_hash,
        input_preview: canonicalize(input),
        labels: 'private untrusted',
        run_labels: '',
        operands: JSON.stringify(read),
      })
      assert.deepEqual(Object.keys(withoutChain(bare)).toSorted(), [
        'catalog_revision',
        'event',
        'policy_revision',
        'seq',
        'tool',
        'tool_call_id',
        'ts',
      ])
    })

    it('keeps no secret of an input, an error or a detail', async (t) => {
      const sink = await open(t)
      const error = 'refused: Authorization: Bearer hunter2-hunter2-hunter2'
      await sink.write(auditEntry({ input: { password: 'hunter2' }, error, detail: error }))
      await sink.flush()
      assert.doesNotMatch(JSON.stringify(await sink.query({})), /hunter2/)
    })

    it('keeps no more than the beginning of an input', async (t) => {
      const sink = await open(t)
      await sink.write(auditEntry({ input: { text: '🙂 '.repeat(10_000) } }))
      await sink.flush()
      const [record] = await sink.query({})
      assert.match(record?.input_preview ?? '', /^\{"text":"(🙂 )+🙂?…$/u)
      assert.ok((record?.input_preview?.length ?? 0) <= 200)
    })

    it('chains its records, or none of them', async (t) => {
      const sink = await open(t)
      for (let i = 0; i < 3; i++) await sink.write(auditEntry())
      await sink.flush()
      const records = (await sink.query({})).toReversed()
      for (const [i, { prev, hash }] of records.entries()) {
        assert.equal(hash === undefined, prev === undefined)
        if (i > 0) assert.equal(prev, records[i - 1]?.hash)
      }
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
        ['one session', { session: 's1' }, [8, 4]],
        ['one tenant', { tenant: 'acme' }, [6]],
        ['no tenant that only begins so', { tenant: 'acm' }, []],
        ['one call', { call: 'c7' }, [7]],
        ['one run', { run: 'r1' }, [7, 2]],
        ['no run that only begins so', { run: 'r' }, []],
        ['what was refused', { outcome: 'refused' }, [9, 6, 3]],
        ['what is of a time and later', { since: 7000 }, [9, 8, 7]],
        ['what is earlier than a time', { until: 3000 }, [2, 1]],
        ['what lies between two times', { since: 2000, until: 4000.5, user: 'vera' }, [3]],
        ['nothing of an outcome that no record has', { outcome: 'waiting' }, []],
        ['all filters together', { tool: 'files:c', user: 'vera', event: 'tool_blocked', afterSeq: 3 }, [9]],
        ['all filters and a page', { tool: 'files:c', event: 'tool_blocked', beforeSeq: 9, limit: 1 }, [6]],
      ]
      for (const [what, query, expected] of asked) {
        it(`finds ${what}`, async (t) => {
          const sink = await open(t)
          for (let i = 1; i <= 9; i++) await sink.write(ninth(i))
          await sink.flush()
          assert.deepEqual(
            (await sink.query(query)).map((record) => record.seq),
            expected,
          )
        })
      }

      it('finds attempts by how they ended', async (t) => {
        const sink = await open(t)
        const endings: readonly Partial<AuditEntry>[] = [
          { event: 'tool_result' },
          { event: 'tool_result', error: 'boom', reason: 'tool_error' },
          { event: 'tool_blocked', detail: '"error":"none"' },
          { event: 'tool_rate_limited' },
          { event: 'tool_approval_required' },
          { event: 'tool_abandoned', error: 'gone' },
          { event: 'tool_call' },
          { event: 'tool_result', detail: ',"error":"none","is_error":true' },
          { event: 'tool_result', is_error: true },
          { event: 'tool_input_required' },
        ]
        for (const ending of endings) await sink.write(auditEntry(ending))
        await sink.flush()
        const found = AUDIT_OUTCOMES.map(async (outcome) => (await sink.query({ outcome })).map((record) => record.seq))
        assert.deepEqual(await Promise.all(found), [[8, 1], [9, 2], [3], [4], [5], [10], [6]])
        assert.deepEqual(await sink.query({ outcome: 'done', event: 'tool_blocked' }), [])
      })

      it('gives 100 records by default and 1,000 at most', async (t) => {
        const sink = await open(t)
        await writeAll(sink, 1001, () => auditEntry())
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
        { outcome: 'tool_call' as 'done' },
        { since: Number.NaN },
        { until: Number.POSITIVE_INFINITY },
      ]
      for (const query of invalid) {
        const [field, value] = Object.entries(query)[0] as [string, unknown]
        it(`refuses ${field} ${String(value)}, naming the field`, async (t) => {
          const sink = await open(t)
          await assert.rejects(async () => sink.query(query), { code: 'query_invalid', message: new RegExp(field) })
        })
      }
    })

    describe('exportRecords', () => {
      const asked: readonly [string, AuditExportQuery, readonly number[]][] = [
        ['everything', {}, [1, 2, 3, 4, 5, 6, 7, 8, 9]],
        ['one tool of one user', { tool: 'files:a', user: 'vera' }, [1, 7]],
        ['what lies between two', { afterSeq: 3, beforeSeq: 6 }, [4, 5]],
        ['what lies between two times', { since: 2000, until: 4000 }, [2, 3]],
        ['one outcome', { outcome: 'refused' }, [3, 6, 9]],
        ['nothing where nothing matches', { session: 'none' }, []],
      ]
      for (const [what, query, expected] of asked) {
        it(`gives ${what}, oldest first`, async (t) => {
          const sink = await open(t)
          for (let i = 1; i <= 9; i++) await sink.write(ninth(i))
          assert.deepEqual(await seqsOf(sink.exportRecords(query)), expected)
        })
      }

      it('gives all of more than any page holds', async (t) => {
        const sink = await open(t)
        await writeAll(sink, 2500, (i) => auditEntry({ detail: 'x'.repeat(i % 500) }))
        assert.deepEqual(
          await seqsOf(sink.exportRecords()),
          Array.from({ length: 2500 }, (_, i) => i + 1),
        )
      })

      it('may be left early, and asked again', async (t) => {
        const sink = await open(t)
        for (let i = 0; i < 10; i++) await sink.write(auditEntry())
        for await (const record of sink.exportRecords()) {
          if (record.seq === 3) break
        }
        assert.equal((await seqsOf(sink.exportRecords())).length, 10)
      })

      it('refuses what a query refuses', async (t) => {
        const sink = await open(t)
        await assert.rejects(seqsOf(sink.exportRecords({ beforeSeq: -1 })), { code: 'query_invalid' })
      })
    })

    describe('countOutcomes', () => {
      const whole = { since: 0, until: 100_000, bucketMs: 1000 } as const
      const asked: readonly [string, AuditCountQuery][] = [
        ['everything', whole],
        ['in one bucket', { ...whole, bucketMs: 100_000 }],
        ['in buckets that end after the period', { since: 3001, until: 50_001, bucketMs: 7000 }],
        ['in one millisecond', { since: 17_017, until: 17_018, bucketMs: 1 }],
        ['one tool of one user', { ...whole, tool: 'files:a', user: 'vera' }],
        ['one session', { ...whole, session: 's1' }],
        ['one tenant', { ...whole, tenant: 'acme' }],
        ['one call', { ...whole, call: 'c17' }],
        ['one event', { ...whole, event: 'tool_result' }],
        ['nothing for an event that ends no attempt', { ...whole, event: 'tool_call' }],
        ['nothing for an event and another outcome', { ...whole, event: 'tool_blocked', outcome: 'done' }],
        ['nothing before the first record', { since: -5000, until: 0, bucketMs: 10 }],
        ...AUDIT_OUTCOMES.map((outcome): [string, AuditCountQuery] => [
          `what is ${outcome}`,
          { ...whole, outcome, user: 'vera' },
        ]),
      ]
      for (const [what, query] of asked) {
        it(`counts ${what}, as one would who reads all records`, async (t) => {
          const sink = await open(t)
          await writeAll(sink, 300, (i) => nthEnding(i))
          assert.deepEqual(await sink.countOutcomes(query), await countNaively(sink, query))
        })
      }

      it('counts more records than any page holds, up to the newest', async (t) => {
        const sink = await open(t)
        await writeAll(sink, 2500, (i) => auditEntry({ event: 'tool_result', wallMs: i }))
        const { buckets, newestSeq } = await sink.countOutcomes({ since: 0, until: 2500, bucketMs: 1250 })
        assert.deepEqual([buckets.map(({ done }) => done), newestSeq], [[1250, 1250], 2500])
      })

      it('counts nothing in an audit without attempts', async (t) => {
        const sink = await open(t)
        const counts = await sink.countOutcomes({ since: 0, until: 2, bucketMs: 1 })
        const none = { done: 0, failed: 0, refused: 0, limited: 0, waiting: 0, input_required: 0, abandoned: 0 }
        assert.deepEqual(counts, { since: 0, bucketMs: 1, buckets: [none, none], newestSeq: 0 })
      })

      it('has at most 500 buckets', async (t) => {
        const sink = await open(t)
        assert.equal((await sink.countOutcomes({ since: 0, until: 1000, bucketMs: 2 })).buckets.length, 500)
      })

      const invalid: readonly [Partial<AuditCountQuery>, RegExp][] = [
        [{ bucketMs: 0 }, /bucketMs/],
        [{ bucketMs: -1 }, /bucketMs/],
        [{ bucketMs: 1.5 }, /bucketMs/],
        [{ bucketMs: 199 }, /bucketMs must be at least 200/],
        [{ since: Number.NaN }, /since/],
        [{ since: 100_000 }, /until/],
        [{ until: Number.POSITIVE_INFINITY }, /until/],
        [{ outcome: 'tool_call' as 'done' }, /outcome/],
        [{ event: 'tool_unknown' as 'tool_call' }, /event/],
      ]
      for (const [change, message] of invalid) {
        it(`refuses ${Object.entries(change).join(' ')}, naming the field`, async (t) => {
          const sink = await open(t)
          await assert.rejects(async () => sink.countOutcomes({ ...whole, ...change }), {
            code: 'query_invalid',
            message,
          })
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

      it('hashes inputs with a key, so that equal ones are known and short ones cannot be guessed', async (t) => {
        const sink = await open(t)
        for (const input of [{ pin: 1234 }, { pin: 1234 }, { pin: 1235 }]) await sink.write(auditEntry({ input }))
        await sink.flush()
        const [third, second, first] = (await sink.query({})).map((record) => record.input_hash ?? '')
        assert.equal(first, second)
        assert.notEqual(first, third)
        assert.ok(!first?.includes(sha256Hex(canonicalize({ pin: 1234 }))))
      })

      it('records the hash of the policy that decided', async (t) => {
        const sink = await open(t)
        await sink.write(auditEntry({ in_force: { hash: 'a'.repeat(64), text: '{"policies":[]}' } }))
        await sink.flush()
        const found = (await sink.query({ event: 'tool_call' })).map((record) => record.policy_hash)
        assert.deepEqual(found, ['a'.repeat(64)])
      })

      it('keeps the record of an input that has no canonical JSON, without its hash', async (t) => {
        const sink = await open(t)
        let deep: unknown = 'bottom'
        for (let i = 0; i < 100_000; i++) deep = [deep]
        for (const input of [deep, { n: Number.NaN }, { big: 10n ** 1000n }, '\uD800'])
          await sink.write(auditEntry({ input }))
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
      const records = (await again.query({})).toReversed()
      assert.deepEqual(
        records.map((record) => record.seq),
        records.map((_, i) => i + 1),
      )
      assert.deepEqual(
        records.filter(({ event }) => event === 'tool_call').map((record) => record.tool_call_id),
        ['first-1', 'first-2', 'first-3', 'first-4', 'first-5', 'second-1'],
      )
    })
  })
}

/** Returns the audit from here on: without the records of its own opening, and counted from 1. */
async function afterOpening(sink: Audit): Promise<Audit> {
  await sink.flush()
  const base = (await sink.query({ limit: 1 }))[0]?.seq ?? 0
  const shift = <Q extends AuditExportQuery>({ beforeSeq, afterSeq = 0, ...query }: Q): Q =>
    ({ ...query, ...(beforeSeq === undefined ? {} : { beforeSeq: plus(beforeSeq) }), afterSeq: plus(afterSeq) }) as Q
  const plus = (seq: number): number => (seq >= 0 ? seq + base : seq)
  const shiftBack = (record: AuditRecord): AuditRecord => ({ ...record, seq: record.seq - base })
  return {
    write: (entry) => sink.write(entry),
    flush: () => sink.flush(),
    close: () => sink.close(),
    query: async (query) => (await sink.query(shift(query))).map(shiftBack),
    countOutcomes: async (query) => {
      const counts = await sink.countOutcomes(query)
      return { ...counts, newestSeq: counts.newestSeq - base }
    },
    async *exportRecords(query = {}) {
      for await (const record of sink.exportRecords(shift(query))) yield shiftBack(record)
    },
  }
}

/** Returns one of nine entries that differ in the fields that queries filter by. */
function ninth(i: number): AuditEntry {
  return auditEntry({
    event: i % 3 === 0 ? 'tool_blocked' : 'tool_call',
    tool: `files:${'abc'[(i - 1) % 3]}`,
    tool_call_id: `c${i}`,
    wallMs: i * 1000,
    ...(i % 2 === 1 ? { user_id: 'vera' } : {}),
    ...(i % 4 === 0 ? { session_id: 's1' } : {}),
    ...(i === 6 ? { tenant: 'acme' } : {}),
    ...(i % 5 === 2 ? { run: { id: 'r1' } } : {}),
  })
}

/** Returns one of many entries of all outcomes. Their times sometimes go back, as clocks do. */
function nthEnding(i: number): AuditEntry {
  const endings: readonly Partial<AuditEntry>[] = [
    { event: 'tool_call' },
    { event: 'tool_result' },
    { event: 'tool_result', error: 'boom', is_error: true },
    { event: 'tool_result', is_error: true },
    { event: 'tool_result', detail: ',"error":"none","is_error":true' },
    { event: 'tool_blocked', error: 'boom' },
    { event: 'tool_rate_limited' },
    { event: 'tool_approval_required' },
    { event: 'tool_input_required' },
    { event: 'tool_abandoned' },
    { event: 'group_changed' },
    { event: 'tool_result', error: '' },
  ]
  return auditEntry({
    ...endings[i % endings.length],
    tool: `files:${'abc'[i % 3]}`,
    tool_call_id: `c${i}`,
    wallMs: ((i * 61) % 100) * 1001,
    ...(i % 2 === 1 ? { user_id: 'vera' } : {}),
    ...(i % 4 === 0 ? { session_id: 's1' } : {}),
    ...(i % 5 === 0 ? { tenant: 'acme' } : {}),
  })
}

const FIELDS = {
  tool: 'tool',
  user: 'user_id',
  session: 'session_id',
  tenant: 'tenant',
  event: 'event',
  call: 'tool_call_id',
} as const satisfies Readonly<Record<string, keyof AuditRecord>>
const ENDS: ReadonlyMap<string, AuditOutcome> = new Map([
  ['tool_result', 'done'],
  ['tool_blocked', 'refused'],
  ['tool_rate_limited', 'limited'],
  ['tool_approval_required', 'waiting'],
  ['tool_input_required', 'input_required'],
  ['tool_abandoned', 'abandoned'],
])

/** Reads all records and counts them one by one. */
async function countNaively(sink: Audit, query: AuditCountQuery): Promise<AuditCounts> {
  const { since, until, bucketMs } = query
  const fields = Object.entries(FIELDS) as readonly (readonly [keyof typeof FIELDS, keyof AuditRecord])[]
  const buckets: Record<AuditOutcome, number>[] = []
  for (let start = since; start < until; start += bucketMs)
    buckets.push({ done: 0, failed: 0, refused: 0, limited: 0, waiting: 0, input_required: 0, abandoned: 0 })
  let newestSeq = 0
  for await (const record of sink.exportRecords()) {
    newestSeq = record.seq
    const ms = Date.parse(record.ts)
    const hasFailed = record.event === 'tool_result' && ('error' in record || 'is_error' in record)
    const outcome = hasFailed ? 'failed' : ENDS.get(record.event)
    const isMeant = fields.every(([asked, field]) => query[asked] === undefined || query[asked] === record[field])
    if (!isMeant || outcome === undefined || ms < since || ms >= until) continue
    const bucket = buckets[Math.floor((ms - since) / bucketMs)]
    if (bucket && (query.outcome ?? outcome) === outcome) bucket[outcome]++
  }
  return { since, bucketMs, buckets, newestSeq }
}

async function seqsOf(records: AsyncIterable<AuditRecord>): Promise<readonly number[]> {
  const seqs: number[] = []
  for await (const { seq } of records) seqs.push(seq)
  return seqs
}

function withoutChain({ prev, hash, replica, incarnation, chain_seq, ...record }: AuditRecord): Partial<AuditRecord> {
  return record
}

const EVERY_FIELD = {
  event: 'tool_result',
  chat_id: 'chat',
  user_id: 'vera',
  session_id: 'session',
  tenant: 'acme',
  agent: 'agent',
  client: 'client',
  actor: 'corp/actor',
  act_chain: '["corp/actor","corp/first"]',
  key_made_by: 'ada',
  app: 'app',
  run_id: 'run',
  run_history: '["run","root"]',
  reason: 'policy_denied',
  detail: 'the baseline policy',
  limit: '20/60',
  reset_ms: 14_000,
  duration_ms: 1.5,
  error: 'boom',
  is_error: true,
  approval_id: 'approval',
  grant: 'approval',
  labels: ['private', 'untrusted'],
  run_labels: [],
  read: [{ kind: 'origin', of: 'input.a', origin: 'untrusted', values: [{ value: 'x', origin: 'untrusted' }] }],
  policy_revision: 7,
  catalog_revision: 8,
  input: { b: 1, a: [-0, 'x'] },
} as const

/** Makes overlapping writes, which share the cost of making them durable. */
async function writeAll(sink: AuditSink, count: number, entry: (i: number) => AuditEntry): Promise<void> {
  await Promise.all(Array.from({ length: count }, async (_, i) => sink.write(entry(i))))
}
