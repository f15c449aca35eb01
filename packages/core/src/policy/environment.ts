import { checkObject, checkShape, ConfigError, didYouMean, messageOf, nearestOf, shapeOf } from '@toolgate/values'
import { type Group, parseGroups } from '../tools/groups.ts'
import { checkEntry as checkListed, type GroupSelectors, parseSelector, splitEntries } from '../tools/selector.ts'
import type { Clause, Policy } from './policy.ts'

/** The type of `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

export interface EnvironmentOptions {
  /** The gate's groups, for `group:` selectors. */
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
}

export const ENVIRONMENT_OPTIONS = shapeOf<EnvironmentOptions>({ groups: true })

/**
 * Returns the policies of the environment, for `combinePolicies`. They can only tighten.
 *
 * | variable | means |
 * |---|---|
 * | `TOOL_ALLOWLIST` | only tools that one of the selectors matches |
 * | `TOOL_DENYLIST` | no tool that one of the selectors matches |
 * | `TOOL_ALLOWLIST_DM`, `TOOL_DENYLIST_DM` | the same, in direct chats: `dm`, `private` |
 * | `TOOL_ALLOWLIST_GROUP`, `TOOL_DENYLIST_GROUP` | the same, in group chats: `group`, `supergroup`, `channel` |
 *
 * Each is a comma-separated list of selectors; blank means unset. The base and its variants all apply, so a variant only
 * tightens. If the type of the chat is unknown or absent, both variants apply.
 *
 * @throws {ConfigError} naming the variable and the entry, for an empty entry, an invalid selector, an unknown group, and a
 * group without tools in an allowlist
 * @example
 * createGate({ tools, groups, policy: combinePolicies(baseline, policyFromEnv(process.env, { groups })) })
 */
export function policyFromEnv(env: Environment, options: EnvironmentOptions = {}): readonly Policy[] {
  checkShape('policyFromEnv', options, ENVIRONMENT_OPTIONS)
  const { groups } = options
  const known = parseGroups(groups).selectors
  for (const list of ['ALLOWLIST', 'DENYLIST'] as const) checkVariables(env, `TOOL_${list}`)
  return VARIANTS.flatMap(({ suffix, unless }) => {
    const read = (list: ListVariable) =>
      readEntries(`TOOL_${list}${suffix}`, env, (path, entry) => checkEntry(path, list, entry, known))
    const allowed = read('ALLOWLIST')
    const denied = read('DENYLIST')
    return [
      ...(allowed ? [allowPolicy(`TOOL_ALLOWLIST${suffix}`, allowed, unless)] : []),
      ...(denied ? [denyPolicy(`TOOL_DENYLIST${suffix}`, denied, unless)] : []),
    ]
  })
}

type ListVariable = 'ALLOWLIST' | 'DENYLIST'

interface Variant {
  readonly suffix: '' | '_DM' | '_GROUP'
  /** The chat types in which the variant does not apply. */
  readonly unless: string | undefined
}

const inChats = (types: readonly string[]) =>
  `has(caller.chat) && has(caller.chat.type) && caller.chat.type in [${types.map((type) => `'${type}'`).join(', ')}]`

/** The base, and the variants for some chats. */
const VARIANTS: readonly Variant[] = [
  { suffix: '', unless: undefined },
  { suffix: '_DM', unless: inChats(['group', 'supergroup', 'channel']) },
  { suffix: '_GROUP', unless: inChats(['dm', 'private']) },
]

const SUFFIXES: readonly string[] = VARIANTS.map(({ suffix }) => suffix)

function denyPolicy(name: string, selectors: readonly string[], unless: string | undefined): Policy {
  return { name, deny: selectors.map((match) => (unless === undefined ? match : { match, unless })) }
}

/**
 * Returns a policy that allows what some clauses match. In chats to which the variant does not apply, only the base
 * decides.
 */
function allowPolicy(name: string, clauses: readonly (string | Clause)[], unless: string | undefined): Policy {
  const elsewhere: readonly Clause[] =
    unless === undefined ? [] : [{ id: `${name} is not for this chat`, match: '*', when: unless }]
  return { name, allow: [...clauses, ...elsewhere] }
}

function checkEntry(path: string, list: ListVariable, text: string, groups: GroupSelectors): void {
  try {
    const selector = parseSelector(text, groups)
    // The policy would allow nothing, which nobody intends.
    if (list === 'ALLOWLIST' && selector.kind === 'group' && selector.members.every(({ kind }) => kind === 'joined'))
      throw new ConfigError(`selector "${text}"`, 'names a group without tools, which would allow nothing')
  } catch (cause) {
    throw new ConfigError(path, messageOf(cause), { code: 'selector_invalid', cause })
  }
  checkListed(path, text, text)
}

