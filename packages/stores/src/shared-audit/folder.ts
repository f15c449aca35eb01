import { once } from 'node:events'
import { createWriteStream, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { finished } from 'node:stream/promises'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError, ToolgateError } from '@toolgate/core'
import { type AuditRecord, parseTreeHead, readLink } from '@toolgate/core/audit'
import { errnoOf, messageOf } from '@toolgate/values'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { parseRecord } from '@toolgate/core/internal'
import { boxesAt, createBoxes, type StoredInputBoxes, openBoxes } from '../input-boxes.ts'
import { linesOf, readNotes } from './note-file.ts'
import {
  type FoundRecord,
  hasInput,
  isPrunedAfter,
  type KeptChain,
  type KeptLog,
  type KeptRecord,
  type AuditSource,
} from './source.ts'

/**
 * The files of an exported audit. `log` is written last, so an export without it is incomplete. Sealed inputs are
 * beside the records of their chain, as in an audit in JSON lines.
 */
const FILES = { log: 'log.json', notes: 'notes.txt', leaves: 'leaves.jsonl', chains: 'chains.jsonl' } as const
const PAGE = 2000
/** The maximum number of tries of an export. Retention interrupts it at most once an hour. */
const TRIES = 3

function fileOf(chain: number): string {
  return `chain-${chain}.jsonl`
}

/**
 * Writes an audit to a new folder: a file of unchanged records for each chain, its inputs, still sealed, and the log
 * with its notes.
 *
 * @throws {ConfigError} if the folder is not empty
 * @throws {ToolgateError} `audit_invalid` if retention keeps removing records meanwhile
 */
export async function exportSharedAudit(source: AuditSource, folder: string): Promise<Exported> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (readdirSync(folder).length > 0) throw new ConfigError('', `the folder ${folder} is not empty`)
  for (let left = TRIES; left > 0; left--) {
    const exported = await writeExport(source, folder)
    if (exported !== undefined) return exported
    // Removed records would count as missing, so the export starts again.
    for (const name of readdirSync(folder)) rmSync(path.join(folder, name))
  }
  throw new ToolgateError('audit_invalid', 'Retention removes records of the audit. Export it again in a few minutes.')
}

/** The number of records and sealed inputs in an export. */
interface Exported {
  readonly records: number
  readonly inputs: number
}

/** Returns the counts of the export, or `undefined` if retention removed records meanwhile. */
async function writeExport(source: AuditSource, folder: string): Promise<Exported | undefined> {
  const at = (name: string): string => path.join(folder, name)
  const exportedMs = await source.nowMs()
  const log = await source.readLog()
  const removed = await source.inputsRemoved()
  let newest = 0
  await writeAll(at(FILES.notes), source.notes(), ({ size, note }) => {
    newest = size
    return `${note}\n`
  })
  await writeAll(at(FILES.leaves), source.leaves(0, newest), ({ leaf }) => `${leaf}\n`)
  const chains = await source.chains()
  await writeAll(at(FILES.chains), [chains], (chain) => `${JSON.stringify(chain)}\n`)
  let [records, inputs] = [0, 0]
  for (const chain of chains) {
    const copy = new InputsCopy(source, chain, at(fileOf(chain.id)))
    records += await writeAll(at(fileOf(chain.id)), copy.of(source.records(chain)), ({ text }) => `${text}\n`)
    inputs += copy.count
  }
  if (await isPrunedAfter(source, newest)) return undefined
  if (!isDeepStrictEqual(await source.inputsRemoved(), removed)) return undefined
  writeFileSync(at(FILES.log), `${JSON.stringify({ ...log, exportedMs })}\n`, { mode: 0o600, flag: 'wx', flush: true })
  return { records, inputs }
}

/** The maximum number of inputs in memory at once. One may have megabytes. */
const INPUTS = 50

/** Copies the sealed inputs of a chain's records beside their file. */
class InputsCopy {
  /** The number of copied inputs. */
  count = 0
  readonly #source: AuditSource
  readonly #chain: KeptChain
  readonly #file: string
  #boxes: StoredInputBoxes | undefined

  constructor(source: AuditSource, chain: KeptChain, file: string) {
    this.#source = source
    this.#chain = chain
    this.#file = file
  }

  /** Yields the pages of records. The inputs of a page are copied before the page is yielded. */
  async *of(pages: AsyncIterable<readonly KeptRecord[]>): AsyncGenerator<readonly KeptRecord[]> {
    try {
      for await (const page of pages) {
        const records = page.flatMap(({ text }) => (hasInput(text) ? (parseRecord(text) ?? []) : []))
        for (let i = 0; i < records.length; i += INPUTS) await this.#copy(records.slice(i, i + INPUTS))
        yield page
      }
    } finally {
      this.#boxes?.close()
    }
  }

  async #copy(records: readonly AuditRecord[]): Promise<void> {
    const boxes = (this.#boxes ??= createBoxes(this.#file))
    const found = await this.#source.boxes(
      this.#chain,
      records.map(({ seq }) => seq),
    )
    boxes.inTransaction(() => {
      for (const { seq, ts } of records) {
        const box = found.get(seq)
        if (box === undefined) continue
        boxes.putBox(seq, Date.parse(ts) || 0, box)
        this.count++
      }
    })
  }
}

