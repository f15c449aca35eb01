import type { Caller, Gate } from '@toolgate/core'
import type { Listings } from './listing.ts'

export interface ListWatchOptions {
  readonly gate: Pick<Gate, 'catalog' | 'subscribe'>
  readonly listings: Pick<Listings, 'of'>
  readonly onFault: (error: unknown) => void
  /** How often it is looked whether something has changed without a word, such as availability. */
  readonly everyMs: number
}

/** One client that has a list. */
export interface Watcher {
  /** Whom it has it for. */
  readonly caller: Caller
  /** Of the list that it was given last; `undefined` while that is not known. */
  key: string | undefined
  changed(): unknown
  /** Once it is not, it is watched no more. */
  isOpen(): boolean
  /** It was seen not to be. */
  ended?(): void
}

export interface ListWatch {
  /** Tells the watcher when its caller's own list has become another. Gives the way to end it. */
  add(watcher: Watcher): () => void
  /** Something may have changed. */
  wake(): void
}

/** What comes together is told together, such as the tools of a server that starts. */
const TOGETHER_MS = 25

/**
 * Watches the lists of clients. Whether one has changed is seen from the list itself, so nobody hears of a change that
 * is none of theirs. While nobody watches, nothing is done at all.
 */
export function createListWatch({ gate, listings, onFault, everyMs }: ListWatchOptions): ListWatch {
  const watchers = new Set<Watcher>()
  let ends: (() => void)[] = []
  let timer: NodeJS.Timeout | undefined

  const look = () => {
    clearTimeout(timer)
    timer = undefined
    for (const watcher of watchers) {
      if (watcher.isOpen()) continue
      watchers.delete(watcher)
      watcher.ended?.()
    }
    if (watchers.size === 0) return rest()
    for (const watcher of watchers) compare(watcher).catch(onFault)
  }
  const wake = () => {
    if (watchers.size > 0) timer ??= setTimeout(look, TOGETHER_MS).unref()
  }
  const rest = () => {
    clearTimeout(timer)
    timer = undefined
    for (const end of ends.splice(0)) end()
  }

  return {
    add(watcher) {
      if (watchers.size === 0) {
        const looking = setInterval(look, everyMs).unref()
        ends = [gate.catalog.subscribe(wake), gate.subscribe(wake), () => clearInterval(looking)]
      }
      watchers.add(watcher)
      if (watcher.key === undefined) compare(watcher).catch(onFault)
      return () => {
        watchers.delete(watcher)
        if (watchers.size === 0) rest()
      }
    },
    wake,
  }

  async function compare(watcher: Watcher): Promise<void> {
    const { key } = await listings.of(watcher.caller)
    const before = watcher.key
    watcher.key = key
    if (before !== undefined && before !== key && watchers.has(watcher)) await watcher.changed()
  }
}
