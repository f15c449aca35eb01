import type { Caller } from '../caller.ts'
import { catchRejection } from '../util/async.ts'
import { ConfigError } from '../errors.ts'
import type { AvailabilitySource, Clock } from '../ports.ts'
import type { Source } from '../tools/catalog.ts'
import type { Groups, LoadedGroup } from '../tools/groups.ts'
import { readSource } from '../tools/read-source.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Unlocks } from './unlocks.ts'
import { backoffMs } from './backoff.ts'
import { type Ending, startInTime, whyNot } from './in-time.ts'

/** How far a group's tools are. */
export interface GroupLoad {
  /** `idle`: nobody has used the group yet. A `failed` one is tried again by itself. */
  readonly status: 'idle' | 'loading' | 'loaded' | 'failed'
  /** Why its tools are not there, or not all of them: for people. */
  readonly failure?: string
  /** Wall-clock milliseconds of the latest change. */
  readonly since: number
}

/** Groups whose tools are loaded at their first use. */
export interface Loads {
  /** Loads a group now, if it is not there; one load of a group at a time. Resolves when it has ended; never rejects for a load that fails. */
  load(group: string): Promise<GroupLoad>
  /** Gives how far a group is; `undefined` for one that has no `load`. */
  get(group: string): GroupLoad | undefined
  /** Hears of every change, until the function it gives is called. */
  subscribe(listener: (group: string) => void): () => void
}

export interface LoadsOfGate extends Loads {
  readonly sources: readonly Source[]
  /** Whether there are groups that nobody has used yet. */
  unused(): boolean
  /**
   * Begins to load what the caller of a view could use, once he has it: of an app, the groups that it imports, else
   * all; those that are locked for his session excepted.
   */
  usedBy(view: Promise<unknown>, caller: Caller, within: UsedWithin): Promise<void>
  /** Begins to load these. */
  use(groups: Iterable<string>): void
  close(): void
}

export interface UsedWithin {
  readonly unlocks: Pick<Unlocks, 'openFor'>
  readonly app:
    | {
        readonly groups: readonly { readonly name: string; readonly visibility: 'conditional' | 'hidden' | undefined }[]
      }
    | undefined
}

export interface LoadsDeps {
  readonly groups: Groups
  readonly availability: AvailabilitySource
  readonly clock: Clock
  readonly random?: () => number
  /** Hears of listeners that throw. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
}

interface Loading {
  readonly name: string
  readonly group: LoadedGroup
  state: GroupLoad
  tools: readonly Tool[]
  isWanted: boolean
  failures: number
  /** Loads that are late and not over: what ignores its signal must not pile up. */
  left: number
  underWay: PromiseWithResolvers<GroupLoad> | undefined
  stop: (() => void) | undefined
  timer: NodeJS.Timeout | undefined
  readonly listeners: Set<() => void>
}

const DEFAULT_TIMEOUT_MS = 30_000
const MAX_LEFT = 3

/** Gives the loads of a gate's groups. A load that fails leaves everything else as it is, and is tried again. */
export function createLoads(deps: LoadsDeps): LoadsOfGate {
  const { groups, availability, clock, random = Math.random, onFault = () => {} } = deps
  const all = new Map([...groups.loaded].map(([name, group]) => [name, toLoading(name, group, clock)]))
  const unused = new Set(all.keys())
  const listeners = new Set<(group: string) => void>()
  let isClosed = false

  const change = (loading: Loading, state: Omit<GroupLoad, 'since'>) => {
    loading.state = Object.freeze({ ...state, since: clock.wallMs() })
    for (const listener of listeners) {
      try {
        catchRejection(listener(loading.name), onFault)
      } catch (error) {
        onFault(error)
      }
    }
  }

  const end = (loading: Loading, ending: Ending<Iterable<unknown>>) => {
    const { underWay } = loading
    loading.underWay = undefined
    loading.stop = undefined
    const failure =
      ending.end === 'answered' ? take(loading, ending.answer, groups) : whyNot(ending, timeoutOf(loading))
    if (loading.tools.length > 0 || failure === undefined) {
      loading.failures = 0
      change(loading, { status: 'loaded', ...(failure === undefined ? {} : { failure }) })
      for (const listener of loading.listeners) listener()
    } else {
      loading.failures++
      change(loading, { status: 'failed', failure })
      wake(loading, backoffMs(loading.failures, random)).unref()
    }
    underWay?.resolve(loading.state)
  }

  const begin = (loading: Loading): Promise<GroupLoad> => {
    if (loading.underWay) return loading.underWay.promise
    if (isClosed || loading.state.status === 'loaded') return Promise.resolve(loading.state)
    clearTimeout(loading.timer)
    loading.timer = undefined
    const { promise } = (loading.underWay = Promise.withResolvers<GroupLoad>())
    change(loading, { ...loading.state, status: 'loading' })
    if (loading.left >= MAX_LEFT) {
      end(loading, { end: 'late' })
      return promise
    }
    loading.left++
    const stop = startInTime<Iterable<unknown>>({
      start: (signal) => loading.group.load({ signal }),
      timeoutMs: timeoutOf(loading),
      onOver: () => loading.left--,
      onEnd: (ending) => end(loading, ending),
    })
    if (loading.underWay) loading.stop = stop
    return promise
  }

  /** Begins what was used and can be: a group that is unavailable is loaded when it is there. */
  const beginWanted = () => {
    for (const loading of all.values()) {
      const isDone = loading.state.status === 'loaded'
      if (!loading.isWanted || isDone || loading.underWay || loading.timer) continue
      if (isAvailable(loading.name, groups, availability)) void begin(loading)
    }
  }
  const wake = (loading: Loading, delayMs: number): NodeJS.Timeout => {
    const timer = setTimeout(() => {
      loading.timer = undefined
      beginWanted()
    }, delayMs)
    return (loading.timer = timer)
  }
  const unsubscribe = all.size > 0 ? availability.subscribe(beginWanted) : () => {}

  const use = (names: Iterable<string>) => {
    for (const name of names) {
      const loading = unused.delete(name) && all.get(name)
      if (!loading) continue
      loading.isWanted = true
      // In a turn of its own: a loader that takes long before it gives its promise holds up no view.
      wake(loading, 0)
    }
  }

  return {
    sources: [...all.values()].map((loading) => toSource(loading, groups.selectors.get(loading.name) ?? [])),
    unused: () => unused.size > 0 && !isClosed,
    async usedBy(view, caller, { unlocks, app }) {
      try {
        await view
      } catch {
        return
      }
      // Without a session, a lock decides nothing.
      const open = caller.session === undefined ? undefined : unlocks.openFor(caller)
      const names = app ? app.groups.flatMap((one) => (one.visibility === 'hidden' ? [] : [one.name])) : [...unused]
      use(names.filter((name) => !open || open.has(name) || !groups.locked.has(name)))
    },
    use,
    async load(name) {
      const loading = all.get(name)
      if (!loading) throw new ConfigError(`groups.${name}`, 'is no group with a "load"')
      unused.delete(name)
      loading.isWanted = true
      return begin(loading)
    },
    get: (name) => all.get(name)?.state,
    subscribe(listener) {
      const own = (group: string) => listener(group)
      listeners.add(own)
      return () => void listeners.delete(own)
    },
    close() {
      isClosed = true
      unsubscribe()
      for (const loading of all.values()) {
        clearTimeout(loading.timer)
        loading.stop?.()
        loading.underWay?.resolve(loading.state)
      }
    },
  }
}

