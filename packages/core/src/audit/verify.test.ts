import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AuditEntry } from '../ports/ports.ts'
import { auditEntry } from '../../../testing/src/entries.ts'
import { createSealer, GENESIS, readLink } from './chain.ts'
import { createRecordTree } from './merkle.ts'
import { sealEntry } from './record.ts'
import type { SignedPoint } from './segments.ts'
import type { AuditVerdict } from './verdict.ts'
import { createVerifier, type VerifyOptions } from './verify.ts'

const COUNT = 30
const EVERY = 10

function rootOf(hashes: readonly string[]): string {
  const tree = createRecordTree()
  for (const hash of hashes) tree.add(hash)
  return tree.root()
}

function seal(entries: readonly AuditEntry[]): string[] {
  const sealer = createSealer()
  return entries.map((entry) => sealer.seal(entry))
}

const entries = Array.from({ length: COUNT }, (_, i) => auditEntry({ tool_call_id: `c${i + 1}` }))
const lines = seal(entries)

const TS = '2026-11-21T10:00:00.000Z'

/** Returns the points of checkpoints after each ten records. */
function pointsOf(records: readonly string[]): SignedPoint[] {
  const points: SignedPoint[] = []
  for (let seq = EVERY; seq <= records.length; seq += EVERY) {
    const hashes = records.slice(seq - EVERY, seq).map((line) => readLink(line)?.hash ?? '')
    points.push({ seq, count: EVERY, headHash: hashes.at(-1) ?? '', merkleRoot: rootOf(hashes), ts: TS })
  }
  return points
}

const signed = pointsOf(lines)

function verify(texts: readonly string[], options: VerifyOptions = { signed }, torn = false): AuditVerdict {
  const verifier = createVerifier(options)
  for (const text of texts) verifier.add(text)
  return verifier.finish({ torn })
}

function findingsOf(verdict: AuditVerdict): readonly unknown[] {
  return verdict.findings.map(({ kind, seq, line, checkpoint }) => [kind, seq, line ?? `checkpoint ${checkpoint}`])
}

/** Rewrites the file as an attacker can who knows how records are hashed. */
function rehash(texts: readonly string[]): string[] {
  const sealer = createSealer()
  return texts.map((text) => {
    const { seq, prev, hash, ts, input_hash: inputHash, ...entry } = JSON.parse(text)
    return sealer.seal({ ...entry, wallMs: Date.parse(ts) })
  })
}

