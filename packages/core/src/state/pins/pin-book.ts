import { ToolgateError } from '@toolgate/values'
import type { Clock, StateEntry, StateStore } from '../../ports/ports.ts'
import { type Completion, Mirror } from '../mirror.ts'
import { originalHash, originalDefinitionOf } from '../../tools/definition-hash.ts'
import { isOwnTool } from '../../tools/own-tool.ts'
import { isItemId } from '../../tools/tool-id.ts'
import type { Tool } from '../../tools/tool.ts'
import { createPinStore, type Pin, PINS, type PinStore, type ReadPins, type PinnedDefinition } from './pin-store.ts'

export type { Pin } from './pin-store.ts'

interface PinBookOptions {
  readonly state: StateStore
  readonly clock: Clock
  /** If `false`, the store is not read, and only accepted definitions are pinned. */
  readonly isUsed: boolean
  /** Whether tools are pinned when first seen. If not, only accepted definitions are pinned. */
  readonly pinsAtFirstSight: boolean
  /** Whether a new tool of a known namespace must be accepted before it can be used. */
  readonly holdsNew: boolean
  readonly deadlineMs: number
  readonly retryMs: number
  /** Milliseconds within which several changes of the store are read together. */
  readonly refreshMs: number
  /** Called when a pin changed, was read, or can no longer be read. */
  readonly onChange: () => void
  readonly onFault: (error: unknown) => void
}

const MAX_RETRY_MS = 60_000
/** The most pins, so that a source with ever new names does not fill the store. */
const MAX_PINS = 100_000
/** The most pins of resources, templates and prompts, so that a server with ever new URIs leaves room for tools. */
const MAX_ITEM_PINS = 50_000

/**
 * The pins of a store, as this process knows them.
 *
 * With a synchronous store, it is complete when `see` returns. While the store fails, the last read pins stay in use.
 */
export class PinBook {
  readonly #options: PinBookOptions
  readonly #store: PinStore
  readonly #mirror: Mirror
  readonly #firstSeen = new Map<string, PinnedDefinition>()
  readonly #newcomers = createNewcomers()
  #known: ReadPins = { pins: new Map(), more: new Map(), unreadable: new Set(), isBroken: false }

