import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import {
  createLeaf,
  createMerkleTree,
  createNoteSigner,
  createNoteVerifier,
  newSigningKey,
  type NoteSigner,
  type NoteVerifier,
  type SignedPoint,
} from '@toolgate/core/audit'
import type { CheckpointOptions } from './audit-options.ts'
import { findNewest, formatCheckpoint, type NewestCheckpoint, pointsBackwards } from './checkpoint-lines.ts'
import { checkpointsPath, privateKeyOf, secretAt } from './evidence.ts'
import { linesBackwards } from './lines.ts'
import { extendLog } from './shared-audit/source.ts'
import { createPrivately, isBusy } from './sqlite-file.ts'

/** The records that a checkpoint signs: those since the previous one. */
export type Segment = Omit<SignedPoint, 'prunedSeq' | 'ts'>

interface CheckpointFileOptions extends CheckpointOptions {
  readonly auditPath: string
  readonly nowMs: () => number
}

/** @throws if the file or its key cannot be opened */
export function openCheckpointFile({ auditPath, nowMs, ...options }: CheckpointFileOptions): CheckpointFile {
  const path = checkpointsPath(auditPath, options)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const key = options.key ?? secretAt(privateKeyOf(path), newSigningKey)
  createPrivately(path)
  const fd = openSync(path, 'a+', 0o600)
  try {
    // An audit that was renamed keeps the name of its log, which its keys contain.
    const origin = options.writer ?? findNewest(fd, readVerifiers(path))?.origin ?? toOrigin(basename(auditPath))
    const signer = createNoteSigner(origin, key)
    publish(path, signer)
    return new CheckpointFile({ path, fd, origin, signer, nowMs })
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

const MAX_NAME = 200

/** Returns the name of the log of a file. It has no spaces and no plus sign. */
function toOrigin(name: string): string {
  return encodeURIComponent(name.toWellFormed()).slice(0, MAX_NAME)
}

/** The longest wait for another process's checkpoint, in milliseconds. */
const PATIENCE_MS = 2000
const RETRY_MS = 10
/** The number of lines that are searched for a newer checkpoint than the known one. */
const TRIES = 100

interface CheckpointFileParts {
  readonly path: string
  readonly fd: number
  /** The name of the log. */
  readonly origin: string
  readonly signer: NoteSigner
  readonly nowMs: () => number
}

/**
 * The log of an audit in a file: its leaves and signed notes, as replicas have them. Several processes may append, one
 * at a time.
 */
export class CheckpointFile {
  readonly path: string
  readonly #fd: number
  readonly #origin: string
  readonly #signer: NoteSigner
  readonly #nowMs: () => number
  readonly #lock: DatabaseSync
  /** The newest checkpoint when the file had this many bytes. */
  #read: { readonly bytes: number; readonly newest: NewestCheckpoint | undefined } | undefined

  constructor({ path, fd, origin, signer, nowMs }: CheckpointFileParts) {
    this.path = path
    this.#fd = fd
    this.#origin = origin
    this.#signer = signer
    this.#nowMs = nowMs
    // Node has no file locks; an SQLite transaction holds one.
    createPrivately(`${path}.lock`)
    this.#lock = new DatabaseSync(`${path}.lock`)
  }

  /** Runs `work` while no other process does, so that the last checkpoint stays the last until `work` has appended. */
  async alone(work: () => void): Promise<void> {
    await this.#takeLock()
    try {
      work()
    } finally {
      this.#lock.exec('COMMIT')
    }
  }

  /** Returns what the newest checkpoint with a valid signature says. */
  last(): SignedPoint | undefined {
    return this.#newest()?.point
  }

  /**
   * Signs a segment and makes the checkpoint durable, or throws and writes none. `pruned`: it also signs that records up
   * to this point may be removed.
   */
  append(segment: Segment, pruned?: Omit<SignedPoint, 'ts'>): void {
    this.#checkIsThere()
    this.#cutTorn()
    const before = createMerkleTree(this.#newest()?.tree)
    const ts = new Date(this.#nowMs()).toISOString()
    const leaves = [leafOf('live', segment, ts), ...(pruned === undefined ? [] : [leafOf('pruned', pruned, ts)])]
    const tree = extendLog(before, leaves)
    const note = this.#signer.sign({ origin: this.#origin, size: tree.size, root: tree.root() })
    this.#write(Buffer.from(`${formatCheckpoint({ before, leaves, note })}\n`))
  }

  /**
   * Yields what the checkpoints say about the records, newest first.
   *
   * @throws for an invalid checkpoint
   */
  *pointsBackwards(): Generator<SignedPoint> {
    const isValid = yield* pointsBackwards(this.#fd, this.#keys())
    if (!isValid) throw new Error(`a checkpoint of ${this.path} is not valid: run toolgate audit verify`)
  }

  close(): void {
    closeSync(this.#fd)
    this.#lock.close()
  }

  async #takeLock(): Promise<void> {
    const deadlineMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        return this.#lock.exec('BEGIN EXCLUSIVE')
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadlineMs) throw error
      }
      await delay(RETRY_MS)
    }
  }

  #newest(): NewestCheckpoint | undefined {
    const { size: bytes } = fstatSync(this.#fd)
    const known = this.#read
    if (known?.bytes === bytes) return known.newest
    // Behind a flood of forged lines, the writer continues from the checkpoint that it knows. It never starts a new log.
    const tries = known?.newest === undefined ? Infinity : TRIES
    const newest = findNewest(this.#fd, this.#keys(), tries) ?? known?.newest
    this.#read = { bytes, newest }
    return newest
  }

  /** Returns the current keys: another process may sign with another one. */
  #keys(): readonly NoteVerifier[] {
    return [createNoteVerifier(this.#signer.verifierKey), ...readVerifiers(this.path)]
  }

  /** Checks that the file was not removed or replaced, because lines appended to it would be lost. */
  #checkIsThere(): void {
    const here = statSync(this.path, { throwIfNoEntry: false })
    const { dev, ino } = fstatSync(this.#fd)
    if (here?.dev === dev && here.ino === ino) return
    throw new Error(`the checkpoints ${this.path} were removed or replaced while the audit was open`)
  }

  /** Removes an incomplete line, which a crash may leave, because it would corrupt the next one. */
  #cutTorn(): void {
    const { size } = fstatSync(this.#fd)
    const end = linesBackwards(this.#fd, size).next().value?.end ?? 0
    if (size > end) ftruncateSync(this.#fd, end)
  }

  #write(bytes: Buffer): void {
    const { size } = fstatSync(this.#fd)
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at)
      fdatasyncSync(this.#fd)
    } catch (error) {
      ftruncateSync(this.#fd, size)
      throw error
    }
  }
}

function leafOf(type: 'live' | 'pruned', point: Segment, ts: string): string {
  const { seq, count, headHash: head, merkleRoot: root } = point
  return createLeaf({ type, seq, count, head, root, ts })
}

/** Returns the path of the public keys of checkpoints. */
export function publicKeysOf(checkpoints: string): string {
  return `${checkpoints}.pub`
}

/** Returns the public keys in a text, `name+id+key`, one a line. */
export function keysIn(text: string): readonly string[] {
  return text.split('\n').filter(Boolean)
}

function readKeys(path: string): readonly string[] {
  const file = publicKeysOf(path)
  return existsSync(file) ? keysIn(readFileSync(file, 'utf8')) : []
}

/** @throws for a file with another key than one of notes */
function readVerifiers(path: string): readonly NoteVerifier[] {
  try {
    return readKeys(path).map((key) => createNoteVerifier(key))
  } catch (cause) {
    throw new Error(`${publicKeysOf(path)} has a key that is not "name+id+key"`, { cause })
  }
}

/**
 * Adds the public key to the file beside the checkpoints. Earlier keys stay, because earlier checkpoints need them.
 */
function publish(path: string, { verifierKey }: NoteSigner): void {
  if (readKeys(path).includes(verifierKey)) return
  const file = publicKeysOf(path)
  createPrivately(file, 0o644)
  writeFileSync(file, `${verifierKey}\n`, { flag: 'a' })
}
