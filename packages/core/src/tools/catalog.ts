import type { Caller } from '../ports/caller.ts'
import { type CatalogPart, type OwnList, OwnLists, type OwnSource, type OwnSources } from './own-lists.ts'
import { NOTHING_READ, readAgain, type Reading, type RejectedTool } from './read-source.ts'
import type { GroupSelectors } from './selector.ts'
import { compareToolIds } from './tool-id.ts'
import type { Tool, ToolDefinition } from './tool.ts'
import { checkTool, createToolset, type Toolset } from './toolset.ts'
import { createEmitter, type Revision } from '@toolgate/values'

/** A source of tools. A dynamic source also reports changes. */
export interface Source {
  readonly name: string
  /**
   * Returns all tools, synchronously. Definitions are checked as by `defineTool`. Resources, templates and prompts that
   * were made by `defineResource`, `defineTemplate` and `definePrompt` may be among them.
   */
  tools(): Iterable<Tool | ToolDefinition>
  /**
   * Returns an unlisted resource by its URI, made on demand; `undefined` if the source does not have it. Called only with
   * URIs in normal form, for servers among the source's namespaces.
   */
  unlisted?(uri: string): Tool | undefined
  /** Calls the listener at every change. Returns a function that unsubscribes. */
  subscribe?(listener: () => void): () => void
  /**
   * Whether the tools are known. Until then, selectors that match nothing in the source's namespaces are not reported.
   * Default: a source with `subscribe` counts as not listed until it offers a tool.
   */
  isListed?(): boolean
  /** The namespaces of all its tools; `''` means no namespace. Default: any. */
  readonly namespaces?: readonly string[]
  /** The lists of single callers, in addition to `tools()`. They require `namespaces`, and all their items must be in these. */
  readonly own?: OwnSources | undefined
}

/** Two sources offered the same id. The catalog has the tool of the first source. */
export interface Conflict {
  readonly id: string
  readonly kept: string
  readonly dropped: string
}

/** A tool that a source offered and the catalog rejected. */
export interface Rejection extends RejectedTool {
  readonly source: string
}

/** A source that could not be read. Its previous tools are kept. */
export interface SourceFailure {
  readonly source: string
  readonly error: unknown
}

/**
 * The ids of changed items of any kind, sorted. `changed` are items with another definition, tags, scopes, groups or
 * `execute`.
 */
export interface CatalogChange {
  readonly revision: number
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  /** The owner of the list, if it was the list of a single caller. Shared ids are not included then. */
  readonly own?: OwnSource['owner']
}

/** The live collection of tools, read from sources and returned as snapshots. */
export interface Catalog {
  /** Grows by one with every change of a tool. */
  readonly revision: number
  readonly conflicts: readonly Conflict[]
  readonly rejected: readonly Rejection[]
  readonly failures: readonly SourceFailure[]
  readonly sources: readonly Source[]
  /** Whether the tools can still change. */
  readonly dynamic: boolean
  /** Sources whose tools are not known yet. */
  readonly unlisted: readonly Source[]
  /** Returns a snapshot of the tools. */
  snapshot(): Toolset
  /** Returns a snapshot of the resources, templates and prompts. */
  items(): Toolset
  /** Grows by one with every change of `items()`. */
  readonly itemsRevision: number
  /** Returns an item of any kind. */
  get(id: string): Tool | undefined
  /** Returns the catalog of a caller: the shared items, and the items of the caller alone. The same object until it changes. */
  of(caller: Caller): CatalogPart
  /** Whether any caller may have a catalog of their own. */
  readonly hasOwn: boolean
  /** The lists of single callers now. */
  readonly own: readonly OwnList[]
  /**
   * Returns whether a current or earlier snapshot had this id, or a caller's list may have it. Of removed ids, the latest
   * 100,000 are remembered.
   */
  hasSeen(id: string): boolean
  /** Calls the listener after every change, in order. Returns a function that unsubscribes. */
  subscribe(listener: (change: CatalogChange) => void): () => void
  close(): void
}

/** The parts that a catalog is built from. */
export interface CatalogParts {
  readonly tools?: Iterable<Tool>
  readonly sources?: readonly Source[]
  /** The groups that tools of sources may join. Default: any. */
  readonly groups?: Pick<GroupSelectors, 'has' | 'keys'>
}

/** A catalog whose fixed tools and sources can be replaced. */
export interface LiveCatalog extends Catalog {
  /**
   * Reads new parts while the current ones stay in use. Sources that stay are not read again. Nothing changes until
   * `commit`, which must be called synchronously.
   */
  stage(parts: CatalogParts): StagedCatalog
}

/** A catalog before it takes effect. */
export interface StagedCatalog extends Pick<Catalog, 'sources' | 'dynamic' | 'snapshot' | 'items'> {
  /** Replaces the parts, and returns a function that notifies the listeners. */
  commit(): () => void
}

