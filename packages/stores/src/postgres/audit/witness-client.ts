import {
  consistencyParts,
  createMerkleTree,
  createPartRoots,
  formatGrowthProof,
  type NoteVerifier,
  type PartRoots,
  type WitnessVerifier,
} from '@toolgate/core/audit'
import { toHex } from '../../shared-audit/source.ts'
import { numberIn, textIn } from '../../rows.ts'
import { type PostgresDatabase, statement } from '../database.ts'
import { postgresSource } from './source.ts'

interface WitnessClientOptions {
  readonly db: PostgresDatabase
  /** The submission prefix of the witness. */
  readonly url: string
  readonly witness: WitnessVerifier
  readonly verifier: NoteVerifier
}

const ANSWER_MS = 3000
const ANSWER_BYTES = 16 * 1024

/**
 * Submits the newest note to a witness (C2SP `tlog-witness`), with the proof that the log extends the note that the
 * witness last saw. Adds the witness's cosignature to the note.
 */
export class WitnessClient {
  readonly #options: WitnessClientOptions
  readonly #sql: ReturnType<typeof statementsFor>
  /** The log as far as the witness knows it. */
  #known = createMerkleTree()

  constructor(options: WitnessClientOptions) {
    this.#options = options
    this.#sql = statementsFor(options.db.schema)
  }

  /** @throws if the witness does not answer, or does not cosign */
  async submit(): Promise<void> {
    const [row] = await this.#options.db.query(this.#sql.newest, [])
    if (row === undefined) return
    const [note, size] = [textIn(row, 'note'), numberIn(row, 'size')]
    if (this.#options.verifier.open(note)?.size !== size)
      throw new Error('the newest checkpoint is not signed with the key of the log: run toolgate audit verify')
    if (size <= this.#known.size) return
    const size409 = await this.#post(note, size)
    if (size409 === undefined) return
    if (size409 > size) throw new Error(`the log was cut back to ${size} leaves: the witness saw ${size409}`)
    this.#known = createMerkleTree()
    await this.#grow(this.#known, size409)
    if ((await this.#post(note, size)) !== undefined)
      throw new Error('the witness does not take the size that it names')
  }

  /** Posts a note. Returns the size that the witness knows, if it differs from `size`. */
  async #post(note: string, size: number): Promise<number | undefined> {
    const known = this.#known
    const roots = createPartRoots(consistencyParts(size, known.size), known)
    const grown = createMerkleTree(known)
    await this.#grow(grown, size, roots)
    const body = formatGrowthProof({ oldSize: known.size, path: roots.roots(), note })
    const { url, witness, db } = this.#options
    const response = await fetch(`${url.replace(/\/$/, '')}/add-checkpoint`, {
      method: 'POST',
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    const text = await readText(response)
    if (response.status === 409 && /^\d{1,15}\n$/.test(text) && Number(text) !== known.size) return Number(text)
    if (response.status !== 200)
      throw new Error(
        `the witness refuses the checkpoint of ${size} leaves, with ${response.status}: ${REFUSALS.get(response.status) ?? 'see its log'}`,
      )
    const cosignature = witness.cosignatureOf(note + text)
    if (cosignature === undefined) throw new Error('the answer of the witness is not signed with its key')
    await db.query(this.#sql.cosign, [size, `${cosignature}\n`])
    this.#known = grown
    return undefined
  }

  /** Adds the missing leaves to a tree. */
  async #grow(tree: ReturnType<typeof createMerkleTree>, size: number, roots?: PartRoots): Promise<void> {
    for await (const page of postgresSource(this.#options.db).leaves(tree.size, size))
      for (const { leaf } of page) {
        tree.add(toHex(leaf))
        roots?.add(toHex(leaf))
      }
  }
}

const REFUSALS: ReadonlyMap<number, string> = new Map([
  [403, 'it does not trust the key of the log'],
  [404, 'it does not know the log'],
  [409, 'it saw another log of that size'],
  [422, 'the log does not go on from what it saw'],
])

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > ANSWER_BYTES) throw new Error('the answer of the witness is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function statementsFor(schema: string) {
  const notes = `${schema}.audit_notes`
  return {
    newest: statement(`SELECT size, note FROM ${notes} ORDER BY size DESC LIMIT 1`),
    cosign: statement(`UPDATE ${notes} SET note = note || $2 WHERE size = $1 AND strpos(note, $2) = 0`),
  }
}
