import type { Clock, StateStore } from '../../ports.ts'
import { definitionHash, definitionOf } from '../../tools/definition-hash.ts'
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

export interface Notices {
  /** Emits what differs from its pin, and what is found, in a snapshot. */
  look(snapshot: Toolset): void
  /** From the pinned definition to this one. */
  diffOf(tool: Tool): DefinitionDiff | undefined
  isBusy(): boolean
  /** Resolves when all that was begun is emitted. */
  idle(): Promise<void>
}

const MAX_TEXT = 2000

export function createNotices({
  mode,
  holdsNew,
  check,
  book,
  checks,
  holding,
  emit,
  state,
  clock,
  deadlineMs,
}: {
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
}): Notices {
  const emitOnce = createEmitOnce(state, clock, deadlineMs)
  const diffs = new Map<string, { readonly key: string; diff: DefinitionDiff | undefined }>()
  const flagged = new WeakMap<Tool, string>()
  const added = new Set<string>()
  const underWay = new Set<Promise<void>>()
  const start = (work: Promise<void>) => {
    const done = work.finally(() => underWay.delete(done))
    underWay.add(done)
  }

  const lookAtChange = (tool: Tool, pin: Pin | undefined) => {
    const hash = definitionHash(tool)
    if (!pin || pin.hash === hash) {
      diffs.delete(tool.id)
      return
    }
    const key = `${pin.hash} ${hash}`
    if (diffs.get(tool.id)?.key === key) return
    const entry: { readonly key: string; diff: DefinitionDiff | undefined } = { key, diff: undefined }
    diffs.set(tool.id, entry)
    start(emitChange(tool, pin, entry))
  }
  const emitChange = async (
    tool: Tool,
    pin: Pin,
    entry: { readonly key: string; diff: DefinitionDiff | undefined },
  ) => {
    const diff = diffDefinitions(await book.definition(pin.hash), definitionOf(tool))
    entry.diff = diff
    await emitOnce(tool.id, `changed ${entry.key}`, () =>
      emit({
        kind: 'changed',
        tool: tool.id,
        hash: definitionHash(tool),
        pinnedHash: pin.hash,
        diff,
        text: cut(diff.text, MAX_TEXT),
        suspended: mode === 'suspend',
      }),
    )
  }
  const lookAtNew = ({ id, description }: Tool, hash: string) => {
    if (!book.isNew(id) || added.has(id)) return
    added.add(id)
    const text = cut(`"${id}" is new: ${description}`, MAX_TEXT)
    start(emitOnce(id, 'added', () => emit({ kind: 'added', tool: id, hash, text })))
  }
  const lookAtFindings = (tool: Tool, snapshot: Toolset) => {
    const findings = checks.findings(tool, snapshot)
    if (findings.length === 0) return
    const text = findings.map((finding) => finding.text).join('\n')
    if (flagged.get(tool) === text) return
    flagged.set(tool, text)
    const event: PinEvent = {
      kind: 'flagged',
      tool: tool.id,
      hash: definitionHash(tool),
      findings,
      text: cut(text, MAX_TEXT),
      quarantined: holding.quarantined(tool, snapshot) !== undefined,
    }
    start(emitOnce(tool.id, `flagged ${sha256Hex(text)}`, () => emit(event)))
  }

  return {
    look(snapshot) {
      if (mode !== 'off') {
        for (const tool of diffs.keys()) if (!snapshot.has(tool)) diffs.delete(tool)
        for (const tool of snapshot) lookAtChange(tool, book.firstOf(tool.id))
      }
      if (holdsNew) for (const tool of snapshot) lookAtNew(tool, definitionHash(tool))
      if (check !== 'off') for (const tool of snapshot) lookAtFindings(tool, snapshot)
    },
    diffOf: (tool) => diffs.get(tool.id)?.diff,
    isBusy: () => underWay.size > 0,
    async idle() {
      await Promise.all(underWay)
    },
  }
}

/** Emits something about a tool, unless it was emitted before. */
type EmitOnce = (tool: string, what: string, emit: () => void) => Promise<void>

/** For one tool, a process remembers so many: one that never says the same twice must not fill the store. */
const MAX_KEPT = 32
/** A process counts what it emitted for so many tools. */
const MAX_TOOLS = 100_000
const KEPT_MS = 90 * 24 * 60 * 60 * 1000
const EMITTED = 'pin-told:'

interface Pending {
  readonly key: string
  readonly emit: () => void
  readonly done: () => void
}

/**
 * Returns a function that emits something about a tool once: not again after a restart, and not in another process that
 * found the same. What nobody has accepted after 90 days is emitted again by the process that starts then.
 *
 * Everything of one turn is kept in one write, as a durable write costs milliseconds. What cannot be kept is emitted
 * all the same.
 */
function createEmitOnce(state: StateStore, clock: Clock, deadlineMs: number): EmitOnce {
  const here = new Map<string, Set<string>>()
  let pending: Pending[] = []
  let running: Promise<void> | undefined
  const emittedBefore = async (): Promise<ReadonlySet<string>> => {
    try {
      const entries = await runWithDeadline(() => state.list(EMITTED), deadlineMs)
      return new Set(entries.flatMap(({ value }) => keysOf(value)))
    } catch {
      return new Set()
    }
  }
  /** Returns whether this process is the one to emit them: another one that was faster found the same. */
  const keep = async (keys: readonly string[]): Promise<boolean> => {
    const expiresAt = clock.wallMs() + KEPT_MS
    const key = EMITTED + sha256Hex(keys.join(' '))
    try {
      return await runWithDeadline(() => state.add(key, keys, { expiresAt }), deadlineMs)
    } catch {
      return true
    }
  }
  const emitAll = async (): Promise<void> => {
    while (pending.length > 0) {
      const all = pending
      pending = []
      const before = await emittedBefore()
      const news = all.filter(({ key }) => !before.has(key))
      const isOurs = news.length > 0 && (await keep(news.map(({ key }) => key).toSorted()))
      if (isOurs) for (const { emit } of news) emit()
      for (const { done } of all) done()
    }
    running = undefined
  }

  return (tool, what, emit) => {
    const key = sha256Hex(`${tool} ${what}`).slice(0, 24)
    const before = remember(here, tool, key)
    if (before === undefined) return Promise.resolve()
    if (before >= MAX_KEPT) {
      emit()
      return Promise.resolve()
    }
    return new Promise((done) => {
      pending.push({ key, emit, done })
      // After all that is found in this turn.
      running ??= Promise.resolve().then(emitAll)
    })
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
