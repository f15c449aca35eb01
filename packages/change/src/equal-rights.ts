import { toCallView } from '@toolgate/core/call'
import { type Caller, defineCaller, type Gate } from '@toolgate/core'
import { callerKey } from '@toolgate/core/internal'
import { toJsonText } from '@toolgate/values/json'
import { type CallerReads, callerReads, READ_FIELDS, type ReadField } from './caller-reads.ts'

/** Returns the key of a caller's rights. */
export type RightsKey = (caller: Caller) => string

/**
 * Returns a function that returns equal keys only for callers whom the policies and scopes of a gate cannot tell apart
 * outside of apps. Halts, preferences, connections and lists of a user's own are not part of the key.
 */
export async function rightsKeyOf(gate: Gate): Promise<RightsKey> {
  const { policies } = toCallView(await gate.view({})).decide(undefined).today
  const clauses = policies.flatMap(({ whole: { allow = [], deny, ask } }) => [...allow, ...deny, ...ask])
  const conditions = clauses.flatMap(({ when, unless, input }) =>
    [when, unless, input].filter((one) => one !== undefined),
  )
  const trees = conditions.map(({ tree }) => tree)
  // A function may read anything.
  if (policies.some(({ whole }) => whole.decide !== undefined) || trees.includes(undefined)) return callerKey
  const reads = callerReads(trees.filter((tree) => tree !== undefined))
  if (reads.has('')) return callerKey
  const parts = READ_FIELDS.flatMap((field) => partOf(field, reads) ?? [])
  return (caller) => {
    const known = defineCaller(caller)
    return toJsonText(parts.map((part) => part(known)))
  }
}

type RightsPart = (caller: Caller) => unknown

/** Returns the part of a field that rules can see. `undefined`: none. */
function partOf(field: ReadField, reads: CallerReads): RightsPart | undefined {
  const isRead = [...reads.keys()].some((path) => path === field || path.startsWith(`${field}.`))
  const values = reads.get(field)
  // Tools may require any scope.
  if (field === 'scopes') return isRead && !values ? ({ scopes = [] }) => scopes : ({ scopes = [] }) => toSet(scopes)
  if (!isRead) return undefined
  if (field === 'roles') return ({ roles = [] }) => (values ? toSet(roles).filter((role) => values.has(role)) : roles)
  if (field === 'attributes' || field === 'chat' || !values) return (caller) => caller[field] ?? null
  // Texts that no rule names are all the same. A list keeps them apart from a text that a rule names.
  return ({ [field]: text }) => (text === undefined || values.has(text) ? (text ?? null) : [])
}

function toSet(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].toSorted()
}
