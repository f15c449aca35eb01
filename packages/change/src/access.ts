import type { Caller, Gate, View } from '@toolgate/core'
import { groupByRights, joinGroups, namePeople, type PeopleGroup } from './people-groups.ts'
import type { RecordedCaller } from './recorded-callers.ts'

/** The items that the callers with one name gain and lose by a change of the rules. */
export interface AccessDifference {
  /** A name such as `vera of acme`, or `12 people such as ann of acme, bo of acme`. */
  readonly caller: string
  /** The number of people who were seen. Absent for other callers. */
  readonly people?: number
  readonly gains: readonly string[]
  readonly loses: readonly string[]
  /** What depends on something of the caller that is not known, such as the roles of somebody who is only in the audit. */
  readonly unknown: readonly string[]
}

/** The callers with one name, under the rules before and after. */
export interface CallersOfName {
  readonly before: readonly RecordedCaller[]
  readonly after: readonly RecordedCaller[]
}

/**
 * Returns the tools, resources, templates and prompts that each caller gains and loses. `rest` is awaited after each
 * caller.
 */
export async function compareAccess(
  gates: { readonly before: Gate; readonly after: Gate },
  callers: ReadonlyMap<string, CallersOfName>,
  rest: () => Promise<void> | undefined,
): Promise<readonly AccessDifference[]> {
  const changes: AccessDifference[] = []
  for (const [caller, { before, after }] of callers) {
    const had = await lookAt(gates.before, before, rest)
    const has = await lookAt(gates.after, after, rest)
    const change = { gains: [] as string[], loses: [] as string[], unknown: [] as string[] }
    for (const id of new Set([...had.certain, ...had.possible, ...has.certain, ...has.possible])) {
      const kind = compare(id, had, has)
      if (kind) change[kind].push(id)
    }
    if (change.gains.length + change.loses.length + change.unknown.length > 0) changes.push({ caller, ...change })
  }
  return changes.toSorted((a, b) => (a.caller < b.caller ? -1 : 1))
}

/** Returns the items that people gain and lose. People who gain and lose the same are one row. */
export async function comparePeople(
  gates: { readonly before: Gate; readonly after: Gate },
  people: readonly Caller[],
  rest: () => Promise<void> | undefined,
): Promise<{ readonly access: readonly AccessDifference[]; readonly notCompared: number }> {
  const { groups, notCompared } = await groupByRights(people, [gates.before, gates.after], rest)
  const rows = new Map<string, PeopleGroup & Pick<AccessDifference, 'gains' | 'loses'>>()
  for (const { one, ...group } of groups) {
    const [had, has] = [idsOf(await gates.before.view(one)), idsOf(await gates.after.view(one))]
    await rest()
    const [before, now] = [new Set(had), new Set(has)]
    const change = { gains: has.filter((id) => !before.has(id)), loses: had.filter((id) => !now.has(id)) }
    if (change.gains.length + change.loses.length === 0) continue
    const key = JSON.stringify(change)
    rows.set(key, { ...joinGroups(rows.get(key), group), ...change })
  }
  const access = [...rows.values()].map(({ gains, loses, ...group }) => ({
    ...namePeople(group),
    gains,
    loses,
    unknown: [],
  }))
  return { access, notCompared }
}

async function lookAt(
  gate: Gate,
  callers: readonly RecordedCaller[],
  rest: () => Promise<void> | undefined,
): Promise<SeenItems> {
  const seen: SeenItems[] = []
  for (const caller of callers) {
    seen.push(await look(gate, caller))
    await rest()
  }
  const [only, ...more] = seen
  if (only && more.length === 0) return only
  const certain = new Set(seen.flatMap((one) => [...one.certain]))
  const possible = new Set(seen.flatMap((one) => [...one.possible]).filter((id) => !certain.has(id)))
  return { certain, possible, why: (id) => seen.map((one) => one.why(id)).join('\n') }
}

/** The items that a caller certainly sees, and those that they may see. */
interface SeenItems {
  readonly certain: ReadonlySet<string>
  readonly possible: ReadonlySet<string>
  why(id: string): string
}

async function look(gate: Gate, caller: RecordedCaller): Promise<SeenItems> {
  const strict = await gate.view(caller.strict)
  const certain = new Set(idsOf(strict))
  if (caller.lax === caller.strict) return { certain, possible: new Set(), why: () => '' }
  const lax = await gate.view(caller.lax)
  const possible = new Set(idsOf(lax).filter((id) => !certain.has(id)))
  return {
    certain,
    possible,
    why: (id) =>
      strict
        .explain(id)
        .reasons.map(({ text }) => text)
        .join('\n'),
  }
}

function compare(id: string, had: SeenItems, has: SeenItems): 'gains' | 'loses' | 'unknown' | undefined {
  if (had.possible.has(id) || has.possible.has(id))
    // The same rules hold the item back, for every variant of the caller.
    return had.possible.has(id) && has.possible.has(id) && had.why(id) === has.why(id) ? undefined : 'unknown'
  if (had.certain.has(id) === has.certain.has(id)) return undefined
  return has.certain.has(id) ? 'gains' : 'loses'
}

function idsOf(view: View): readonly string[] {
  return [
    ...view.ids,
    ...(['resource', 'template', 'prompt'] as const).flatMap((kind) => view.items(kind)).map(({ id }) => id),
  ]
}
