import { type FileHandle, open } from 'node:fs/promises'
import type { NoteVerifier, TreeHead } from '@toolgate/core/audit'
import { createPrivately } from '../../sqlite-file.ts'
import { numberIn, type Row, textIn } from '../../rows.ts'
import { type PostgresDatabase, type Statement, statement } from '../database.ts'

const PAGE = 1000
/** The bytes at the end of the file that contain the last note. */
const TAIL_BYTES = 64 * 1024
const NOTE = /[^\n]+\n\d+\n[\w+/]{43}=\n\n(?:\u2014 [^\n]+\n)+/g

/**
 * Copies the signed notes of the log to a file outside the database. The file is only appended to. Every replica with
 * such a file copies the notes of all replicas.
 */
export class WitnessFile {
  readonly #db: PostgresDatabase
  readonly #verifier: NoteVerifier
  readonly #file: FileHandle
  readonly #notes: Statement
  #last: TreeHead | undefined
  /** Whether a crash has left an incomplete note at the end. */
  #isTorn: boolean
  /** The error after the file was found to have notes of two different logs. Such an error is permanent. */
  #fork: Error | undefined

  private constructor(
    { db, verifier }: { db: PostgresDatabase; verifier: NoteVerifier },
    { file, tail }: { file: FileHandle; tail: string },
  ) {
    this.#db = db
    this.#verifier = verifier
    this.#file = file
    const last = tail.match(NOTE)?.at(-1) ?? ''
    const rest = last === '' ? tail : tail.slice(tail.lastIndexOf(last) + last.length)
    this.#last = verifier.open(last)
    this.#isTorn = rest.trim() !== ''
    this.#notes = statement(`SELECT size, note FROM ${db.schema}.audit_notes WHERE size >= $1 ORDER BY size LIMIT $2`)
  }

  /** Opens the file. @throws an error of the file system if it cannot be written */
  static async open(path: string, from: { db: PostgresDatabase; verifier: NoteVerifier }): Promise<WitnessFile> {
    createPrivately(path)
    const file = await open(path, 'a+', 0o600)
    const { size } = await file.stat()
    const start = Math.max(0, size - TAIL_BYTES)
    const { buffer } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
    return new WitnessFile(from, { file, tail: buffer.toString('utf8') })
  }

  /** Appends the missing notes. @throws if the last note in the file belongs to another log */
  async follow(): Promise<void> {
    for (;;) {
      const rows = await this.#db.query(this.#notes, [this.#last?.size ?? 0, PAGE])
      const [first] = rows
      const last = this.#last
      const isSame = last === undefined || (first !== undefined && this.#headOf(first)?.root === last.root)
      await this.#append(rows.filter((row) => numberIn(row, 'size') > (last?.size ?? 0)))
      if (!isSame)
        this.#fork ??= new Error(
          `the log is not the one that the witness saw at ${last.size} leaves: run toolgate audit verify --witness`,
        )
      if (rows.length < PAGE) break
    }
    if (this.#fork !== undefined) throw this.#fork
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  #headOf(row: Row): TreeHead | undefined {
    const head = this.#verifier.open(textIn(row, 'note'))
    return head?.size === numberIn(row, 'size') ? head : undefined
  }

  async #append(rows: readonly Row[]): Promise<void> {
    const signed = rows.filter((row) => this.#headOf(row) !== undefined)
    const newest = signed.at(-1)
    if (newest !== undefined) {
      const text = signed.map((row) => `${textIn(row, 'note')}\n`).join('')
      await this.#file.appendFile(this.#isTorn ? `\n\n${text}` : text)
      await this.#file.datasync()
      this.#isTorn = false
      this.#last = this.#headOf(newest)
    }
    if (signed.length < rows.length)
      throw new Error('the log has checkpoints that are not signed with its key: run toolgate audit verify')
  }
}