/** Returns the checked entries of a variable; nothing if it is unset or blank. */
function readEntries(
  variable: string,
  env: Environment,
  check: (path: string, entry: string) => void,
): readonly string[] | undefined {
  const text = readVariable(variable, env)
  if (text === undefined) return undefined
  const entries = splitEntries(text)
  for (const [i, entry] of entries.entries()) {
    const path = `${variable}[${i}]`
    if (entry === '') throw new ConfigError(path, 'an entry is empty; there is a comma too many')
    check(path, entry)
  }
  return entries
}

/**
 * Checks that no variable extends or misspells a known name: `TOOL_DENYLIST_GROUPS`, `TOOL_DENY_LIST` and
 * `tool_denylist` would deny nothing.
 *
 * @throws {ConfigError} naming the variable
 */
export function checkVariables(env: Environment, base: string, suffixes: readonly string[] = SUFFIXES): void {
  checkObject('environment', env)
  const known = suffixes.map((suffix) => `${base}${suffix}`)
  for (const variable of Object.keys(env)) {
    if (known.includes(variable) || env[variable] === undefined) continue
    // On Windows, the names of variables ignore letter case.
    const meant = nearestOf(variable, known, 1)
    if (meant === undefined ? !variable.startsWith(base) : env[meant] === env[variable]) continue
    throw new ConfigError(variable, `unknown variable${didYouMean(variable, known)}`)
  }
}

/** Returns the text of a variable; nothing if it is unset or blank. */
export function readVariable(variable: string, env: Environment): string | undefined {
  const text: unknown = env[variable]
  if (text === undefined) return undefined
  if (typeof text !== 'string') throw new ConfigError(variable, 'must be a text')
  return text.trim() === '' ? undefined : text
}

/**
 * Returns the policies that limit who may write to a bot, for `combinePolicies`. They can only tighten.
 *
 * | variable | means |
 * |---|---|
 * | `TOOL_ALLOWED_SENDERS` | only these users see and call tools |
 * | `TOOL_ALLOWED_SENDERS_DM` | the same, in direct chats: `dm`, `private` |
 * | `TOOL_ALLOWED_SENDERS_GROUP` | the same, in group chats: `group`, `supergroup`, `channel` |
 * | `TOOL_OWNERS` | users that are in every list of senders. All other policies apply to them |
 *
 * Each is a comma-separated list of `caller.user`s, compared exactly; blank means unset. The base and its variants all
 * apply. If the type of the chat is unknown or absent, both variants apply. A caller without a user is in no list.
 *
 * @throws {ConfigError} naming the variable and the entry that is not the name of a sender
 * @example
 * createGate({ tools, policy: combinePolicies(sendersFromEnv(process.env), policyFromEnv(process.env)) })
 */
export function sendersFromEnv(env: Environment): readonly Policy[] {
  checkVariables(env, PREFIX)
  checkVariables(env, OWNERS, [''])
  const owners = readSenders(OWNERS, env) ?? []
  return VARIANTS.flatMap(({ suffix, unless }) => {
    const variable = `${PREFIX}${suffix}`
    const senders = readSenders(variable, env)
    return senders ? [allowPolicy(variable, listed([...new Set([...senders, ...owners])]), unless)] : []
  })
}

const PREFIX = 'TOOL_ALLOWED_SENDERS'
const OWNERS = 'TOOL_OWNERS'

/** The length of a condition is bounded, so a long list of senders becomes several clauses. */
const MAX_LENGTH = 3000

function listed(senders: readonly string[]): readonly Clause[] {
  const parts: string[][] = []
  let length = MAX_LENGTH
  for (const sender of senders) {
    // Includes quotes and comma.
    length += sender.length + 4
    if (length > MAX_LENGTH) {
      parts.push([])
      length = sender.length + 4
    }
    parts.at(-1)?.push(`'${sender}'`)
  }
  return parts.map((part) => ({
    id: 'listed senders',
    match: '*',
    when: `has(caller.user) && caller.user in [${part.join(', ')}]`,
  }))
}

/** Excludes characters that separate or wrap entries by mistake, and characters that end a string in a condition. */
const SENDER = /^[\p{L}\p{N}\p{M}_.:@+/#~=$!&%-]{1,256}$/u

function readSenders(variable: string, env: Environment): readonly string[] | undefined {
  return readEntries(variable, env, (path, entry) => {
    if (SENDER.test(entry)) return
    const advice =
      entry === '*' ? '; leave the variable unset to let everybody write' : '; entries have commas between them'
    throw new ConfigError(path, `${JSON.stringify(entry)} is not the name of one sender${advice}`)
  })
}
