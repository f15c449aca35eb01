import { randomUUID } from 'node:crypto'
import type {
  HistoryAddition,
  HistoryAnswer,
  HistoryItem,
  HistoryOpening,
  HistoryPart,
  HistoryStore,
} from '../ports/history.ts'
import { checkShape, shapeOf, ToolgateError } from '@toolgate/values'

interface MemoryHistoriesOptions {
  /** Approximate bytes of all histories together. Default 64 MB. Shadow histories have the same amount of their own. */
  readonly maxBytes?: number
  /** Bytes of the histories of one user and client. Default 16 MB. */
  readonly maxBytesOfOwner?: number
}

export interface MemoryHistories extends HistoryStore {
  /** How many histories are held now. */
  readonly size: number
  /** Their approximate size in bytes. */
  readonly bytes: number
  read(id: string, since: Parameters<HistoryStore['read']>[1], nowMs: number): HistoryPart | undefined
  open(id: string, opening: HistoryOpening): HistoryPart
  add(id: string, addition: HistoryAddition): HistoryAnswer | undefined
  end(id: string): void
}

const OPTIONS = shapeOf<MemoryHistoriesOptions>({ maxBytes: true, maxBytesOfOwner: true })
const MB = 1024 * 1024
/** Approximate bytes of an empty history, and of an item without its texts. */
const HISTORY_BYTES = 500
const ITEM_BYTES = 100
/** How many histories each opening checks for expiry. */
const SWEPT_AT_ONCE = 64

/**
 * Creates a synchronous store of histories in this process.
 *
 * Nothing is deleted to make room: if the store is full, new histories are refused.
 */
export function memoryHistories(options: MemoryHistoriesOptions = {}): MemoryHistories {
  checkShape('memoryHistories', options, OPTIONS)
  const store = new HistoryTable(options)
  // Own properties, so that a host may spread the store and replace one of them.
  return {
    get size() {
      return store.size
    },
    get bytes() {
      return store.bytes
    },
    read: (id, since, nowMs) => store.read(id, since, nowMs),
    open: (id, opening) => store.open(id, opening),
    add: (id, addition) => store.add(id, addition),
    end: (id) => store.end(id),
  }
}

interface HeldHistory {
  readonly owner: string
  /** The space that it shares with other histories. */
  readonly all: SharedSpace
  readonly kept: readonly string[]
  /** The newest last. */
  readonly items: Map<string, { readonly item: HistoryItem; readonly version: number }>
  version: number
  bytes: number
  /** The answer for a reader who has read everything: the same object until something is added. */
  nothing: HistoryPart
  /** The answer for a writer who has read everything and adds nothing. */
  unchanged: HistoryAnswer
}

/** The space that all histories for one purpose share. */
interface SharedSpace {
  bytes: number
}

class HistoryTable {
  readonly #generation = randomUUID()
  readonly #maxBytes: number
  readonly #maxBytesOfOwner: number
  readonly #histories = new Map<string, HeldHistory>()
  readonly #bytesOfOwners = new Map<string, number>()
  readonly #rules: SharedSpace = { bytes: 0 }
  readonly #shadows: SharedSpace = { bytes: 0 }
  #added = 0
  #opened = 0
  #unseen: Iterator<[string, HeldHistory]> | undefined

  constructor({ maxBytes = 64 * MB, maxBytesOfOwner = 16 * MB }: MemoryHistoriesOptions) {
    this.#maxBytes = maxBytes
    this.#maxBytesOfOwner = maxBytesOfOwner
  }

  get size(): number {
    return this.#histories.size
  }

  get bytes(): number {
    return this.#rules.bytes + this.#shadows.bytes
  }

  read(id: string, since: HistoryAddition['since'] | undefined, nowMs: number): HistoryPart | undefined {
    const held = this.#live(id, nowMs)
    return held && this.#partOf(held, since)
  }

  open(id: string, { owner, isShadow, kept, nowMs, expiresAt }: HistoryOpening): HistoryPart {
    const known = this.#live(id, nowMs)
    if (known) return this.#partOf(known, undefined)
    this.#forgetSome(nowMs)
    const bytes = HISTORY_BYTES + 2 * id.length + kept.reduce((sum, text) => sum + text.length, 0)
    const all = isShadow ? this.#shadows : this.#rules
    this.#checkRoom(owner, all, bytes)
    const generation = `${this.#generation}.${++this.#opened}`
    const nothing = { generation, version: 0, kept, items: [], expiresAt }
    const held: HeldHistory = {
      owner,
      all,
      kept,
      items: new Map(),
      version: 0,
      bytes: 0,
      nothing,
      unchanged: { ...nothing, added: true },
    }
    this.#histories.set(id, held)
    this.#grow(held, bytes)
    return nothing
  }

