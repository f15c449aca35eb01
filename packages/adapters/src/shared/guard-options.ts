import {
  type Caller,
  ConfigError,
  defineCaller,
  type Gate,
  isDefinedCaller,
  ToolgateError,
  type View,
  type ViewOptions,
  type Visibility,
} from '@toolgate/core'
import { checkShape, type Shape, shapeOf } from '@toolgate/values'
import type { MaybePromise } from '@toolgate/core/internal'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import { fieldsOf } from './fields.ts'
import type { GuardListeners } from './runs.ts'
import type { GivenWords, UserWords } from './user-words.ts'

/** The options that all guards for one run share. */
export interface RunOptions<Name extends string = string> extends ViewOptions<Name>, GuardListeners {
  /**
   * Names the run in the audit, and binds approvals to it: pass the same id when the run is resumed.
   * Default: a random id, to which approvals are not bound.
   */
  readonly runId?: string | undefined
  /** The user's texts, for `origin` in conditions. Default: none, so `origin` never returns `user`. */
  readonly userWords?: UserWords | undefined
  /**
   * Results of tools in the messages that the run begins with. They count as untrusted. Use `resultsOf` to get them.
   */
  readonly earlierResults?: readonly unknown[] | undefined
}

/** The options that all guards for any number of runs share. `Run` is the framework's argument about one run. */
export interface GuardOptions<Name extends string, Run, Ungoverned = string> extends ViewOptions<Name>, GuardListeners {
  /**
   * The caller of a run, or a function that returns it. The function runs again at each step and each call, so a role
   * that was revoked counts at once. The function must return a caller that `defineCaller` made, because a client may
   * have written the framework's context.
   */
  readonly caller: CallerOption<Run>
  /** Narrows one run. `visibility`, `activeTools` and `app` narrow every run. The stricter of both applies. */
  readonly view?: ((run: Run) => MaybePromise<ViewOptions<Name> | undefined>) | undefined
  /**
   * Names the run in the audit, and binds approvals to it: return the same id when the run is resumed. Default: a random
   * id, to which approvals are not bound.
   */
  readonly runId?: ((run: Run) => string | undefined) | undefined
  /**
   * Returns the texts that the user of a run has written, for `origin` in conditions. Default: none, so `origin` never
   * returns `user`.
   */
  readonly userWords?: ((run: Run) => UserWords | undefined) | undefined
  /**
   * Returns the results of tools in the messages that a run begins with. They count as untrusted. Use `resultsOf` to
   * get them.
   */
  readonly earlierResults?: ((run: Run) => readonly unknown[] | undefined) | undefined
  /** Tools that may run without the gate. Default: none. */
  readonly ungoverned?: readonly Ungoverned[] | undefined
}

/** The fields of `ViewOptions`, for other option shapes. */
const VIEW_KEYS = { visibility: true, activeTools: true, app: true } as const satisfies Record<keyof ViewOptions, true>

/** The fields of `RunOptions`, for other option shapes. */
export const RUN_KEYS = {
  ...VIEW_KEYS,
  runId: true,
  userWords: true,
  earlierResults: true,
  onCall: true,
  onWarning: true,
} as const satisfies Record<keyof RunOptions, true>

/** The fields of `GuardOptions`, for other option shapes. */
export const GUARD_KEYS = { ...RUN_KEYS, caller: true, view: true, ungoverned: true } as const satisfies Record<
  keyof GuardOptions<string, unknown>,
  true
>

const VIEW_SHAPE: Shape = shapeOf<ViewOptions>(VIEW_KEYS)

/**
 * Checks the arguments of a `guard` whose caller is one of the options.
 *
 * @throws {ConfigError} for an invalid gate, for missing options and for an unknown one
 */
export function checkGuard(gate: unknown, options: unknown, shape: Shape): void {
  checkGate(gate)
  if (options === undefined) checkGiven(undefined)
  checkShape('guard', options, shape)
  const { view, userWords, earlierResults } = fieldsOf(options)
  checkView(view)
  for (const [name, given] of Object.entries({ userWords, earlierResults }))
    if (given !== undefined && typeof given !== 'function')
      throw new ConfigError(`guard.${name}`, 'must be a function of the run, because a guard serves many of them')
}

/** Returns the user's texts and the earlier results of one run, from the host's options. */
export function wordsOf<Run>(
  { userWords, earlierResults }: Pick<GuardOptions<string, Run>, 'userWords' | 'earlierResults'>,
  run: Run,
): GivenWords {
  return { userWords: userWords?.(run), earlierResults: earlierResults?.(run) }
}

function checkView(view: unknown): void {
  if (view !== undefined && typeof view !== 'function')
    throw new ConfigError(
      'guard.view',
      'must be a function of the run; activeTools, visibility and app narrow every run',
    )
}

/**
 * Checks the arguments of a `guard` whose caller comes before the options.
 *
 * @throws {ConfigError} for an invalid gate, for a missing caller and for an unknown option
 */
export function checkGuardFor(gate: unknown, caller: unknown, options: unknown, shape: Shape, path = 'guard'): void {
  checkGate(gate, path)
  checkGiven(caller, path)
  checkShape(path, options, shape)
}

