import { checkShape, ConfigError, messageOf, shapeOf } from '@toolgate/values'
import { type Group, parseGroups } from '../tools/groups.ts'
import { checkEntry as checkListed, type GroupSelectors, parseSelector, splitEntries } from '../tools/selector.ts'
import { checkVariables, type Environment } from './environment-names.ts'
import type { Clause, Policy } from './policy.ts'
import { markWrittenIn } from './written-in.ts'

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
 * | `TOOL_ASKLIST` | a person must approve each call of a tool that one of the selectors matches |
 * | `TOOL_SENDERS` | `shell=tg:7|tg:8`: only these users, and those in `TOOL_OWNERS`, see and call the tools of a selector |
 *
 * The last two have variants too. Each is a comma-separated list; blank means unset. The base and its variants all apply,
 * so a variant only tightens. If the type of the chat is unknown or absent, both variants apply.
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
  checkVariables(env)
  const owners = readSenders(OWNERS, env) ?? []
  return VARIANTS.flatMap(({ suffix, unless }) => {
    const read = (list: ListVariable) =>
      readEntries(`TOOL_${list}${suffix}`, env, (path, entry) => checkEntry(path, list, entry, known))
    const allowed = read('ALLOWLIST')
    const denied = read('DENYLIST')
    const asked = read('ASKLIST')
    const personal = readPersonal(`TOOL_SENDERS${suffix}`, env, known)
    return [
      ...(allowed ? [allowPolicy(`TOOL_ALLOWLIST${suffix}`, allowed, unless)] : []),
      ...(denied ? [listPolicy(`TOOL_DENYLIST${suffix}`, 'deny', denied, unless)] : []),
      ...(asked ? [listPolicy(`TOOL_ASKLIST${suffix}`, 'ask', asked, unless)] : []),
      ...(personal ? [personalPolicy(`TOOL_SENDERS${suffix}`, personal, owners, unless)] : []),
    ]
  })
}

type ListVariable = 'ALLOWLIST' | 'DENYLIST' | 'ASKLIST'

interface Variant {
  readonly suffix: '' | '_DM' | '_GROUP'
  /** The chat types in which the variant does not apply. */
  readonly unless: string | undefined
}

const inChats = (types: readonly string[]) =>
  `has(caller.chat) && has(caller.chat.type) && caller.chat.type in ${listOf(types)}`

/** The base, and the variants for some chats. */
const VARIANTS: readonly Variant[] = [
  { suffix: '', unless: undefined },
  { suffix: '_DM', unless: inChats(['group', 'supergroup', 'channel']) },
  { suffix: '_GROUP', unless: inChats(['dm', 'private']) },
]

function listPolicy(
  name: string,
  kind: 'deny' | 'ask',
  selectors: readonly string[],
  unless: string | undefined,
): Policy {
  const clauses = selectors.map((match) => (unless === undefined ? match : { match, unless }))
  return markWrittenIn({ name, [kind]: clauses }, name)
}

/** The senders who may use the tools of a selector. */
interface Personal {
  readonly match: string
  readonly senders: readonly string[]
}

/** Returns the entries of a variable such as `shell=tg:7|tg:8`; nothing if it is unset or blank. */
function readPersonal(variable: string, env: Environment, groups: GroupSelectors): readonly Personal[] | undefined {
  const seen = new Set<string>()
  return readEntries(variable, env, (path, entry) => {
    const { match, senders } = toPersonal(entry)
    if (senders.length === 0)
      throw new ConfigError(path, `${JSON.stringify(entry)} must read selector=sender|sender, as "shell=tg:7|tg:8"`)
    checkEntry(path, 'DENYLIST', match, groups)
    for (const sender of senders) checkSender(path, sender, '; entries have commas between them, and senders "|"')
    if (seen.has(match))
      throw new ConfigError(path, `"${match}" has an entry already; write all its senders there, with "|" between them`)
    seen.add(match)
  })?.map(toPersonal)
}

function toPersonal(entry: string): Personal {
  const [match = '', ...rest] = entry.split('=')
  return {
    match: match.trim(),
    senders:
      rest.length === 0
        ? []
        : rest
            .join('=')
            .split('|')
            .map((one) => one.trim()),
  }
}

/** Returns a policy that denies tools to everybody but their senders and the owners. */
function personalPolicy(
  name: string,
  entries: readonly Personal[],
  owners: readonly string[],
  elsewhere: string | undefined,
): Policy {
  const deny = entries.map(({ match, senders }, i): Clause => {
    const isListed = `has(caller.user) && caller.user in ${listOf([...new Set([...senders, ...owners])])}`
    if (isListed.length > MAX_LENGTH)
      throw new ConfigError(`${name}[${i}]`, `"${match}" has too many senders for one entry; give them a role instead`)
    return { match, unless: elsewhere === undefined ? isListed : `(${elsewhere}) || (${isListed})` }
  })
  return markWrittenIn({ name, deny }, name)
}

function listOf(texts: readonly string[]): string {
  return `[${texts.map((text) => `'${text}'`).join(', ')}]`
}

/**
 * Returns a policy that allows what some clauses match. In chats to which the variant does not apply, only the base
 * decides.
 */
function allowPolicy(name: string, clauses: readonly (string | Clause)[], unless: string | undefined): Policy {
  const elsewhere: readonly Clause[] =
    unless === undefined ? [] : [{ id: `${name} is not for this chat`, match: '*', when: unless }]
  return markWrittenIn({ name, allow: [...clauses, ...elsewhere] }, name)
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
  checkVariables(env)
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
    const advice =
      entry === '*' ? '; leave the variable unset to let everybody write' : '; entries have commas between them'
    checkSender(path, entry, advice)
  })
}

function checkSender(path: string, sender: string, advice: string): void {
  if (!SENDER.test(sender))
    throw new ConfigError(path, `${JSON.stringify(sender)} is not the name of one sender${advice}`)
}
