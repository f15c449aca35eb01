import { checkShape, createEmitter, cut, safely, shapeOf, ToolgateError } from '@toolgate/values'
import type { Effect } from '../../decide/evaluation.ts'
import { pinEffects } from '../../decide/layers/held.ts'
import type { Clock, StateStore } from '../../ports/ports.ts'
import type { Catalog } from '../../tools/catalog.ts'
import { originalHash } from '../../tools/definition-hash.ts'
import type { Tool } from '../../tools/tool.ts'
import { createToolset, type Toolset } from '../../tools/toolset.ts'
import { isListedForOne } from '../../tools/own-tool.ts'
import { compareToolIds } from '../../tools/tool-id.ts'
import type { DefinitionFinding } from './definition-check.ts'
import type { DefinitionDiff } from './diff.ts'
import { createDefinitionChecks, createHolding, type Holding, type PinStatus } from './holding.ts'
import { Notices, type PinEvent, type PinUser } from './notices.ts'
import { PinBook } from './pin-book.ts'
import type { DefinitionMode, NewToolMode, PinMode } from './pin-rules.ts'

/** The state of one tool's definition. */
export interface PinnedTool {
  readonly tool: string
  readonly status: PinStatus
  /** The tool joined a known namespace, and nobody has accepted it. Only with `newTools: 'suspend'`. */
  readonly isNew: boolean
  /** The hash of the current definition. Pass it to `accept`. */
  readonly hash: string
  /** The hash of the pinned definition. */
  readonly pinnedHash: string | undefined
  /** Wall-clock milliseconds: when the pin was made, or last accepted. */
  readonly since: number | undefined
  /** Who accepted the pinned definition; absent if it was pinned when first seen. */
  readonly by: string | undefined
  /** The difference between the pinned and the current definition; absent if they are equal, or for a moment after a change. */
  readonly diff: DefinitionDiff | undefined
  readonly findings: readonly DefinitionFinding[]
  readonly quarantined: boolean
  /** The users whose lists have this definition; absent if all callers share it. */
  readonly users?: readonly PinUser[]
}

export interface PinsOptions {
  readonly catalog: Pick<Catalog, 'snapshot' | 'items' | 'own' | 'get' | 'subscribe'>
  readonly state: StateStore
  /** Default `warn`. */
  readonly mode?: PinMode
  /** Default `pin`. */
  readonly newTools?: NewToolMode
  /** Default `warn`. */
  readonly check?: DefinitionMode
  readonly clock: Clock
  /** Called once for each change, finding and acceptance, also across restarts and processes. */
  readonly onEvent?: (event: PinEvent) => void
  /** Receives the first error of a failing store until it works again, and errors of listeners. */
  readonly onFault?: (error: unknown) => void
  /** Milliseconds to wait for the store. Default 5,000. */
  readonly deadlineMs?: number
  /** Milliseconds to wait before a failed store is read again; doubles up to a minute. Default 1,000. */
  readonly retryMs?: number
  /** Milliseconds within which several changes of the store are read together. Default 250. */
  readonly refreshMs?: number
}

interface AcceptPin {
  /** The hash of the definition that the person looked at. If the definition has changed meanwhile, it is not accepted. */
  readonly hash: string
  readonly by: string
}

/** Remembers the definition of each tool, and holds back or reports changed tools. */
export interface Pins {
  /** Grows whenever the result of `effectsFor` may change. */
  readonly revision: number
  /** Returns the effects on a snapshot. Cached until the revision grows. */
  effectsFor(snapshot: Toolset): readonly Effect[]
  /**
   * Returns the tools of the catalog, sorted by id; then the resources, templates and prompts that have something to
   * report, as there may be ten thousand; then the same for the lists of single callers, each definition once.
   */
  list(): readonly PinnedTool[]
  /**
   * Pins a tool's current definition, or adds it to the pinned ones if the tool differs from user to user. A person has
   * looked at it, so the tool also leaves quarantine.
   *
   * @throws {ToolgateError} `pin_unknown` for an unknown tool, or a definition that has changed since the person looked at
   * it; `state_unavailable`
   */
  accept(tool: string, accepted: AcceptPin): Promise<PinnedTool>
  /** Calls the listener whenever the revision grows. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
  /** Resolves when everything seen so far is pinned and reported, or the store has failed. */
  settled(): Promise<void>
  close(): void
}