/** @throws {ConfigError} for a missing caller */
export function checkGiven<T>(caller: T, path = 'guard'): asserts caller is NonNullable<T> {
  if (caller === undefined || caller === null) throw new ConfigError(`${path}.caller`, MISSING)
}

const MISSING =
  'is missing: say who the run is for, such as { user: "vera", roles: ["viewer"] }. {} is an anonymous caller'

function checkGate(gate: unknown, path = 'guard'): void {
  const { view, catalog } = fieldsOf(gate)
  if (typeof view !== 'function' || typeof catalog !== 'object')
    throw new ConfigError(`${path}.gate`, 'must be what createGate returned')
}

/** A person's answer to a waiting call. */
interface PersonVerdict {
  readonly decision: 'approve' | 'reject'
  readonly reason?: string | undefined
}

const VERDICT_SHAPE: Shape = shapeOf<PersonVerdict>({ decision: true, reason: true })

/** @throws {ConfigError} for an unknown decision, which must count neither as an approval nor as a denial */
export function checkDecision({ decision }: { readonly decision?: unknown }): void {
  if (decision !== 'approve' && decision !== 'reject')
    throw new ConfigError('answer.decision', 'must be "approve" or "reject"')
}

/** @throws {ConfigError} for an unknown field or decision */
export function checkVerdict(answer: PersonVerdict): void {
  checkShape('answer', answer, VERDICT_SHAPE)
  checkDecision(answer)
}

/** A caller, or a function that reads it from the framework's context. */
export type CallerOption<Source> = Caller | FindCaller<Source>

/** Reads the caller from the framework's context. If it throws, nothing runs. */
export type FindCaller<Source> = (source: Source) => MaybePromise<Caller>

/**
 * Returns the caller that the host's own code passed.
 *
 * @throws {ConfigError} for a missing caller
 * @throws {ToolgateError} `caller_invalid`
 */
export function checkCaller(caller: Caller | null | undefined): Caller {
  checkGiven(caller)
  return defineCaller(caller)
}

/**
 * Returns the function that finds the caller of a run, for a framework whose context a client may fill.
 *
 * The option's function reads that context, so its result counts only if `defineCaller` made it. A request cannot
 * contain such an object.
 *
 * @throws {ConfigError} for a missing option
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

/**
 * Returns a function that checks whether the host lets a tool run without the gate, by name or by a glob such as
 * `agent-*`.
 */
export function createUngoverned(names: readonly string[] = []): (name: string) => boolean {
  const globs = names.map((name) => parseGlob(name))
  return (name) => globs.some((glob) => matchesGlob(glob, name))
}

/**
 * Opens the view of one run, narrowed by the options and by `also`.
 *
 * @throws {ConfigError} for an unknown field in the options that `view` returned, and for two different apps
 */
export async function openView<Run>(
  gate: Pick<Gate, 'view'>,
  caller: Caller,
  { visibility, activeTools, app, view }: Pick<GuardOptions<string, Run>, keyof ViewOptions | 'view'>,
  run: Run,
  ...also: readonly ViewOptions[]
): Promise<View> {
  const ofRun = await view?.(run)
  if (ofRun !== undefined) checkShape('guard.view', ofRun, VIEW_SHAPE)
  return viewFor(
    gate,
    caller,
    [ofRun ?? {}, ...also].reduce<ViewOptions>(combineViewOptions, { visibility, activeTools, app }),
  )
}

/** Opens a view. Equal callers share one view if nothing narrows it. */
export function viewFor(
  gate: Pick<Gate, 'view'>,
  caller: Caller,
  { visibility, activeTools, app }: ViewOptions,
): Promise<View> {
  const isPlain = visibility === undefined && activeTools === undefined && app === undefined
  return isPlain ? gate.view(caller) : gate.view(caller, { visibility, activeTools, app })
}

/** Combines visibilities. An id is shown only if each of them shows it. */
function combineVisibility(...parts: readonly (Visibility | undefined)[]): Visibility | undefined {
  const given = parts.filter((part) => part !== undefined)
  if (given.length <= 1) return given[0]
  return async (context) => {
    const lists = await Promise.all(given.map((part) => idsOf(part, context)))
    const [first = new Set<string>(), ...others] = lists
    return [...first].filter((id) => others.every((ids) => ids.has(id)))
  }
}

/**
 * Combines two sets of options: both narrow.
 *
 * @throws {ConfigError} for two different apps, because a view has only one
 */
function combineViewOptions(one: ViewOptions, other: ViewOptions): ViewOptions {
  if (one.app !== undefined && other.app !== undefined && one.app !== other.app)
    throw new ConfigError('app', `a run is of one app, and not of both "${one.app}" and "${other.app}"`)
  return {
    visibility: combineVisibility(one.visibility, other.visibility),
    activeTools: inBoth(one.activeTools, other.activeTools),
    app: other.app ?? one.app,
  }
}

function inBoth(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one.filter((id) => other.includes(id))
}

async function idsOf(
  visibility: Visibility,
  context: Parameters<Extract<Visibility, (...args: never) => unknown>>[0],
): Promise<ReadonlySet<string>> {
  const shown = await (typeof visibility === 'function' ? visibility(context) : visibility)
  return new Set(Array.from(shown, (one) => (typeof one === 'string' ? one : one.id)))
}
