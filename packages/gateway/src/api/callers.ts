import { type Caller, defineCaller } from '@toolgate/core'
import { nearestOf } from '@toolgate/core/internal'
import type { CallerConfig } from '../config/config.ts'
import { ApiFault } from './faults.ts'
import { maySee } from './tenant.ts'
import { invalid, type Parameter, required, text } from './query.ts'

export interface NamedCaller {
  readonly name: string
  readonly for: 'mcp' | 'console'
  readonly caller: Caller
}

const MAX_NAMED = 50

/**
 * Gives each configured caller the name by which `as` finds it: its `user`.
 *
 * Where several keys stand for one user, agents' keys come first, and the second
 * different caller is `vera#2`. Equal callers are one.
 */
export function nameCallers(callers: readonly CallerConfig[]): ReadonlyMap<string, NamedCaller> {
  const named = new Map<string, NamedCaller>()
  const seen = new Set<string>()
  const agentsFirst = callers.toSorted((a, b) => Number(a.for === 'console') - Number(b.for === 'console'))
  for (const { for: kind, caller } of agentsFirst) {
    const identity = JSON.stringify([kind, defineCaller(caller)])
    if (seen.has(identity)) continue
    seen.add(identity)
    const name = freeName(toName(caller), named)
    named.set(name, { name, for: kind, caller: defineCaller(caller) })
  }
  return named
}

/** What a caller is called where a name is needed. */
export function toName(caller: Caller): string {
  return caller.user ?? caller.agent ?? 'anonymous'
}

/** Whom a question is about: a configured caller by name, or any other as JSON. */
export interface WhoseQuery {
  readonly as?: string | undefined
  readonly caller?: Caller | undefined
}

/** The parameters of such a question, and the app that it is about. */
export const WHOSE: {
  readonly as: Parameter<string>
  readonly caller: Parameter<Caller>
  readonly app: Parameter<string>
} = {
  as: text,
  caller: callerJson,
  app: text,
}

/** @throws {ApiFault} `query_invalid` for both or neither, `caller_unknown`, naming the known ones */
export function findCaller(
  callers: ReadonlyMap<string, NamedCaller>,
  { as, caller }: WhoseQuery,
  person: Caller,
): Pick<NamedCaller, 'name' | 'caller'> {
  if (as !== undefined && caller !== undefined) throw invalid('caller', 'cannot be given beside "as"')
  if (caller && !maySee(person, caller)) throw invalid('caller', 'is of another tenant')
  if (caller) return { name: toName(caller), caller }
  const found = callers.get(required('as', as))
  if (found && maySee(person, found.caller)) return found
  const mine = [...callers.values()].filter((one) => maySee(person, one.caller))
  const names = mine.map(({ name }) => name)
  const known = names.slice(0, MAX_NAMED).join(', ')
  const near = nearestOf(as ?? '', names)
  const hint = near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`
  throw new ApiFault(
    'caller_unknown',
    `No caller is named ${JSON.stringify(as)}; known are ${known || '(none)'}.${hint}`,
  )
}

const MAX_CALLER_LENGTH = 4096

function callerJson(value: string): Caller {
  if (value.length > MAX_CALLER_LENGTH) throw new RangeError(`has more than ${MAX_CALLER_LENGTH} characters`)
  try {
    return defineCaller(JSON.parse(value) as Caller)
  } catch (error) {
    throw new RangeError(`is not a caller as JSON: ${(error as Error).message}`, { cause: error })
  }
}

function freeName(base: string, taken: ReadonlyMap<string, unknown>): string {
  let name = base
  for (let n = 2; taken.has(name); n++) name = `${base}#${n}`
  return name
}
