import { type Caller, callerParts } from '../ports/caller.ts'
import { checkShape, ConfigError, type Revision, shapeOf, ToolgateError } from '@toolgate/values'
import type { Effect } from '../decide/evaluation.ts'
import type { EffectsOver } from '../decide/policy-snapshot.ts'
import { createPreferenceEffects, type SwitchedOff } from '../decide/layers/held.ts'
import type { StateEntry, StateStore } from '../ports/ports.ts'
import { noGroupIsNamed } from '../tools/groups.ts'
import type { GroupSelectors } from '../tools/selector.ts'
import { compareToolIds } from '../tools/tool-id.ts'
import { isObject } from '@toolgate/values/json'
import { Mirror } from './mirror.ts'

/** What a user has switched off: groups by name, tools by id. */
export type Preferences = SwitchedOff

/** The preferences of all users: in effect here at once, and on every gate of the same store within a second. */
export interface UserPreferences {
  get(caller: Caller): Preferences
  /**
   * Replaces a user's preferences. They are stored and in effect when the promise resolves.
   *
   * @throws {ConfigError} naming the invalid field
   * @throws {ToolgateError} `caller_invalid` for a caller without a user; `state_unavailable`, and the preferences stay as they were
   */
  set(caller: Caller, preferences: Preferences): Promise<Preferences>
  /** Returns the effects of the current preferences. */
  now(): EffectsOver
  close(): void
}

interface PreferencesOptions {
  readonly state: StateStore
  /** The current groups. */
  readonly groups: () => GroupSelectors
  /** Bumped when preferences change, here or elsewhere. */
  readonly changes: Revision
  /** Called after preferences changed, here or elsewhere. */
  readonly onChanged: () => void
  readonly onFault: (error: unknown) => void
  /** Milliseconds to wait for the store. */
  readonly deadlineMs: number
}

const PREFIX = 'preferences:'
/** The least time between two reads of the store, in which other entries may change often. */
const GAP_MS = 200
const NOTHING: Preferences = Object.freeze({ groups: Object.freeze([]), tools: Object.freeze([]) })
const NO_EFFECTS: readonly Effect[] = []

/**
 * Returns the preferences of a state store.
 *
 * Preferences are a convenience, not a security control: nothing is switched off until the store has answered for the
 * first time. While the store fails, the preferences last read stay in effect.
 */
export function createPreferences(options: PreferencesOptions): UserPreferences {
  const { state, groups, changes, onChanged, onFault, deadlineMs } = options
  let byKey: ReadonlyMap<string, Preferences> = new Map()

  const replace = (next: ReadonlyMap<string, Preferences>) => {
    if (isSame(byKey, next)) return
    byKey = next
    changes.bump()
    onChanged()
  }
  const restore = (entries: readonly StateEntry[]) => {
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
  const mirror = new Mirror({ state, prefix: PREFIX, deadlineMs, gapMs: GAP_MS, onRead: restore, onFailed: onFault })
  mirror.start()

  return {
    get: (caller) => within(byKey.get(keyOf(caller) ?? '') ?? NOTHING, groups()),
    async set(caller, preferences) {
      const key = keyOf(caller)
      if (key === undefined)
        throw new ToolgateError('caller_invalid', 'Preferences are those of a user, and this caller has none.')
      const parsed = parsePreferences(preferences, groups())
      try {
        await mirror.write(key, () => (isEmpty(parsed) ? state.take(key) : state.set(key, parsed)))
      } catch (cause) {
        throw new ToolgateError('state_unavailable', 'The state store did not save the preferences.', { cause })
      }
      const next = new Map(byKey)
      if (isEmpty(parsed)) next.delete(key)
      else next.set(key, parsed)
      replace(next)
      return parsed
    },
    now() {
      const present = byKey
      if (present.size === 0) return () => () => NO_EFFECTS
      const selectors = groups()
      return (snapshot) => {
        const effectsOf = createPreferenceEffects(snapshot, selectors)
        return (caller) => {
          const off = present.get(keyOf(caller) ?? '')
          return off ? effectsOf(off) : NO_EFFECTS
        }
      }
    },
    close: () => mirror.close(),
  }
}

const PREFERENCES = shapeOf<Preferences>({ groups: true, tools: true }, 'field')
const MAX_SWITCHES = 1000
const MAX_NAME_LENGTH = 300

/**
 * Returns preferences, checked, sorted and without repetition.
 *
 * Unknown tools are accepted: an error would show which tools exist but are hidden.
 *
 * @throws {ConfigError} naming the field
 */
function parsePreferences(preferences: Preferences, groups: GroupSelectors): Preferences {
  const parsed = restorePreferences(preferences)
  const unknown = parsed.groups.filter((name) => !groups.has(name))
  if (unknown.length === 0) return parsed
  throw new ConfigError('preferences.groups', noGroupIsNamed(unknown, groups.keys()))
}

/** Parses the stored preferences of a user. Unknown groups are accepted, as another replica may know them. */
function restorePreferences(stored: unknown): Preferences {
  if (!isObject(stored)) throw new ConfigError('preferences', 'must be an object with groups and tools')
  checkShape('preferences', stored, PREFERENCES)
  const { groups, tools } = stored
  return Object.freeze({ groups: readNames('groups', groups), tools: readNames('tools', tools) })
}

function readNames(field: string, written: unknown): readonly string[] {
  const path = `preferences.${field}`
  if (!Array.isArray(written) || written.length > MAX_SWITCHES)
    throw new ConfigError(path, `must be a list of at most ${MAX_SWITCHES} names`)
  const names = new Set<string>()
  for (const [i, name] of written.entries()) {
    if (typeof name !== 'string' || name === '' || name.length > MAX_NAME_LENGTH || !name.isWellFormed())
      throw new ConfigError(`${path}[${i}]`, `must be a name of 1 to ${MAX_NAME_LENGTH} characters`)
    names.add(name)
  }
  return Object.freeze([...names].toSorted(compareToolIds))
}

/** Each part has a length prefix, so that no two users share a key. A missing tenant differs from every named one. */
function keyOf(caller: Caller): string | undefined {
  const { tenant, user } = callerParts(caller)
  return user === undefined ? undefined : PREFIX + part(tenant) + part(user)
}

function part(text: string | undefined): string {
  return text === undefined ? '-' : `${text.length}:${text}`
}

/** Removes groups that no longer exist. */
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