/** Returns the number of written items. */
async function writeAll<T>(
  file: string,
  pages: AsyncIterable<readonly T[]> | Iterable<readonly T[]>,
  toText: (item: T) => string,
): Promise<number> {
  const out = createWriteStream(file, { mode: 0o600, flags: 'wx', flush: true })
  const written = finished(out)
  // The stream may fail, such as on a full disk, while a page is read.
  written.catch(() => undefined)
  let count = 0
  for await (const page of pages) {
    count += page.length
    if (!out.write(page.map(toText).join(''))) await once(out, 'drain')
  }
  out.end()
  await written
  return count
}

/**
 * Returns an exported audit, to verify it or to prove records without a database.
 *
 * @throws {ToolgateError} `audit_invalid` for a folder without a complete export
 */
export function openExportedAudit(folder: string): AuditSource {
  const at = (name: string): string => path.join(folder, name)
  const { exportedMs, ...log } = readLog(at(FILES.log), folder)
  const records = (chain: KeptChain) => pagesOf(maybeLines(at(fileOf(chain.id))), (text) => ({ text }))

  async function chains(): Promise<readonly KeptChain[]> {
    const pages = await Array.fromAsync(pagesOf(maybeLines(at(FILES.chains)), (line) => toChain(line, folder)))
    return pages.flat()
  }

  return {
    records,
    chains,
    async boxes(chain, seqs) {
      const kept = openBoxes(at(fileOf(chain.id)), { mayWrite: false, make: false })
      try {
        return boxesAt(kept, seqs)
      } finally {
        kept?.close()
      }
    },
    async inputsRemoved() {
      const found: string[] = []
      for (const { id } of await chains())
        for await (const line of maybeLines(at(fileOf(id))))
          if (line.includes('"event":"inputs_pruned"')) found.push(line)
      return found
    },
    readLog: async () => log,
    notes: () => pagesOf(readNotes(at(FILES.notes)), (note) => ({ note, size: parseTreeHead(note)?.size ?? -1 })),
    async *leaves(from, to) {
      let index = 0
      for await (const page of pagesOf(maybeLines(at(FILES.leaves)), (leaf) => ({ leaf, index: index++ })))
        yield page.filter((leaf) => leaf.index >= from && leaf.index < to)
    },
    async *hashes(chain, after, upTo) {
      for await (const page of records(chain))
        yield page.flatMap(({ text }) => {
          const link = readLink(text)
          return link !== undefined && link.seq > after && link.seq <= upTo ? [link.hash] : []
        })
    },
    async find(sought) {
      if (!('call' in sought))
        throw new ConfigError('', 'an exported audit does not have the order of all records: name a call')
      const needle = `"tool_call_id":${JSON.stringify(sought.call)}`
      const found: FoundRecord[] = []
      for (const chain of await chains())
        for await (const page of records(chain))
          for (const { text } of page) if (text.includes(needle)) found.push({ chain, text })
      return found
    },
    nowMs: async () => exportedMs,
  }
}

async function* pagesOf<In, Out>(items: AsyncIterable<In>, toItem: (item: In) => Out): AsyncGenerator<readonly Out[]> {
  let page: Out[] = []
  for await (const item of items) {
    page.push(toItem(item))
    if (page.length < PAGE) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

/** Yields the lines of a file, or none if the file was removed: the log shows that records are missing. */
async function* maybeLines(file: string): AsyncGenerator<string> {
  try {
    yield* linesOf(file)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
}

function readLog(file: string, folder: string): KeptLog & { readonly exportedMs: number } {
  let value: unknown
  try {
    value = readOwnJson(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new ToolgateError('audit_invalid', `The folder ${folder} has no whole exported audit: ${messageOf(cause)}.`, {
      cause,
    })
  }
  if (isObject(value)) {
    const { size, verifiers, exportedMs } = value
    const areTexts = Array.isArray(verifiers) && verifiers.every((key) => typeof key === 'string')
    if (typeof size === 'number' && typeof exportedMs === 'number' && areTexts) return { size, verifiers, exportedMs }
  }
  throw new ToolgateError('audit_invalid', `The file ${file} is not that of an exported audit.`)
}

function toChain(line: string, folder: string): KeptChain {
  const value = parse(line)
  if (isObject(value)) {
    const { id, replica, incarnation, seq, onDisk, prunedSeq } = value
    const isNumbered = Number.isSafeInteger(id) && typeof id === 'number' && typeof seq === 'number'
    if (isNumbered && typeof replica === 'string' && typeof incarnation === 'string')
      return {
        id,
        replica,
        incarnation,
        seq,
        ...(typeof onDisk === 'number' && { onDisk }),
        ...(typeof prunedSeq === 'number' && { prunedSeq }),
      }
  }
  throw new ToolgateError('audit_invalid', `A line of ${path.join(folder, FILES.chains)} does not name a chain.`)
}

function parse(line: string): unknown {
  try {
    return readOwnJson(line)
  } catch {
    return undefined
  }
}
