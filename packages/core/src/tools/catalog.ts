import type { Caller } from '../ports/caller.ts'
import { inOrder, oneAtATime } from './in-order.ts'
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
interface Conflict {
  readonly id: string
  readonly kept: string
  readonly dropped: string
}

/** A tool that a source offered and the catalog rejected. */
interface Rejection extends RejectedTool {
  readonly source: string
}

/** A source that could not be read. Its previous tools are kept. */
interface SourceFailure {
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
interface CatalogParts {
  readonly tools?: Iterable<Tool>
  readonly sources?: readonly Source[]
  /** The groups that tools of sources may join. Default: any. */
  readonly groups?: Pick<GroupSelectors, 'has' | 'keys'> | undefined
}

/** A catalog whose fixed tools and sources can be replaced. */
interface LiveCatalog extends Catalog {
  /**
   * Reads new parts while the current ones stay in use. Sources that stay are not read again. Nothing changes until
   * `commit`, which must be called synchronously.
   */
  stage(parts: CatalogParts): CatalogStage
}

/** A catalog before it takes effect. */
interface CatalogStage extends Pick<Catalog, 'sources' | 'dynamic' | 'snapshot' | 'items'> {
  /** Replaces the parts, and returns a function that notifies the listeners. */
  commit(): () => void
}

interface CatalogOptions extends CatalogParts {
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
  const emitter = createEmitter<[change: CatalogChange]>(onFault)
  const contents = new Contents({ tools, sources, groups }, { changes, onRead, emit: inOrder(emitter.emit) })
  return {
    get revision() {
      return contents.revision
    },
    get conflicts() {
      return contents.now.conflicts
    },
    get rejected() {
      return contents.now.rejected
    },
    get failures() {
      return contents.now.failures
    },
    get sources() {
      return contents.sources
    },
    get dynamic() {
      return isDynamic(contents.sources)
    },
    stage: (parts) => contents.stage(parts),
    get unlisted() {
      return contents.unlisted()
    },
    get itemsRevision() {
      return contents.itemsRevision
    },
    snapshot: () => contents.now.snapshot,
    items: () => contents.now.items,
    get: (id) => contents.now.snapshot.get(id) ?? contents.now.items.get(id),
    of: (caller) => (contents.own.isEmpty ? contents.part : contents.own.of(caller, contents.part)),
    get hasOwn() {
      return contents.sources.some((source) => source.own !== undefined)
    },
    get own() {
      return contents.own.lists
    },
    hasSeen: (id) => contents.hasSeen(id),
    subscribe: emitter.subscribe,
    close() {
      contents.close()
      emitter.clear()
    },
  }
}

/** The parts of a catalog with every source read, before they take effect. */
interface ReadParts {
  readonly fixed: Toolset
  readonly readings: Map<Source, Reading>
  readonly sources: readonly Source[]
  readonly groups: CatalogParts['groups']
}

/** The listeners of a catalog. */
interface CatalogListeners {
  readonly changes: Revision
  readonly onRead: () => void
  readonly emit: (change: CatalogChange) => void
}

/** The fixed tools of a catalog and the last reading of each source, merged. */
class Contents {
  revision = 1
  itemsRevision = 1
  own: OwnLists
  now: Merged
  /** The same object until a tool or an item changes. */
  part: CatalogPart
  #parts: ReadParts
  readonly #listening: CatalogListeners
  /** The sources that have listed their tools at least once, even if they list none now. */
  readonly #listed = new Set<Source>()
  readonly #seen: Set<string>
  // Items have their own set, so that many resources do not push tools out.
  readonly #seenItems: Set<string>
  readonly #subscriptions = new Map<Source, (() => void) | undefined>()

