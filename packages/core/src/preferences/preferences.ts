import { type Caller, callerParts } from '../caller.ts'
import { ToolgateError } from '../errors.ts'
import { createPreferenceEffects, type SwitchedOff } from '../decide/layers/held.ts'
import type { Effect } from '../decide/evaluation.ts'
import type { MaybePromise, StateEntry, StateStore } from '../ports.ts'
import type { GroupSelectors } from '../tools/selector.ts'
import type { Toolset } from '../tools/toolset.ts'
import { type Preferences, parsePreferences, restorePreferences } from './switches.ts'

/** What users have switched off for themselves: in force here at once, and wherever the store reaches within a second. */
export interface UserPreferences {
  /** Grows whenever a decision may change. */
  readonly revision: number
  get(caller: Caller): Preferences
  /**
   * Replaces them. In force, and kept, when it resolves.
   *
   * @throws {ConfigError} naming what cannot be used
   * @throws {ToolgateError} `caller_invalid` for a caller without a user; `state_unavailable`, and what was in force stays so
   */
  set(caller: Caller, preferences: Preferences): Promise<Preferences>
  /** What holds back a caller's tools of a snapshot: the same effects for as long as nothing changes. */
  effectsOver(snapshot: Toolset): (caller: Caller) => readonly Effect[]
  close(): void
}

export interface PreferencesOptions {
  readonly state: StateStore
  readonly groups: GroupSelectors
  /** Called after they have changed, here or elsewhere. */
  readonly onChanged: () => void
  readonly onFault: (error: unknown) => void
  /** Gives a store's answer, or rejects when it does not come in time. */
  readonly inTime: <T>(answer: MaybePromise<T>) => MaybePromise<T>
}

const PREFIX = 'preferences:'
const RETRY_MS = 1000
/** A store in which other things change all the time is not read all the time. */
const GAP_MS = 200
const NOTHING: Preferences = Object.freeze({ groups: Object.freeze([]), tools: Object.freeze([]) })
const NO_MARKS: readonly Effect[] = []

/**
 * Gives the preferences that a state store holds.
 *
 * They are a convenience and no security: until the store has answered for the first time nothing is switched off,
 * and while it fails, what was known last stays.
 */
export function createPreferences(options: PreferencesOptions): UserPreferences {
  const { state, groups, onChanged, onFault, inTime } = options
  let byKey: ReadonlyMap<string, Preferences> = new Map()
  let revision = 1
  let isClosed = false
  let isReading = false
  let isStale = false
  /** Counts what is written here: a reading that began before does not know of it. */
  let writes = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let unsubscribe: (() => void) | undefined

  function replace(next: ReadonlyMap<string, Preferences>): void {
    if (isSame(byKey, next)) return
    byKey = next
    revision++
    onChanged()
  }

  function restore(entries: readonly StateEntry[]): void {
    const next = new Map<string, Preferences>()
    for (const { key, value } of entries) {
      try {
        next.set(key, restorePreferences(value))
      } catch (error) {
        onFault(error)
        const before = byKey.get(key)
        if (before) next.set(key, before)
      }
    }
    replace(next)
  }

  /** One reading at a time, with a gap after it: what changes meanwhile is read by the next. */
  function read(): void {
    if (isClosed) return
    if (isReading || timer !== undefined) {
      isStale = true
      return
    }
    isReading = true
    isStale = false
    const written = writes
    const use = (entries: readonly StateEntry[]) => {
      if (isClosed) return
      if (written === writes) restore(entries)
      else isStale = true
      rest(GAP_MS)
    }
    try {
      const answer: MaybePromise<readonly StateEntry[]> = inTime(state.list(PREFIX))
      if (answer instanceof Promise) answer.then(use).catch(failed)
      else use(answer)
    } catch (error) {
      failed(error)
    }
  }

  function rest(ms: number): void {
    isReading = false
    timer = setTimeout(() => {
      timer = undefined
      if (isStale) start()
    }, ms).unref()
  }

  function failed(error: unknown): void {
    onFault(error)
    if (isClosed) return
    isStale = true
    clearTimeout(timer)
    rest(RETRY_MS)
  }

  function start(): void {
    try {
      unsubscribe ??= state.subscribe(read)
    } catch (error) {
      failed(error)
    }
    read()
  }

  async function save(key: string, preferences: Preferences): Promise<void> {
    writes++
    try {
      await inTime(isEmpty(preferences) ? state.take(key) : state.set(key, preferences))
    } catch (cause) {
      throw new ToolgateError('state_unavailable', 'The state store did not take the preferences.', { cause })
    } finally {
      writes++
    }
  }

  start()

  return {
    get revision() {
      return revision
    },
    get: (caller) => within(byKey.get(keyOf(caller) ?? '') ?? NOTHING, groups),
    async set(caller, preferences) {
      const key = keyOf(caller)
      if (key === undefined)
        throw new ToolgateError('caller_invalid', 'Preferences are those of a user, and this caller has none.')
      const parsed = parsePreferences(preferences, groups)
      await save(key, parsed)
      const next = new Map(byKey)
      if (isEmpty(parsed)) next.delete(key)
      else next.set(key, parsed)
      replace(next)
      read()
      return parsed
    },
    effectsOver(snapshot) {
      const now = byKey
      if (now.size === 0) return () => NO_MARKS
      const effectsOf = createPreferenceEffects(snapshot, groups)
      return (caller) => {
        const off = now.get(keyOf(caller) ?? '')
        return off ? effectsOf(off) : NO_MARKS
      }
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      unsubscribe?.()
    },
  }
}

/** Each part with its length before it, so that no two users have one key; without a tenant is a tenant of its own. */
function keyOf(caller: Caller): string | undefined {
  const { tenant, user } = callerParts(caller)
  return user === undefined ? undefined : PREFIX + part(tenant) + part(user)
}

function part(text: string | undefined): string {
  return text === undefined ? '-' : `${text.length}:${text}`
}

/** A group that was switched off may be none any more. */
function within({ groups: off, tools }: SwitchedOff, groups: GroupSelectors): Preferences {
  return { groups: off.filter((name) => groups.has(name)), tools }
}

function isEmpty({ groups, tools }: Preferences): boolean {
  return groups.length + tools.length === 0
}

function isSame(a: ReadonlyMap<string, Preferences>, b: ReadonlyMap<string, Preferences>): boolean {
  if (a.size !== b.size) return false
  for (const [key, preferences] of a) {
    const other = b.get(key)
    if (!other || !equal(preferences.groups, other.groups) || !equal(preferences.tools, other.tools)) return false
  }
  return true
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i])
}
