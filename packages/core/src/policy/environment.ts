import { ConfigError, messageOf } from '../errors.ts'
import { type Group, parseGroups } from '../tools/groups.ts'
import { parseSelector, checkEntry as checkListed, splitEntries } from '../tools/selector.ts'
import { checkObject, checkShape, shapeOf } from '../util/shape.ts'
import { didYouMean, nearestOf } from '../util/text.ts'
import type { Clause, Policy } from './policy.ts'

/** What `process.env` is. */
export type Environment = Readonly<Record<string, string | undefined>>

export interface EnvironmentOptions {
  /** The groups that `group:` selectors may name: the gate's own. */
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
}

export const ENVIRONMENT_OPTIONS = shapeOf<EnvironmentOptions>({ groups: true })

/**
 * Gives the policies that the environment asks for, to be met with the others: they can only tighten.
 *
 * | variable | means |
 * |---|---|
 * | `TOOL_ALLOWLIST` | only tools that one of the selectors names |
 * | `TOOL_DENYLIST` | no tool that one of the selectors names |
 * | `TOOL_ALLOWLIST_DM`, `TOOL_DENYLIST_DM` | the same, in direct chats: `dm`, `private` |
 * | `TOOL_ALLOWLIST_GROUP`, `TOOL_DENYLIST_GROUP` | the same, in chats of several: `group`, `supergroup`, `channel` |
 *
 * Each is a list of selectors with commas between them; blank is unset. Variants meet the base: they add to it and
 * take nothing back. Where the type of the chat is unknown or absent, both variants are in force.
 *
 * @throws {ConfigError} naming the variable and the entry: one that is empty or no selector, a group that does not exist,
 * a group without tools in an allowlist
 * @example
 * createGate({ tools, groups, policy: combinePolicies(baseline, policyFromEnv(process.env, { groups })) })
 */
export function policyFromEnv(env: Environment, options: EnvironmentOptions = {}): readonly Policy[] {
  checkShape('policyFromEnv', options, ENVIRONMENT_OPTIONS)
  const { groups } = options
  const known = parseGroups(groups).selectors
  for (const list of ['ALLOWLIST', 'DENYLIST'] as const) checkVariables(env, `TOOL_${list}`)
  return VARIANTS.flatMap(({ suffix, unless }) => {
    const read = (list: List) =>
      readEntries(`TOOL_${list}${suffix}`, env, (path, entry) => checkEntry(path, list, entry, known))
    const allowed = read('ALLOWLIST')
    const denied = read('DENYLIST')
    return [
      ...(allowed ? [allowPolicy(`TOOL_ALLOWLIST${suffix}`, allowed, unless)] : []),
      ...(denied ? [denyPolicy(`TOOL_DENYLIST${suffix}`, denied, unless)] : []),
    ]
  })
}

type List = 'ALLOWLIST' | 'DENYLIST'

interface Variant {
  readonly suffix: '' | '_DM' | '_GROUP'
  /** Where it is not in force: in chats that are known to be of the other kind. */
  readonly unless: string | undefined
}

const inChats = (types: readonly string[]) =>
  `has(caller.chat) && has(caller.chat.type) && caller.chat.type in [${types.map((type) => `'${type}'`).join(', ')}]`

/** The base, and what is met with it in some chats. */
export const VARIANTS: readonly Variant[] = [
  { suffix: '', unless: undefined },
  { suffix: '_DM', unless: inChats(['group', 'supergroup', 'channel']) },
  { suffix: '_GROUP', unless: inChats(['dm', 'private']) },
]

const SUFFIXES: readonly string[] = VARIANTS.map(({ suffix }) => suffix)

function denyPolicy(name: string, selectors: readonly string[], unless: string | undefined): Policy {
  return { name, deny: selectors.map((match) => (unless === undefined ? match : { match, unless })) }
}

