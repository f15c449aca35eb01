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
  type Checkpoint,
  FIRST_CHECKPOINT,
  hashCheckpoint,
  newSigningKey,
  parseCheckpoint,
  parseSigningKey,
  parseVerifyingKey,
  readSeq,
  signCheckpoint,
  type SigningKey,
  type VerifyingKey,
} from '@toolgate/core/audit'
import { isSigned } from '@toolgate/core/internal'
import type { CheckpointOptions } from './audit-options.ts'
import { linesBackwards, linesForwards } from './lines.ts'
import { checkpointsPath, privateKeyOf, secretAt } from './evidence.ts'
import { createPrivately, isBusy } from './sqlite-file.ts'

/** The records that a checkpoint signs: those since the previous one. */
export type Segment = Pick<Checkpoint, 'count' | 'epoch' | 'headHash' | 'merkleRoot' | 'seq'>

/** A file of JSON lines, each a signed checkpoint. Several processes may append, one at a time. */
export interface CheckpointFile {
  /** Runs `work` while no other process does, so that the last checkpoint stays the last until `work` has appended. */
  alone(work: () => void): Promise<void>
  /** Returns the current last checkpoint. */
  last(): Checkpoint | undefined
  readonly path: string
  /**
   * Signs a segment and makes the checkpoint durable, or throws and writes none. `prunedSeq`: records up to this number
   * may be removed.
   */
  append(segment: Segment, prunedSeq?: number): void
  /** Returns the last record that may be removed, according to the last checkpoint with a valid signature. */
  prunedSeq(): number
  /**
   * Yields the checkpoints that sign records after `seq`, oldest first, in groups.
   * @throws for an invalid checkpoint
   */
  linesAfter(seq: number): Generator<readonly SignedLine[]>
  close(): void
}

/** A checkpoint whose signature is valid. */
export interface SignedLine {
  readonly checkpoint: Checkpoint
  readonly hash: string
}

interface CheckpointFileOptions extends CheckpointOptions {
  readonly auditPath: string
  readonly nowMs: () => number
}

/** @throws if the file or its key cannot be opened */
export function openCheckpointFile({ auditPath, nowMs, ...options }: CheckpointFileOptions): CheckpointFile {
  const path = checkpointsPath(auditPath, options)
  const { writer = basename(auditPath) } = options
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const key =
    options.key === undefined
      ? parseSigningKey(secretAt(privateKeyOf(path), newSigningKey))
      : parseSigningKey(options.key)
  const keys = new Map(publish(path, key).map((known) => [known.keyId, known]))
  createPrivately(path)
  const fd = openSync(path, 'a+', 0o600)
  // Node has no file locks; an SQLite transaction holds one.
  createPrivately(`${path}.lock`)
  const lock = new DatabaseSync(`${path}.lock`)

  async function takeLock(): Promise<void> {
    const deadlineMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        lock.exec('BEGIN EXCLUSIVE')
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadlineMs) throw error
      }
      await delay(RETRY_MS)
    }
  }

  /** Returns the last complete line and its end. */
  function lastLine(): { text: string; end: number } | undefined {
    for (const { text, end } of linesBackwards(fd, fstatSync(fd).size)) return { text, end }
    return undefined
  }

  /** Checks that the file still exists, because lines that are appended to a removed file are lost. */
  function checkIsThere(): void {
    const here = statSync(path, { throwIfNoEntry: false })
    const { dev, ino } = fstatSync(fd)
    if (here?.dev === dev && here.ino === ino) return
    throw new Error(`the checkpoints ${path} were removed or replaced while the audit was open`)
  }

  function prunedSeq(): number {
    for (const { text } of linesBackwards(fd, fstatSync(fd).size)) {
      const checkpoint = parseCheckpoint(text)
      if (checkpoint !== undefined && isSigned(checkpoint, keys)) return checkpoint.prunedSeq ?? 0
    }
    return 0
  }

  function* linesAfter(seq: number): Generator<readonly SignedLine[]> {
    let prev = FIRST_CHECKPOINT
    for (const texts of linesForwards(fd, fstatSync(fd).size)) {
      const found: SignedLine[] = []
      for (const [i, text] of texts.entries()) {
        if (readSeq(text) <= seq) continue
        const before = texts[i - 1]
        if (before !== undefined) prev = hashCheckpoint(before)
        const checkpoint = parseCheckpoint(text)
        if (checkpoint === undefined || checkpoint.prevCheckpoint !== prev || !isSigned(checkpoint, keys))
          throw new Error(`a checkpoint of ${path} is not valid: run toolgate audit verify`)
        found.push({ checkpoint, hash: hashCheckpoint(text) })
      }
      prev = hashCheckpoint(texts.at(-1) ?? '')
      yield found
    }
  }

  return {
    path,
    prunedSeq,
    linesAfter,
    async alone(work) {
      await takeLock()
      try {
        work()
      } finally {
        lock.exec('COMMIT')
      }
    },
    last: () => parseCheckpoint(lastLine()?.text ?? ''),
    append(segment, pruned = 0) {
      checkIsThere()
      const before = lastLine()
      // A crash may leave an incomplete line, which would corrupt the next one.
      if (fstatSync(fd).size > (before?.end ?? 0)) ftruncateSync(fd, before?.end ?? 0)
      const prevCheckpoint = before === undefined ? FIRST_CHECKPOINT : hashCheckpoint(before.text)
      const ts = new Date(nowMs()).toISOString()
      const last = Math.max(pruned, prunedSeq())
      const removal = last === 0 ? {} : { prunedSeq: last }
      const line = Buffer.from(`${signCheckpoint({ ...segment, prevCheckpoint, ts, writer, ...removal }, key)}\n`)
      try {
        for (let at = 0; at < line.length;) at += writeSync(fd, line, at)
        fdatasyncSync(fd)
      } catch (error) {
        ftruncateSync(fd, before?.end ?? 0)
        throw error
      }
    },
    close() {
      closeSync(fd)
      lock.close()
    },
  }
}

/** The longest wait for another process's checkpoint, in milliseconds. */
const PATIENCE_MS = 2000
const RETRY_MS = 10

/** Returns the path of the public keys of checkpoints. */
export function publicKeysOf(checkpoints: string): string {
  return `${checkpoints}.pub`
}

const PUBLIC_KEY = /-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----/g

/** Parses a text with one or more public keys in PEM. */
export function parsePublicKeys(text: string): readonly VerifyingKey[] {
  return (text.match(PUBLIC_KEY) ?? []).map((pem) => parseVerifyingKey(pem))
}

/**
 * Adds the public key to the file beside the checkpoints, and returns all keys. Earlier keys stay, because earlier
 * checkpoints need them.
 */
function publish(path: string, key: SigningKey): readonly VerifyingKey[] {
  const file = publicKeysOf(path)
  const known = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const keys = parsePublicKeys(known)
  if (keys.some(({ keyId }) => keyId === key.keyId)) return keys
  createPrivately(file, 0o644)
  writeFileSync(file, key.publicKey, { flag: 'a' })
  return [...keys, parseVerifyingKey(key.publicKey)]
}
