import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { describe, it } from 'node:test'
import { createMerkleTree, merkleRoot } from './merkle.ts'
import { createNoteSigner, createNoteVerifier, createWitnessVerifier, newSigningKey } from './note.ts'

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

describe('createWitnessVerifier', () => {
  const NAME = 'witness.example/w1'
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
  const idOf = (algorithm: number) =>
    createHash('sha256').update(`${NAME}\n`).update(Buffer.of(algorithm)).update(raw).digest().subarray(0, 4)
  const keyOf = (algorithm: number) =>
    `${NAME}+${idOf(algorithm).toString('hex')}+${Buffer.concat([Buffer.of(algorithm), raw]).toString('base64')}`
  const note = createNoteSigner('example.com/audit', newSigningKey()).sign(HEAD)
  const text = note.slice(0, note.lastIndexOf('\n\n') + 1)
  /** A cosignature as the specification describes it. */
  const cosign = (seconds: bigint, message = `cosignature/v1\ntime ${seconds}\n${text}`): string => {
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(seconds)
    const signature = sign(null, Buffer.from(message), privateKey)
    return `\u2014 ${NAME} ${Buffer.concat([idOf(4), time, signature]).toString('base64')}`
  }

  it('returns the line with which the witness has cosigned a note', () => {
    const verifier = createWitnessVerifier(keyOf(4))
    const line = cosign(1_763_880_000n)
    assert.equal(verifier.cosignatureOf(`${note}${line}\n`), line)
    for (const other of [
      note,
      `${note.replace('\n7\n', '\n8\n')}${line}\n`,
      `${note}${cosign(1n, text)}\n`,
      `${note}${cosign(1n, `cosignature/v1\ntime 2\n${text}`)}\n`,
      `${note}\u2014 ${NAME} ${idOf(4).toString('base64')}\n`,
    ])
      assert.equal(verifier.cosignatureOf(other), undefined)
  })

  it('is another kind of key than that of a note', () => {
    assert.throws(() => createWitnessVerifier(keyOf(1)), /for cosignatures/)
    assert.throws(() => createNoteVerifier(keyOf(4)), /for notes/)
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
