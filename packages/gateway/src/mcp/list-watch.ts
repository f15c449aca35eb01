import type { Caller, Gate } from '@toolgate/core'
import type { AvailabilitySource } from '@toolgate/core/groups'
import type { Offers } from './offer.ts'

export interface ListWatchDeps {
  readonly gate: Pick<Gate, 'catalog' | 'subscribe' | 'view'>
  readonly availability: Pick<AvailabilitySource, 'subscribe'>
  readonly offers: Pick<Offers, 'of'>
  readonly onFault: (error: unknown) => void
  /** How often it is looked whether something has changed without a word, such as on another replica. Default 1,000 ms. */
  readonly everyMs?: number
}

export interface ListWatch {
  /** Hears when this caller's own list has become another than it was told of last. Gives the way to stop hearing. */
  watch(caller: Caller, listener: () => void): Promise<() => void>
  /** Something changed that nobody else tells of: a session has opened a group. */
  changed(): void
  readonly watched: number
  close(): void
}

/** What comes together is told together, such as the tools of a server that starts. */
const TOGETHER_MS = 25
/** One caller is told no more often. */
const QUIET_MS = 1000

interface Watched {
  key: string
  toldAtMs: number
  readonly listeners: Set<() => void>
}

/**
 * Watches the lists of callers, each once however many clients it has.
 *
 * Whether a list has changed is seen from the list: a change that does not touch it is none of its caller's business.
 * While nobody watches, nothing is done at all.
 */
export function createListWatch(deps: ListWatchDeps): ListWatch {
  const { gate, availability, offers, onFault, everyMs = 1000 } = deps
  const byCaller = new Map<Caller, Watched>()
  let stop: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined

  return {
    async watch(caller, listener) {
      const own = () => listener()
      let one = byCaller.get(caller)
      if (!one) byCaller.set(caller, (one = { key: '', toldAtMs: -Infinity, listeners: new Set() }))
      one.listeners.add(own)
      stop ??= start()
      // One that is watched already has a key, and the newcomer has heard of nothing older.
      try {
        if (one.key === '') one.key = await keyOf(caller)
      } catch (error) {
        leave(caller, own)
        throw error
      }
      return () => leave(caller, own)
    },
    changed: wake,
    get watched() {
      return byCaller.size
    },
    close() {
      byCaller.clear()
      rest()
    },
  }

  function leave(caller: Caller, listener: () => void): void {
    const one = byCaller.get(caller)
    one?.listeners.delete(listener)
    if (one?.listeners.size === 0) byCaller.delete(caller)
    if (byCaller.size === 0) rest()
  }

  function start(): () => void {
    const ends = [gate.catalog.subscribe(wake), availability.subscribe(wake), gate.subscribe(wake)]
    const looking = setInterval(look, everyMs).unref()
    return () => {
      for (const end of ends) end()
      clearInterval(looking)
    }
  }

  function rest(): void {
    stop?.()
    stop = undefined
    clearTimeout(timer)
    timer = undefined
  }

  function wake(): void {
    if (stop !== undefined) timer ??= setTimeout(look, TOGETHER_MS).unref()
  }

  function look(): void {
    clearTimeout(timer)
    timer = undefined
    for (const [caller, one] of byCaller) compare(caller, one).catch(onFault)
  }

  async function compare(caller: Caller, one: Watched): Promise<void> {
    // A caller that was told just now is looked at again by the interval.
    if (one.key === '' || performance.now() - one.toldAtMs < QUIET_MS) return
    const key = await keyOf(caller)
    if (key === one.key || byCaller.get(caller) !== one) return
    one.key = key
    one.toldAtMs = performance.now()
    for (const listener of one.listeners) listener()
  }

  async function keyOf(caller: Caller): Promise<string> {
    return offers.of(await gate.view(caller)).key
  }
}
