import {
  type Caller,
  ConfigError,
  defineCaller,
  isDefinedCaller,
  ToolgateError,
  type ViewOptions,
} from '@toolgate/core'
import { checkShape, type MaybePromise, type Shape, shapeOf } from '@toolgate/core/internal'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
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

const VERDICT_SHAPE: Shape = shapeOf<Verdict>({ decision: true, reason: true })

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

/** Who runs: a caller that the host names once, or a function that reads it from what a framework hands over. */
type CallerOption<Source> = Caller | ((source: Source) => MaybePromise<Caller>)

/**
 * Checks a caller that the host's own code names.
 *
 * @throws {ConfigError} where there is none
 * @throws {ToolgateError} `caller_invalid`
 */
export function checkCaller(caller: Caller | null | undefined): Caller {
  checkGiven(caller)
  return defineCaller(caller as Caller)
}

/**
 * Returns the function that finds the caller of a run, for a framework whose context a client may fill.
 *
 * The option's function reads that context, so its answer counts only if `defineCaller` made it: that object cannot come
 * out of a request.
 *
 * @throws {ConfigError} where the option is missing
 */
export function createCallerOf<Source>(option: CallerOption<Source> | undefined): (source: Source) => Promise<Caller> {
  if (typeof option === 'function') return async (source) => trusted(await option(source))
  const caller = checkCaller(option)
  return async () => caller
}

function trusted(answer: unknown): Caller {
  if (isDefinedCaller(answer)) return answer
  if (typeof answer !== 'object' || answer === null)
    throw new ToolgateError(
      'caller_invalid',
      'guard.caller returned no caller: a run without one sees and runs nothing',
    )
  throw new ToolgateError('caller_untrusted', UNTRUSTED)
}

const UNTRUSTED =
  'guard.caller returned an object that defineCaller did not make, so a client may have written it into the request. ' +
  'Call defineCaller where your server has authenticated the user, and put that very object into the context: ' +
  'copies by JSON, structuredClone or a spread do not count'

/** Returns what tells the tools that a host lets run beside the gate's: by names, or globs such as `agent-*`. */
export function createUngoverned(names: readonly string[] = []): (name: string) => boolean {
  const globs = names.map((name) => parseGlob(name))
  return (name) => globs.some((glob) => matchesGlob(glob, name))
}
