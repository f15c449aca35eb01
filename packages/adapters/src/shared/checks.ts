import { ConfigError, type ViewOptions } from '@toolgate/core'
import { checkShape, type Shape, shapeOf } from '@toolgate/core/internal'
import type { RunOptions } from './run.ts'

/** The fields of `ViewOptions`, for shapes that extend them. */
export const VIEW_KEYS = { visibility: true, activeTools: true, app: true } as const satisfies Record<
  keyof ViewOptions,
  true
>

/** The fields of `RunOptions`, for shapes that extend them. */
export const RUN_KEYS = { ...VIEW_KEYS, runId: true } as const satisfies Record<keyof RunOptions, true>

export const VIEW_SHAPE: Shape = shapeOf<ViewOptions>(VIEW_KEYS)

/**
 * Checks what a `guard` is given, where the caller is one of the options.
 *
 * @throws {ConfigError} for what is no gate, for missing options and for an unknown one
 */
export function checkGuard(gate: unknown, options: unknown, shape: Shape): void {
  checkGate(gate)
  if (options === undefined) checkGiven(undefined)
  checkShape('guard', options, shape)
}

/**
 * Checks what a `guard` is given, where the caller stands before the options.
 *
 * @throws {ConfigError} for what is no gate, for a missing caller and for an unknown option
 */
export function checkGuardFor(gate: unknown, caller: unknown, options: unknown, shape: Shape): void {
  checkGate(gate)
  checkGiven(caller)
  checkShape('guard', options, shape)
}

/** @throws {ConfigError} for a caller that is missing */
export function checkGiven(caller: unknown): void {
  if (caller === undefined || caller === null) throw new ConfigError('guard.caller', MISSING)
}

const MISSING =
  'is missing: say who the run is for, such as { user: "vera", roles: ["viewer"] }. {} is a caller of whom nothing is known'

function checkGate(gate: unknown): void {
  const { view, catalog } = (gate ?? {}) as { readonly view?: unknown; readonly catalog?: unknown }
  if (typeof view !== 'function' || typeof catalog !== 'object')
    throw new ConfigError('guard.gate', 'must be what createGate returned')
}

/** What a person says of a call that waits. */
interface Verdict {
  readonly decision: 'approve' | 'reject'
  readonly reason?: string | undefined
}

export const VERDICT_SHAPE: Shape = shapeOf<Verdict>({ decision: true, reason: true })

/** @throws {ConfigError} for a decision that is neither: it must not count as either */
export function checkDecision({ decision }: { readonly decision?: unknown }): void {
  if (decision !== 'approve' && decision !== 'reject')
    throw new ConfigError('answer.decision', 'must be "approve" or "reject"')
}

/** @throws {ConfigError} for an unknown field, and for a decision that is neither */
export function checkVerdict(answer: Verdict): void {
  checkShape('answer', answer, VERDICT_SHAPE)
  checkDecision(answer)
}
