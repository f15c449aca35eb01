import type { Caller, Gate } from '@toolgate/core'
import { rightsKeyOf } from './equal-rights.ts'
import { nameOfCaller } from './recorded-callers.ts'

/** The maximum number of groups that are compared, as each takes two views. */
const MAX_GROUPS = 2000
const REST_EVERY = 500
/** The number of people who are named for several. */
const MAX_EXAMPLES = 2

/** Several people. */
export interface PeopleGroup {
  readonly count: number
  /** The names of the first. */
  readonly names: readonly string[]
}

/** People whom no rule can tell apart. `one`: any of them. */
type EqualPeople = PeopleGroup & { readonly one: Caller }

/** Returns people in groups whom none of the gates can tell apart, the largest first. `notCompared`: the number of others. */
export async function groupByRights(
  people: readonly Caller[],
  gates: readonly Gate[],
  rest: () => Promise<void> | undefined,
): Promise<{ readonly groups: readonly EqualPeople[]; readonly notCompared: number }> {
  const keys = await Promise.all(gates.map((gate) => rightsKeyOf(gate)))
  const equal = new Map<string, Caller[]>()
  for (const [i, person] of people.entries()) {
    if (i % REST_EVERY === REST_EVERY - 1) await rest()
    const key = JSON.stringify(keys.map((keyOf) => keyOf(person)))
    const known = equal.get(key)
    if (known) known.push(person)
    else equal.set(key, [person])
  }
  const groups = [...equal.values()]
    .map((group) => ({
      one: group[0] as Caller,
      count: group.length,
      names: group.slice(0, MAX_EXAMPLES).map(nameOfCaller),
    }))
    .toSorted((a, b) => b.count - a.count)
  const left = groups.slice(MAX_GROUPS)
  return { groups: groups.slice(0, MAX_GROUPS), notCompared: left.reduce((sum, { count }) => sum + count, 0) }
}

/** Returns the people of both groups. */
export function joinGroups(known: PeopleGroup | undefined, more: PeopleGroup): PeopleGroup {
  if (!known) return more
  return { count: known.count + more.count, names: [...known.names, ...more.names].slice(0, MAX_EXAMPLES) }
}

/** Returns the name of people in a report, such as `12 people such as ann of acme, bo of acme`, and their number. */
export function namePeople({ count, names }: PeopleGroup): { readonly caller: string; readonly people: number } {
  const caller = count > names.length ? `${count} people such as ${names.join(', ')}` : names.join(' and ')
  return { caller, people: count }
}
