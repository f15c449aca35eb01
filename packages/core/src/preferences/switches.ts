import { ConfigError } from '../errors.ts'
import type { SwitchedOff } from '../decide/layers/held.ts'
import { noGroupIsNamed } from '../tools/groups.ts'
import type { GroupSelectors } from '../tools/selector.ts'
import { compareToolIds } from '../tools/tool-id.ts'
import { checkShape, shapeOf } from '../util/shape.ts'

/** What a user has switched off for himself: groups by name, tools by id. */
export type Preferences = SwitchedOff

const PREFERENCES = shapeOf<Preferences>({ groups: true, tools: true }, 'field')
const MAX_SWITCHES = 1000
const MAX_NAME_LENGTH = 300

/**
 * Gives preferences checked, sorted and without repetition.
 *
 * A tool need not be known: the answer would tell a tool that is hidden from one that does not exist.
 *
 * @throws {ConfigError} naming the field
 */
export function parsePreferences(preferences: Preferences, groups: GroupSelectors): Preferences {
  const parsed = restorePreferences(preferences)
  const unknown = parsed.groups.filter((name) => !groups.has(name))
  if (unknown.length === 0) return parsed
  throw new ConfigError('preferences.groups', noGroupIsNamed(unknown, groups.keys()))
}

/** Gives what is stored of a user. A group may be gone meanwhile, or be known to another replica only. */
export function restorePreferences(stored: unknown): Preferences {
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored))
    throw new ConfigError('preferences', 'must be an object with groups and tools')
  checkShape('preferences', stored, PREFERENCES)
  const { groups, tools } = stored as Readonly<Record<string, unknown>>
  return Object.freeze({ groups: readNames('groups', groups), tools: readNames('tools', tools) })
}

function readNames(field: string, written: unknown): readonly string[] {
  const path = `preferences.${field}`
  if (!Array.isArray(written) || written.length > MAX_SWITCHES)
    throw new ConfigError(path, `must be a list of at most ${MAX_SWITCHES} names`)
  for (const [i, name] of written.entries())
    if (typeof name !== 'string' || name === '' || name.length > MAX_NAME_LENGTH || !name.isWellFormed())
      throw new ConfigError(`${path}[${i}]`, `must be a name of 1 to ${MAX_NAME_LENGTH} characters`)
  return Object.freeze([...new Set(written as string[])].toSorted(compareToolIds))
}
