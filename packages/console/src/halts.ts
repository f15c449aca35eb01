import { count } from './format.ts'
import type { HaltBody, HaltReach, HaltReachBody, HaltRow, InForceBody } from './wire.ts'

export const TARGET_FIELDS = ['user', 'tool', 'session', 'tenant'] as const
export type TargetField = (typeof TARGET_FIELDS)[number]

/** Returns the target of a halt as text: `user vera, tool files:*`, or `everything`. */
export function wordsOfTarget(target: HaltRow['target']): string {
  if (target.all) return 'everything'
  return TARGET_FIELDS.flatMap((field) => (target[field] === undefined ? [] : [`${field} ${target[field]}`])).join(', ')
}

/** Returns what a target matches now: `2 tools, 1 configured agent`. */
export function wordsOfReach({ tools, callers }: HaltReach): string {
  return [count(tools, 'tool'), ...(callers === undefined ? [] : [count(callers, 'configured agent')])].join(', ')
}

/** Returns what a halt would stop: `This stops 14 tools, 1 running call.` */
export function wordsOfStopped({ underWay, ...reach }: HaltReachBody): string {
  if (reach.tools === 0)
    return `This stops nothing now${reach.nearestTool === undefined ? '.' : `: did you mean ${reach.nearestTool}?`}`
  return `This stops ${wordsOfReach(reach)}, ${count(underWay, 'running call')}.`
}

/** Returns the target that a form names so far. */
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

/** Returns where a halt is in force: `In force on all 3 replicas.` The time is that of the person. */
export function wordsOfForce({ replicas, unconfirmed, by }: InForceBody): string {
  if (unconfirmed.length === 0) return `In force on ${replicas > 1 ? 'all ' : ''}${count(replicas, 'replica')}.`
  const time = new Date(by).toTimeString().slice(0, 8)
  return `Not confirmed by ${unconfirmed.join(', ')}; in force there by ${time} at the latest.`
}

/** Returns why a halt matches nothing now, such as for a misspelt name; `undefined` if it matches something. */
export function emptyReach({ target, reach }: Pick<HaltRow, 'target' | 'reach'>): string | undefined {
  const { tools, callers, nearestTool } = reach
  if (tools === 0) {
    const near = nearestTool === undefined ? '' : ` Did you mean ${nearestTool}?`
    return target.tool === undefined ? 'there are no tools.' : `no tool is ${target.tool}.${near}`
  }
  const named = [target.user, target.tenant].filter((name) => name !== undefined)
  return callers === 0 ? `no configured agent is ${named.join(' of ')}.` : undefined
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
  if (reason === '') return { problem: 'Enter a reason.' }
  return { body: form.has('all') ? { all: true, reason } : { ...Object.fromEntries(named), reason } }
}
