import { parseDigits } from './digits.ts'
import type { ApprovalRow, GrantableField, GrantRequest, MayGrant } from './wire.ts'

/** How a field of a grant may differ, as a person chooses it. `equal`: not at all. */
export type FieldFreedom = 'equal' | 'any' | 'upTo'

/** A grant as a person types it. */
export interface GrantDraft {
  readonly covers: GrantRequest['covers']
  /** How fields may differ, by their names. Absent: not at all. */
  readonly freedoms: ReadonlyMap<string, FieldFreedom>
  /** The typed upper bounds, by the names of fields. */
  readonly bounds: ReadonlyMap<string, string>
  readonly uses: string
  readonly forMs: number
  readonly isAnyRun: boolean
}

const MINUTE_MS = 60_000
const LIVES_MS = [15, 60, 4 * 60, 8 * 60, 24 * 60, 7 * 24 * 60].map((minutes) => minutes * MINUTE_MS)
const FIRST_USES = 10

/** Returns the offered lives of a grant, shortest first, the longest allowed one included. */
export function livesOf({ maxMs }: MayGrant): readonly number[] {
  return [...LIVES_MS.filter((ms) => ms < maxMs), maxMs]
}

/** Returns the narrowest grant that a person may make. */
export function firstDraft(may: MayGrant): GrantDraft {
  const [first = may.maxMs, second = first] = livesOf(may)
  return {
    covers: may.covers[0] ?? 'tool',
    freedoms: new Map(),
    bounds: new Map(),
    uses: String(Math.min(FIRST_USES, may.maxUses)),
    forMs: second,
    isAnyRun: false,
  }
}

/** Returns what the gateway is sent, or why nothing can be sent yet. */
export function toGrant(
  draft: GrantDraft,
  may: MayGrant,
): { readonly grant: GrantRequest } | { readonly problem: string } {
  const uses = Number(draft.uses)
  if (!Number.isInteger(uses) || uses < 1 || uses > may.maxUses)
    return { problem: `The number of calls must be a whole number from 1 to ${may.maxUses}.` }
  const shared = { uses, forMs: draft.forMs, ...(draft.isAnyRun && { anyRun: true as const }) }
  if (draft.covers !== 'fields') return { grant: { covers: draft.covers, ...shared } }
  const fields: (readonly [string, { any: true } | { upTo: number | bigint }])[] = []
  for (const field of may.fields) {
    const freedom = draft.freedoms.get(field.name) ?? 'equal'
    if (freedom === 'any') fields.push([field.name, { any: true }])
    if (freedom !== 'upTo') continue
    const upTo = readBound(draft.bounds.get(field.name) ?? '')
    if (upTo === undefined) return { problem: `The bound of ${field.name} must be a number.` }
    if (isNumber(field.value) && upTo < field.value)
      return { problem: `The bound of ${field.name} must be at least ${field.value}, which you approve.` }
    fields.push([field.name, { upTo }])
  }
  if (fields.length === 0) return { problem: 'Choose at least one field that may differ.' }
  return { grant: { covers: 'fields', fields: Object.fromEntries(fields), ...shared } }
}

function readBound(text: string): number | bigint | undefined {
  try {
    const value = parseDigits(text)
    return isNumber(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** Returns what a grant lets somebody do, in words: `with to = "bob@corp" and amount up to 200`. */
export function coverageText({ covers, fields = {} }: GrantRequest, may: Pick<MayGrant, 'fields'>): string {
  if (covers === 'tool') return 'with any input'
  if (covers === 'input') return 'with exactly this input'
  const free = new Map(Object.entries(fields))
  const parts = may.fields.flatMap((field) => partOf(field, free))
  return `with ${[...parts, 'everything else as in this call'].join(', ').replace(/, (?=everything else)/, ' and ')}`
}

function partOf({ name, value }: GrantableField, free: ReadonlyMap<string, object>): readonly string[] {
  const one = free.get(name)
  if (one && 'upTo' in one) return [`${name} up to ${String(one.upTo)}`]
  if (one) return [`any ${name}`]
  // A part of a field that may be anything.
  if ([...free.keys()].some((above) => name.startsWith(`${above.startsWith('/') ? above : `/${above}`}/`))) return []
  return value === undefined ? [] : [`${name} = ${textOf(value)}`]
}

function textOf(value: unknown): string {
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value)
}

/** Returns in which runs a grant counts. Empty if the call has no run. */
export function runText({ anyRun }: Pick<GrantRequest, 'anyRun'>, run: ApprovalRow['run']): string {
  if (run === undefined) return ''
  return anyRun === true ? ', in any run of theirs' : `, in the run ${run} only`
}
