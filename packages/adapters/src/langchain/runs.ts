import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import {
  type Caller,
  ConfigError,
  type Gate,
  type Tool,
  type View,
  type ViewOptions,
  type Visibility,
} from '@toolgate/core'
import type { ExposedNames } from '@toolgate/core/expose'
import { callerKey, checkShape, type MaybePromise, sha256Hex } from '@toolgate/core/internal'
import type { Runtime } from 'langchain'
import { createCallerOf, VIEW_KEYS, VIEW_SHAPE } from '../shared/guard-options.ts'
import { createRun, type GuardedRun } from '../shared/run.ts'

/** What LangChain tells a middleware of the run that it is in. Its `context` is the agent's own. */
// oxlint-disable-next-line typescript/no-explicit-any -- the agent's `contextSchema` types it, and a middleware stands outside of that
export type GuardRuntime = Runtime<any>

export interface RunsOptions<Name extends string = string> extends ViewOptions<Name> {
  /**
   * Whose run it is. A function is asked at each step and each call, so that a role that was taken away counts at once.
   * It must return a caller that `defineCaller` made: a client of LangGraph's server writes the context.
   */
  readonly caller: Caller | ((runtime: GuardRuntime) => MaybePromise<Caller>)
  /** What narrows this one run, beside what narrows all of them: the stricter holds. */
  readonly perRun?: ((runtime: GuardRuntime) => MaybePromise<ViewOptions<Name>>) | undefined
}

export const RUNS_KEYS = { ...VIEW_KEYS, caller: true, perRun: true } as const satisfies Record<keyof RunsOptions, true>

/** What outlives a pause: kept in the graph's state, where a later invocation finds it. */
export interface SavedRun {
  readonly run: string
  /** A run that is resumed sees nothing beyond it. Sealed: LangGraph's server returns the state to its clients. */
  readonly ceiling: readonly string[]
}

/** What a model was given in one step. */
export interface GivenStep {
  readonly view: View
  readonly number: number
  readonly model: string | undefined
}

export interface AgentRun extends GuardedRun {
  /** The step that a call is of, where this invocation saw it. */
  stepOf(callId: string | undefined): GivenStep | undefined
  /** A model has answered a step with these calls. */
  stepped(step: GivenStep, callIds: Iterable<string | undefined>): void
}

interface Runs {
  /** Begins a run, and gives what is to be kept of it. */
  begin(runtime: GuardRuntime): Promise<SavedRun>
  /** Gives the run that a step or call is of: one for each invocation, run and caller. */
  of(saved: SavedRun | undefined, runtime: GuardRuntime): Promise<AgentRun>
}

/** The run that a tool is called in: agents that the tool starts see no more than that. */
const within = new AsyncLocalStorage<{ readonly catalog: Gate['catalog']; readonly view: View }>()

/** Makes a call so that what its tool starts is narrowed to this run. */
export function callWithin<T>({ catalog }: Pick<Gate, 'catalog'>, view: View, call: () => T): T {
  return within.run({ catalog, view }, call)
}

/** `binds` says whether approvals are of one run, which must then outlive its pauses. */
export function createRuns(
  gate: Gate,
  names: ExposedNames,
  options: RunsOptions,
  binds: (runtime: GuardRuntime) => boolean,
): Runs {
  const callerOf = createCallerOf(options.caller)
  // LangGraph makes one writer for each invocation and hands it to all that runs in it. When that is let go, so is this.
  const byInvocation = new WeakMap<object, Map<string, Promise<AgentRun>>>()

  const runsOf = ({ writer }: GuardRuntime): Map<string, Promise<AgentRun>> => {
    const known = writer && byInvocation.get(writer)
    if (known) return known
    const runs = new Map<string, Promise<AgentRun>>()
    if (writer) byInvocation.set(writer, runs)
    return runs
  }

  const openView = async (caller: Caller, saved: SavedRun | undefined, runtime: GuardRuntime): Promise<View> => {
    const { visibility, activeTools, app, perRun } = options
    const parent = within.getStore()
    const ofParent = parent?.catalog === gate.catalog ? parent.view : undefined
    const ofRun = (await perRun?.(runtime)) ?? {}
    checkShape('guard.perRun', ofRun, VIEW_SHAPE)
    const narrowed = [
      ofRun,
      { visibility: saved && unsealCeiling(saved, gate.catalog.snapshot().ids) },
      { visibility: ofParent && ceilingOf(ofParent, gate.catalog.snapshot().ids) },
    ].reduce<ViewOptions>(meetViewOptions, { visibility, activeTools, app })
    return gate.view(caller, isEmpty(narrowed) ? undefined : narrowed)
  }

  const toRun = (view: View, id: string | undefined, runtime: GuardRuntime): AgentRun =>
    toAgentRun(createRun(gate, view, names, id, id !== undefined && binds(runtime)))

  return {
    async begin(runtime) {
      const caller = await callerOf(runtime)
      const view = await openView(caller, undefined, runtime)
      const saved = sealCeiling(randomUUID(), ceilingOf(view, gate.catalog.snapshot().ids))
      runsOf(runtime).set(keyOf(caller, saved), Promise.resolve(toRun(view, saved.run, runtime)))
      return saved
    },
    async of(saved, runtime) {
      const caller = await callerOf(runtime)
      const runs = runsOf(runtime)
      const key = keyOf(caller, saved)
      const known = runs.get(key)
      if (known) return known
      const opening = openView(caller, saved, runtime).then((view) => toRun(view, saved?.run, runtime))
      runs.set(key, opening)
      opening.catch(() => runs.delete(key))
      return opening
    },
  }
}

