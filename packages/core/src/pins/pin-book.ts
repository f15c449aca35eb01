import { ToolgateError } from '../errors.ts'
import type { Clock, StateStore } from '../ports.ts'
import { type Definition, definitionHash, definitionOf } from '../tools/definition-hash.ts'
import { isOwnTool } from '../tools/own-tool.ts'
import type { Tool } from '../tools/tool.ts'
import { createPinStore, type Pin, type ReadPins, type PinnedDefinition } from './pin-store.ts'

export type { Pin } from './pin-store.ts'

export interface PinBookOptions {
  readonly state: StateStore
  readonly clock: Clock
  /** Otherwise the store is not asked, and nothing is pinned but what is accepted. */
  readonly isUsed: boolean
  /** Whether tools are pinned at first sight; otherwise only what is accepted is. */
  readonly pinsAtFirstSight: boolean
  /** Whether a tool that joins the tools of a known namespace waits to be accepted. */
  readonly holdsNew: boolean
  readonly deadlineMs: number
  readonly retryMs: number
  /** Changes of the store that follow each other faster are read together. */
  readonly refreshMs: number
  /** Some pin is another now, or known, or not known any more. */
  readonly onChange: () => void
  readonly onFault: (error: unknown) => void
}

/** The pins of a store, as this process knows them. */
export interface PinBook {
  get(tool: string): Pin | undefined
  /** The pin, or where it cannot be known what the tool was when this process first saw it. */
  firstOf(tool: string): Pin | undefined
  /** Returns `true` for a tool that joined the tools of a known namespace and that nobody has accepted. */
  isNew(tool: string): boolean
  /** Why a tool has no pin. */
  problemOf(tool: string): string
  /** Pins what is seen for the first time. */
  see(tools: readonly Tool[]): void
  replace(tool: Tool, by: string): Promise<void>
  definition(hash: string): Promise<unknown>
  isBusy(): boolean
  /** Resolves when the store has said, or failed to say, what it was asked. */
  idle(): Promise<void>
  close(): void
}

const MAX_RETRY_MS = 60_000
/** A source that never lists the same names twice must not fill the store. */
const MAX_PINS = 100_000

/**
 * Gives the book of a store's pins: read whole at the beginning and after each change of the store.
 *
 * It begins at the first sight. With a store that answers at once it is complete when `see` returns. While the store fails, what is known stays
 * known and what is not stays unknown; it is asked again until it works.
 */
