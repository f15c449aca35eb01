import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createMerkleTree, EMPTY_ROOT, merkleRoot } from './merkle.ts'
import {
  consistencyParts,
  createPartRoots,
  inclusionParts,
  inclusionPath,
  type MerklePath,
  type TreePart,
  verifyConsistency,
  verifyInclusion,
} from './merkle-proof.ts'

/** The entries that the reference implementation of RFC 6962 is tested with, and nodes of their tree. */
const ENTRIES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f']
const NODE = {
  leaf0: '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  leaf1: '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
  leaf4: 'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
  at0to2: 'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  at2to4: '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
  at4to6: '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
  at6to8: 'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
  at0to4: 'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  at4to8: '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
}

const sha = (...parts: readonly Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest()
const entryOf = (i: number): string => sha(Buffer.from(String(i))).toString('hex')
const entries = (count: number): string[] => Array.from({ length: count }, (_, i) => entryOf(i))
const flipped = (hash: string): string => (hash.startsWith('0') ? '1' : '0') + hash.slice(1)

/** Computes roots in one pass over entries, the first of which are given as a tree to go on with. */
function rootsOf(all: readonly string[], parts: readonly TreePart[], known = 0): MerklePath {
  const start = createMerkleTree()
  for (const entry of all.slice(0, known)) start.add(entry)
  const roots = createPartRoots(parts, start)
  for (const entry of all.slice(known)) roots.add(entry)
  return roots.roots()
}

describe('inclusionPath and verifyInclusion', () => {
  it('return the paths of the test vectors of RFC 6962', () => {
    const { leaf0, leaf1, leaf4, at0to2, at2to4, at4to8, at6to8, at0to4 } = NODE
    assert.deepEqual(inclusionPath(ENTRIES.slice(0, 1), 0), [])
    assert.deepEqual(inclusionPath(ENTRIES, 0), [leaf1, at2to4, at4to8])
    assert.deepEqual(inclusionPath(ENTRIES, 5), [leaf4, at6to8, at0to4])
    assert.deepEqual(inclusionPath(ENTRIES.slice(0, 3), 2), [at0to2])
    assert.deepEqual(inclusionPath(ENTRIES.slice(0, 5), 1), [leaf0, at2to4, leaf4])
  })

  it('prove every leaf of every tree, and nothing else', () => {
    for (let size = 1; size <= 33; size++) {
      const all = entries(size)
      const root = merkleRoot(all)
      for (let index = 0; index < size; index++) {
        const path = inclusionPath(all, index)
        const proof = { entry: entryOf(index), index, size, path, root }
        assert.equal(verifyInclusion(proof), true, `${index} of ${size}`)
        const wrong = [
          { ...proof, entry: entryOf(size) },
          { ...proof, index: index + 1 },
          { ...proof, index: -1 },
          { ...proof, index: 0.5 },
          { ...proof, root: entryOf(0) },
          { ...proof, path: [...path, entryOf(1)] },
          { ...proof, path: path.slice(1).length < path.length ? path.slice(1) : [entryOf(2)] },
          { ...proof, path: path.map((step) => step.toUpperCase()).concat('x') },
        ]
        for (const [i, one] of wrong.entries()) assert.equal(verifyInclusion(one), false, `${i}: ${index} of ${size}`)
      }
    }
  })

  it('refuses a leaf that is not in the tree', () => {
    for (const index of [-1, 3, 0.5, Number.NaN]) assert.throws(() => inclusionPath(entries(3), index), RangeError)
  })
})

describe('consistencyParts, createPartRoots and verifyConsistency', () => {
  it('return the paths of the test vectors of RFC 6962', () => {
    const { leaf1, leaf4, at2to4, at4to6, at4to8, at6to8, at0to4 } = NODE
    assert.deepEqual(rootsOf(ENTRIES.slice(0, 1), consistencyParts(1, 1)), [])
    assert.deepEqual(rootsOf(ENTRIES, consistencyParts(8, 1)), [leaf1, at2to4, at4to8])
    assert.deepEqual(rootsOf(ENTRIES, consistencyParts(8, 6)), [at4to6, at6to8, at0to4])
    assert.deepEqual(rootsOf(ENTRIES.slice(0, 5), consistencyParts(5, 2)), [at2to4, leaf4])
  })

  it('prove every earlier tree, as the definition does, and nothing else', () => {
    for (let size = 0; size <= 33; size++) {
      const all = entries(size)
      const root = merkleRoot(all)
      for (let oldSize = 0; oldSize <= size; oldSize++) {
        const path = rootsOf(all, consistencyParts(size, oldSize))
        if (oldSize > 0) assert.deepEqual(path, naiveProof(oldSize, all), `${oldSize} of ${size}`)
        const proof = { oldSize, oldRoot: merkleRoot(all.slice(0, oldSize)), size, root, path }
        assert.equal(verifyConsistency(proof), true, `${oldSize} of ${size}`)
        const wrong = [
          { ...proof, oldRoot: flipped(proof.oldRoot) },
          { ...proof, root: flipped(root) },
          { ...proof, oldSize: oldSize + 0.5 },
          { ...proof, oldSize: -1 },
          { ...proof, size: oldSize - 1 },
          { ...proof, path: [...path, EMPTY_ROOT] },
          { ...proof, path: [...path, 'x'] },
          ...path.map((_, i) => ({ ...proof, path: path.filter((_step, at) => at !== i) })),
          ...path.map((_, i) => ({ ...proof, path: path.map((step, at) => (at === i ? flipped(step) : step)) })),
        ].filter((one) => one.oldSize !== 0 || one.root === root)
        for (const [i, one] of wrong.entries())
          assert.equal(verifyConsistency(one), false, `${i}: ${oldSize} of ${size}`)
      }
    }
  })

  it('refuses a tree that does not go on from the earlier one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.nat(199), fc.nat(199), (size, oldAt, forgedAt) => {
        const oldSize = 1 + (oldAt % size)
        const at = forgedAt % oldSize
        const all = entries(size)
        const forged = all.map((entry, i) => (i === at ? entryOf(-1) : entry))
        const path = rootsOf(forged, consistencyParts(size, oldSize))
        const oldRoot = merkleRoot(all.slice(0, oldSize))
        assert.equal(verifyConsistency({ oldSize, oldRoot, size, root: merkleRoot(forged), path }), false)
      }),
    )
  })

  it('needs no leaf before an earlier tree, unless a part begins within one of its subtrees', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 150 }), fc.nat(150), fc.nat(150), (size, knownAt, at) => {
        const all = entries(size)
        const known = knownAt % (size + 1)
        const oldSize = known + (at % (size - known + 1))
        const parts = [consistencyParts(size, oldSize)]
        if (oldSize < size) parts.push(inclusionParts(size, oldSize))
        for (const one of parts)
          assert.deepEqual(
            rootsOf(all, one, known),
            one.map(({ from, to }) => merkleRoot(all.slice(from, to))),
          )
      }),
    )
    assert.throws(() => createPartRoots([{ from: 2, to: 4 }], grown(4)), /leaves 2 to 3 are needed/)
    assert.throws(() => createPartRoots([{ from: 1, to: 8 }], grown(5)), RangeError)
  })

  it('refuses a size that no earlier tree had', () => {
    for (const oldSize of [-1, 4, 0.5, Number.NaN]) assert.throws(() => consistencyParts(3, oldSize), RangeError)
  })
})

function grown(size: number) {
  const tree = createMerkleTree()
  for (const entry of entries(size)) tree.add(entry)
  return tree
}

/** PROOF and SUBPROOF of RFC 6962 §2.1.2, word for word. */
function naiveProof(m: number, all: readonly string[]): readonly string[] {
  const mth = (list: readonly string[]): Buffer => {
    if (list.length === 1) return sha(Buffer.of(0), Buffer.from(list[0] as string, 'hex'))
    const k = splitOf(list.length)
    return sha(Buffer.of(1), mth(list.slice(0, k)), mth(list.slice(k)))
  }
  const subproof = (old: number, list: readonly string[], isWhole: boolean): readonly Buffer[] => {
    if (old === list.length) return isWhole ? [] : [mth(list)]
    const k = splitOf(list.length)
    return old <= k
      ? [...subproof(old, list.slice(0, k), isWhole), mth(list.slice(k))]
      : [...subproof(old - k, list.slice(k), false), mth(list.slice(0, k))]
  }
  return subproof(m, all, true).map((node) => node.toString('hex'))
}

function splitOf(n: number): number {
  let k = 1
  while (k * 2 < n) k *= 2
  return k
}
