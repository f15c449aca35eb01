import { ToolgateError } from '../errors.ts'
import { isTool, type Tool } from './tool.ts'
import { createToolset, type Toolset } from './toolset.ts'

/** Anything that has tools. A dynamic one also says when they changed. */
export interface Source {
  readonly name: string
  tools(): Iterable<Tool>
  /** Hears of every change, until the function it gives is called. */
  subscribe?(listener: () => void): () => void
}

/** Two sources offered the same id: the first one's tool is the one in the catalog. */
export interface Conflict {
  readonly id: string
  readonly kept: string
  readonly dropped: string
}

/** A source that could not be read: its tools of before are kept. */
export interface SourceFailure {
  readonly source: string
  readonly error: unknown
}

/** The live collection: sources in, snapshots out. */
export interface Catalog {
  /** Grows by one with every change. */
  readonly revision: number
  readonly conflicts: readonly Conflict[]
  readonly failures: readonly SourceFailure[]
  /** Whether the tools can still change. */
  readonly dynamic: boolean
  snapshot(): Toolset
  get(id: string): Tool | undefined
  /** Whether some snapshot, now or before, had this id. */
  hasSeen(id: string): boolean
  subscribe(listener: () => void): () => void
  close(): void
}

/** @throws {ToolgateError} `tool_duplicate` where two of the fixed `tools` have one id, `tool_invalid` for what is no Tool */
export function createCatalog({
  tools = [],
  sources = [],
}: {
  tools?: Iterable<Tool>
  sources?: readonly Source[]
}): Catalog {
  const fixed = createToolset(Array.from(tools, checkTool))
  const latest = new Map<Source, readonly Tool[]>()
  const listeners = new Set<() => void>()
  let state = { revision: 1, ...merge(fixed, sources, latest) }
  const seen = new Set(state.snapshot.ids)

  const unsubscribes = sources.map((source) =>
    source.subscribe?.(() => {
      state = { revision: state.revision + 1, ...merge(fixed, sources, latest) }
      for (const id of state.snapshot.ids) seen.add(id)
      for (const listener of listeners) listener()
    }),
  )

  return {
    get revision() {
      return state.revision
    },
    get conflicts() {
      return state.conflicts
    },
    get failures() {
      return state.failures
    },
    dynamic: sources.some((source) => source.subscribe !== undefined),
    snapshot: () => state.snapshot,
    get: (id) => state.snapshot.get(id),
    hasSeen: (id) => seen.has(id),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      for (const unsubscribe of unsubscribes) unsubscribe?.()
      listeners.clear()
    },
  }
}

/** Only `defineTool` makes tools: what it has not checked and frozen could change after it was decided. */
function checkTool(tool: unknown): Tool {
  if (isTool(tool)) return tool
  throw new ToolgateError('tool_invalid', 'What is offered as a tool was not made by defineTool.')
}

function merge(fixed: Toolset, sources: readonly Source[], latest: Map<Source, readonly Tool[]>) {
  const owners = new Map<string, { tool: Tool; source: string }>()
  const conflicts: Conflict[] = []
  const failures: SourceFailure[] = []
  const add = (tool: Tool, source: string) => {
    const owner = owners.get(tool.id)
    if (owner) conflicts.push({ id: tool.id, kept: owner.source, dropped: source })
    else owners.set(tool.id, { tool, source })
  }
  for (const tool of fixed) add(tool, 'tools')
  for (const source of sources) {
    try {
      latest.set(source, Array.from(source.tools(), checkTool))
    } catch (error) {
      failures.push({ source: source.name, error })
    }
    for (const tool of latest.get(source) ?? []) add(tool, source.name)
  }
  const snapshot = createToolset([...owners.values()].map(({ tool }) => tool))
  return { snapshot, conflicts, failures }
}
