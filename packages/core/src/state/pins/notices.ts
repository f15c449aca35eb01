import type { Clock, StateStore } from '../../ports/ports.ts'
import { originalHash, originalDefinitionOf } from '../../tools/definition-hash.ts'
import type { OwnSource } from '../../tools/own-lists.ts'
import { isListedForOne } from '../../tools/own-tool.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { cut, runWithDeadline, sha256Hex } from '@toolgate/values'
import type { DefinitionFinding } from './definition-check.ts'
import { type DefinitionDiff, diffDefinitions } from './diff.ts'
import type { DefinitionChecks, Holding } from './holding.ts'
import type { Pin, PinBook } from './pin-book.ts'
import type { DefinitionMode, PinMode } from './pin-rules.ts'

/** An event about the definition of a tool. `differs`: a tool on the lists of single users, not accepted by anybody. */
export type PinEvent = PinNews & {
  /** The users whose lists have the definition; absent if all callers share it. */
  readonly users?: readonly PinUser[]
}

/** A user whose own list has a definition. */
export type PinUser = OwnSource['owner']

type PinNews =
  | {
      readonly kind: 'changed' | 'differs'
      readonly tool: string
      readonly hash: string
      readonly pinnedHash: string
      readonly diff: DefinitionDiff
      readonly text: string
      readonly suspended: boolean
    }
  | {
      readonly kind: 'added'
      readonly tool: string
      readonly hash: string
      readonly text: string
    }
  | {
      readonly kind: 'flagged'
      readonly tool: string
      readonly hash: string
      readonly findings: readonly DefinitionFinding[]
      readonly text: string
      readonly quarantined: boolean
    }
  | {
      readonly kind: 'accepted'
      readonly tool: string
      readonly hash: string
      readonly by: string
      readonly text: string
    }

interface NoticesOptions {
  readonly mode: PinMode
  readonly holdsNew: boolean
  readonly check: DefinitionMode
  readonly book: PinBook
  readonly checks: DefinitionChecks
  readonly holding: Holding
  /** Returns the users whose lists have a definition. `undefined`: all callers share it. */
  readonly usersOf: (tool: Tool) => readonly PinUser[] | undefined
  readonly emit: (event: PinEvent) => void
  readonly state: StateStore
  readonly clock: Clock
  readonly deadlineMs: number
}

const MAX_TEXT = 2000

/** A definition's difference from its pin. `diff` is absent until the pinned definition has been read. */
interface PinDifference {
  readonly tool: Tool
  /** The hash of the pin. */
  readonly from: string
  diff?: DefinitionDiff
}

/** Emits changes from pins, new tools, and findings, each once. */
export class Notices {
  readonly #options: NoticesOptions
  readonly #once: OnceEver
  /** By tool and hash, because the lists of two users may have two definitions of one tool. */
  readonly #differences = new Map<string, PinDifference>()
  readonly #flagged = new WeakMap<Tool, string>()
  readonly #added = new Set<string>()
  readonly #underWay = new Set<Promise<void>>()

  constructor(options: NoticesOptions) {
    this.#options = options
    this.#once = new OnceEver(options)
  }

  /** Compares items with their pins, and emits events about differences. */
  look(all: readonly Toolset[]): void {
    for (const [key, { tool }] of this.#differences)
      if (!all.some((set) => set.get(tool.id) === tool)) this.#differences.delete(key)
    for (const set of all) this.#lookAt(set)
  }

  #lookAt(snapshot: Toolset): void {
    const { mode, holdsNew, check, book } = this.#options
    if (mode !== 'off') {
      for (const tool of snapshot) this.#lookAtChange(tool, book.firstOf(tool.id))
    }
    if (holdsNew) for (const tool of snapshot) this.#lookAtNew(tool)
    if (check !== 'off') for (const tool of snapshot) this.#lookAtFindings(tool, snapshot)
  }

  /** Returns the difference from the pinned definition to this one. */
  diffOf(tool: Tool): DefinitionDiff | undefined {
    return this.#differences.get(keyOf(tool))?.diff
  }

  isBusy(): boolean {
    return this.#underWay.size > 0
  }

