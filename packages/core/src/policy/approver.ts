import { ConfigError } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import type { ApproverRule } from '../ports/ports.ts'
import type { Clause } from './policy.ts'

const LOGIN = /^([1-9]\d{0,5})(s|m|h)$/
const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 }
/** The most people that one call can need. */
const MAX_APPROVERS = 10
const FIELDS = ['by', 'login', 'approvers', 'edit'] as const

/**
 * Returns what an `ask` clause demands of the approver; `undefined` if it demands nothing.
 *
 * @throws {ConfigError} for other values, and for the fields on a clause that does not ask
 */
export function parseApprover(clause: Clause, kind: string, path: string): ApproverRule | undefined {
  const given = FIELDS.find((field) => clause[field] !== undefined)
  if (given === undefined) return undefined
  if (kind !== 'ask') throw new ConfigError(`${path}.${given}`, 'is only for clauses of "ask"')
  const { by, edit } = clause
  if (by !== undefined && by !== 'other') throw new ConfigError(`${path}.by`, 'must be "other"')
  if (edit !== undefined && typeof edit !== 'boolean') throw new ConfigError(`${path}.edit`, 'must be true or false')
  const loginMs = parseLogin(clause.login, path)
  const people = parseApprovers(clause.approvers, path)
  const rule = withOther({
    ...(by !== undefined && { by }),
    ...(loginMs !== undefined && { loginMs }),
    ...people,
    ...(edit === true && { edit }),
  })
  return Object.keys(rule).length === 0 ? undefined : rule
}

function parseLogin(login: unknown, path: string): number | undefined {
  if (login === undefined) return undefined
  const [, count, unit = ''] = (typeof login === 'string' && LOGIN.exec(login)) || []
  if (count === undefined) throw new ConfigError(`${path}.login`, 'must be a time such as "30s", "5m" or "1h"')
  return Number(count) * (UNIT_MS[unit] ?? 0)
}

/** Reads `2`, or `{ finance: 1, security: 1 }`. */
function parseApprovers(approvers: unknown, path: string): Pick<ApproverRule, 'count' | 'roles'> {
  if (approvers === undefined || approvers === 1) return {}
  if (isCount(approvers)) return { count: approvers }
  const roles = isObject(approvers) ? Object.entries(approvers) : []
  const total = roles.reduce((sum, [, count]) => sum + (isCount(count) ? count : Infinity), 0)
  if (total < 1 || total > MAX_APPROVERS || roles.some(([role]) => role === ''))
    throw new ConfigError(
      `${path}.approvers`,
      `must be a number of people from 1 to ${MAX_APPROVERS}, or one for each role, such as { finance: 1, security: 1 }`,
    )
  return { roles: sorted(roles as [string, number][]) }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_APPROVERS
}

/** Equal rules have equal texts. */
function sorted(roles: Iterable<readonly [string, number]>): Readonly<Record<string, number>> {
  return Object.fromEntries([...roles].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** Two people are never the one who asks. */
function withOther(rule: ApproverRule): ApproverRule {
  return peopleOf(rule) > 1 ? { ...rule, by: 'other' } : rule
}

/** Returns how many different people must approve. */
export function peopleOf(rule: ApproverRule | undefined): number {
  const ofRoles = Object.values(rule?.roles ?? {}).reduce((sum, count) => sum + count, 0)
  return Math.max(countOf(rule), ofRoles)
}

/** Returns how many people must approve whom `mayApprove` allows without regard to roles. */
function countOf(rule: ApproverRule | undefined): number {
  return rule?.count ?? (rule?.roles === undefined ? 1 : 0)
}

/** Returns a rule in words: `by another person, at most 300 s after a login`. */
export function describeApprover(rule: ApproverRule): string {
  const { by, loginMs, edit } = rule
  const parts = [
    describePeople(rule) ?? (by && 'by another person'),
    loginMs !== undefined && `at most ${loginMs / 1000} s after a login`,
    edit && 'who may change the input',
  ]
  return parts.filter(Boolean).join(', ')
}

/** Returns the needed people in words: `by 2 other people`, `by 1 with the role finance and 1 with the role security`. */
function describePeople(rule: ApproverRule): string | undefined {
  const { count = 0, roles } = rule
  if (roles === undefined) return count > 1 ? `by ${count} other people` : undefined
  const ofRoles = Object.entries(roles).map(([role, number]) => `${number} with the role ${role}`)
  return `by ${[...(count > 0 ? [`${count} approver${count === 1 ? '' : 's'}`] : []), ...ofRoles].join(' and ')}`
}

/**
 * Returns the rule that combines the demands of all rules. `undefined` stands for a rule without demands: it needs one
 * approver, and no editing.
 */
export function strictestApprover(rules: readonly (ApproverRule | undefined)[]): ApproverRule | undefined {
  const found = rules.filter((rule) => rule !== undefined)
  if (found.length === 0) return undefined
  const loginMs = Math.min(...found.map((rule) => rule.loginMs ?? Infinity))
  const roles = mostOfEach(found)
  const count = Math.max(...rules.map(countOf))
  const rule = withOther({
    ...(found.some(({ by }) => by === 'other') && { by: 'other' }),
    ...(loginMs < Infinity && { loginMs }),
    ...(count > (roles ? 0 : 1) && { count }),
    ...(roles && { roles }),
    ...(rules.every((one) => one?.edit) && { edit: true }),
  })
  return Object.keys(rule).length === 0 ? undefined : rule
}

function mostOfEach(rules: readonly ApproverRule[]): ApproverRule['roles'] {
  const roles = new Map<string, number>()
  for (const [role, count] of rules.flatMap((rule) => Object.entries(rule.roles ?? {})))
    roles.set(role, Math.max(count, roles.get(role) ?? 0))
  return roles.size === 0 ? undefined : sorted(roles)
}

/** Returns whether an approval under one rule satisfies another. One that may be edited satisfies only rules that allow it. */
export function coversApprover(rule: ApproverRule | undefined, wanted: ApproverRule | undefined): boolean {
  const isOther = wanted?.by === undefined || rule?.by === wanted.by
  return (
    isOther &&
    (rule?.edit !== true || wanted?.edit === true) &&
    (rule?.loginMs ?? Infinity) <= (wanted?.loginMs ?? Infinity) &&
    countOf(rule) >= countOf(wanted) &&
    Object.entries(wanted?.roles ?? {}).every(([role, count]) => numberOf(rule, role) >= count)
  )
}

function numberOf(rule: ApproverRule | undefined, role: string): number {
  return rule?.roles && Object.hasOwn(rule.roles, role) ? (rule.roles[role] ?? 0) : 0
}
