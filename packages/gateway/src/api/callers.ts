import { type Caller, defineCaller } from '@toolgate/core'
import type { CallerConfig } from '../config/config.ts'
import { ApiFault } from './faults.ts'

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

/** @throws {ApiFault} `caller_unknown`, naming the known ones */
export function findCaller(callers: ReadonlyMap<string, NamedCaller>, name: string): NamedCaller {
  const found = callers.get(name)
  if (found) return found
  const known = [...callers.keys()].slice(0, MAX_NAMED).join(', ')
  throw new ApiFault('caller_unknown', `No caller is named ${JSON.stringify(name)}; known are ${known || '(none)'}.`)
}

function freeName(base: string, taken: ReadonlyMap<string, unknown>): string {
  let name = base
  for (let n = 2; taken.has(name); n++) name = `${base}#${n}`
  return name
}
