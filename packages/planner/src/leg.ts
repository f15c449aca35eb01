import type { Caller, View } from '@toolgate/core'
import type { LegOptions } from './options.ts'
import type { LevelState, PauseState, PendingState } from './pause.ts'
import type { AnyStream } from './scope.ts'
import type { createStopping } from './stopping.ts'

/** One leg of a run: from its beginning, or from a pause, to its end or its next pause. */
export interface LegRequest {
  readonly caller: Caller
  readonly options: LegOptions
  readonly stopping: ReturnType<typeof createStopping>
  /** Given the SDK's stream as soon as there is one. */
  readonly onStream?: ((stream: AnyStream, runId: string) => void) | undefined
  /** Done while it waits for its turn; what it throws comes out of the run, and nothing has happened. */
  check(): Promise<CheckedLeg>
}

export interface CheckedLeg {
  readonly runId: string
  readonly app: string | undefined
  /** What the run has used before this leg. */
  readonly before: Pick<PauseState, 'used' | 'usage' | 'budgets'> | undefined
  /** Done when it is the leg's turn; what it throws comes out of the run. */
  begin(): Promise<Begun>
}

export type Leg = LegRequest & CheckedLeg

/** Where a leg begins. */
export interface Begun {
  readonly view: View
  readonly level: LevelState
  readonly answers: ReadonlyMap<PendingState, unknown>
  /** What is told of a leg that goes on. */
  readonly resumed: { readonly hidden: readonly string[]; readonly policyChanged: boolean } | undefined
}
