import { ConfigError } from '../errors.ts'
import { allowPolicy, checkVariables, type Environment, readEntries, VARIANTS } from './environment.ts'
import type { Clause, Policy } from './policy.ts'

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
