import { canonicalize } from '../util/json.ts'
import { ConfigError, messageOf } from '../errors.ts'
import { sha256Hex } from '../util/hash.ts'
import type { Stopping } from '../decide/layers/held.ts'
import { type GroupSelectors, parseSelector } from '../tools/selector.ts'
import { checkShape, shapeOf } from '../util/shape.ts'

/** What is halted: all that every field names. `all` stands alone. */
export interface HaltTarget {
  readonly user?: string | undefined
  readonly session?: string | undefined
  /** A selector, such as `files:write_file`, `browser:*` or `group:web`. */
  readonly tool?: string | undefined
  readonly tenant?: string | undefined
  readonly all?: true | undefined
}

export interface HaltRequest extends HaltTarget {
  /** Why, as a clause without a full stop. The model is told it. 1 to 500 characters. */
  readonly reason: string
  /** Who halts. */
  readonly by?: string | undefined
  /** The tenant that he belongs to, where he answers for that one only: for hosts that ask who may release what. */
  readonly byTenant?: string | undefined
}

/** Something a person stopped. */
export interface Halt {
  /** Follows from the target: whoever halts the same again changes the reason only. */
  readonly id: string
  readonly target: HaltTarget
  readonly reason: string
  readonly by: string | undefined
  readonly byTenant?: string | undefined
  /** Wall-clock milliseconds. */
  readonly at: number
}

export interface ParsedHalt extends Halt, Stopping {
  readonly target: HaltTarget
}

const FIELDS = ['all', 'session', 'tenant', 'tool', 'user'] as const
const REQUEST = shapeOf<HaltRequest>(
  { all: true, session: true, tenant: true, tool: true, user: true, reason: true, by: true, byTenant: true },
  'field',
)
const MAX_REASON = 500

/** @throws {ConfigError} naming the field */
export function parseHalt(request: HaltRequest, at: number, groups: GroupSelectors): ParsedHalt {
  const target = parseTarget(request)
  const { reason, by, byTenant } = request
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > MAX_REASON)
    throw new ConfigError('halt.reason', `must be a text of 1 to ${MAX_REASON} characters`)
  for (const [field, value] of Object.entries({ by, byTenant }))
    if (value !== undefined && typeof value !== 'string') throw new ConfigError(`halt.${field}`, 'must be a text')
  const whose = byTenant === undefined ? {} : { byTenant }
  return withSelector({ id: haltId(target), target, reason, by, ...whose, at }, groups)
}

/** Gives the halt of a stored one. @throws {ConfigError} where it is none */
export function restoreHalt(stored: unknown, groups: GroupSelectors): ParsedHalt {
  const { target, reason, by, byTenant, at } = (stored ?? {}) as Partial<Halt>
  return parseHalt({ ...target, reason: reason as string, by, byTenant }, Number(at), groups)
}

export function parseTarget(request: HaltTarget): HaltTarget {
  checkShape('halt', request, REQUEST)
  const target: Record<string, string | true> = {}
  for (const field of FIELDS) {
    const value = request[field]
    if (value === undefined) continue
    if (field === 'all' ? value !== true : typeof value !== 'string' || value === '')
      throw new ConfigError(`halt.${field}`, field === 'all' ? 'must be true' : 'must be a text that is not empty')
    target[field] = value
  }
  const named = Object.keys(target).length
  if (named === 0) throw new ConfigError('halt', `must name what to halt: ${FIELDS.join(', ')}`)
  // `all` beside a user could be meant either way, and one of the ways halts everybody.
  if (target['all'] && named > 1) throw new ConfigError('halt.all', 'cannot stand beside another field')
  return Object.freeze(target)
}

/** Equal targets have equal ids. */
export function haltId(target: HaltTarget): string {
  return sha256Hex(canonicalize(target)).slice(0, 16)
}

function withSelector(halt: Halt, groups: GroupSelectors): ParsedHalt {
  const { tool } = halt.target
  try {
    return Object.freeze({ ...halt, selector: tool === undefined ? undefined : parseSelector(tool, groups) })
  } catch (cause) {
    throw new ConfigError('halt.tool', messageOf(cause), { code: 'selector_invalid', cause })
  }
}
