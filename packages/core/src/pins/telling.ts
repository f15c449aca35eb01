import { sha256Hex } from '../util/hash.ts'
import type { Clock, MaybePromise, StateStore } from '../ports.ts'
import { type StoreResult, ask } from './ask.ts'

/** Tells something of a tool, unless it was told before. */
export type TellOnce = (tool: string, what: string, tell: () => void) => Promise<void>

/** Of a tool, so many tellings of one process are kept: one that never says the same twice must not fill the store. */
const MAX_KEPT = 32
/** Of so many tools this process counts what it told. */
const MAX_TOOLS = 100_000
const KEPT_MS = 90 * 24 * 60 * 60 * 1000
const TOLD = 'pin-told:'

interface Telling {
  readonly key: string
  readonly tell: () => void
  readonly done: () => void
}

/**
 * Gives a function that tells something of a tool once: not again after a restart, nor by another process that
 * found the same. What nobody has accepted after 90 days is told again by the process that starts then.
 *
 * What comes at one time is kept in one write, as a durable one costs milliseconds. What cannot be kept is told all
 * the same.
 */
export function createTelling(state: StateStore, clock: Clock, deadlineMs: number): TellOnce {
  const here = new Map<string, Set<string>>()
  let pending: Telling[] = []
  let running: Promise<void> | undefined
  const asked = <T>(work: () => MaybePromise<T>): Promise<StoreResult<T>> =>
    new Promise((resolve) => ask(deadlineMs, work, resolve))

  const tellAll = async (): Promise<void> => {
    while (pending.length > 0) {
      const all = pending
      pending = []
      const listed = await asked(() => state.list(TOLD))
      const told = new Set('error' in listed ? [] : listed.value.flatMap(({ value }) => keysOf(value)))
      const news = all.filter(({ key }) => !told.has(key))
      const keys = news.map(({ key }) => key).toSorted()
      const expiresAt = clock.wallMs() + KEPT_MS
      const kept =
        keys.length === 0
          ? undefined
          : await asked(() => state.add(TOLD + sha256Hex(keys.join(' ')), keys, { expiresAt }))
      // Whoever was faster found the same, and tells it.
      const isOurs = kept !== undefined && ('error' in kept || kept.value)
      if (isOurs) for (const { tell } of news) tell()
      for (const { done } of all) done()
    }
    running = undefined
  }

  return (tool, what, tell) => {
    const key = sha256Hex(`${tool} ${what}`).slice(0, 24)
    const before = remember(here, tool, key)
    if (before === undefined) return Promise.resolve()
    if (before >= MAX_KEPT) {
      tell()
      return Promise.resolve()
    }
    return new Promise((done) => {
      pending.push({ key, tell, done })
      // After all that is found in this turn.
      running ??= Promise.resolve().then(() => tellAll())
    })
  }
}

/** Gives how much was told of a tool before, and `undefined` where this is of it. */
function remember(here: Map<string, Set<string>>, tool: string, key: string): number | undefined {
  let told = here.get(tool)
  if (!told) {
    if (here.size >= MAX_TOOLS) here.clear()
    here.set(tool, (told = new Set()))
  }
  if (told.has(key)) return undefined
  const before = told.size
  told.add(key)
  for (const oldest of told) {
    if (told.size <= MAX_KEPT) break
    told.delete(oldest)
  }
  return before
}

function keysOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((key) => typeof key === 'string') : []
}
