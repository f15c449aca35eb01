import {
  type Checkpoint,
  FIRST_CHECKPOINT,
  hashCheckpoint,
  isSigned,
  parseCheckpoint,
  type VerifyingKey,
} from './checkpoint.ts'
import type { AuditFinding } from './verdict.ts'

/** The checkpoints that vouch, one after the other. What is wrong with any is told as it is passed. */
export interface CheckpointTrail {
  /** The one that comes next; `undefined` after the last. */
  readonly next: Checkpoint | undefined
  /** Its line, counted from 1. */
  readonly line: number
  /** Goes on to the one after. */
  advance(): void
}

/** Reads checkpoints line by line: parses, checks the signature, and that each names the one before. */
export function readTrail(
  lines: Iterable<string>,
  keys: ReadonlyMap<string, VerifyingKey>,
  tell: (finding: AuditFinding) => void,
): CheckpointTrail {
  const iterator = lines[Symbol.iterator]()
  let prev = FIRST_CHECKPOINT
  let line = 0
  let next: Checkpoint | undefined

  function advance(): void {
    for (;;) {
      const step = iterator.next()
      next = undefined
      if (step.done === true) return
      line++
      const checkpoint = parseCheckpoint(step.value)
      const problem = problemOf(checkpoint, prev, keys)
      prev = hashCheckpoint(step.value)
      if (problem === undefined) {
        next = checkpoint
        return
      }
      const seq = checkpoint === undefined ? {} : { seq: checkpoint.seq }
      tell({ kind: 'forged', ...seq, checkpoint: line, text: `Checkpoint ${line} ${problem}.` })
    }
  }

  advance()
  return {
    get next() {
      return next
    },
    get line() {
      return line
    },
    advance,
  }
}

function problemOf(
  checkpoint: Checkpoint | undefined,
  prev: string,
  keys: ReadonlyMap<string, VerifyingKey>,
): string | undefined {
  if (checkpoint === undefined) return 'is not a checkpoint in canonical form'
  if (!keys.has(checkpoint.keyId))
    return `is signed with the key ${checkpoint.keyId.slice(0, 64)}, which is not trusted`
  if (!isSigned(checkpoint, keys)) return 'has a signature that does not hold'
  return checkpoint.prevCheckpoint === prev ? undefined : 'does not go on from the one before it'
}
