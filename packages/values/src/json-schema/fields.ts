import { isObject, type JsonObject } from '../json/json.ts'
import { createReferences, dialectOf, isUntil, type References } from './document.ts'

/** A step into a value: the name of a property, or `undefined` for an item of a list. */
export type Step = string | undefined

/**
 * The state of a field in a schema. `never`: no valid value has it. `undeclared`: the schema lists fields without it,
 * and allows others. `unknown`: the schema leaves it uncertain.
 */
type FieldState = 'declared' | 'never' | 'undeclared' | 'unknown'

export interface Field {
  readonly state: FieldState
  /** The types that its values may have, as far as known. `integer` counts as `number`. */
  readonly types: ReadonlySet<string>
}

const ALL: ReadonlySet<string> = new Set(['string', 'number', 'boolean', 'array', 'object', 'null'])
const UNKNOWN: Field = { state: 'unknown', types: ALL }
/** A schema that states nothing about fields. It becomes `unknown`, and any schema that states more replaces it. */
const SILENT = undefined

/** The most schemas visited, because the schema of a server may refer to itself in many ways. */
const MAX_VISITS = 500

interface FieldSearch {
  readonly references: References
  readonly isOld: boolean
  readonly names: Set<string> | undefined
  visits: number
  /** Whether one of the schemas accepts every field. `unevaluatedProperties` beside it then refuses none. */
  isOpen: boolean
}

/** Cached, because schemas of tools do not change. */
const known = new WeakMap<object, References>()

/** Returns the state of a field in a schema. For an absent field, `names` receives the fields declared there. */
export function findField(document: object, path: readonly Step[], names?: Set<string>): Field {
  const { draft } = dialectOf(document)
  let references = known.get(document)
  if (!references) known.set(document, (references = createReferences(document, draft)))
  const isOld = draft !== 'unnamed' && isUntil(draft, 'draft-07')
  const search: FieldSearch = { references, isOld, names, visits: 0, isOpen: false }
  return look(document, path, search) ?? UNKNOWN
}

function look(schema: unknown, path: readonly Step[], search: FieldSearch): Field | undefined {
  if (++search.visits > MAX_VISITS) return UNKNOWN
  if (schema === false) return { state: 'never', types: new Set() }
  if (!isObject(schema)) return SILENT
  if (schema['additionalProperties'] === true || (schema['unevaluatedProperties'] ?? false) !== false)
    search.isOpen = true
  const target = referred(schema, path, search)
  if (target && search.isOld) return target
  const parts = [
    target,
    lookHere(schema, path, search),
    ...listOf(schema, 'allOf').map((one) => look(one, path, search)),
    ...['anyOf', 'oneOf'].flatMap((keyword) =>
      keyword in schema ? [anyOf(listOf(schema, keyword), path, search)] : [],
    ),
  ]
  const found = allOf(parts.filter((part) => part !== undefined))
  return isClosed(schema, path, search, found) ? { state: 'never', types: ALL } : found
}

/** Returns whether `unevaluatedProperties` refuses the first step. Validators before 2019-09 ignore the keyword. */
function isClosed(schema: JsonObject, path: readonly Step[], search: FieldSearch, found: Field | undefined): boolean {
  if (schema['unevaluatedProperties'] !== false || search.isOpen || search.isOld || path[0] === undefined) return false
  const first = path.length === 1 ? (found ?? { state: 'undeclared' }) : look(schema, path.slice(0, 1), search)
  return first?.state === (path.length === 1 ? 'undeclared' : 'never')
}

function listOf(schema: JsonObject, keyword: string): readonly unknown[] {
  const list = schema[keyword]
  return Array.isArray(list) ? list : []
}

function referred(schema: JsonObject, path: readonly Step[], search: FieldSearch): Field | undefined {
  if ('$dynamicRef' in schema || '$recursiveRef' in schema) return UNKNOWN
  const reference = schema['$ref']
  if (typeof reference !== 'string') return SILENT
  const targets = search.references.find(reference, schema).map((target) => look(target, path, search) ?? UNKNOWN)
  return allOf(targets) ?? UNKNOWN
}

/** Keywords whose schemas apply under conditions. */
const CONDITIONAL = ['if', 'dependentSchemas', 'dependencies']

function lookHere(schema: JsonObject, path: readonly Step[], search: FieldSearch): Field | undefined {
  const types = typesOf(schema)
  if (path.length === 0) return { state: 'declared', types }
  const [step, ...rest] = path
  if (step === undefined) {
    if (!types.has('array')) return UNKNOWN
    const { items } = schema
    return 'prefixItems' in schema || Array.isArray(items)
      ? UNKNOWN
      : items === undefined
        ? SILENT
        : look(items, rest, search)
  }
  if (!types.has('object')) return { state: 'never', types: new Set() }
  const { properties, patternProperties, additionalProperties } = schema
  const own = isObject(properties) ? properties : {}
  if (Object.hasOwn(own, step))
    return look(own[step], rest, search) ?? (rest.length === 0 ? { state: 'declared', types: ALL } : SILENT)
  if (patternProperties !== undefined || CONDITIONAL.some((keyword) => keyword in schema)) return UNKNOWN
  for (const name of Object.keys(own)) search.names?.add(name)
  if (additionalProperties === false) return { state: 'never', types: ALL }
  if (isObject(additionalProperties)) return UNKNOWN
  return isObject(properties) ? { state: 'undeclared', types: ALL } : SILENT
}

function typesOf(schema: JsonObject): ReadonlySet<string> {
  const { type, enum: values } = schema
  const named = [type].flat().filter((one) => typeof one === 'string')
  const listed = 'const' in schema ? [schema['const']] : Array.isArray(values) ? values : undefined
  const types = new Set(named.length === 0 ? ALL : named.map((one) => (one === 'integer' ? 'number' : one)))
  return listed ? types.intersection(new Set(listed.map(typeOf))) : types
}

function typeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

/** Joins schemas that all hold. A fact of one of them is certain. */
function allOf(fields: readonly Field[]): Field | undefined {
  const state = (['never', 'declared', 'unknown', 'undeclared'] as const).find((one) =>
    fields.some((field) => field.state === one),
  )
  if (state === undefined) return SILENT
  return { state, types: fields.reduce((types, field) => types.intersection(field.types), new Set(ALL)) }
}

/** Joins schemas of which one holds. Schemas that no object fits, such as `null`, state nothing about fields. */
function anyOf(schemas: readonly unknown[], path: readonly Step[], search: FieldSearch): Field | undefined {
  const fields = schemas.map((schema) => look(schema, path, search) ?? UNKNOWN)
  const some = fields.filter(({ types }) => types.size > 0)
  const states = new Set((some.length > 0 ? some : fields).map(({ state }) => state))
  const state = (['declared', 'unknown', 'undeclared', 'never'] as const).find((one) => states.has(one)) ?? 'unknown'
  return { state, types: fields.reduce((types, field) => types.union(field.types), new Set<string>()) }
}
