import type { Caller } from '../ports/caller.ts'
import { markListedForOne } from './own-tool.ts'
import { NOTHING_READ, readAgain, type Reading } from './read-source.ts'
import type { GroupSelectors } from './selector.ts'
import { isItemId } from './tool-id.ts'
import type { Tool, ToolDefinition } from './tool.ts'
import { createToolset, type Toolset } from './toolset.ts'

/** The lists of single callers, such as those of a server where each user is signed in. */
export interface OwnSources {
  /** Returns a caller's list: the same object while it stays the caller's. `undefined`: the caller has no list now. */
  of(caller: Caller): OwnSource | undefined
  /** The lists of all callers. */
  all(): Iterable<OwnSource>
  /** Calls the listener when a list was added, changed or removed. Returns a function that unsubscribes. */
  subscribe(listener: (list: OwnSource) => void): () => void
}

/** The list of one caller, or of the callers who share it. */
export interface OwnSource {
  /** The owner of the list. Shown to people. */
  readonly owner: { readonly user: string; readonly tenant?: string | undefined }
  /** Returns its items, as the `tools` of a source. */
  tools(): Iterable<Tool | ToolDefinition>
}

/** The list of one caller, at its last read. */
export interface OwnList {
  /** The name of the source. */
  readonly source: string
  readonly owner: OwnSource['owner']
  readonly tools: readonly Tool[]
}

/** The items of a catalog. */
export interface CatalogPart {
  /** The tools. */
  readonly snapshot: Toolset
  /** The resources, templates and prompts. */
  readonly items: Toolset
}

interface OwnServer {
  readonly name: string
  readonly namespaces: ReadonlySet<string>
  readonly own: OwnSources
}

/**
 * The lists of single callers in a catalog, joined with the shared items.
 *
 * A caller's own list can never replace a shared item of the same id.
 */
export class OwnLists {
  /** Whether no caller can have a list. */
  readonly isEmpty: boolean
  readonly #servers: readonly OwnServer[]
  readonly #groups: Pick<GroupSelectors, 'has' | 'keys'> | undefined
  /** Includes removed lists, so that their items stay the same objects if a list comes back. */
  readonly #readings: WeakMap<OwnSource, Reading>
  readonly #joined = new WeakMap<CatalogPart, WeakMap<Reading, CatalogPart>>()
  readonly #unsubscribes: readonly (() => void)[]

  /** `onChange` is called after a list was read again. Lists that `before` has read are not read again. */
  constructor(
    sources: readonly {
      readonly name: string
      readonly namespaces?: readonly string[]
      readonly own?: OwnSources | undefined
    }[],
    groups: Pick<GroupSelectors, 'has' | 'keys'> | undefined,
    onChange: (list: OwnSource) => void,
    before?: OwnLists,
  ) {
    this.#readings = before ? before.#readings : new WeakMap()
    this.#groups = groups
    this.#servers = sources.flatMap(({ name, namespaces = [], own }) =>
      own ? [{ name, namespaces: new Set(namespaces), own }] : [],
    )
    this.isEmpty = this.#servers.length === 0
    this.#unsubscribes = this.#servers.map((server) =>
      server.own.subscribe((list) => {
        this.#read(server, list)
        onChange(list)
      }),
    )
  }

  get lists(): readonly OwnList[] {
    return this.#servers.flatMap((server) =>
      [...server.own.all()].map((list) => {
        const { tools } = this.#readingOf(server, list)
        return { source: server.name, owner: list.owner, tools }
      }),
    )
  }

  /** Returns the shared part with the caller's own items; the shared part itself if they have none. */
  of(caller: Caller, shared: CatalogPart): CatalogPart {
    let part = shared
    for (const server of this.#servers) {
      const list = server.own.of(caller)
      if (list) part = this.#join(part, this.#readingOf(server, list))
    }
    return part
  }

  /** Returns whether any caller's list may have an id. */
  mayHave(id: string): boolean {
    const [kind = '', server = ''] = id.split(':', 2)
    const namespace = isItemId(id) ? server : kind
    return this.#servers.some(({ namespaces }) => namespaces.has(namespace))
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe()
  }

  #readingOf(server: OwnServer, list: OwnSource): Reading {
    return this.#readings.get(list) ?? this.#read(server, list)
  }

  #read({ namespaces }: OwnServer, list: OwnSource): Reading {
    const before = this.#readings.get(list) ?? NOTHING_READ
    const read = readAgain(list, this.#groups, before)
    const tools = read.tools.filter(({ namespace = '' }) => namespaces.has(namespace))
    const isSame = tools.length === before.tools.length && tools.every((tool, i) => tool === before.tools[i])
    const reading = isSame ? before : { ...read, tools }
    for (const tool of tools) markListedForOne(tool)
    this.#readings.set(list, reading)
    return reading
  }

  #join(part: CatalogPart, reading: Reading): CatalogPart {
    let known = this.#joined.get(part)
    if (!known) this.#joined.set(part, (known = new WeakMap()))
    let joined = known.get(reading)
    if (!joined) known.set(reading, (joined = join(part, reading.tools)))
    return joined
  }
}

function join(part: CatalogPart, tools: readonly Tool[]): CatalogPart {
  const added = tools.filter(({ id }) => !part.snapshot.has(id) && !part.items.has(id))
  if (added.length === 0) return part
  const ofTools = added.filter(({ kind }) => kind === 'tool')
  const others = added.filter(({ kind }) => kind !== 'tool')
  return {
    snapshot: ofTools.length === 0 ? part.snapshot : createToolset([...part.snapshot, ...ofTools]),
    items: others.length === 0 ? part.items : createToolset([...part.items, ...others]),
  }
}