  /** Resolves when all pending events are emitted. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  #start(work: Promise<void>): void {
    const done = work.finally(() => this.#underWay.delete(done))
    this.#underWay.add(done)
  }

  #lookAtChange(tool: Tool, pin: Pin | undefined): void {
    if (!pin || pin.hash === originalHash(tool) || this.#options.book.pinOf(tool)) {
      this.#differences.delete(keyOf(tool))
      return
    }
    const before = this.#differences.get(keyOf(tool))
    if (before?.from === pin.hash) return
    const difference: PinDifference = { tool, from: pin.hash }
    this.#differences.set(keyOf(tool), difference)
    this.#start(this.#emitChange(tool, pin, difference))
  }

  async #emitChange(tool: Tool, pin: Pin, difference: PinDifference): Promise<void> {
    const { mode, book } = this.#options
    const hash = originalHash(tool)
    const diff = diffDefinitions(await book.definition(pin.hash), originalDefinitionOf(tool))
    difference.diff = diff
    const kind = isListedForOne(tool) ? 'differs' : 'changed'
    await this.#once.emit(tool.id, `${kind} ${pin.hash} ${hash}`, () =>
      this.#emit(tool, {
        kind,
        tool: tool.id,
        hash,
        pinnedHash: pin.hash,
        diff,
        text: diff.text,
        suspended: mode === 'suspend',
      }),
    )
  }

  /** Emits an event with the users whose lists have the definition. */
  #emit(tool: Tool, event: PinEvent): void {
    const { emit, usersOf } = this.#options
    const users = usersOf(tool)
    const text = users ? `only for ${namesOf(users)}: ${event.text}` : event.text
    emit({ ...event, text: cut(text, MAX_TEXT), ...(users && { users }) })
  }

  #lookAtNew(tool: Tool): void {
    const { id, description } = tool
    if (!this.#options.book.isNew(id) || this.#added.has(id)) return
    this.#added.add(id)
    const event: PinEvent = {
      kind: 'added',
      tool: id,
      hash: originalHash(tool),
      text: `"${id}" is new: ${description}`,
    }
    this.#start(this.#once.emit(id, 'added', () => this.#emit(tool, event)))
  }

  #lookAtFindings(tool: Tool, snapshot: Toolset): void {
    const { checks, holding } = this.#options
    const findings = checks.findings(tool, snapshot)
    if (findings.length === 0) return
    const text = findings.map((finding) => finding.text).join('\n')
    if (this.#flagged.get(tool) === text) return
    this.#flagged.set(tool, text)
    const event: PinEvent = {
      kind: 'flagged',
      tool: tool.id,
      hash: originalHash(tool),
      findings,
      text,
      quarantined: holding.quarantined(tool, snapshot) !== undefined,
    }
    this.#start(this.#once.emit(tool.id, `flagged ${sha256Hex(text)}`, () => this.#emit(tool, event)))
  }
}

function keyOf(tool: Tool): string {
  return `${tool.id} ${originalHash(tool)}`
}

const MAX_NAMED = 3

/** Returns `"vera", "otto" and 4 more`. */
function namesOf(users: readonly PinUser[]): string {
  const named = users
    .slice(0, MAX_NAMED)
    .map(({ user, tenant }) => JSON.stringify(tenant === undefined ? user : `${tenant}/${user}`))
  return users.length > MAX_NAMED ? `${named.join(', ')} and ${users.length - MAX_NAMED} more` : named.join(', ')
}

/**
 * The maximum number of notices that a process remembers per tool, so that a tool that keeps changing does not fill the
 * store.
 */
const MAX_KEPT = 32
/** The most tools whose notices a process counts. */
const MAX_TOOLS = 100_000
const KEPT_MS = 90 * 24 * 60 * 60 * 1000
const EMITTED = 'pin-told:'

/**
 * Emits each notice of a tool once, across restarts and processes. After 90 days, the next process to start emits it again.
 *
 * All notices of one turn are stored in one write, because a durable write costs milliseconds. A notice that cannot be
 * stored is still emitted.
 */
class OnceEver {
  readonly #options: Pick<NoticesOptions, 'state' | 'clock' | 'deadlineMs'>
  readonly #emittedHere = new Map<string, Set<string>>()
  #pending: { readonly key: string; readonly emit: () => void; readonly done: () => void }[] = []
  #isRunning = false

  constructor(options: Pick<NoticesOptions, 'state' | 'clock' | 'deadlineMs'>) {
    this.#options = options
  }

  emit(tool: string, what: string, emit: () => void): Promise<void> {
    const key = sha256Hex(`${tool} ${what}`).slice(0, 24)
    const before = remember(this.#emittedHere, tool, key)
    if (before === undefined) return Promise.resolve()
    if (before >= MAX_KEPT) {
      emit()
      return Promise.resolve()
    }
    return new Promise((done) => {
      this.#pending.push({ key, emit, done })
      // After the other notices of this turn are pending.
      if (!this.#isRunning) void Promise.resolve().then(() => this.#emitAll())
      this.#isRunning = true
    })
  }

  async #emitAll(): Promise<void> {
    while (this.#pending.length > 0) {
      const all = this.#pending
      this.#pending = []
      const before = await this.#emittedBefore()
      const news = all.filter(({ key }) => !before.has(key))
      const isOurs = news.length > 0 && (await this.#keep(news.map(({ key }) => key).toSorted()))
      if (isOurs) for (const { emit } of news) emit()
      for (const { done } of all) done()
    }
    this.#isRunning = false
  }

  async #emittedBefore(): Promise<ReadonlySet<string>> {
    const { state, deadlineMs } = this.#options
    try {
      const entries = await runWithDeadline(() => state.list(EMITTED), deadlineMs)
      return new Set(entries.flatMap(({ value }) => keysOf(value)))
    } catch {
      return new Set()
    }
  }

  /** Returns whether this process emits the notices, or another process was faster. */
  async #keep(keys: readonly string[]): Promise<boolean> {
    const { state, clock, deadlineMs } = this.#options
    const expiresAt = clock.wallMs() + KEPT_MS
    const key = EMITTED + sha256Hex(keys.join(' '))
    try {
      return await runWithDeadline(() => state.add(key, keys, { expiresAt }), deadlineMs)
    } catch {
      return true
    }
  }
}

/** Returns how many notices of a tool were emitted before; `undefined` if this one was. */
function remember(here: Map<string, Set<string>>, tool: string, key: string): number | undefined {
  let emitted = here.get(tool)
  if (!emitted) {
    if (here.size >= MAX_TOOLS) here.clear()
    here.set(tool, (emitted = new Set()))
  }
  if (emitted.has(key)) return undefined
  const before = emitted.size
  emitted.add(key)
  for (const oldest of emitted) {
    if (emitted.size <= MAX_KEPT) break
    emitted.delete(oldest)
  }
  return before
}

function keysOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((key) => typeof key === 'string') : []
}
