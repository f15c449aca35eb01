import type { Caller } from '../ports/caller.ts'
import {
  backoffMs,
  ConfigError,
  createEmitter,
  type Emitter,
  messageOf,
  type Outcome,
  TimeoutError,
} from '@toolgate/values'
import type { AvailabilitySource, Clock } from '../ports/ports.ts'
import type { Source } from '../tools/catalog.ts'
import type { Groups, LoadedGroup } from '../tools/groups.ts'
import { readSource } from '../tools/read-source.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Unlocks } from './unlocks.ts'
import { GroupTask } from './task.ts'

/** The state of a group's load. */
interface GroupLoad {
  /** `idle`: the group has not been used yet. A `failed` load is retried automatically. */
  readonly status: 'idle' | 'loading' | 'loaded' | 'failed'
  /** Why tools are missing. Shown to people. */
  readonly failure?: string
  /** Wall-clock milliseconds of the latest change. */
  readonly since: number
}

/** Groups whose tools are loaded at their first use. */
export interface Loads {
  /**
   * Loads a group now, unless it is loaded; one load of a group at a time. Resolves at its end, and does not reject if
   * the load fails.
   */
  load(group: string): Promise<GroupLoad>
  /** Returns the load of a group; `undefined` for a group without `load`. */
  get(group: string): GroupLoad | undefined
  /** Calls the listener at every change. Returns a function that unsubscribes. */
  subscribe(listener: (group: string) => void): () => void
}

interface LoadsOptions {
  readonly groups: Groups
  readonly availability: AvailabilitySource
  readonly clock: Clock
  readonly random?: () => number
  /** Receives errors of listeners. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
}

/** The bounds on the groups that a view can use. */
interface UsedWithin {
  readonly unlocks: Pick<Unlocks, 'openFor'>
  readonly app:
    | {
        readonly groups: readonly { readonly name: string; readonly visibility: 'conditional' | 'hidden' | undefined }[]
      }
    | undefined
}

/** The loads of a gate's groups. A load that fails does not affect the other tools, and is tried again. */
export class GroupLoads implements Loads {
  readonly sources: readonly Source[]
  readonly #groups: Groups
  readonly #all: ReadonlyMap<string, LazyGroup>
  readonly #unused: Set<string>
  readonly #emitter: Emitter<[group: string]>
  readonly #unsubscribe: () => void
  #isClosed = false