const OPTIONS = shapeOf<PinsOptions>({
  catalog: true,
  state: true,
  mode: true,
  newTools: true,
  check: true,
  clock: true,
  onEvent: true,
  onFault: true,
  deadlineMs: true,
  retryMs: true,
  refreshMs: true,
})
const ACCEPT = shapeOf<AcceptPin>({ hash: true, by: true }, 'field')
const DEFAULT_DEADLINE_MS = 5000
const DEFAULT_RETRY_MS = 1000
const DEFAULT_REFRESH_MS = 250
const MAX_ECHO = 64

/**
 * Creates the pins of a catalog.
 *
 * A tool is compared with its first or last accepted definition, even if it changed or was removed in between. Effects are
 * computed from the snapshot that they apply to, so no change takes effect before it is compared.
 */
export function createPins(options: PinsOptions): Pins {
  checkShape('createPins', options, OPTIONS)
  const { catalog, state, clock, mode = 'warn', newTools = 'pin', check = 'warn' } = options
  const { deadlineMs = DEFAULT_DEADLINE_MS } = options
  const holdsNew = newTools === 'suspend'
  const onFault = safely(options.onFault)
  const emit = safely(options.onEvent, onFault)
  const changes = createEmitter(onFault)
  let revision = 1
  const checks = createDefinitionChecks()
  const book = new PinBook({
    state,
    clock,
    isUsed: mode !== 'off' || holdsNew || check === 'quarantine',
    pinsAtFirstSight: mode !== 'off' || holdsNew,
    holdsNew,
    deadlineMs,
    retryMs: options.retryMs ?? DEFAULT_RETRY_MS,
    refreshMs: options.refreshMs ?? DEFAULT_REFRESH_MS,
    onChange: () => {
      if (mode === 'suspend' || holdsNew || check === 'quarantine') {
        revision++
        changes.emit()
      }
      notices.look(setsOf(catalog))
    },
    onFault,
  })
  const holding = createHolding({ mode, newTools, check, book, checks })
  const usersOf = (tool: Tool) => usersIn(catalog, tool)
  const notices = new Notices({ mode, holdsNew, check, book, checks, holding, usersOf, emit, state, clock, deadlineMs })
  const unsubscribe = watch(catalog, book, notices)
  const describe = createDescribe({ catalog, check, book, checks, holding, notices })
  return {
    get revision() {
      return revision
    },
    effectsFor: createPinEffects(holding, () => revision),
    list: () => listPins(catalog, describe),
    async accept(id, accepted) {
      checkShape('accept', accepted, ACCEPT)
      const tool = checkLookedAt(catalog, id, accepted.hash)
      if (book.pinOf(tool)?.by === undefined) emit(await acceptPin(catalog, book, tool, accepted))
      return describe(tool)
    },
    subscribe: changes.subscribe,
    async settled() {
      while (book.isBusy() || notices.isBusy()) await Promise.all([book.idle(), notices.idle()])
    },
    close() {
      unsubscribe()
      book.close()
      changes.clear()
    },
  }
}

/** Shows every definition of a catalog to the book and the notices, now and after each change. */
function watch(catalog: SeenCatalog, book: PinBook, notices: Notices): () => void {
  const see = () => {
    const sets = setsOf(catalog)
    book.see(sets.flatMap(({ tools }) => tools))
    notices.look(sets)
  }
  const unsubscribe = catalog.subscribe(see)
  see()
  return unsubscribe
}

/** Returns a function that describes the state of a tool's definition. */
function createDescribe({
  catalog,
  check,
  book,
  checks,
  holding,
  notices,
}: {
  readonly catalog: SeenCatalog
  readonly check: DefinitionMode
  readonly book: PinBook
  readonly checks: ReturnType<typeof createDefinitionChecks>
  readonly holding: Holding
  readonly notices: Notices
}): (tool: Tool) => PinnedTool {
  return (tool) => {
    const users = usersIn(catalog, tool)
    const snapshot = users ? setOf([tool]) : tool.kind === 'tool' ? catalog.snapshot() : catalog.items()
    const pin = book.pinOf(tool) ?? book.get(tool.id)
    return {
      tool: tool.id,
      status: holding.statusOf(tool),
      isNew: book.isNew(tool.id),
      hash: originalHash(tool),
      pinnedHash: pin?.hash,
      since: pin?.since,
      by: pin?.by,
      diff: notices.diffOf(tool),
      findings: check === 'off' ? [] : checks.findings(tool, snapshot),
      quarantined: holding.quarantined(tool, snapshot) !== undefined,
      ...(users && { users }),
    }
  }
}