function keyOf(caller: Caller, saved: SavedRun | undefined): string {
  return JSON.stringify([saved?.run, callerKey(caller)])
}

function toAgentRun(run: GuardedRun): AgentRun {
  const steps = new Map<string, GivenStep>()
  return {
    ...run,
    stepOf: (callId) => (callId === undefined ? undefined : steps.get(callId)),
    stepped(step, callIds) {
      steps.clear()
      for (const id of callIds) if (id !== undefined) steps.set(id, step)
    },
  }
}

function isEmpty(options: ViewOptions): boolean {
  return Object.values(options).every((value) => value === undefined)
}

type VisibilityContext = { readonly tools: readonly Tool[]; readonly caller: Caller }

/**
 * Gives the ids that a run may see at most: those that its view shows, and those that are only held back, as what is
 * locked or unavailable now may be open at a later step.
 */
function ceilingOf(view: View, known: readonly string[]): readonly string[] {
  return known.filter((id) => view.has(id) || view.explain(id).outcome === 'wait')
}

/** What is kept of a ceiling in the graph's state. */
interface Sealed {
  readonly run: string
  readonly ceiling: readonly string[]
}

/** Seals the ids of a run's ceiling: each becomes a hash that differs from run to run. */
function sealCeiling(run: string, ids: readonly string[]): Sealed {
  return { run, ceiling: ids.map((id) => sealOf(run, id)) }
}

/**
 * Returns the known ids that are within a sealed ceiling.
 *
 * Clients of LangGraph's server can write the state. What they write opens nothing that policy hides, and a ceiling
 * that cannot be read is an empty one.
 */
function unsealCeiling({ run, ceiling }: Partial<Sealed>, known: readonly string[]): readonly string[] {
  if (typeof run !== 'string' || !Array.isArray(ceiling)) return []
  const sealed = new Set<unknown>(ceiling)
  return known.filter((id) => sealed.has(sealOf(run, id)))
}

function sealOf(run: string, id: string): string {
  return sha256Hex(`${run}\n${id}`).slice(0, SEAL_LENGTH)
}

/** 128 bits, in hex digits. */
const SEAL_LENGTH = 32

/** Gives what all of these show: each is asked, and nothing is shown that one of them leaves out. */
function meetVisibility(...parts: readonly (Visibility | undefined)[]): Visibility | undefined {
  const given = parts.filter((part) => part !== undefined)
  if (given.length <= 1) return given[0]
  return async (context) => {
    const lists = await Promise.all(given.map((part) => idsOf(part, context)))
    const [first = new Set<string>(), ...others] = lists
    return [...first].filter((id) => others.every((ids) => ids.has(id)))
  }
}

/**
 * Gives the options of which both hold.
 *
 * @throws {ConfigError} for two different apps: a view is of one
 */
function meetViewOptions(one: ViewOptions, other: ViewOptions): ViewOptions {
  if (one.app !== undefined && other.app !== undefined && one.app !== other.app)
    throw new ConfigError('app', `a run is of one app, and not of both "${one.app}" and "${other.app}"`)
  return {
    visibility: meetVisibility(one.visibility, other.visibility),
    activeTools: meetLists(one.activeTools, other.activeTools),
    app: other.app ?? one.app,
  }
}

function meetLists(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one.filter((id) => other.includes(id))
}

async function idsOf(visibility: Visibility, context: VisibilityContext): Promise<ReadonlySet<string>> {
  const shown: MaybePromise<Iterable<string | Tool>> =
    typeof visibility === 'function' ? visibility(context) : visibility
  return new Set(Array.from(await shown, (one) => (typeof one === 'string' ? one : one.id)))
}