  constructor(options: PinBookOptions) {
    this.#options = options
    const { state, deadlineMs, retryMs, refreshMs, onChange, onFault } = options
    this.#store = createPinStore(state, deadlineMs)
    this.#mirror = new Mirror({
      state,
      prefix: PINS,
      deadlineMs,
      retryMs,
      maxRetryMs: MAX_RETRY_MS,
      gapMs: refreshMs,
      onRead: (entries, isFirst) => this.#read(entries, isFirst),
      onFailed: (error, times) => {
        if (times === 1) onFault(unavailable(error))
        onChange()
      },
      onRecovered: onChange,
    })
  }

  get(tool: string): Pin | undefined {
    return this.#known.pins.get(tool)
  }

  /** Returns the pin of exactly this definition: a tool may have several. */
  pinOf(tool: Tool): Pin | undefined {
    const hash = originalHash(tool)
    const pin = this.get(tool.id)
    return pin?.hash === hash ? pin : this.#known.more.get(tool.id)?.find((one) => one.hash === hash)
  }

  /** Returns the pin. If the pin is unknown, returns the definition that this process saw first. */
  firstOf(tool: string): Pin | undefined {
    return this.get(tool) ?? this.#firstSeen.get(tool)?.pin
  }

  /** Returns `true` for a tool that joined the tools of a known namespace and that nobody has accepted. */
  isNew(tool: string): boolean {
    return (
      this.#options.holdsNew && this.#mirror.isRead && this.#isMissing(tool) && this.#newcomers.has(tool, this.#known)
    )
  }

  /** Returns why a tool has no pin. */
  problemOf(tool: string): string {
    const { pins, unreadable, isBroken } = this.#known
    if (unreadable.has(tool)) return 'its pin cannot be read'
    if (isBroken) return 'some pins cannot be read, and this may be of them'
    if (this.#mirror.isFailing) return 'the store of pins does not answer'
    return pins.size >= MAX_PINS ? `there are ${MAX_PINS} pins already` : 'its pin is not known yet'
  }

  /** Pins tools that are seen for the first time. */
  see(tools: readonly Tool[]): void {
    const { isUsed, holdsNew, pinsAtFirstSight } = this.#options
    if (!isUsed) return
    if (holdsNew) this.#newcomers.see(tools)
    const isNews = pinsAtFirstSight && this.#seeFirst(tools)
    if (!this.#mirror.isStarted) this.#mirror.start()
    else if ((isNews || !this.#mirror.isRead) && !this.#mirror.isFailing) this.#mirror.refresh()
  }

  /** Makes a definition the accepted one of a tool. @throws {ToolgateError} `state_unavailable` */
  async replace(tool: Tool, by: string): Promise<void> {
    const { id } = tool
    const pin = this.#toPin(tool, by)
    await this.#write(id, () => this.#store.replace(id, pin, originalDefinitionOf(tool), this.#known.pins.get(id)))
    this.#known.pins.set(id, pin)
    this.#firstSeen.delete(id)
    this.#options.onChange()
  }

  /** Accepts a definition beside the others of a tool. @throws {ToolgateError} `state_unavailable` */
  async add(tool: Tool, by: string): Promise<void> {
    const { id } = tool
    const pin = this.#toPin(tool, by)
    const first = this.get(id)
    if (!first || first.hash === pin.hash) return this.replace(tool, by)
    await this.#write(id, () => this.#store.add(id, pin, originalDefinitionOf(tool)))
    const others = (this.#known.more.get(id) ?? []).filter(({ hash }) => hash !== pin.hash)
    this.#known.more.set(id, [...others, pin])
    this.#options.onChange()
  }

  #toPin(tool: Tool, by: string): Pin {
    return { hash: originalHash(tool), since: this.#options.clock.wallMs(), by }
  }

  async #write(id: string, write: () => Promise<void>): Promise<void> {
    try {
      await this.#mirror.write(id, write)
    } catch (error) {
      throw unavailable(error)
    }
  }

  async definition(hash: string): Promise<unknown> {
    for (const { pin, definition } of this.#firstSeen.values()) if (pin.hash === hash) return definition
    return this.#store.definition(hash)
  }

  isBusy(): boolean {
    return this.#mirror.isBusy
  }

  /** Resolves when all requests to the store have ended, even with an error. */
  idle(): Promise<void> {
    return this.#mirror.idle()
  }

  close(): void {
    this.#mirror.close()
  }

  #read(entries: readonly StateEntry[], isFirst: boolean): Completion | undefined {
    const { onFault, onChange } = this.#options
    const read = this.#store.read(entries)
    const isSame = !isFirst && areSame(this.#known, read)
    if (read.isBroken && !this.#known.isBroken) onFault(unreadablePin('some tools'))
    for (const tool of read.unreadable) if (!this.#known.unreadable.has(tool)) onFault(unreadablePin(`"${tool}"`))
    this.#known = read
    for (const tool of this.#firstSeen.keys()) if (read.pins.has(tool)) this.#firstSeen.delete(tool)
    if (!isSame) onChange()
    const missing = this.#missing()
    return missing.length === 0 ? undefined : (done) => this.#store.addAll(missing, done)
  }

  #isMissing(tool: string): boolean {
    return !this.#known.pins.has(tool) && !this.#known.unreadable.has(tool)
  }

  #missing(): readonly (readonly [string, PinnedDefinition])[] {
    if (this.#known.isBroken) return []
    const { pins } = this.#known
    const missing = [...this.#firstSeen].filter(([tool]) => this.#isMissing(tool) && !this.isNew(tool))
    const tools = missing.filter(([id]) => !isItemId(id))
    const items = missing.filter(([id]) => isItemId(id))
    const room = Math.max(0, MAX_PINS - pins.size)
    const itemPins = items.length === 0 ? 0 : [...pins.keys()].filter(isItemId).length
    const itemRoom = Math.max(0, Math.min(room - tools.length, MAX_ITEM_PINS - itemPins))
    return [...tools.slice(0, room), ...items.slice(0, itemRoom)]
  }

  /** Returns whether any tool must be pinned. */
  #seeFirst(tools: readonly Tool[]): boolean {
    let isNews = false
    for (const tool of tools) {
      if (this.firstOf(tool.id)) continue
      const pin = { hash: originalHash(tool), since: this.#options.clock.wallMs() }
      this.#firstSeen.set(tool.id, { pin, definition: originalDefinitionOf(tool) })
      isNews = true
    }
    for (const keepsTools of [true, false])
      for (const oldest of this.#firstSeen.keys()) {
        if (this.#firstSeen.size <= MAX_PINS) break
        if (!keepsTools || isItemId(oldest)) this.#firstSeen.delete(oldest)
      }
    return isNews
  }
}

/**
 * Separates the first listing of a namespace from the tools that join it later.
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

/** The resources and prompts of a server count apart from its tools: `resource:files`. */
function namespaceOf(id: string): string {
  const first = id.indexOf(':')
  return id.slice(0, Math.max(0, isItemId(id) ? id.indexOf(':', first + 1) : first))
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
  return textOfMore(before) === textOfMore(now)
}

function textOfMore({ more }: ReadPins): string {
  return [...more.values()]
    .flatMap((pins) => pins.map(({ hash, since, by }) => `${hash} ${since} ${by}`))
    .toSorted()
    .join('\n')
}

function unavailable(cause: unknown): ToolgateError {
  return new ToolgateError('state_unavailable', 'The store of pins does not answer.', { cause })
}

function unreadablePin(tool: string): ToolgateError {
  return new ToolgateError('state_invalid', `The pin of ${tool} cannot be read.`)
}