export function createPinBook(options: PinBookOptions): PinBook {
  const { state, clock, deadlineMs, onChange, onFault } = options
  const store = createPinStore(state, deadlineMs)
  const firstSeen = new Map<string, PinnedDefinition>()
  const newcomers = createNewcomers()
  let known: ReadPins = { pins: new Map(), unreadable: new Set(), isBroken: false }
  let isRead = false
  let isBusy = false
  let isAgain = false
  let isClosed = false
  const waiting: (() => void)[] = []
  let failure: { readonly error: unknown } | undefined

  const retry = createRetry(options.retryMs, () => update())
  const isMissing = (tool: string) => !known.pins.has(tool) && !known.unreadable.has(tool)

  /** Reads all pins, then adds what is missing: one round at a time, as a round is what makes the store say it changed. */
  const update = () => {
    isAgain = isBusy
    if (isBusy || isClosed) return
    isBusy = true
    round(true)
  }
  /** What was added is read again: another process may have been faster. */
  const round = (adds: boolean) => {
    store.readAll((answer) => {
      if ('error' in answer) return end(answer)
      take(answer.value)
      const pinned = adds ? missing() : []
      if (pinned.length === 0) return end(undefined)
      store.addAll(pinned, (added) => ('error' in added ? end(added) : round(false)))
    })
  }
  const end = (failed: { readonly error: unknown } | undefined) => {
    isBusy = false
    if (!isAgain || failed || isClosed) for (const resolve of waiting.splice(0)) resolve()
    if (isClosed) return
    if (failed) {
      if (!failure) onFault(unavailable(failed.error))
      failure = failed
      retry.later()
      onChange()
    } else {
      if (failure) onChange()
      failure = undefined
      retry.reset()
      if (isAgain) update()
    }
  }
  const take = (read: ReadPins) => {
    const isSame = isRead && areSame(known, read)
    if (read.isBroken && !known.isBroken) onFault(unreadable('some tools'))
    for (const tool of read.unreadable) if (!known.unreadable.has(tool)) onFault(unreadable(`"${tool}"`))
    known = read
    isRead = true
    for (const tool of firstSeen.keys()) if (read.pins.has(tool)) firstSeen.delete(tool)
    if (!isSame) onChange()
  }
  const isNew = (tool: string) => options.holdsNew && isRead && isMissing(tool) && newcomers.has(tool, known)
  const missing = (): readonly (readonly [string, PinnedDefinition])[] =>
    known.isBroken
      ? []
      : [...firstSeen]
          .filter(([tool]) => isMissing(tool) && !isNew(tool))
          .slice(0, Math.max(0, MAX_PINS - known.pins.size))
  const keep = (added: readonly (readonly [string, Pin])[]) => {
    for (const [tool, pin] of added) {
      known.pins.set(tool, pin)
      firstSeen.delete(tool)
    }
    if (added.length > 0) onChange()
  }
  const pace = createPace(options.refreshMs, () => update())
  const unsubscribe = options.isUsed ? follow(state, () => pace.ask(), onFault) : () => {}

  return {
    get: (tool) => known.pins.get(tool),
    firstOf: (tool) => known.pins.get(tool) ?? firstSeen.get(tool)?.pin,
    isNew,
    problemOf(tool) {
      if (known.unreadable.has(tool)) return 'its pin cannot be read'
      if (known.isBroken) return 'some pins cannot be read, and this may be of them'
      if (failure) return 'the store of pins does not answer'
      return known.pins.size >= MAX_PINS ? `there are ${MAX_PINS} pins already` : 'its pin is not known yet'
    },
    see(tools) {
      if (!options.isUsed) return
      if (options.holdsNew) newcomers.see(tools)
      const isNews = options.pinsAtFirstSight && seeFirst(firstSeen, tools, (tool) => known.pins.has(tool), clock)
      if ((isNews || !isRead) && !failure) update()
    },
    async replace(tool, by) {
      const pin = { hash: definitionHash(tool), since: clock.wallMs(), by }
      try {
        await store.replace(tool.id, pin, definitionOf(tool), known.pins.get(tool.id))
      } catch (error) {
        throw unavailable(error)
      }
      keep([[tool.id, pin]])
      // A round that began before has read the old pin, and this one sets it right.
      update()
    },
    definition: async (hash) => pinnedOf(firstSeen, hash) ?? (await store.definition(hash)),
    isBusy: () => isBusy || pace.isAsked(),
    idle() {
      pace.flush()
      return isBusy ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()
    },
    close() {
      isClosed = true
      unsubscribe()
      retry.close()
      pace.close()
    },
  }
}

/** A store that cannot say when it changed is read at the changes that this process knows of. */
function follow(state: StateStore, listener: () => void, onFault: (error: unknown) => void): () => void {
  try {
    return state.subscribe(listener)
  } catch (error) {
    onFault(unavailable(error))
    return () => {}
  }
}

/**
 * Tells the first listing of a namespace from the tools that join it later.
 *
 * A namespace is known by the pins of its tools in the store, and by what this process saw before.
 */
