import { type Caller, callerKey, defineCaller } from '../ports/caller.ts'
import { checkShape, createBoundedCache, messageOf, shapeOf } from '@toolgate/values'
import type { PolicySnapshot } from '../decide/policy-snapshot.ts'
import { evaluate, type Evaluation } from '../decide/evaluation.ts'
import { failedVisibilityEffects, visibilityEffects } from '../decide/layers/narrowing.ts'
import type { MaybePromise } from '../ports/ports.ts'
import { compareToolIds, isItemId } from '../tools/tool-id.ts'
import { isTool, type Tool } from '../tools/tool.ts'
import { createView, narrowBounds, tighten, type View, type ViewBounds, type ViewHost } from './view.ts'

export interface ViewOptions<Name extends string = string> {
  /** Narrows what this run sees: the tools or ids to show, or a function that returns them. */
  readonly visibility?: Visibility | undefined
  /** Ids to show. `[]` means none. */
  readonly activeTools?: readonly Name[] | undefined
  /** The app whose tools the view is limited to. */
  readonly app?: string | undefined
}

/**
 * Called once per view, with all tools that policy and scopes permit, even if they are unavailable now. Other names in its
 * answer are not shown; `view.foreign` lists them. An error, an invalid answer or a timeout empties the view.
 */
export type Visibility = Iterable<string | Tool> | ((offer: VisibilityOffer) => MaybePromise<Iterable<string | Tool>>)

interface VisibilityOffer {
  readonly tools: readonly Tool[]
  /** The resources, templates and prompts. */
  readonly items: readonly Tool[]
  readonly caller: Caller
}

/** Opens the views of apps. */
interface AppHosts {
  hasApp(app: string): boolean
  /** @throws {ToolgateError} `app_unknown` */
  hostOf(app: string, host: ViewHost): ViewHost
}

const VIEW = shapeOf<ViewOptions>({ visibility: true, activeTools: true, app: true })
const MAX_CALLERS = 10_000

