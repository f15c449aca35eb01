import type { Caller } from '../caller.ts'
import { ConfigError, messageOf } from '../errors.ts'
import type { AvailabilitySource, Clock } from '../ports.ts'
import type { Source } from '../tools/catalog.ts'
import type { Groups, LoadedGroup } from '../tools/groups.ts'
import { readSource } from '../tools/read-source.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Unlocks } from './unlocks.ts'
import { backoffMs, type Outcome, TimeoutError } from '../util/async.ts'
import { createEmitter, type Emitter } from '../util/emitter.ts'
import { GroupTask } from './task.ts'

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
  /** Returns how far a group is; `undefined` for one that has no `load`. */
  get(group: string): GroupLoad | undefined
  /** Calls the listener at every change, until the returned function is called. */
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
  /** Receives what listeners throw. Default: ignores it. */
  readonly onFault?: (error: unknown) => void
}

interface Loading {
  readonly name: string
  readonly group: LoadedGroup
  state: GroupLoad
  tools: readonly Tool[]
  isWanted: boolean
  failures: number
  readonly task: GroupTask<Iterable<unknown>>
  timer: NodeJS.Timeout | undefined
  readonly changed: Emitter<[]>
}

const DEFAULT_TIMEOUT_MS = 30_000

/** Returns the loads of a gate's groups. A load that fails leaves everything else as it is, and is tried again. */
export function createLoads(deps: LoadsDeps): LoadsOfGate {
  const { groups, availability, clock, random = Math.random, onFault = () => {} } = deps
  const all = new Map([...groups.loaded].map(([name, group]) => [name, toLoading(name, group)]))
  const unused = new Set(all.keys())
  const emitter = createEmitter<[group: string]>(onFault)
  let isClosed = false

  function toLoading(name: string, group: LoadedGroup): Loading {
    const loading: Loading = {
      name,
      group,
      state: Object.freeze({ status: 'idle', since: clock.wallMs() }),
      tools: [],
      isWanted: false,
      failures: 0,
      task: new GroupTask<Iterable<unknown>>({
        run: (signal) => group.load({ signal }),
        deadlineMs: () => timeoutOf(loading),
        onBegin() {
          clearTimeout(loading.timer)
          loading.timer = undefined
          change(loading, { ...loading.state, status: 'loading' })
        },
        onEnd: (outcome) => end(loading, outcome),
      }),
      timer: undefined,
      changed: createEmitter(onFault),
    }
    return loading
  }

  const change = (loading: Loading, state: Omit<GroupLoad, 'since'>) => {
    loading.state = Object.freeze({ ...state, since: clock.wallMs() })
    emitter.emit(loading.name)
  }

  const end = (loading: Loading, outcome: Outcome<Iterable<unknown>>) => {
    const failure = 'value' in outcome ? take(loading, outcome.value, groups) : reasonOf(outcome.error, loading)
    if (loading.tools.length > 0 || failure === undefined) {
      loading.failures = 0
      change(loading, { status: 'loaded', ...(failure === undefined ? {} : { failure }) })
      loading.changed.emit()
    } else {
      loading.failures++
      change(loading, { status: 'failed', failure })
      wake(loading, backoffMs(loading.failures, { random })).unref?.()
    }
  }

  const begin = async (loading: Loading): Promise<GroupLoad> => {
    const isDone = !loading.task.isUnderWay && (isClosed || loading.state.status === 'loaded')
    if (!isDone) await loading.task.begin()
    return loading.state
  }

  /** Begins what was used and can be: a group that is unavailable is loaded when it is there. */
  const beginWanted = () => {
    for (const loading of all.values()) {
      const isDone = loading.state.status === 'loaded'
      if (!loading.isWanted || isDone || loading.task.isUnderWay || loading.timer) continue
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
    subscribe: emitter.subscribe,
    close() {
      isClosed = true
      unsubscribe()
      for (const loading of all.values()) {
        clearTimeout(loading.timer)
        loading.task.close()
      }
    },
  }
}

function toSource(loading: Loading, members: readonly Selector[]): Source {
  const namespaces = literalNamespaces(members)
  return {
    name: `group:${loading.name}`,
    tools: () => loading.tools,
    isListed: () => loading.state.status === 'loaded',
    ...(namespaces === undefined ? {} : { namespaces }),
    subscribe: loading.changed.subscribe,
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
    return messageOf(error)
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

function reasonOf(error: unknown, loading: Loading): string {
  return error instanceof TimeoutError ? `it did not answer within ${timeoutOf(loading) / 1000} s` : messageOf(error)
}