export interface CatalogOptions extends CatalogParts {
  /** Bumped with every change of a tool. */
  readonly changes: Revision
  /** Called after each read of a source, also if its tools stay the same. Default: ignores it. */
  readonly onRead?: () => void
  /** Receives errors of listeners. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
}

/**
 * Creates a catalog of fixed tools and of sources.
 *
 * A source is read whole or not at all: if it throws, its previous tools stay. An unchanged tool stays the same object,
 * even if the source creates it again, so that cached decisions stay valid.
 *
 * @throws {ToolgateError} `tool_duplicate` if two fixed `tools` have the same id; `tool_invalid`
 */
export function createCatalog({
  changes,
  tools = [],
  sources = [],
  groups,
  onRead = () => {},
  onFault = () => {},
}: CatalogOptions): LiveCatalog {
  let fixed = toFixed(tools)
  let readings: Map<Source, Reading> = new Map(sources.map((source) => [source, readAgain(source, groups)]))
  /** A source that listed its tools once stays in this set, also when it lists none later. */
  const listed = new Set<Source>()
  const emitter = createEmitter<[change: CatalogChange]>(onFault)
  const emit = inOrder(emitter.emit)
  let revision = 1
  let itemsRevision = 1
  let state = merge(fixed, readings)
  /** The same object until a tool or an item changes. */
  let part: CatalogPart = state
  const seen = new Set(state.snapshot.ids)
  // Items have their own set, so that many resources do not push tools out.
  const seenItems = new Set(state.items.ids)
  const ownChanged = (changed: OwnSource) => {
    emit(Object.freeze({ revision, added: NO_IDS, changed: NO_IDS, removed: NO_IDS, own: changed.owner }))
    onRead()
  }
  let own = new OwnLists(sources, groups, ownChanged)

  const update = (source: Source) => {
    if (!readings.has(source)) return
    readings.set(source, readAgain(source, groups, readings.get(source)))
    renew()
    onRead()
  }
  const renew = () => {
    const before = state
    const now = merge(fixed, readings)
    const change = compare(before.snapshot, now.snapshot)
    const itemsChange = compare(before.items, now.items)
    state = {
      ...now,
      snapshot: change ? now.snapshot : before.snapshot,
      items: itemsChange ? now.items : before.items,
    }
    announce(change, itemsChange)()
  }
  /** Counts a change, and returns a function that notifies the listeners. */
  const announce = (change: Difference | undefined, itemsChange: Difference | undefined): (() => void) => {
    if (!change && !itemsChange) return () => {}
    part = state
    if (change) revision += 1
    if (itemsChange) itemsRevision += 1
    changes.bump()
    remember(seen, change?.added ?? [])
    remember(seenItems, itemsChange?.added ?? [])
    const told = Object.freeze({ revision, ...join(change, itemsChange) })
    return () => emit(told)
  }
  const subscribeTo = (source: Source) => source.subscribe?.(oneAtATime(() => update(source)))
  const subscriptions = new Map(sources.map((source) => [source, subscribeTo(source)]))

  const stage = (parts: CatalogParts): StagedCatalog => {
    const { sources: nextSources = [], groups: nextGroups } = parts
    const nextFixed = toFixed(parts.tools)
    const sameGroups = isSameNames(groups, nextGroups)
    const nextReadings = new Map(
      nextSources.map((source) => {
        const before = readings.get(source)
        return [source, before && sameGroups ? before : readAgain(source, nextGroups, before)]
      }),
    )
    const next = merge(nextFixed, nextReadings)
    return {
      sources: nextSources,
      dynamic: isDynamic(nextSources),
      snapshot: () => next.snapshot,
      items: () => next.items,
      commit() {
        for (const [source, unsubscribe] of subscriptions) {
          if (nextReadings.has(source)) continue
          unsubscribe?.()
          subscriptions.delete(source)
        }
        const before = state
        own.close()
        own = new OwnLists(nextSources, nextGroups, ownChanged, sameGroups ? own : undefined)
        fixed = nextFixed
        readings = nextReadings
        sources = nextSources
        groups = nextGroups
        // New objects even if the tools are the same, because data cached for a snapshot may depend on the other rules.
        state = next
        part = next
        for (const source of sources) if (!subscriptions.has(source)) subscriptions.set(source, subscribeTo(source))
        return announce(compare(before.snapshot, next.snapshot), compare(before.items, next.items))
      },
    }
  }

  return {
    get revision() {
      return revision
    },
    get conflicts() {
      return state.conflicts
    },
    get rejected() {
      return state.rejected
    },
    get failures() {
      return state.failures
    },
    get sources() {
      return sources
    },
    get dynamic() {
      return isDynamic(sources)
    },
    stage,
    get unlisted() {
      for (const source of sources) if (isListed(source, readings.get(source))) listed.add(source)
      return sources.filter((source) => !listed.has(source))
    },
    get itemsRevision() {
      return itemsRevision
    },
    snapshot: () => state.snapshot,
    items: () => state.items,
    get: (id) => state.snapshot.get(id) ?? state.items.get(id),
    of: (caller) => (own.isEmpty ? part : own.of(caller, part)),
    get hasOwn() {
      return sources.some((source) => source.own !== undefined)
    },
    get own() {
      return own.lists
    },
    hasSeen: (id) =>
      state.snapshot.has(id) || seen.has(id) || state.items.has(id) || seenItems.has(id) || own.mayHave(id),
    subscribe: emitter.subscribe,
    close() {
      for (const unsubscribe of subscriptions.values()) unsubscribe?.()
      own.close()
      emitter.clear()
    },
  }
}

function toFixed(tools: Iterable<Tool> = []): Toolset {
  return createToolset(Array.from(tools, (tool, i) => checkTool(`tools[${i}]`, tool)))
}

function isDynamic(sources: readonly Source[]): boolean {
  return sources.some((source) => source.subscribe !== undefined || source.own !== undefined)
}

function isSameNames(a: CatalogParts['groups'], b: CatalogParts['groups']): boolean {
  if (a === b || !a || !b) return a === b
  const names = [...a.keys()]
  return names.length === [...b.keys()].length && names.every((name) => b.has(name))
}

function isListed(source: Source, reading: Reading = NOTHING_READ): boolean {
  if (source.isListed) return source.isListed()
  if (source.own) return false
  return source.subscribe === undefined || reading.tools.length + reading.rejected.length > 0
}

const NO_IDS: readonly string[] = Object.freeze([])
const MAX_SEEN = 100_000

/** Limits the memory used by a source that lists new names each time. */
function remember(seen: Set<string>, ids: readonly string[]): void {
  for (const id of ids) seen.add(id)
  for (const oldest of seen) {
    if (seen.size <= MAX_SEEN) return
    seen.delete(oldest)
  }
}

function merge(fixed: Toolset, readings: ReadonlyMap<Source, Reading>) {
  const owners = new Map<string, { tool: Tool; source: string }>()
  for (const tool of fixed) owners.set(tool.id, { tool, source: 'tools' })
  const conflicts: Conflict[] = []
  const rejected: Rejection[] = []
  const failures: SourceFailure[] = []
  for (const [{ name }, reading] of readings) {
    if (reading.failure) failures.push({ source: name, error: reading.failure.error })
    for (const one of reading.rejected) rejected.push({ source: name, ...one })
    for (const tool of reading.tools) {
      const owner = owners.get(tool.id)
      if (owner) conflicts.push({ id: tool.id, kept: owner.source, dropped: name })
      else owners.set(tool.id, { tool, source: name })
    }
  }
  const all = [...owners.values()].map(({ tool }) => tool)
  const snapshot = createToolset(all.filter(({ kind }) => kind === 'tool'))
  const items = snapshot.size === all.length ? NO_ITEMS : createToolset(all.filter(({ kind }) => kind !== 'tool'))
  return { snapshot, items, conflicts, rejected, failures }
}

const NO_ITEMS = createToolset([])

type Difference = Pick<CatalogChange, 'added' | 'changed' | 'removed'>

/** Returns the difference between two snapshots, if there is any. */
function compare(before: Toolset, now: Toolset): Difference | undefined {
  if (before === now) return undefined
  const added = now.ids.filter((id) => !before.has(id))
  const removed = before.ids.filter((id) => !now.has(id))
  const changed = now.ids.filter((id) => before.has(id) && before.get(id) !== now.get(id))
  if (added.length + removed.length + changed.length === 0) return undefined
  return { added: Object.freeze(added), changed: Object.freeze(changed), removed: Object.freeze(removed) }
}

function join(tools: Difference | undefined, items: Difference | undefined): Difference {
  if (!tools || !items) return tools ?? (items as Difference)
  const both = (part: keyof Difference) => Object.freeze([...tools[part], ...items[part]].toSorted(compareToolIds))
  return { added: both('added'), changed: both('changed'), removed: both('removed') }
}

const MAX_ROUNDS = 8

/** A source that changes while it is read is read again afterwards, up to `MAX_ROUNDS` times. */
function oneAtATime(run: () => void): () => void {
  let running = false
  let again = false
  return () => {
    again = true
    if (running) return
    running = true
    try {
      for (let round = 0; again && round < MAX_ROUNDS; round++) {
        again = false
        run()
      }
    } finally {
      running = false
    }
  }
}

/** Emits changes one after the other, also when a listener causes the next one. */
function inOrder(emit: (change: CatalogChange) => void): (change: CatalogChange) => void {
  const waiting: CatalogChange[] = []
  let isEmitting = false
  return (change) => {
    waiting.push(change)
    if (isEmitting) return
    isEmitting = true
    try {
      for (let next = waiting.shift(); next; next = waiting.shift()) emit(next)
    } finally {
      isEmitting = false
    }
  }
}
