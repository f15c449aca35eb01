import type { Approval, Caller } from '@toolgate/core'
import { type Grants, MAX_GRANTED_CHARS } from '@toolgate/core/call'
import { escapePointer, isObject } from '@toolgate/values/json'
import { sizeOf } from '@toolgate/values'
import type { GrantableField, MayGrant } from '../../model/approvals.ts'

const MAX_FIELDS = 100
const MAX_DEPTH = 4
const MAX_SHOWN = 200

/** Returns the bounds of a grant that a person may make with an approval; `undefined` if they may make none. */
export function mayGrantOf(
  grants: Pick<Grants, 'problem' | 'rules'>,
  person: Caller,
  approval: Approval,
  schema: object = {},
): MayGrant | undefined {
  const { rules } = grants
  if (!rules || approval.status !== 'pending' || grants.problem(person, approval) !== undefined) return undefined
  const { run, input } = approval
  const isSeen = grants.problem(person, approval, 'fields') === undefined
  const isShort = sizeOf(input, MAX_GRANTED_CHARS) <= MAX_GRANTED_CHARS
  const fields = isSeen ? fieldsOf(input, schema) : []
  return {
    maxMs: rules.maxMs,
    maxUses: rules.maxUses,
    covers: [
      ...(isSeen && isShort ? (['input'] as const) : []),
      ...(fields.length > 0 ? (['fields'] as const) : []),
      'tool',
    ],
    fields,
    ...(run !== undefined && { run }),
  }
}

/** Returns the fields of an input, those of its objects, and those that its schema knows beside them. */
function fieldsOf(input: unknown, schema: object): readonly GrantableField[] {
  const properties: unknown = 'properties' in schema ? schema.properties : {}
  const types = new Map(isObject(properties) ? Object.entries(properties) : [])
  const own = isObject(input)
    ? Object.entries(input).flatMap(([key, value]) => fieldsAt([key], value, types.get(key)))
    : []
  const known = new Set(isObject(input) ? Object.keys(input) : [])
  const absent = [...types]
    .filter(([key]) => !known.has(key))
    .map(([key, type]) => ({ name: nameOf([key]), ...typeOf(type) }))
  return [...own, ...absent].slice(0, MAX_FIELDS)
}

function fieldsAt(steps: readonly string[], value: unknown, schema: unknown): readonly GrantableField[] {
  const isNumber = typeof value === 'number' || typeof value === 'bigint'
  const isShown = isNumber || typeof value === 'boolean' || (typeof value === 'string' && value.length <= MAX_SHOWN)
  const field: GrantableField = {
    name: nameOf(steps),
    ...(isShown && { value }),
    ...typeOf(schema),
    ...(isNumber && { mayBound: true as const }),
  }
  if (!isObject(value) || steps.length >= MAX_DEPTH) return [field]
  return [field, ...Object.entries(value).flatMap(([key, item]) => fieldsAt([...steps, key], item, undefined))]
}

/** Returns the name that a grant takes for a field: its own name, or a pointer. */
function nameOf(steps: readonly string[]): string {
  const [name = '', ...below] = steps
  return below.length === 0 && !name.startsWith('/') ? name : steps.map((step) => `/${escapePointer(step)}`).join('')
}

function typeOf(schema: unknown): Pick<GrantableField, 'type'> {
  const type = isObject(schema) ? schema['type'] : undefined
  return typeof type === 'string' ? { type } : {}
}