describe('createVerifier', () => {
  it('finds nothing in an unchanged audit, and returns its checkpoints', () => {
    const { head, ...verdict } = verify(lines)
    assert.deepEqual(verdict, {
      status: 'ok',
      records: COUNT,
      firstSeq: 1,
      lastSeq: COUNT,
      unchainedBefore: undefined,
      checkpoints: { count: 3, lastSeq: COUNT, lastTs: '2026-11-21T10:00:00.000Z' },
      findings: [],
      findingCount: 0,
    })
    assert.equal(head, readLink(lines.at(-1) ?? '')?.hash)
    assert.equal(verify(lines, {}).checkpoints.count, 0)
    assert.equal(verify([], {}).status, 'ok')
  })

  it('takes records that no checkpoint has signed yet', () => {
    const more = seal([...entries, auditEntry(), auditEntry()])
    assert.deepEqual([verify(more).status, verify(more).checkpoints.lastSeq], ['ok', COUNT])
  })

  describe('finds', () => {
    const [, second = '', third = ''] = lines
    const cases: readonly [string, readonly string[], string, readonly unknown[]][] = [
      ['an edit of a value', lines.with(4, (lines[4] ?? '').replace('"c5"', '"c6"')), 'tampered', [['edited', 5, 5]]],
      [
        'an edit of a hash',
        lines.with(4, (lines[4] ?? '').replace(/"hash":"./, '"hash":"x')),
        'tampered',
        [['edited', 5, 5]],
      ],
      ['another spelling', lines.with(1, second.replace(',', ', ')), 'tampered', [['edited', 2, 2]]],
      [
        'an edit of the last record',
        lines.with(29, (lines[29] ?? '').replace('"c30"', '"c31"')),
        'tampered',
        [['edited', 30, 30]],
      ],
      ['a record that was deleted', lines.toSpliced(4, 1), 'gap', [['missing', 5, 5]]],
      ['several that were deleted', lines.toSpliced(4, 12), 'gap', [['missing', 5, 5]]],
      ['a beginning that was deleted', lines.slice(3), 'gap', [['missing', 1, 1]]],
      ['a copy that was inserted', lines.toSpliced(9, 0, second), 'tampered', [['inserted', 2, 10]]],
      ['two records that changed places', lines.with(1, third).with(2, second), 'tampered', [['reordered', 2, 3]]],
      [
        'a line that is no record',
        lines.with(4, 'nonsense'),
        'tampered',
        [
          ['unreadable', undefined, 5],
          ['missing', 5, 6],
        ],
      ],
      ['a tail that was cut off', lines.slice(0, 27), 'gap', [['truncated', 28, 'checkpoint 3']]],
      ['a tail that was cut off at a checkpoint', lines.slice(0, 20), 'gap', [['truncated', 21, 'checkpoint 3']]],
      ['that nothing is left', [], 'gap', [['truncated', 1, 'checkpoint 1']]],
    ]
    for (const [what, texts, status, findings] of cases) {
      it(what, () => {
        const verdict = verify(texts)
        assert.deepEqual([verdict.status, findingsOf(verdict)], [status, findings])
      })
    }

    it('a record that was replaced with its hash, by the next one', () => {
      const other = rehash(lines.with(4, (lines[4] ?? '').replace('"c5"', '"c6"')))[4] ?? ''
      assert.deepEqual(findingsOf(verify(lines.with(4, other), {})), [['broken', 6, 6]])
    })

    it('a record that was inserted with a number of its own, and everything after it renumbered', () => {
      const forged = rehash(lines.toSpliced(14, 0, lines[0] ?? ''))
      assert.equal(verify(forged, {}).status, 'ok', 'a chain alone does not tell')
      assert.deepEqual(findingsOf(verify(forged)), [['rewritten', 11, 'checkpoint 2']])
    })

    it('that everything was rewritten', () => {
      const forged = rehash(lines.map((line) => line.replace('files:', 'mail:')))
      assert.equal(verify(forged, {}).status, 'ok', 'a chain alone does not tell')
      assert.deepEqual(findingsOf(verify(forged)), [['rewritten', 1, 'checkpoint 1']])
    })

    it('that the end was rewritten', () => {
      const forged = [
        ...lines.slice(0, 25),
        ...rehash(lines.with(27, (lines[27] ?? '').replace('"c28"', '"cx"'))).slice(25),
      ]
      assert.deepEqual(findingsOf(verify(forged)), [['rewritten', 21, 'checkpoint 3']])
    })

    it('a checkpoint whose root is not that of its records', () => {
      const [first = assert.fail()] = signed
      const other = { ...first, merkleRoot: GENESIS }
      assert.deepEqual(findingsOf(verify(lines, { signed: [other] })), [['rewritten', 1, 'checkpoint 1']])
    })

    it('hashes that were taken away', () => {
      const bare = (line: string): string => line.replace(/"(?:hash|prev)":"[\da-f]{64}",/g, '')
      assert.deepEqual(findingsOf(verify(lines.with(4, bare(lines[4] ?? '')), {})), [['stripped', 5, 5]])
      assert.deepEqual(findingsOf(verify([...lines.slice(0, 5).map(bare), ...lines.slice(5)], {})), [
        ['stripped', 6, 6],
      ])
      assert.equal(verify(lines.map(bare)).status, 'tampered')
      assert.equal(verify([...lines, ...lines].map(bare)).status, 'tampered')
    })
  })

  it('distinguishes a torn end from tampering', () => {
    assert.deepEqual(findingsOf(verify(lines, { signed }, true)), [['torn', undefined, COUNT + 1]])
    assert.equal(verify(lines, { signed }, true).status, 'torn')
    assert.equal(verify(lines.slice(0, 5), { signed }, true).status, 'gap')
  })

  it('says up to where records of an earlier version have no chain, and takes that for no tampering', () => {
    const old = entries.slice(0, 4).map((entry, i) => JSON.stringify(sealEntry(entry, i + 1)))
    const sealer = createSealer({}, { seq: 4, head: GENESIS })
    const texts = [...old, ...entries.slice(4, 10).map((entry) => sealer.seal(entry))]
    const hashes = texts.slice(4).map((line) => readLink(line)?.hash ?? '')
    const point = { count: 6, seq: 10, headHash: hashes.at(-1) ?? '', merkleRoot: rootOf(hashes), ts: TS }
    const verdict = verify(texts, { signed: [point] })
    assert.deepEqual([verdict.status, verdict.unchainedBefore, verdict.checkpoints.lastSeq], ['ok', 5, 10])
    assert.equal(verify(old, {}).unchainedBefore, 5)
  })

  it('finds every single change of a character', () => {
    const short = lines.slice(0, 3)
    const at = (short[1] ?? '').length
    for (let i = 0; i < at; i++) {
      const text = short[1] ?? ''
      const other = text[i] === '1' ? '2' : '1'
      const verdict = verify(short.with(1, text.slice(0, i) + other + text.slice(i + 1)), {})
      assert.notEqual(verdict.status, 'ok', `at ${i}`)
    }
  })

  it('counts more findings than it keeps', () => {
    const verdict = verify(
      lines.map((line) => line.replace('files:', 'mail:')),
      { maxFindings: 2 },
    )
    assert.deepEqual([verdict.findings.length, verdict.findingCount], [2, COUNT])
  })
})