function toLoading(name: string, group: LoadedGroup, clock: Clock): Loading {
  return {
    name,
    group,
    state: Object.freeze({ status: 'idle', since: clock.wallMs() }),
    tools: [],
    isWanted: false,
    failures: 0,
    left: 0,
    underWay: undefined,
    stop: undefined,
    timer: undefined,
    listeners: new Set(),
  }
}

function toSource(loading: Loading, members: readonly Selector[]): Source {
  const namespaces = literalNamespaces(members)
  return {
    name: `group:${loading.name}`,
    tools: () => loading.tools,
    isListed: () => loading.state.status === 'loaded',
    ...(namespaces === undefined ? {} : { namespaces }),
    subscribe(listener) {
      loading.listeners.add(listener)
      return () => void loading.listeners.delete(listener)
    },
  }
}

/** Returns the namespaces that a group's selectors name; `undefined` where one of them may name any. */
function literalNamespaces(members: readonly Selector[]): readonly string[] | undefined {
  const found: string[] = []
  for (const member of members) {
    if (member.kind === 'joined') continue
    const namespace = member.kind === 'id' || member.kind === 'glob' ? literalNamespace(member) : undefined
    if (namespace === undefined) return undefined
    found.push(namespace)
  }
  // Without selectors, all its tools join by themselves.
  return found.length === 0 ? undefined : found
}

function literalNamespace(selector: Extract<Selector, { kind: 'id' | 'glob' }>): string | undefined {
  if (selector.kind === 'id') {
    const id = selector.target ?? selector.text
    return id.includes(':') ? id.split(':')[0] : ''
  }
  return selector.namespace?.length === 1 ? selector.namespace[0] : undefined
}

/** Takes the tools that the group's selectors name. Gives what is wrong with the others, if anything is. */
function take(loading: Loading, given: Iterable<unknown>, { selectors }: Groups): string | undefined {
  try {
    const { tools, rejected } = readSource({ tools: () => given as Iterable<Tool> }, selectors)
    const own = selectors.get(loading.name) ?? []
    const isMember = (tool: Tool) => own.some((selector) => matchesSelector(selector, tool, 'possible'))
    loading.tools = tools.filter(isMember)
    const foreign = tools.filter((tool) => !isMember(tool)).map(({ id }) => `"${id}" is none of the group's tools`)
    const broken = rejected.map(({ tool, reason }) => `"${tool}" cannot be used: ${reason}`)
    return [...foreign, ...broken].slice(0, MAX_TOLD).join('; ') || undefined
  } catch (error) {
    return whyNot({ end: 'failed', error }, timeoutOf(loading))
  }
}

const MAX_TOLD = 20

function timeoutOf({ group }: Loading): number {
  return group.loadTimeoutMs ?? DEFAULT_TIMEOUT_MS
}

function isAvailable(name: string, { conditional }: Groups, source: AvailabilitySource): boolean {
  return (conditional.get(name)?.requires ?? []).every((below) => {
    try {
      return source.get(below)?.available === true
    } catch {
      return false
    }
  })
}