function createNewcomers() {
  const seen = new Set<string>()
  const late = new Set<string>()
  let latest: { readonly pins: ReadPins; readonly namespaces: ReadonlySet<string> } | undefined
  const namespacesOf = (pins: ReadPins): ReadonlySet<string> => {
    if (latest?.pins !== pins) {
      const ids = [...pins.pins.keys(), ...pins.unreadable]
      latest = { pins, namespaces: new Set(ids.map(namespaceOf)) }
    }
    return latest.namespaces
  }
  const listed = new Set<string>()
  const own = new Set<string>()
  return {
    see(tools: readonly Tool[]) {
      for (const bounded of [listed, late]) if (bounded.size > MAX_PINS) bounded.clear()
      for (const tool of tools) if (isOwnTool(tool)) own.add(tool.id)
      const news = tools.filter(({ id }) => !listed.has(id))
      for (const { id } of news) if (seen.has(namespaceOf(id))) late.add(id)
      for (const { id } of news) {
        listed.add(id)
        seen.add(namespaceOf(id))
      }
    },
    has: (tool: string, pins: ReadPins) =>
      !own.has(tool) && (late.has(tool) || namespacesOf(pins).has(namespaceOf(tool))),
  }
}

function namespaceOf(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf(':')))
}

/** Answers whether there is something that has to be pinned. */
function seeFirst(
  firstSeen: Map<string, PinnedDefinition>,
  tools: readonly Tool[],
  isPinned: (tool: string) => boolean,
  clock: Clock,
): boolean {
  let isNews = false
  for (const tool of tools) {
    if (isPinned(tool.id) || firstSeen.has(tool.id)) continue
    const pin = { hash: definitionHash(tool), since: clock.wallMs() }
    firstSeen.set(tool.id, { pin, definition: definitionOf(tool) })
    isNews = true
  }
  for (const oldest of firstSeen.keys()) {
    if (firstSeen.size <= MAX_PINS) break
    firstSeen.delete(oldest)
  }
  return isNews
}

function pinnedOf(firstSeen: ReadonlyMap<string, PinnedDefinition>, hash: string): Definition | undefined {
  for (const { pin, definition } of firstSeen.values()) if (pin.hash === hash) return definition
  return undefined
}

function areSame(before: ReadPins, now: ReadPins): boolean {
  if (
    before.isBroken !== now.isBroken ||
    before.pins.size !== now.pins.size ||
    before.unreadable.size !== now.unreadable.size
  )
    return false
  for (const tool of now.unreadable) if (!before.unreadable.has(tool)) return false
  for (const [tool, { hash, since, by }] of now.pins) {
    const old = before.pins.get(tool)
    if (old?.hash !== hash || old.since !== since || old.by !== by) return false
  }
  return true
}

/** Waits longer each time, and keeps no process alive. */
function createRetry(firstMs: number, again: () => void) {
  let delayMs = firstMs
  let timer: NodeJS.Timeout | undefined
  const close = () => clearTimeout(timer)
  return {
    later() {
      close()
      timer = setTimeout(again, delayMs)
      timer.unref()
      delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)
    },
    reset() {
      close()
      delayMs = firstMs
    },
    close,
  }
}

/** At once, and then no more often than that: the store has other things in it, which change more than pins do. */
function createPace(everyMs: number, run: () => void) {
  let timer: NodeJS.Timeout | undefined
  let isAsked = false
  const ask = () => {
    isAsked = true
    if (timer !== undefined) return
    isAsked = false
    timer = setTimeout(() => {
      timer = undefined
      if (isAsked) ask()
    }, everyMs)
    timer.unref()
    run()
  }
  return {
    ask,
    isAsked: () => isAsked,
    flush() {
      const wasAsked = isAsked
      isAsked = false
      if (wasAsked) run()
    },
    close: () => clearTimeout(timer),
  }
}

function unavailable(cause: unknown): ToolgateError {
  return new ToolgateError('state_unavailable', 'The store of pins does not answer.', { cause })
}

function unreadable(tool: string): ToolgateError {
  return new ToolgateError('state_invalid', `The pin of ${tool} cannot be read.`)
}
