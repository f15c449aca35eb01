import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { createMerkleTree, createRecordTree, EMPTY_ROOT, merkleRoot } from './merkle.ts'

/** The entries and roots that the reference implementation of RFC 6962 is tested with. */
const ENTRIES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f']
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]

const entryOf = (i: number): string => createHash('sha256').update(String(i)).digest('hex')
const entries = (count: number): string[] => Array.from({ length: count }, (_, i) => entryOf(i))

describe('merkleRoot', () => {
  it('returns the roots of the test vectors of RFC 6962', () => {
    for (const [count, root] of ROOTS.entries()) assert.equal(merkleRoot(ENTRIES.slice(0, count)), root)
    assert.equal(merkleRoot([]), EMPTY_ROOT)
  })

  it('returns the root of the definition, for any number of entries', () => {
    for (let count = 1; count <= 70; count++) assert.equal(merkleRoot(entries(count)), naiveRoot(entries(count)))
  })
})

describe('createMerkleTree', () => {
  it('returns its root at any time, and continues', () => {
    const tree = createMerkleTree()
    for (const [i, entry] of ENTRIES.entries()) {
      assert.deepEqual([tree.size, tree.root(), tree.root(entry)], [i, ROOTS[i], ROOTS[i + 1]])
      tree.add(entry)
    }
    assert.equal(tree.root(), ROOTS[8])
  })
})

describe('createRecordTree', () => {
  it('goes on from a state that was kept as JSON', () => {
    for (let cut = 0; cut <= 50; cut++) {
      const [whole, begun] = [createRecordTree(), createRecordTree()]
      for (const entry of entries(70)) whole.add(entry)
      for (const entry of entries(cut)) begun.add(entry)
      const rest = createRecordTree(JSON.parse(JSON.stringify(begun.state)) as typeof begun.state)
      for (const entry of entries(70).slice(cut)) rest.add(entry)
      assert.deepEqual([rest.root(), rest.size], [whole.root(), 70], `after ${cut}`)
    }
  })
})

/** MTH of RFC 6962 §2.1, word for word. */
function naiveRoot(all: readonly string[]): string {
  const sha = (...parts: Uint8Array[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest()
  const mth = (list: readonly string[]): Buffer => {
    if (list.length === 0) return sha()
    if (list.length === 1) return sha(Buffer.of(0), Buffer.from(list[0] as string, 'hex'))
    let k = 1
    while (k * 2 < list.length) k *= 2
    return sha(Buffer.of(1), mth(list.slice(0, k)), mth(list.slice(k)))
  }
  return mth(all).toString('hex')
}
