import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AuditEntry } from '../ports/ports.ts'
import { auditEntry } from '../../../testing/src/entries.ts'
import { createSealer, GENESIS, readLink } from './chain.ts'
import {
  checkProof,
  FIRST_CHECKPOINT,
  hashCheckpoint,
  newSigningKey,
  parseCheckpoint,
  parseSigningKey,
  parseVerifyingKey,
  proveRecord,
  signCheckpoint,
  type SigningKey,
} from './checkpoint.ts'
import { createRecordTree } from './merkle.ts'
import { sealEntry } from './record.ts'
import type { AuditVerdict } from './verdict.ts'
import { createVerifier, type VerifyOptions } from './verify.ts'

const key = parseSigningKey(newSigningKey())
const keys = [parseVerifyingKey(key.publicKey)]
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

/** A checkpoint after each ten records. */
function checkpointsOf(records: readonly string[], by: SigningKey = key): string[] {
  const checkpoints: string[] = []
  let prevCheckpoint = FIRST_CHECKPOINT
  for (let seq = EVERY; seq <= records.length; seq += EVERY) {
    const hashes = records.slice(seq - EVERY, seq).map((line) => readLink(line)?.hash ?? '')
    const headHash = hashes.at(-1) ?? ''
    const ts = '2026-11-21T10:00:00.000Z'
    const unsigned = { count: EVERY, epoch: 1, headHash, merkleRoot: rootOf(hashes), prevCheckpoint, seq, ts }
    const line = signCheckpoint({ ...unsigned, writer: 'audit' }, by)
    checkpoints.push(line)
    prevCheckpoint = hashCheckpoint(line)
  }
  return checkpoints
}

const checkpoints = checkpointsOf(lines)

function verify(texts: readonly string[], options: VerifyOptions = { checkpoints, keys }, torn = false): AuditVerdict {
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

    it('checkpoints that were signed with another key', () => {
      const forger = parseSigningKey(newSigningKey())
      const forged = rehash(lines.map((line) => line.replace('files:', 'mail:')))
      const verdict = verify(forged, { checkpoints: checkpointsOf(forged, forger), keys })
      assert.deepEqual([verdict.status, verdict.checkpoints.count], ['tampered', 0])
      assert.match(
        verdict.findings[0]?.text ?? '',
        /Checkpoint 1 is signed with the key [\da-f]{16}, which is not trusted/,
      )
    })

    it('a checkpoint that was edited, left out or is invalid', () => {
      const edited = checkpoints.with(1, (checkpoints[1] ?? '').replace('"epoch":1', '"epoch":2'))
      const both = [
        [2, 'has a signature that does not hold'],
        [3, 'does not go on from the one before it'],
      ]
      const told = (altered: string[]): unknown[] =>
        verify(lines, { checkpoints: altered, keys }).findings.map(({ kind, checkpoint, text }) => {
          assert.equal(kind, 'forged')
          return [checkpoint, text.replace(/^Checkpoint \d+ (.*)\.$/, '$1')]
        })
      assert.deepEqual(told(edited), both)
      assert.deepEqual(told(checkpoints.toSpliced(1, 1)), [[2, 'does not go on from the one before it']])
      assert.deepEqual(told(checkpoints.with(2, '{}')), [[3, 'is not a checkpoint in canonical form']])
      assert.deepEqual(told([` ${checkpoints[0]}`])[0], [1, 'is not a checkpoint in canonical form'])
    })

    it('a checkpoint whose root is not that of its records', () => {
      const { sig, keyId, ...first } = parseCheckpoint(checkpoints[0] ?? '') ?? assert.fail()
      const other = signCheckpoint({ ...first, merkleRoot: GENESIS }, key)
      assert.deepEqual(findingsOf(verify(lines, { checkpoints: [other], keys })), [['rewritten', 1, 'checkpoint 1']])
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
    assert.deepEqual(findingsOf(verify(lines, { checkpoints, keys }, true)), [['torn', undefined, COUNT + 1]])
    assert.equal(verify(lines, { checkpoints, keys }, true).status, 'torn')
    assert.equal(verify(lines.slice(0, 5), { checkpoints, keys }, true).status, 'gap')
  })

  it('says up to where records of an earlier version have no chain, and takes that for no tampering', () => {
    const old = entries.slice(0, 4).map((entry, i) => JSON.stringify(sealEntry(entry, i + 1)))
    const sealer = createSealer({}, { seq: 4, head: GENESIS })
    const texts = [...old, ...entries.slice(4, 10).map((entry) => sealer.seal(entry))]
    const hashes = texts.slice(4).map((line) => readLink(line)?.hash ?? '')
    const headHash = hashes.at(-1) ?? ''
    const unsigned = { count: 6, epoch: 5, headHash, merkleRoot: rootOf(hashes), prevCheckpoint: FIRST_CHECKPOINT }
    const line = signCheckpoint({ ...unsigned, seq: 10, ts: '', writer: '' }, key)
    const verdict = verify(texts, { checkpoints: [line], keys })
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

describe('proveRecord and checkProof', () => {
  const hashes = lines.slice(10, 20).map((line) => readLink(line)?.hash ?? '')

  it('prove that one record was there, without showing another', () => {
    for (let i = 10; i < 20; i++) {
      const proof = proveRecord(lines[i] ?? '', checkpoints[1] ?? '', hashes)
      assert.equal(checkProof(proof, keys), undefined)
    }
  })

  it('prove every record of a checkpoint of any size', () => {
    for (const count of [1, 15, 16, 17, 100]) {
      const records = seal(Array.from({ length: count }, (_, i) => auditEntry({ tool_call_id: `c${i}` })))
      const all = records.map((line) => readLink(line)?.hash ?? '')
      const unsigned = { count, epoch: 1, headHash: all.at(-1) ?? '', merkleRoot: rootOf(all), seq: count, ts: '' }
      const line = signCheckpoint({ ...unsigned, prevCheckpoint: FIRST_CHECKPOINT, writer: '' }, key)
      for (const record of records) assert.equal(checkProof(proveRecord(record, line, all), keys), undefined)
    }
  })

  it('prove nothing else', () => {
    const proof = proveRecord(lines[12] ?? '', checkpoints[1] ?? '', hashes)
    const forger = parseSigningKey(newSigningKey())
    const wrong: readonly [object, RegExp][] = [
      [{ record: proof.record.replace('"c13"', '"c14"') }, /was edited/],
      [{ record: lines[13] }, /another number/],
      [{ leaf: proof.leaf.replace(/^./, 'x') }, /not in the tree/],
      [{ path: [GENESIS] }, /not in the tree/],
      [{ checkpoint: checkpoints[0] }, /another number/],
      [{ checkpoint: checkpointsOf(lines, forger)[1] }, /no trusted key/],
      [{ checkpoint: '{}' }, /cannot be read/],
    ]
    for (const [change, problem] of wrong) assert.match(checkProof({ ...proof, ...change }, keys) ?? '', problem)
  })
})

describe('parseSigningKey', () => {
  it('refuses other keys than Ed25519', () => {
    assert.throws(() => parseSigningKey('nonsense'), /not a private key in PEM/)
    assert.throws(() => parseVerifyingKey('nonsense'), /not a public key in PEM/)
  })
})