  constructor({ tools, sources = [], groups }: CatalogParts, listening: CatalogListeners) {
    const readings = new Map(sources.map((source) => [source, readAgain(source, groups)]))
    this.#parts = { fixed: toFixed(tools), readings, sources, groups }
    this.#listening = listening
    this.now = this.part = merge(this.#parts)
    this.#seen = new Set(this.now.snapshot.ids)
    this.#seenItems = new Set(this.now.items.ids)
    this.own = new OwnLists(sources, groups, this.#ownChanged)
    this.#subscribeToAll()
  }

  get sources(): readonly Source[] {
    return this.#parts.sources
  }

  hasSeen(id: string): boolean {
    const { snapshot, items } = this.now
    return snapshot.has(id) || this.#seen.has(id) || items.has(id) || this.#seenItems.has(id) || this.own.mayHave(id)
  }

  unlisted(): readonly Source[] {
    const { sources, readings } = this.#parts
    for (const source of sources) if (isListed(source, readings.get(source))) this.#listed.add(source)
    return sources.filter((source) => !this.#listed.has(source))
  }

  stage({ tools, sources = [], groups }: CatalogParts): CatalogStage {
    const fixed = toFixed(tools)
    const sameGroups = isSameNames(this.#parts.groups, groups)
    const readings = new Map(
      sources.map((source) => {
        const before = this.#parts.readings.get(source)
        return [source, before && sameGroups ? before : readAgain(source, groups, before)]
      }),
    )
    const parts = { fixed, readings, sources, groups }
    const next = merge(parts)
    return {
      sources,
      dynamic: isDynamic(sources),
      snapshot: () => next.snapshot,
      items: () => next.items,
      commit: () => this.#commit(parts, next, sameGroups),
    }
  }

  #commit(parts: ReadParts, next: Merged, sameGroups: boolean): () => void {
    const { sources, groups, readings } = parts
    for (const [source, unsubscribe] of this.#subscriptions) {
      if (readings.has(source)) continue
      unsubscribe?.()
      this.#subscriptions.delete(source)
    }
    const before = this.now
    this.own.close()
    this.own = new OwnLists(sources, groups, this.#ownChanged, sameGroups ? this.own : undefined)
    this.#parts = parts
    // New objects even if the tools are the same, because data cached for a snapshot may depend on the other rules.
    this.now = this.part = next
    this.#subscribeToAll()
    return this.#announce(compare(before.snapshot, next.snapshot), compare(before.items, next.items))
  }

  #subscribeToAll(): void {
    for (const source of this.sources) {
      if (this.#subscriptions.has(source)) continue
      this.#subscriptions.set(source, source.subscribe?.(oneAtATime(() => this.#update(source))))
    }
  }

  #update(source: Source): void {
    const { readings, groups } = this.#parts
    if (!readings.has(source)) return
    readings.set(source, readAgain(source, groups, readings.get(source)))
    this.#renew()
    this.#listening.onRead()
  }

  #renew(): void {
    const before = this.now
    const now = merge(this.#parts)
    const change = compare(before.snapshot, now.snapshot)
    const itemsChange = compare(before.items, now.items)
    this.now = {
      ...now,
      snapshot: change ? now.snapshot : before.snapshot,
      items: itemsChange ? now.items : before.items,
    }
    this.#announce(change, itemsChange)()
  }

  /** Counts a change, and returns a function that notifies the listeners. */
  #announce(change: CatalogDifference | undefined, itemsChange: CatalogDifference | undefined): () => void {
    if (!change && !itemsChange) return () => {}
    this.part = this.now
    if (change) this.revision += 1
    if (itemsChange) this.itemsRevision += 1
    this.#listening.changes.bump()
    remember(this.#seen, change?.added ?? [])
    remember(this.#seenItems, itemsChange?.added ?? [])
    const told = Object.freeze({ revision: this.revision, ...join(change, itemsChange) })
    return () => this.#listening.emit(told)
  }

  readonly #ownChanged = ({ owner }: OwnSource): void => {
    const { emit, onRead } = this.#listening
    emit(Object.freeze({ revision: this.revision, added: NO_IDS, changed: NO_IDS, removed: NO_IDS, own: owner }))
    onRead()
  }

  close(): void {
    for (const unsubscribe of this.#subscriptions.values()) unsubscribe?.()
    this.own.close()
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

type Merged = Pick<Catalog, 'conflicts' | 'rejected' | 'failures'> & CatalogPart

function merge({ fixed, readings }: ReadParts): Merged {
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

type CatalogDifference = Pick<CatalogChange, 'added' | 'changed' | 'removed'>

/** Returns the difference between two snapshots, if there is any. */
function compare(before: Toolset, now: Toolset): CatalogDifference | undefined {
  if (before === now) return undefined
  const added = now.ids.filter((id) => !before.has(id))
  const removed = before.ids.filter((id) => !now.has(id))
  const changed = now.ids.filter((id) => before.has(id) && before.get(id) !== now.get(id))
  if (added.length + removed.length + changed.length === 0) return undefined
  return { added: Object.freeze(added), changed: Object.freeze(changed), removed: Object.freeze(removed) }
}

function join(tools: CatalogDifference | undefined, items: CatalogDifference | undefined): CatalogDifference {
  if (!tools || !items) return tools ?? (items as CatalogDifference)
  const both = (part: keyof CatalogDifference) =>
    Object.freeze([...tools[part], ...items[part]].toSorted(compareToolIds))
  return { added: both('added'), changed: both('changed'), removed: both('removed') }
}
