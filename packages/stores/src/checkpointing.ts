import type { AuditFile } from './audit-file.ts'
import type { CheckpointFile } from './checkpoint-file.ts'

/** Makes checkpoints in time. */
export interface Checkpointing {
  /** Hears how many records were stored. */
  stored(count: number): void
  /** Why the latest checkpoint could not be made; `undefined` where it could. */
  readonly failure: unknown
  /** Makes the last one. */
  close(): Promise<void>
}

export interface CheckpointingOptions {
  readonly everyRecords: number
  readonly everyMs: number
  /** The sink's own, which remembers when it failed. */
  readonly sync: () => Promise<void>
  readonly onFault: (error: unknown) => void
}

const FIRST_MS = 1000

export const NO_CHECKPOINTS: Checkpointing = { stored: () => {}, failure: undefined, close: async () => {} }

/** Makes a checkpoint after so many records and after so much time, whichever comes first; one at a time. */
export function createCheckpointing(
  file: AuditFile,
  checkpoints: CheckpointFile,
  { everyRecords, everyMs, sync, onFault }: CheckpointingOptions,
): Checkpointing {
  let since = 0
  let failure: unknown
  let running: Promise<void> | undefined
  const timer = setInterval(() => void run(), everyMs).unref()
  // What was there before, and what comes first, is vouched for soon, not only after a while.
  const first = setTimeout(() => void run(), Math.min(FIRST_MS, everyMs)).unref()

  function run(): Promise<void> {
    since = 0
    running ??= make().finally(() => {
      running = undefined
    })
    return running
  }

  /** Never rejects: a call must not wait for the second place. */
  async function make(): Promise<void> {
    try {
      await file.checkpoint(checkpoints, sync)
      failure = undefined
    } catch (error) {
      failure = error
      onFault(error)
    }
  }

  return {
    get failure() {
      return failure
    },
    stored(count) {
      since += count
      if (since >= everyRecords) void run()
    },
    async close() {
      clearInterval(timer)
      clearTimeout(first)
      await running
      await run()
      checkpoints.close()
    },
  }
}
