import { ConfigError } from '@toolgate/values'
import type { ApproverRule } from '../ports/ports.ts'
import type { Clause } from './policy.ts'

const LOGIN = /^([1-9]\d{0,5})(s|m|h)$/
const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 }

/**
 * Returns what an `ask` clause demands of the approver; `undefined` if it demands nothing.
 *
 * @throws {ConfigError} for other values, and for the fields on a clause that does not ask
 */
export function parseApprover({ by, login }: Clause, kind: string, path: string): ApproverRule | undefined {
  if (by === undefined && login === undefined) return undefined
  if (kind !== 'ask')
    throw new ConfigError(`${path}.${by === undefined ? 'login' : 'by'}`, 'is only for clauses of "ask"')
  if (by !== undefined && by !== 'other') throw new ConfigError(`${path}.by`, 'must be "other"')
  const [, count, unit = ''] = (typeof login === 'string' && LOGIN.exec(login)) || []
  if (login !== undefined && count === undefined)
    throw new ConfigError(`${path}.login`, 'must be a time such as "30s", "5m" or "1h"')
  return {
    ...(by !== undefined && { by }),
    ...(count !== undefined && { loginMs: Number(count) * (UNIT_MS[unit] ?? 0) }),
  }
}

/** Returns a rule in words: `by another person, at most 300 s after a login`. */
export function describeApprover({ by, loginMs }: ApproverRule): string {
  const parts = [by && 'by another person', loginMs !== undefined && `at most ${loginMs / 1000} s after a login`]
  return parts.filter(Boolean).join(', ')
}

/** Returns the rule that combines the demands of all rules. */
export function strictestApprover(rules: readonly (ApproverRule | undefined)[]): ApproverRule | undefined {
  const found = rules.filter((rule) => rule !== undefined)
  if (found.length === 0) return undefined
  const loginMs = Math.min(...found.map((rule) => rule.loginMs ?? Infinity))
  return {
    ...(found.some(({ by }) => by === 'other') && { by: 'other' }),
    ...(loginMs < Infinity && { loginMs }),
  }
}

/** Returns whether an approval under one rule satisfies another. */
export function coversApprover(rule: ApproverRule | undefined, wanted: ApproverRule | undefined): boolean {
  const isOther = wanted?.by === undefined || rule?.by === wanted.by
  return isOther && (rule?.loginMs ?? Infinity) <= (wanted?.loginMs ?? Infinity)
}
