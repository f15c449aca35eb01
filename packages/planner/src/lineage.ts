import { randomUUID } from 'node:crypto'
import { sha256Hex } from '@toolgate/core'

/** The forks that a planner came from, the oldest first: one that goes on with a run is at least as tight as it was. */
export type Lineage = readonly string[]

/** Gives a planner's lineage and one fork more. */
export function forkLineage(lineage: Lineage, policy: unknown, name: string | undefined): Lineage {
  return [...lineage, name === undefined ? `policy:${sha256Hex(textOf(policy))}` : `name:${name}`]
}

/** Whether a planner stands on all the forks that another did. */
export function standsOn(lineage: Lineage, other: Lineage): boolean {
  return other.every((fork, i) => lineage[i] === fork)
}

/** A function is known to the process that has it, and to no other. */
function textOf(policy: unknown): string {
  return JSON.stringify(policy ?? null, (_, value: unknown) => (typeof value === 'function' ? idOf(value) : value))
}

const ids = new WeakMap<object, string>()

function idOf(value: object): string {
  let id = ids.get(value)
  if (id === undefined) ids.set(value, (id = randomUUID()))
  return id
}
