import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newSigningKey } from './checkpoint.ts'
import { createMerkleTree, merkleRoot } from './merkle.ts'
import { createNoteSigner, createNoteVerifier } from './note.ts'

const HEAD = { origin: 'example.com/audit', size: 7, root: 'ab'.repeat(32) }

describe('createNoteSigner', () => {
  const signer = createNoteSigner('example.com/audit', newSigningKey())
  const verifier = createNoteVerifier(signer.verifierKey)

  it('signs a tree head that its verifier opens', () => {
    assert.deepEqual(verifier.open(signer.sign(HEAD)), HEAD)
  })

  it('is not opened after any line was changed, and by no other key', () => {
    const note = signer.sign(HEAD)
    for (const changed of [
      note.replace('\n7\n', '\n8\n'),
      note.replace('example.com/audit\n', 'example.com/other\n'),
      note.replace('\n\n', '\nmore\n\n'),
      note.slice(0, -8),
      note.replace('\u2014', '-'),
      '',
    ])
      assert.equal(verifier.open(changed), undefined, changed)
    const other = createNoteVerifier(createNoteSigner('example.com/audit', newSigningKey()).verifierKey)
    assert.equal(other.open(note), undefined)
  })

  it('refuses a name that notes cannot have, and a key of another kind', () => {
    assert.throws(() => createNoteSigner('a b', newSigningKey()), /no spaces/)
    assert.throws(() => createNoteSigner('a', 'no key'), /not a private key/)
    for (const key of ['', 'a+b+c', signer.verifierKey.replace('example', 'other')])
      assert.throws(() => createNoteVerifier(key), /not "name\+id\+key"/)
  })
})

describe('createMerkleTree', () => {
  it('goes on from the frontier of an earlier one', () => {
    const entries = Array.from({ length: 70 }, (_, i) => i.toString(16).padStart(4, '0'))
    for (let size = 0; size <= entries.length; size++) {
      const earlier = createMerkleTree()
      for (const entry of entries.slice(0, size)) earlier.add(entry)
      const tree = createMerkleTree(earlier)
      for (const entry of entries.slice(size)) tree.add(entry)
      assert.equal(tree.root(), merkleRoot(entries))
    }
  })
})
