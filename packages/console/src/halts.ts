import { count } from './format.ts'
import type { HaltBody, HaltReach, HaltReachBody, HaltRow, InForceBody } from './wire.ts'

export const TARGET_FIELDS = ['user', 'tool', 'session', 'tenant'] as const
export type TargetField = (typeof TARGET_FIELDS)[number]

/** Returns the target of a halt as text: `user vera, tool files:*`, or `everything`. */
export function wordsOfTarget(target: HaltRow['target']): string {
  if (target.all) return 'everything'
  return TARGET_FIELDS.flatMap((field) => (target[field] === undefined ? [] : [`${field} ${target[field]}`])).join(', ')
}

/** Returns the number of matches of a target now: `2 tools, 1 person`, or `nothing`. */
export function wordsOfReach({ tools, people }: HaltReach): string {
  if (tools === 0 || people === 0) return 'nothing'
  const persons = `${people} ${people === 1 ? 'person' : 'people'}`
  return [count(tools, 'tool'), ...(people === undefined ? [] : [persons])].join(', ')
}

/** Returns the effect of a halt of a target: `This stops 14 tools, 1 running call.` */
export function wordsOfStopped(target: HaltRow['target'], { underWay, ...reach }: HaltReachBody): string {
  const empty = emptyReach({ target, reach })
  if (empty !== undefined) return `This stops nothing now: ${empty}`
  return `This stops ${wordsOfReach(reach)}, ${count(underWay, 'running call')}.`
}

/** Returns the target in the form so far. */
export function toTarget(
  fields: Readonly<Partial<Record<TargetField, string>>>,
  isAll: boolean,
): Readonly<Record<string, string>> {
  if (isAll) return { all: 'true' }
  return Object.fromEntries(
    TARGET_FIELDS.flatMap((field) => {
      const value = fields[field]?.trim() ?? ''
      return value === '' ? [] : [[field, value] as const]
    }),
  )
}

const MAX_OFFERED = 20

/** Returns at most 20 names for a typed text: first the names that begin with it, then those that contain it. */
export function offeredNames(names: readonly string[], typed: string): readonly string[] {
  const asked = typed.trim().toLowerCase()
  const holding = [...new Set(names)].filter((name) => name.toLowerCase().includes(asked))
  const begins = holding.filter((name) => name.toLowerCase().startsWith(asked))
  return [...new Set([...begins, ...holding])].slice(0, MAX_OFFERED)
}

/**
 * Returns a text about the replicas on which a halt is in force: `In force on all 3 replicas.` The time is in the
 * user's zone.
 */
export function wordsOfForce({ replicas, unconfirmed, by }: InForceBody): string {
  if (unconfirmed.length === 0) return `In force on ${replicas > 1 ? 'all ' : ''}${count(replicas, 'replica')}.`
  const time = new Date(by).toTimeString().slice(0, 8)
  return `Not confirmed by ${unconfirmed.join(', ')}; in force there by ${time} at the latest.`
}

/** Returns why a halt matches nothing now, such as for a misspelt name, or `undefined` if it matches something. */
export function emptyReach({ target, reach }: Pick<HaltRow, 'target' | 'reach'>): string | undefined {
  const { tools, nearestTools, people, nearestPeople } = reach
  if (people === 0) {
    const named = [target.user, target.tenant].filter((name) => name !== undefined).join(' of ')
    const who = target.user === undefined ? `no user of ${named}` : `nobody named ${named}`
    return `${who} was seen.${wordsOfNearest(nearestPeople)}`
  }
  if (tools > 0) return undefined
  return target.tool === undefined ? 'there are no tools.' : `no tool is ${target.tool}.${wordsOfNearest(nearestTools)}`
}

function wordsOfNearest(names: readonly string[] = []): string {
  return names.length === 0 ? '' : ` Did you mean ${names.join(' or ')}?`
}

/** Returns the request of a form, or the problem of an incomplete one. */
export function toHaltBody(form: ReadonlyMap<string, string>): { body: HaltBody } | { problem: string } {
  const read = (field: string) => form.get(field)?.trim() ?? ''
  const reason = read('reason')
  const named = TARGET_FIELDS.flatMap((field) => (read(field) === '' ? [] : [[field, read(field)] as const]))
  if (form.has('all') ? named.length > 0 : named.length === 0)
    return {
      problem: form.has('all')
        ? 'Everything cannot be combined with other fields.'
        : 'Fill in a field, or choose everything.',
    }
  const said = reason === '' ? {} : { reason }
  return { body: form.has('all') ? { all: true, ...said } : { ...Object.fromEntries(named), ...said } }
}