  constructor(options: LoadsOptions) {
    const { groups, availability, onFault = () => {} } = options
    const emitter = createEmitter<[group: string]>(onFault)
    const toLazyGroup = ([name, group]: [string, LoadedGroup]) =>
      [name, new LazyGroup(name, group, options, () => emitter.emit(name))] as const
    this.#groups = groups
    this.#emitter = emitter
    this.#all = new Map([...groups.loaded].map(toLazyGroup))
    this.#unused = new Set(this.#all.keys())
    this.sources = [...this.#all.values()].map((group) => group.toSource())
    this.#unsubscribe =
      this.#all.size === 0
        ? () => {}
        : availability.subscribe(() => {
            for (const group of this.#all.values()) group.loadIfWanted()
          })
  }

  /** Returns whether any group has not been used yet. */
  hasUnused(): boolean {
    return this.#unused.size > 0 && !this.#isClosed
  }

  /**
   * Starts to load the groups that a caller could use, after their view was created: the groups of the app, or otherwise
   * all groups that are not locked for the session.
   */
  async useAfter(view: Promise<unknown>, caller: Caller, { unlocks, app }: UsedWithin): Promise<void> {
    try {
      await view
    } catch {
      return
    }
    // Locks apply to sessions only.
    const open = caller.session === undefined ? undefined : unlocks.openFor(caller)
    const names = app
      ? app.groups.flatMap(({ name, visibility }) => (visibility === 'hidden' ? [] : [name]))
      : [...this.#unused]
    this.use(names.filter((name) => !open || open.has(name) || !this.#groups.locked.has(name)))
  }

  /** Starts to load these groups. */
  use(names: Iterable<string>): void {
    for (const name of names) if (this.#unused.delete(name)) this.#all.get(name)?.use()
  }

  // Hosts may detach the methods from the object.
  readonly load = async (name: string): Promise<GroupLoad> => {
    const group = this.#all.get(name)
    if (!group) throw new ConfigError(`groups.${name}`, 'is not a group with a "load"')
    this.#unused.delete(name)
    return group.load()
  }

  readonly get = (name: string): GroupLoad | undefined => this.#all.get(name)?.state

  readonly subscribe = (listener: (group: string) => void): (() => void) => this.#emitter.subscribe(listener)

  close(): void {
    this.#isClosed = true
    this.#unsubscribe()
    for (const group of this.#all.values()) group.close()
  }
}

const DEFAULT_TIMEOUT_MS = 30_000

/** A group whose tools are loaded at its first use. */
class LazyGroup {
  readonly #name: string
  readonly #options: LoadsOptions
  readonly #timeoutMs: number
  readonly #task: GroupTask<Iterable<unknown>>
  readonly #onChange: () => void
  readonly #loaded: Emitter<[]>
  #state: GroupLoad
  #tools: readonly Tool[] = []
  #isWanted = false
  /** The number of failures in a row. */
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(name: string, group: LoadedGroup, options: LoadsOptions, onChange: () => void) {
    this.#name = name
    this.#options = options
    this.#timeoutMs = group.loadTimeoutMs ?? DEFAULT_TIMEOUT_MS
    this.#onChange = onChange
    this.#loaded = createEmitter(options.onFault)
    this.#state = Object.freeze({ status: 'idle', since: options.clock.wallMs() })
    this.#task = new GroupTask<Iterable<unknown>>({
      run: (signal) => group.load({ signal }),
      deadlineMs: () => this.#timeoutMs,
      onBegin: () => {
        this.#clearTimer()
        this.#change({ ...this.#state, status: 'loading' })
      },
      onEnd: (outcome) => this.#end(outcome),
    })
  }

  get state(): GroupLoad {
    return this.#state
  }

  toSource(): Source {
    const namespaces = literalNamespaces(this.#members())
    return {
      name: `group:${this.#name}`,
      tools: () => this.#tools,
      isListed: () => this.#state.status === 'loaded',
      ...(namespaces === undefined ? {} : { namespaces }),
      subscribe: this.#loaded.subscribe,
    }
  }

  use(): void {
    this.#isWanted = true
    // Runs asynchronously, because a loader that blocks before it returns its promise must not delay a view.
    this.#loadAfter(0)
  }

  async load(): Promise<GroupLoad> {
    this.#isWanted = true
    if (this.#task.isUnderWay || this.#state.status !== 'loaded') await this.#task.begin()
    return this.#state
  }

  /** Loads an unavailable group as soon as it becomes available. */
  loadIfWanted(): void {
    const isDue = this.#isWanted && this.#state.status !== 'loaded' && !this.#task.isUnderWay && !this.#timer
    if (isDue && this.#isAvailable()) void this.load()
  }

  close(): void {
    this.#clearTimer()
    this.#task.close()
  }

  #members(): readonly Selector[] {
    return this.#options.groups.selectors.get(this.#name) ?? []
  }

  #isAvailable(): boolean {
    const { groups, availability } = this.#options
    const requires = groups.conditional.get(this.#name)?.requires ?? []
    try {
      return requires.every((required) => availability.get(required)?.available === true)
    } catch {
      return false
    }
  }

  #loadAfter(delayMs: number): NodeJS.Timeout {
    return (this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.loadIfWanted()
    }, delayMs))
  }

  #clearTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #end(outcome: Outcome<Iterable<unknown>>): void {
    const failure = 'value' in outcome ? this.#take(outcome.value) : this.#reasonOf(outcome.error)
    if (this.#tools.length > 0 || failure === undefined) {
      this.#failures = 0
      this.#change({ status: 'loaded', ...(failure === undefined ? {} : { failure }) })
      this.#loaded.emit()
    } else {
      this.#failures++
      this.#change({ status: 'failed', failure })
      const { random = Math.random } = this.#options
      this.#loadAfter(backoffMs(this.#failures, { random })).unref?.()
    }
  }

  /** Takes the tools that the group's selectors match. Returns why others were not taken. */
  #take(given: Iterable<unknown>): string | undefined {
    try {
      const { tools, rejected } = readSource({ tools: () => given }, this.#options.groups.selectors)
      const members = this.#members()
      const isMember = (tool: Tool) => members.some((selector) => matchesSelector(selector, tool, 'possible'))
      this.#tools = tools.filter(isMember)
      const foreign = tools.filter((tool) => !isMember(tool)).map(({ id }) => `"${id}" is not a tool of the group`)
      const broken = rejected.map(({ tool, reason }) => `"${tool}" cannot be used: ${reason}`)
      return [...foreign, ...broken].slice(0, MAX_REASONS).join('; ') || undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  #reasonOf(error: unknown): string {
    return error instanceof TimeoutError ? `it did not answer within ${this.#timeoutMs / 1000} s` : messageOf(error)
  }

  #change(state: Omit<GroupLoad, 'since'>): void {
    this.#state = Object.freeze({ ...state, since: this.#options.clock.wallMs() })
    this.#onChange()
  }
}

const MAX_REASONS = 20

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
