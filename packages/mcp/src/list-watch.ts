import type { Caller, Gate, View } from '@toolgate/core'
import type { AvailabilitySource } from '@toolgate/core/groups'
import type { ItemLists, ListName } from './item-lists.ts'
import type { ToolLists } from './tool-lists.ts'

export interface ListWatchOptions {
  readonly gate: Pick<Gate, 'catalog' | 'subscribe'>
  /** `isFirst`: the client's list is not known yet. */
  readonly openView: (caller: Caller, isFirst: boolean) => Promise<View>
  readonly lists: Pick<ToolLists, 'of'>
  /** The lists of resources, templates and prompts. Absent if the gateway has none. */
  readonly items?: Pick<ItemLists, 'keyOf'> | undefined
  readonly availability?: Pick<AvailabilitySource, 'subscribe'> | undefined
  readonly onFault: (error: unknown) => void
  /**
   * How often lists are compared, to find changes that cause no event, such as a change on another replica. Default
   * 1,000 ms.
   */
  readonly everyMs?: number | undefined
  /** The shortest time between two notifications to one client. Default 1,000 ms. */
  readonly minIntervalMs?: number | undefined
}

/** A client that has a list. */
export interface ListWatcher {
  readonly caller: Caller
  /** Default: `tools`. */
  readonly list?: ListName | undefined
  /** The key of the list that the client has; `undefined` while it is unknown. */
  readonly key?: string | undefined
  /** Called when the caller's list has changed. */
  changed(): unknown
  /** Once this returns `false`, the watch forgets the client. */
  isOpen?(): boolean
  /** Called when the watch has found the client closed. */
  ended?(): void
}

interface WatchedClient {
  readonly watcher: ListWatcher
  key: string | undefined
  changedAtMs: number
}

/** Changes within this time are sent as one notification, such as the tools of a server that starts. */
const TOGETHER_MS = 25

/**
 * Notifies clients when one of their lists changes.
 *
 * It compares the lists themselves, so changes that do not affect a client's list are not sent to it. Without watchers it
 * does nothing.
 */
export class ListWatch {
  readonly #options: ListWatchOptions
  readonly #watched = new Set<WatchedClient>()
  #stopListening: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: ListWatchOptions) {
    this.#options = options
  }

  /** The number of clients that are watched. */
  get size(): number {
    return this.#watched.size
  }

  /** Watches a list of a client. Returns the function that stops it. */
  add(watcher: ListWatcher): () => void {
    const one = this.#start(watcher)
    if (one.key === undefined) this.#compare(one).catch(this.#options.onFault)
    return () => this.#remove(one)
  }

  /** Watches a list of a caller. Resolves once the current list is known. */
  async watch(caller: Caller, changed: () => void, list: ListName = 'tools'): Promise<() => void> {
    const one = this.#start({ caller, changed, list })
    try {
      await this.#compare(one)
    } catch (error) {
      this.#remove(one)
      throw error
    }
    return () => this.#remove(one)
  }

  /**
   * Compares all lists soon. Call it for a change that the gate does not announce, such as a group that a session has
   * opened.
   */
  wake(): void {
    if (this.#watched.size > 0) this.#timer ??= setTimeout(() => this.#compareAll(), TOGETHER_MS).unref()
  }

  close(): void {
    this.#watched.clear()
    this.#rest()
  }

  #start(watcher: ListWatcher): WatchedClient {
    const one = { watcher, key: watcher.key, changedAtMs: -Infinity }
    this.#watched.add(one)
    this.#stopListening ??= this.#listen()
    return one
  }

  #remove(one: WatchedClient): void {
    this.#watched.delete(one)
    if (this.#watched.size === 0) this.#rest()
  }

  #listen(): () => void {
    const { gate, availability, everyMs = 1000 } = this.#options
    const wake = () => this.wake()
    const ends = [gate.catalog.subscribe(wake), gate.subscribe(wake), availability?.subscribe(wake)]
    const timer = setInterval(() => this.#compareAll(), everyMs).unref()
    return () => {
      for (const end of ends) end?.()
      clearInterval(timer)
    }
  }

  #rest(): void {
    this.#stopListening?.()
    this.#stopListening = undefined
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #compareAll(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const one of this.#watched) {
      const { watcher } = one
      if (watcher.isOpen?.() === false) {
        this.#remove(one)
        watcher.ended?.()
      } else this.#compare(one).catch(this.#options.onFault)
    }
  }

  async #compare(one: WatchedClient): Promise<void> {
    const { openView, minIntervalMs = 1000 } = this.#options
    // The interval compares again for a client that was notified a moment ago.
    if (performance.now() - one.changedAtMs < minIntervalMs) return
    const key = this.#keyOf(await openView(one.watcher.caller, one.key === undefined), one.watcher.list)
    const before = one.key
    if (key === before || !this.#watched.has(one)) return
    one.key = key
    if (before === undefined) return
    one.changedAtMs = performance.now()
    await one.watcher.changed()
  }

  #keyOf(view: View, list: ListName = 'tools'): string {
    const { lists, items } = this.#options
    return list === 'tools' ? lists.of(view).key : (items?.keyOf(view, list) ?? '')
  }
}