/** Returns the views of a gate. Equal callers share a view while nothing changes; a narrowed run gets its own. */
export function createViews(
  whole: ViewHost,
  visibilityDeadlineMs: number,
  { hasApp, hostOf }: AppHosts,
): (caller: Caller, options?: ViewOptions) => Promise<View> {
  const identify = createIdentities()
  const sharedOf = (host: ViewHost) => ({ host, shared: createViewCache(host) })
  const everything = sharedOf(whole)
  const ofApps = new Map<string, typeof everything>()
  const within = (app: string) => {
    let known = hasApp(app) ? ofApps.get(app) : undefined
    if (!known) ofApps.set(app, (known = sharedOf(hostOf(app, whole))))
    return known
  }
  return (caller, options) => {
    try {
      const identified = identify(caller)
      if (options === undefined) return everything.shared(identified)
      checkShape('view', options, VIEW)
      const { host, shared } = options.app === undefined ? everything : within(options.app)
      if (options.visibility === undefined && options.activeTools === undefined) return shared(identified)
      return openView(host, identified, options, visibilityDeadlineMs)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

/** Returns the same object for all equal callers, so that they share caches. */
function createIdentities(): (caller: Caller) => Caller {
  const byKey = createBoundedCache<string, Caller>(MAX_CALLERS)
  const known = new WeakMap<Caller, Caller>()
  return (caller) => {
    const same = known.get(caller)
    if (same) return same
    const defined = defineCaller(caller)
    const key = callerKey(defined)
    const first = byKey.get(key) ?? defined
    if (first === defined) byKey.set(key, defined)
    known.set(defined, first)
    return first
  }
}

type CachedViews = WeakMap<Caller, { readonly evaluation: Evaluation; readonly view: Promise<View> }>

/** Keeps the view of each caller until something changes. */
function createViewCache(host: ViewHost): (caller: Caller) => Promise<View> {
  const bySnapshot = new WeakMap<PolicySnapshot, CachedViews>()
  let latest: PolicySnapshot | undefined
  let views: CachedViews = new WeakMap()
  return (caller) => {
    const today = host.today(caller)
    if (today !== latest) {
      latest = today
      views = bySnapshot.get(today) ?? new WeakMap()
      bySnapshot.set(today, views)
    }
    let cached = views.get(caller)
    // Within a snapshot, only the locks of a session can open, and only for that session.
    if (cached && caller.session === undefined) return cached.view
    const evaluation = today.evaluation(caller)
    if (cached?.evaluation !== evaluation) {
      const { snapshot, policies } = today
      const bounds: ViewBounds = {
        caller,
        snapshot,
        policies,
        begun: today,
        kept: host.ports.histories.kept,
        narrowed: NOTHING_NARROWED,
        failure: undefined,
        effects: () => today.boundEffects(caller),
      }
      const view =
        caller.run === undefined ? createView(host, bounds, evaluation) : createView(host, boundsOfRun(host, bounds))
      cached = { evaluation, view: Promise.resolve(view) }
      views.set(caller, cached)
    }
    return cached.view
  }
}

async function openView(
  host: ViewHost,
  caller: Caller,
  { visibility, activeTools }: ViewOptions,
  visibilityDeadlineMs: number,
): Promise<View> {
  const begun = host.today(caller)
  const { snapshot, policies } = begun
  const effects = begun.boundEffects(caller)
  const ofCaller: ViewBounds = {
    caller,
    snapshot,
    policies,
    begun,
    kept: host.ports.histories.kept,
    narrowed: NOTHING_NARROWED,
    failure: undefined,
    effects: () => effects,
  }
  const permitted = caller.run === undefined ? ofCaller : boundsOfRun(host, ofCaller)
  const bounds =
    visibility === undefined ? permitted : await applyVisibility(permitted, visibility, visibilityDeadlineMs)
  const view = createView(host, bounds)
  return activeTools === undefined ? view : view.narrow({ activeTools })
}

/**
 * Returns the bounds of a caller whose token is for one run: what the run's policies permit, or nothing if the run is
 * unknown.
 */
function boundsOfRun(host: ViewHost, bounds: ViewBounds): ViewBounds {
  const fail = (failure: string) => ({
    ...tighten(bounds, (over) => ({ effects: failedVisibilityEffects(over, failure), policies: [] })),
    failure,
  })
  try {
    const scope = host.ports.runs?.of(bounds.caller)
    if (!scope) return fail('the run is over')
    return scope.policy.length === 0 ? bounds : narrowBounds(host, bounds, { policy: scope.policy })
  } catch (error) {
    return fail(messageOf(error))
  }
}

async function applyVisibility(bounds: ViewBounds, visibility: Visibility, deadlineMs: number): Promise<ViewBounds> {
  const { caller, snapshot, begun } = bounds
  const offered = evaluate(snapshot, bounds.effects()).visible.tools
  const offeredItems = () => evaluate(begun.items, begun.over(begun.items).boundEffects(caller)).visible.tools
  try {
    const shown =
      typeof visibility === 'function'
        ? await inTime(visibility(new VisibilityContext(offered, offeredItems, caller)), deadlineMs)
        : visibility
    const ids = toIds(shown)
    const namesItems = [...ids].some(isItemId)
    const known = new Set([...offered, ...(namesItems ? offeredItems() : [])].map(({ id }) => id))
    const foreign = Object.freeze([...ids].filter((id) => !known.has(id)).toSorted(compareToolIds))
    return { ...tighten(bounds, (over) => ({ effects: visibilityEffects(over, ids), policies: [] })), foreign }
  } catch (error) {
    const failure = messageOf(error)
    return {
      ...tighten(bounds, (over) => ({ effects: failedVisibilityEffects(over, failure), policies: [] })),
      failure,
    }
  }
}

/** A class, because other items are looked up only on demand. */
class VisibilityContext implements VisibilityOffer {
  readonly tools: readonly Tool[]
  readonly caller: Caller
  readonly #items: () => readonly Tool[]

  constructor(tools: readonly Tool[], items: () => readonly Tool[], caller: Caller) {
    this.tools = tools
    this.caller = caller
    this.#items = items
  }

  get items(): readonly Tool[] {
    return this.#items()
  }
}

const NOTHING_NARROWED: ViewBounds['narrowed'] = []

async function inTime<T>(answer: MaybePromise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${deadlineMs / 1000} s`)), deadlineMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

function toIds(named: Iterable<string | Tool>): ReadonlySet<string> {
  if (typeof named !== 'object' || named === null || typeof named[Symbol.iterator] !== 'function')
    throw new TypeError('visibility must give a list of tools or ids')
  return new Set(Array.from(named, toId))
}

function toId(named: string | Tool): string {
  if (typeof named === 'string') return named
  if (isTool(named)) return named.id
  throw new TypeError('visibility must name tools or ids')
}
