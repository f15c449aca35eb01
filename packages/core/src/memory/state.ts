import type { Clock, StateStore } from '../ports/ports.ts'
import { compareToolIds } from '../tools/tool-id.ts'
import { checkShape, createEmitter, shapeOf } from '@toolgate/values'
import { systemClock } from './clock.ts'
import { checkStateKey, checkStatePrefix, toStateExpiry, parseStateText, toStateText } from './state-text.ts'

export interface MemoryState extends StateStore {
  /** The number of entries, including expired ones that were not removed yet. */
  readonly size: number
}

interface MemoryStateOptions {
  readonly clock?: Pick<Clock, 'wallMs'>
}

interface StoredValue {
  /** Deeply frozen, so it can be shared. */
  readonly value: unknown
  readonly expiresAt: number
}

const MIN_SWEEP_SIZE = 64
const OPTIONS = shapeOf<MemoryStateOptions>({ clock: true })

/**
 * Creates a synchronous state store in this process. It calls listeners before a change returns.
 *
 * @throws {ToolgateError} `state_invalid`, from each method, for a key or a value that no store could keep
 */
export function memoryState(given: MemoryStateOptions = {}): MemoryState {
  checkShape('memoryState', given, OPTIONS)
  const { clock = systemClock } = given
  const entries = new Map<string, StoredValue>()
  const changes = createEmitter()
  let sweepAtSize = MIN_SWEEP_SIZE

  function find(key: string): StoredValue | undefined {
    checkStateKey(key)
    const entry = entries.get(key)
    return entry !== undefined && isHere(key, entry, clock.wallMs()) ? entry : undefined
  }

  /** Removes an expired entry when it is seen, so that setting the clock back does not restore it. */
  function isHere(key: string, { expiresAt }: StoredValue, nowMs: number): boolean {
    if (expiresAt > nowMs) return true
    entries.delete(key)
    return false
  }

  function put(key: string, text: string, expiresAt: number): void {
    entries.set(key, { value: parseStateText(text), expiresAt })
    if (entries.size >= sweepAtSize) sweep()
    changes.emit()
  }

  /** Runs each time the number of entries has doubled, so that the average cost of a change is constant. */
  function sweep(): void {
    const nowMs = clock.wallMs()
    for (const [key, entry] of entries) isHere(key, entry, nowMs)
    sweepAtSize = Math.max(MIN_SWEEP_SIZE, entries.size * 2)
  }

  return {
    get size() {
      return entries.size
    },
    get: (key) => find(key)?.value,
    set(key, value, options) {
      checkStateKey(key)
      put(key, toStateText(value), toStateExpiry(options))
    },
    add(key, value, options) {
      const text = toStateText(value)
      const expiresAt = toStateExpiry(options)
      if (find(key)) return false
      put(key, text, expiresAt)
      return true
    },
    take(key) {
      const entry = find(key)
      if (!entry) return undefined
      entries.delete(key)
      changes.emit()
      return entry.value
    },
    list(prefix) {
      checkStatePrefix(prefix)
      const nowMs = clock.wallMs()
      const found: { key: string; value: unknown }[] = []
      for (const [key, entry] of entries)
        if (key.startsWith(prefix) && isHere(key, entry, nowMs)) found.push({ key, value: entry.value })
      return found.toSorted((a, b) => compareToolIds(a.key, b.key))
    },
    subscribe: changes.subscribe,
  }
}
