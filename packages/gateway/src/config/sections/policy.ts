import type { Clause, Policy } from '@toolgate/core'
import { nearestOf } from '@toolgate/values'
import * as z from 'zod'
import { type ConfigPath, formatPath } from '../problems.ts'
import { checkShape, has, keysOf, lengthOf, type PolicyProblem, type Reading } from '../reading.ts'
import { clauseSchema, policySchema, policyShellSchema } from '../schema/policy.ts'
import type { Section } from '../section.ts'
import type { Source } from '../source.ts'

const policiesSchema = z
  .array(policySchema)
  .min(1, 'at least one policy')
  .describe('Required. Policies are combined by meeting: each can only tighten. [{ allow: ["*"] }] allows everything.')

export const policy: Section<readonly Policy[]> = { schema: policiesSchema, isRequired: true, read: readOwnPolicies }

const KINDS = ['allow', 'deny', 'ask'] as const

/**
 * Reads the `policy` of the gateway or an app. Core stops at its first problem, so clauses are checked one by one, to
 * report every problem.
 */
export function readPolicies(reading: Reading, at: ConfigPath): readonly Policy[] {
  const { source } = reading
  const node = source.get(at)
  if (node && !node.items) checkShape(source, at, policiesSchema)
  const before = source.problems.length
  const policies = Array.from({ length: lengthOf(source, at) }, (_, i) => readPolicy(reading, [...at, i]))
  if (source.problems.length === before) {
    // Checks the clauses together, such as for a duplicate id.
    for (const problem of reading.checkPolicy(policies, reading.groupNames))
      reportPolicy(reading, problem, formatPath(at) + problem.path.slice('policy'.length))
  }
  return policies
}

/** Reads the gateway's own `policy`. A file without a policy is rejected, as every key could call every tool. */
function readOwnPolicies(reading: Reading): readonly Policy[] {
  const { source } = reading
  const at: ConfigPath = ['policy']
  const before = source.problems.length
  const policies = readPolicies(reading, at)
  if (isMisspelt(source) || source.problems.length > before || !source.root?.entries) return policies
  if (!has(source, at)) source.report(at, `is missing, ${OPEN}`)
  else if (policies.length === 0) source.report(at, `found an empty list, ${OPEN}`)
  else if (saysNothing(policies)) source.report(at, `found nothing that is enforced, ${OPEN}`)
  return policies
}

const OPEN = 'and every key could call every tool; write policy: [{ allow: ["*"] }] to mean that'

/** Whether a key is a misspelt `policy`. That unknown key is already reported. */
function isMisspelt(source: Source): boolean {
  return !has(source, ['policy']) && keysOf(source, []).some((key) => nearestOf(key, ['policy']) !== undefined)
}

/** Returns whether policies leave every tool open to everybody without an explicit `allow`. */
export function saysNothing(policies: readonly Policy[]): boolean {
  return policies.every(
    ({ allow, deny = [], ask = [], requireTags = [], mode }) =>
      mode === 'shadow' || (allow === undefined && ![...deny, ...ask].some(isEnforced) && requireTags.length === 0),
  )
}

function isEnforced(clause: string | Clause): boolean {
  return typeof clause === 'string' || clause.mode !== 'shadow'
}

const PARTS = [...KINDS, 'requireTags'] as const

function readPolicy(reading: Reading, at: ConfigPath): Policy {
  const shell = checkShape(reading.source, at, policyShellSchema)
  if (shell && PARTS.every((part) => shell[part] === undefined))
    reading.source.report(at, 'says nothing, expected "allow", "deny", "ask" or "requireTags"')
  const clauses = KINDS.filter((kind) => has(reading.source, [...at, kind])).map((kind) => [
    kind,
    readClauses(reading, [...at, kind]),
  ])
  return { ...shell, ...Object.fromEntries(clauses) }
}

function readClauses(reading: Reading, at: ConfigPath): readonly (string | Clause)[] {
  return Array.from({ length: lengthOf(reading.source, at) }, (_, i) => [...at, i]).flatMap((place) => {
    const clause = checkShape(reading.source, place, clauseSchema)
    if (clause !== undefined) checkClause(reading, place, clause)
    return clause === undefined ? [] : [clause]
  })
}

function checkClause(reading: Reading, at: ConfigPath, clause: string | Clause): void {
  const kind = String(at.at(-2))
  for (const problem of reading.checkPolicy([{ [kind]: [clause] }], reading.groupNames)) {
    const inside = problem.path.slice(`policy[0].${kind}[0]`.length)
    reportPolicy(reading, problem, formatPath(at) + (typeof clause === 'string' ? '' : inside))
  }
}

function reportPolicy({ source }: Reading, { message, offset }: PolicyProblem, path: string): void {
  source.report(parsePath(path), message, { offset })
}

/** Parses `policy[0].deny[1].when`, or `apps["7days"].policy[0]`. These keys contain no quotes. */
function parsePath(path: string): ConfigPath {
  return [...path.matchAll(/\[(\d+)\]|([^.[\]"]+)/g)].map(([, index, key]) =>
    index === undefined ? (key ?? '') : Number(index),
  )
}
