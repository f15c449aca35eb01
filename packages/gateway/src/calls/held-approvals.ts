import type { CallOutcome, Progress } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import type { DecisionWaits } from './decision-waits.ts'

interface HoldOptions {
  readonly waits: Pick<DecisionWaits, 'wait'>
  /** How long the call is held. 0: not at all. */
  readonly ms: number
  readonly signal: Cancelling
  /** Tells the client that the call waits. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Makes the call again. It is decided again, and uses the approval. */
  readonly again: () => Promise<CallOutcome>
}

/** Clients in common use give up after 60 s without progress. */
const PROGRESS_MS = 10_000
/** Progress must increase, and that of the tool, which comes later, may begin at any small number. */
const PROGRESS_STEP = 1e-6

/**
 * Holds a call that waits for a person, and makes it again once they have decided. Otherwise returns the outcome as it is.
 *
 * The attempt that asked has ended, so the call has taken no limit, no slot and no approval while it is held.
 */
export async function holdCall(
  outcome: CallOutcome,
  { waits, ms, signal, onProgress, again }: HoldOptions,
): Promise<CallOutcome> {
  const untilMs = performance.now() + ms
  let last = outcome
  let told = 0
  while (last.status === 'waiting') {
    const leftMs = untilMs - performance.now()
    if (ms <= 0 || leftMs <= 0) return last
    const { approval, text: message } = last
    const tell = () => onProgress?.({ progress: ++told * PROGRESS_STEP, message })
    tell()
    const timer = onProgress && setInterval(tell, PROGRESS_MS).unref()
    const isDecided = await waits.wait(approval, signal, leftMs).finally(() => clearInterval(timer))
    if (!isDecided) return last
    last = await again()
  }
  return last
}
