import { randomUUID } from 'node:crypto'
import { sha256Hex } from '@toolgate/core'

/** The forks that a planner came from, the oldest first: one that goes on with a run is at least as tight as it was. */
export type Lineage = readonly string[]

/** What tells one fork from another. */
export interface ForkParts {
  readonly policy?: unknown
  readonly hooks?: unknown
  readonly name?: string | undefined
}

/** Gives a planner's lineage and one fork more. */
export function forkLineage(lineage: Lineage, { policy, hooks, name }: ForkParts): Lineage {
  return [...lineage, name === undefined ? `parts:${sha256Hex(textOf([policy, hooks]))}` : `name:${name}`]
}

/** Whether a planner stands on all the forks that another did. */
export function standsOn(lineage: Lineage, other: Lineage): boolean {
  return other.every((fork, i) => lineage[i] === fork)
}

/** What is no data is known to the process that has it, and to no other. */
function textOf(parts: unknown): string {
  return JSON.stringify(parts, (_, value: unknown) => (isData(value) ? value : idOf(value as object)))
}

function isData(value: unknown): boolean {
  if (typeof value === 'function') return false
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const ids = new WeakMap<object, string>()

function idOf(value: object): string {
  let id = ids.get(value)
  if (id === undefined) ids.set(value, (id = randomUUID()))
  return id
}