/** Returns the rows of {@link Pins.list}. */
function listPins(catalog: SeenCatalog, describe: (tool: Tool) => PinnedTool): readonly PinnedTool[] {
  return [
    ...catalog.snapshot().tools.map(describe),
    ...[...catalog.items()].map(describe).filter(isTelling),
    ...ownOf(catalog).flatMap((tool) => {
      const row = describe(tool)
      return tool.kind === 'tool' || isTelling(row) ? [row] : []
    }),
  ]
}

/** Pins a definition that a person accepted, and returns the event to emit. */
async function acceptPin(catalog: SeenCatalog, book: PinBook, tool: Tool, { hash, by }: AcceptPin): Promise<PinEvent> {
  const { id } = tool
  await (catalog.get(id) ? book.replace(tool, by) : book.add(tool, by))
  const users = usersIn(catalog, tool)
  const text = `${by} accepted ${users ? 'a' : 'the'} definition of "${id}"`
  return { kind: 'accepted', tool: id, hash, by, text, ...(users && { users }) }
}

function isTelling({ status, findings, isNew }: PinnedTool): boolean {
  return isNew || findings.length > 0 || TELLING.has(status)
}

const TELLING: ReadonlySet<PinStatus> = new Set(['changed', 'differs', 'suspended'])

type SeenCatalog = PinsOptions['catalog']

const sets = new WeakMap<readonly Tool[], Toolset>()

function setOf(tools: readonly Tool[]): Toolset {
  let set = sets.get(tools)
  if (!set) sets.set(tools, (set = createToolset(tools)))
  return set
}

/** Returns the shared items and each list of single callers. */
function setsOf(catalog: SeenCatalog): readonly Toolset[] {
  return [catalog.snapshot(), catalog.items(), ...catalog.own.map(({ tools }) => setOf(tools))]
}

/** Returns each definition on the lists of single callers once, in the order of their ids. */
function ownOf(catalog: SeenCatalog): readonly Tool[] {
  const found = new Map<string, Tool>()
  for (const { tools } of catalog.own)
    for (const tool of tools) if (!catalog.get(tool.id)) found.set(`${tool.id} ${originalHash(tool)}`, tool)
  return [...found.values()].toSorted(
    (a, b) => compareToolIds(a.id, b.id) || (originalHash(a) < originalHash(b) ? -1 : 1),
  )
}

/** Returns the users whose own lists have a definition, or `undefined` if all callers share it. */
function usersIn(catalog: SeenCatalog, tool: Tool): readonly PinUser[] | undefined {
  if (!isListedForOne(tool)) return undefined
  const hash = originalHash(tool)
  const has = (tools: readonly Tool[]) => {
    const same = setOf(tools).get(tool.id)
    return same !== undefined && originalHash(same) === hash
  }
  return catalog.own.flatMap(({ owner, tools }) => (has(tools) ? [owner] : []))
}

/** Keeps the effects of each snapshot until the revision grows. */
function createPinEffects(holding: Holding, revisionNow: () => number): Pins['effectsFor'] {
  const known = new WeakMap<Toolset, { readonly revision: number; readonly effects: readonly Effect[] }>()
  return (snapshot) => {
    const revision = revisionNow()
    let found = known.get(snapshot)
    if (found?.revision !== revision) {
      const effects = pinEffects(snapshot, {
        suspended: holding.suspended,
        quarantined: (tool) => holding.quarantined(tool, snapshot),
      })
      known.set(snapshot, (found = { revision, effects }))
    }
    return found.effects
  }
}

/** Returns the current definition of an id that has this hash. @throws {ToolgateError} `pin_unknown` */
function checkLookedAt(catalog: SeenCatalog, id: string, hash: string): Tool {
  const shared = catalog.get(id)
  const tools = shared ? [shared] : ownOf(catalog).filter((tool) => tool.id === id)
  if (tools.length === 0) throw new ToolgateError('pin_unknown', `There is no tool "${cut(id, MAX_ECHO)}" now.`)
  const tool = tools.find((one) => originalHash(one) === hash)
  if (tool) return tool
  throw new ToolgateError('pin_unknown', `The definition of "${id}" is not the one that was looked at: it has changed.`)
}
