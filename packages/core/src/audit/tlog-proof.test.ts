import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { auditEntry } from '../../../testing/src/entries.ts'
import { createSealer } from './chain.ts'
import { createLeaf } from './leaf.ts'
import { consistencyParts, createPartRoots, inclusionPath } from './merkle-proof.ts'
import { createRecordTree, merkleRoot, placeOf, toLeaves } from './merkle.ts'
import { createNoteSigner, createNoteVerifier, newSigningKey } from './note.ts'
import {
  checkGrowthProof,
  checkTlogProof,
  formatGrowthProof,
  formatTlogProof,
  parseGrowthProof,
  parseTlogProof,
  type TlogProof,
} from './tlog-proof.ts'

const signer = createNoteSigner('example.com/audit', newSigningKey())
const keys = [createNoteVerifier(signer.verifierKey)]
const hexOf = (text: string): string => Buffer.from(text).toString('hex')

/**
 * A log with a chain of 40 records at leaf 3, and the proof of one of them. The leaf covers the last `count` records, or
 * all.
 */
function prove(seq: number, count?: number) {
  const sealer = createSealer()
  const tree = createRecordTree()
  const after = 40 - (count ?? 40)
  const hashes: string[] = []
  const records = Array.from({ length: 40 }, (_, i) => {
    const text = sealer.seal(auditEntry({ tool_call_id: `call-${i}` }))
    if (i < after) return text
    hashes.push(sealer.head)
    tree.add(sealer.head)
    return text
  })
  const ts = '2026-11-23T00:00:00.000Z'
  const leaf = createLeaf({
    type: 'live',
    ...(count === undefined ? { replica: 'a', incarnation: '1' } : { count }),
    seq: 40,
    head: sealer.head,
    root: tree.root(),
    ts,
  })
  const leaves = Array.from({ length: 9 }, (_, i) =>
    i === 3 ? leaf : createLeaf({ type: 'signed', by: `replica-${i}`, ts }),
  )
  const entries = leaves.map(hexOf)
  const noteOf = (size: number) =>
    signer.sign({ origin: 'example.com/audit', size, root: merkleRoot(entries.slice(0, size)) })
  const ofChain = toLeaves(hashes)
  const { leaf: at } = placeOf(seq - 1 - after)
  const proof: TlogProof = {
    record: records[seq - 1] ?? '',
    hashes: ofChain[at] ?? '',
    path: inclusionPath(ofChain, at),
    leaf,
    index: 3,
    logPath: inclusionPath(entries, 3),
    note: noteOf(9),
  }
  return { proof, records, entries, leaves, noteOf }
}

describe('a tlog-proof of a record', () => {
  it('is written and read, and proves each record of the chain', () => {
    for (const seq of [1, 16, 17, 39, 40]) {
      const { proof } = prove(seq)
      const text = formatTlogProof(proof)
      assert.deepEqual(parseTlogProof(text), proof)
      assert.equal(checkTlogProof(proof, keys), undefined, `record ${seq}`)
      assert.match(
        text,
        /^c2sp\.org\/tlog-proof@v1\nextra [\w+/=]+\nindex 3\n(?:[\w+/]{43}=\n){4}\nexample\.com\/audit\n9\n/,
      )
    }
  })

  it('proves each record of an audit without replicas, whose leaves cover only the records since the one before', () => {
    for (const count of [40, 39, 17, 16, 15, 1])
      for (let seq = 41 - count; seq <= 40; seq++) {
        const { proof, records } = prove(seq, count)
        assert.deepEqual(parseTlogProof(formatTlogProof(proof)), proof)
        assert.equal(checkTlogProof(proof, keys), undefined, `record ${seq} of ${count}`)
        const before = records[39 - count]
        if (before !== undefined)
          assert.match(checkTlogProof({ ...proof, record: before }, keys) ?? '', /not in the chain/)
      }
  })

  it('names what is not proved', () => {
    const { proof, records, entries, leaves } = prove(20)
    const otherKeys = [createNoteVerifier(createNoteSigner('example.com/audit', newSigningKey()).verifierKey)]
    const edited = proof.record.replace('files:read_file', 'files:list_file')
    assert.notEqual(edited, proof.record)
    const other = (at: number) => ({ leaf: leaves[at] ?? '', index: at, logPath: inclusionPath(entries, at) })
    const wrong: readonly [Partial<TlogProof>, RegExp][] = [
      [{ record: edited }, /record was edited/],
      [{ record: `${proof.record} ` }, /record was edited/],
      [{ record: records[35] ?? '' }, /not in the chain/],
      [{ hashes: proof.hashes.slice(64) }, /not in the chain/],
      [{ path: proof.path.slice(1) }, /not in the chain/],
      [{ index: 4 }, /leaf is not in the signed log/],
      [{ leaf: proof.leaf.replace('"live"', '"left"') }, /leaf is not in the signed log/],
      [{ logPath: proof.logPath.toReversed() }, /leaf is not in the signed log/],
      [other(5), /not that of a chain/],
      [{ note: proof.note.replace('\n9\n', '\n8\n') }, /no trusted key/],
    ]
    for (const [change, problem] of wrong) assert.match(checkTlogProof({ ...proof, ...change }, keys) ?? '', problem)
    assert.match(checkTlogProof(proof, otherKeys) ?? '', /no trusted key/)
    assert.match(checkTlogProof(proof, []) ?? '', /no trusted key/)
  })

  it('is not read from another text', () => {
    const text = formatTlogProof(prove(1).proof)
    for (const other of [
      '',
      text.replace('@v1', '@v2'),
      text.replace('index 3', 'index 03'),
      text.replace('index 3', 'index -3'),
      text.replace(/\nextra .*/, ''),
      text.replace(/\nextra .*/, `\nextra ${Buffer.from('[]').toString('base64')}`),
      text.replace(/(index 3\n)./, '$1'),
    ])
      assert.equal(parseTlogProof(other), undefined, other.slice(0, 60))
  })
})

describe('a proof that a log goes on', () => {
  it('is written and read as the body of add-checkpoint, and names what is not proved', () => {
    const { entries, noteOf } = prove(1)
    for (let oldSize = 0; oldSize <= 9; oldSize++) {
      const roots = createPartRoots(consistencyParts(9, oldSize))
      for (const entry of entries) roots.add(entry)
      const proof = { oldSize, path: roots.roots(), note: noteOf(9) }
      const text = formatGrowthProof(proof)
      assert.match(text, /^old \d\n(?:[\w+/]{43}=\n)*\nexample\.com\/audit\n9\n/)
      assert.deepEqual(parseGrowthProof(text), proof)
      const old = { origin: 'example.com/audit', size: oldSize, root: merkleRoot(entries.slice(0, oldSize)) }
      assert.equal(checkGrowthProof(proof, old, keys), undefined)
      assert.match(checkGrowthProof(proof, { ...old, size: 10 }, keys) ?? '', /not from 10/)
      assert.match(checkGrowthProof(proof, { ...old, origin: 'other' }, keys) ?? '', /another log/)
      assert.match(checkGrowthProof(proof, old, []) ?? '', /no trusted key/)
      assert.match(
        checkGrowthProof(proof, { ...old, root: merkleRoot(['00']) }, keys) ?? '',
        /does not go on from the earlier/,
      )
    }
    for (const other of ['', 'old 01\n\n', 'old -1\n\n', 'new 1\n\n', 'old 1\nAAAA\n\n'])
      assert.equal(parseGrowthProof(other), undefined)
  })
})
