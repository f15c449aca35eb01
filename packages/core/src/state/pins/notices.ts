import type { Clock, StateStore } from '../../ports/ports.ts'
import { originalHash, originalDefinitionOf } from '../../tools/definition-hash.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { runWithDeadline } from '../../util/async.ts'
import { sha256Hex } from '../../util/hash.ts'
import { cut } from '../../util/text.ts'
import type { DefinitionFinding } from './definition-check.ts'
import { type DefinitionDiff, diffDefinitions } from './diff.ts'
import type { DefinitionChecks, Holding } from './holding.ts'
import type { Pin, PinBook } from './pin-book.ts'
import type { DefinitionMode, PinMode } from './pin-rules.ts'

export type PinEvent =
  | {
      readonly kind: 'changed'
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

export interface NoticesOptions {
  readonly mode: PinMode
  readonly holdsNew: boolean
  readonly check: DefinitionMode
  readonly book: PinBook
  readonly checks: DefinitionChecks
  readonly holding: Holding
  readonly emit: (event: PinEvent) => void
  readonly state: StateStore
  readonly clock: Clock
  readonly deadlineMs: number
}

const MAX_TEXT = 2000

/** A tool's difference from its pin. `diff` is absent until the pinned definition has been read. */
interface Difference {
  readonly key: string
  diff?: DefinitionDiff
}

/** Emits how tools differ from their pins, new tools, and findings, each once. */
export class Notices {
  readonly #options: NoticesOptions
  readonly #once: OnceEver
  readonly #differences = new Map<string, Difference>()
  readonly #flagged = new WeakMap<Tool, string>()
  readonly #added = new Set<string>()
  readonly #underWay = new Set<Promise<void>>()

  constructor(options: NoticesOptions) {
    this.#options = options
    this.#once = new OnceEver(options)
  }

  /** Compares the tools and the other items with their pins, and emits the news. */
  look(tools: Toolset, items: Toolset): void {
    for (const id of this.#differences.keys()) if (!tools.has(id) && !items.has(id)) this.#differences.delete(id)
    this.#lookAt(tools)
    this.#lookAt(items)
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
    return this.#differences.get(tool.id)?.diff
  }

  isBusy(): boolean {
    return this.#underWay.size > 0
  }

  /** Resolves when everything that was begun is emitted. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  #start(work: Promise<void>): void {
    const done = work.finally(() => this.#underWay.delete(done))
    this.#underWay.add(done)
  }

  #lookAtChange(tool: Tool, pin: Pin | undefined): void {
    const hash = originalHash(tool)
    if (!pin || pin.hash === hash) {
      this.#differences.delete(tool.id)
      return
    }
    const key = `${pin.hash} ${hash}`
    if (this.#differences.get(tool.id)?.key === key) return
    const difference: Difference = { key }
    this.#differences.set(tool.id, difference)
    this.#start(this.#emitChange(tool, pin, difference))
  }

  async #emitChange(tool: Tool, pin: Pin, difference: Difference): Promise<void> {
    const { mode, book, emit } = this.#options
    const diff = diffDefinitions(await book.definition(pin.hash), originalDefinitionOf(tool))
    difference.diff = diff
    await this.#once.emit(tool.id, `changed ${difference.key}`, () =>
      emit({
        kind: 'changed',
        tool: tool.id,
        hash: originalHash(tool),
        pinnedHash: pin.hash,
        diff,
        text: cut(diff.text, MAX_TEXT),
        suspended: mode === 'suspend',
      }),
    )
  }

  #lookAtNew(tool: Tool): void {
    const { id, description } = tool
    if (!this.#options.book.isNew(id) || this.#added.has(id)) return
    this.#added.add(id)
    const event: PinEvent = {
      kind: 'added',
      tool: id,
      hash: originalHash(tool),
      text: cut(`"${id}" is new: ${description}`, MAX_TEXT),
    }
    this.#start(this.#once.emit(id, 'added', () => this.#options.emit(event)))
  }

  #lookAtFindings(tool: Tool, snapshot: Toolset): void {
    const { checks, holding, emit } = this.#options
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
      text: cut(text, MAX_TEXT),
      quarantined: holding.quarantined(tool, snapshot) !== undefined,
    }
    this.#start(this.#once.emit(tool.id, `flagged ${sha256Hex(text)}`, () => emit(event)))
  }
}

/** A process remembers so many notices of one tool: a tool that changes for ever must not fill the store. */
const MAX_KEPT = 32
/** A process counts the notices of so many tools. */
const MAX_TOOLS = 100_000
const KEPT_MS = 90 * 24 * 60 * 60 * 1000
const EMITTED = 'pin-told:'

interface Pending {
  readonly key: string
  readonly emit: () => void
  readonly done: () => void
}

/**
 * Emits each notice of a tool once: not again after a restart, and not in another process that found the same. After 90
 * days, the next process to start emits it again.
 *
 * All notices of one turn are kept in one write, as a durable write costs milliseconds. A notice that cannot be kept is
 * still emitted.
 */
class OnceEver {
  readonly #options: Pick<NoticesOptions, 'state' | 'clock' | 'deadlineMs'>
  readonly #emittedHere = new Map<string, Set<string>>()
  #pending: Pending[] = []
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

  /** Returns whether this process emits them. Otherwise another process was faster. */
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

/** Returns how many things were emitted for a tool before, and `undefined` if this one was. */
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