/** Returns a policy that allows what a clause names. Where the variant is not in force, only the base has a say. */
export function allowPolicy(name: string, clauses: readonly (string | Clause)[], unless: string | undefined): Policy {
  const elsewhere: readonly Clause[] =
    unless === undefined ? [] : [{ id: `${name} is not for this chat`, match: '*', when: unless }]
  return { name, allow: [...clauses, ...elsewhere] }
}

type GroupSelectors = ReturnType<typeof parseGroups>['selectors']

function checkEntry(path: string, list: List, text: string, groups: GroupSelectors): void {
  try {
    const selector = parseSelector(text, groups)
    // It would allow nothing, and nobody means that.
    if (list === 'ALLOWLIST' && selector.kind === 'group' && selector.members.every(({ kind }) => kind === 'joined'))
      throw new ConfigError(`selector "${text}"`, 'names a group without tools, which would allow nothing')
  } catch (cause) {
    throw new ConfigError(path, messageOf(cause), { code: 'selector_invalid', cause })
  }
  checkListed(path, text, text)
}

/** Returns the entries of a variable, each checked, or nothing where it is unset or blank. */
export function readEntries(
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
 * Checks that no variable begins as a known one and goes on otherwise, and that none is a known one misspelt:
 * `TOOL_DENYLIST_GROUPS`, `TOOL_DENY_LIST` and `tool_denylist` would deny nothing.
 *
 * @throws {ConfigError} naming the variable
 */
export function checkVariables(env: Environment, base: string, suffixes: readonly string[] = SUFFIXES): void {
  checkObject('environment', env)
  const known = suffixes.map((suffix) => `${base}${suffix}`)
  for (const variable of Object.keys(env)) {
    if (known.includes(variable) || env[variable] === undefined) continue
    // The environment of Windows knows a variable in any letter case.
    const meant = nearestOf(variable, known, 1)
    if (meant === undefined ? !variable.startsWith(base) : env[meant] === env[variable]) continue
    throw new ConfigError(variable, `unknown variable${didYouMean(variable, known)}`)
  }
}

/** Gives the text of a variable, or nothing where it is unset or blank. */
export function readVariable(variable: string, env: Environment): string | undefined {
  const text: unknown = env[variable]
  if (text === undefined) return undefined
  if (typeof text !== 'string') throw new ConfigError(variable, 'must be a text')
  return text.trim() === '' ? undefined : text
}

/**
 * Returns the policies that say who may write to a bot, to be met with the others: they can only tighten.
 *
 * | variable | means |
 * |---|---|
 * | `TOOL_ALLOWED_SENDERS` | only these users see and call tools |
 * | `TOOL_ALLOWED_SENDERS_DM` | the same, in direct chats: `dm`, `private` |
 * | `TOOL_ALLOWED_SENDERS_GROUP` | the same, in chats of several: `group`, `supergroup`, `channel` |
 * | `TOOL_OWNERS` | users that every list of senders holds. Every other policy applies to them |
 *
 * Each is a list of `caller.user`s with commas between them, compared exactly; blank is unset. Variants meet the base. Where
 * the type of the chat is unknown or absent, both variants are in force. A caller without a user is in no list.
 *
 * @throws {ConfigError} naming the variable and the entry that is not the name of one sender
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

/** A condition has a longest text, so a long list of senders is several clauses, of which one must hold. */
const MAX_LENGTH = 3000

function listed(senders: readonly string[]): readonly Clause[] {
  const parts: string[][] = []
  let length = MAX_LENGTH
  for (const sender of senders) {
    // With its quotes and comma.
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

/** Neither what separates or wraps entries by mistake, nor what ends a text in a condition. */
const SENDER = /^[\p{L}\p{N}\p{M}_.:@+/#~=$!&%-]{1,256}$/u

function readSenders(variable: string, env: Environment): readonly string[] | undefined {
  return readEntries(variable, env, (path, entry) => {
    if (SENDER.test(entry)) return
    const advice =
      entry === '*' ? '; leave the variable unset to let everybody write' : '; entries have commas between them'
    throw new ConfigError(path, `${JSON.stringify(entry)} is not the name of one sender${advice}`)
  })
}