  add(id: string, { items, since, unlessChanged, nowMs, expiresAt }: HistoryAddition): HistoryAnswer | undefined {
    const held = this.#live(id, nowMs)
    if (!held) return undefined
    // The most frequent request adds nothing and has read everything.
    if (
      items.length === 0 &&
      held.unchanged.version === since.version &&
      held.unchanged.generation === since.generation
    ) {
      if (expiresAt - held.nothing.expiresAt > (expiresAt - nowMs) / 100) this.#keep(held, expiresAt)
      return held.unchanged
    }
    const part = this.#partOf(held, since)
    if (unlessChanged && (part.version !== since.version || part.generation !== since.generation))
      return { ...part, added: false }
    if (items.length > 0) this.#put(held, items, nowMs)
    this.#keep(held, expiresAt)
    return { ...held.nothing, items: part.items, added: true }
  }

  #keep(held: HeldHistory, expiresAt: number): void {
    const { nothing, version } = held
    held.nothing = { ...nothing, version, expiresAt: Math.max(nothing.expiresAt, expiresAt) }
    held.unchanged = { ...held.nothing, added: true }
  }

  end(id: string): void {
    const held = this.#histories.get(id)
    if (!held) return
    this.#histories.delete(id)
    this.#grow(held, -held.bytes)
  }

  #put(held: HeldHistory, items: readonly HistoryItem[], nowMs: number): void {
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0)
    if (!items.every(isNote)) this.#checkRoom(held.owner, held.all, bytes)
    const version = held.version + 1
    for (const item of items) {
      const key = keyOf(item, ++this.#added)
      const before = held.items.get(key)
      if (before) this.#grow(held, -bytesOf(before.item))
      // Moves the item to the end, so that the newest are last.
      held.items.delete(key)
      held.items.set(key, { item, version })
      this.#grow(held, bytesOf(item))
    }
    for (const [key, { item }] of held.items) {
      if (item.expiresAt === undefined || item.expiresAt > nowMs) break
      held.items.delete(key)
      this.#grow(held, -bytesOf(item))
    }
    held.version = version
  }

  #partOf(held: HeldHistory, since: HistoryAddition['since'] | undefined): HistoryPart {
    const after = since?.generation === held.nothing.generation ? since.version : -1
    if (after === held.version) return held.nothing
    return {
      ...held.nothing,
      items: [...held.items.values()].flatMap(({ item, version }) => (version > after ? [item] : [])),
    }
  }

  #live(id: string, nowMs: number): HeldHistory | undefined {
    const held = this.#histories.get(id)
    if (held === undefined || held.nothing.expiresAt > nowMs) return held
    this.end(id)
    return undefined
  }

  #checkRoom(owner: string, all: SharedSpace, bytes: number): void {
    const isOver = all.bytes + bytes > this.#maxBytes
    if (!isOver && (this.#bytesOfOwners.get(owner) ?? 0) + bytes <= this.#maxBytesOfOwner) return
    throw new ToolgateError('history_full', 'There is no room for what this run does.', {
      detail: isOver ? 'all histories together are full' : `the histories of ${owner} are full`,
    })
  }

  #grow(held: HeldHistory, bytes: number): void {
    held.bytes += bytes
    held.all.bytes += bytes
    const ofOwner = (this.#bytesOfOwners.get(held.owner) ?? 0) + bytes
    if (ofOwner > 0) this.#bytesOfOwners.set(held.owner, ofOwner)
    else this.#bytesOfOwners.delete(held.owner)
  }

  /** Looks at a few histories, so that many openings go round all of them. */
  #forgetSome(nowMs: number): void {
    this.#unseen ??= this.#histories[Symbol.iterator]()
    for (let i = 0; i < SWEPT_AT_ONCE; i++) {
      const next = this.#unseen.next()
      if (next.done) {
        this.#unseen = undefined
        return
      }
      const [id, held] = next.value
      if (held.nothing.expiresAt <= nowMs) this.end(id)
    }
  }
}

/** Each text is kept. Items of other kinds replace an equal earlier one. */
function keyOf({ kind, text, again }: HistoryItem, count: number): string {
  return kind === 'label' || kind === 'tuple' || kind === 'unkept'
    ? `${kind}${again ? '+' : ' '}${text}`
    : `${kind} ${count}`
}

/** Returns whether an item notes that something could not be kept. Such an item always finds room. */
function isNote({ kind }: HistoryItem): boolean {
  return kind === 'unkept'
}

function bytesOf({ text, tool = '', event = '' }: HistoryItem): number {
  return ITEM_BYTES + text.length + tool.length + event.length
}
