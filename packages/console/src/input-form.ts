import { parseDigits } from './digits.ts'
/** The content of a field of the form. */
export type Field =
  | { readonly kind: 'text' | 'number' | 'integer' | 'flag' | 'json' }
  | { readonly kind: 'choice'; readonly values: readonly unknown[] }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  | { readonly kind: 'list'; readonly item: Field }

export interface Member {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly isRequired: boolean
  readonly field: Field
}

/** The input so far: a text for a simple field, `undefined` for an untouched one. */
export type Draft = string | readonly Draft[] | { readonly [name: string]: Draft } | undefined

/** The problems of fields, by their RFC 6901 pointers. */
export type Problems = ReadonlyMap<string, string>

/** The deepest schema with fields. Deeper and larger schemas are edited as JSON. */
const MAX_DEPTH = 4
const MAX_MEMBERS = 60
const JSON_FIELD: Field = { kind: 'json' }

/**
 * Returns the fields of an input schema, or a JSON field if no simple field fits. A server chooses the schema, so it
 * may be anything.
 */
export function toField(schema: unknown, root: unknown = schema, depth = 0): Field {
  const plain = simplify(schema, root)
  if (!plain || depth > MAX_DEPTH) return JSON_FIELD
  if ('const' in plain) return { kind: 'choice', values: [plain['const']] }
  const { enum: values, type } = plain
  if (Array.isArray(values)) return values.length > 0 && values.length <= 500 ? { kind: 'choice', values } : JSON_FIELD
  if (type === 'string') return { kind: 'text' }
  if (type === 'number' || type === 'integer') return { kind: type }
  if (type === 'boolean') return { kind: 'flag' }
  if (type === 'array') {
    const item = toField(plain['items'], root, depth + 1)
    return item.kind === 'json' ? JSON_FIELD : { kind: 'list', item }
  }
  const { properties, required, additionalProperties } = plain
  const isEmpty = depth === 0 && properties === undefined && (additionalProperties ?? false) === false
  if (!isRecord(properties)) return isEmpty && type === 'object' ? { kind: 'object', members: [] } : JSON_FIELD
  const names = Object.keys(properties)
  if (names.length > MAX_MEMBERS) return JSON_FIELD
  const needed = new Set<unknown>(Array.isArray(required) ? required : [])
  const members = names.map((name): Member => {
    const own = properties[name]
    const { title, description } = isRecord(own) ? own : {}
    return {
      name,
      title: typeof title === 'string' ? title : '',
      description: typeof description === 'string' ? description : '',
      isRequired: needed.has(name),
      field: toField(own, root, depth + 1),
    }
  })
  return { kind: 'object', members }
}

/** Follows one reference within the schema, and removes `null` if it is the alternative to one other type. */
function simplify(schema: unknown, root: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!isRecord(schema)) return undefined
  const { $ref: reference, type, anyOf, oneOf, allOf, not } = schema
  if (typeof reference === 'string') {
    const [, group, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) ?? []
    const groups = isRecord(root) && group !== undefined ? root[group] : undefined
    const found = isRecord(groups) && name !== undefined && Object.hasOwn(groups, name) ? groups[name] : undefined
    return isRecord(found) && found['$ref'] === undefined ? simplify(found, root) : undefined
  }
  if (oneOf !== undefined || allOf !== undefined || not !== undefined) return undefined
  if (Array.isArray(anyOf)) {
    const others = anyOf.filter((one) => !(isRecord(one) && one['type'] === 'null'))
    return others.length === 1 && others.length < anyOf.length ? simplify(others[0], root) : undefined
  }
  if (!Array.isArray(type)) return schema
  const others = type.filter((one) => one !== 'null')
  return others.length === 1 ? { ...schema, type: others[0] } : undefined
}

/** Returns the input of a draft. An empty optional field is left out. */
export function toInput(field: Field, draft: Draft): { readonly input: unknown; readonly problems: Problems } {
  const problems = new Map<string, string>()
  const input = read(field, draft, { pointer: '', isRequired: true, problems })
  return { input, problems }
}

interface FormPlace {
  readonly pointer: string
  readonly isRequired: boolean
  readonly problems: Map<string, string>
}

function read(field: Field, draft: Draft, place: FormPlace): unknown {
  if (field.kind === 'object') return readObject(field.members, draft, place)
  if (field.kind === 'list') {
    const items = Array.isArray(draft) ? (draft as readonly Draft[]) : []
    if (items.length === 0 && !place.isRequired) return undefined
    return items.map((item, i) =>
      read(field.item, item, { ...place, isRequired: true, pointer: `${place.pointer}/${i}` }),
    )
  }
  const text = typeof draft === 'string' ? draft : ''
  if (text === '') {
    if (place.isRequired && field.kind !== 'text') place.problems.set(place.pointer, 'This is needed.')
    return place.isRequired && field.kind === 'text' ? '' : undefined
  }
  const value = readText(field, text)
  if ('problem' in value) place.problems.set(place.pointer, value.problem)
  return 'problem' in value ? undefined : value.value
}

function readObject(members: readonly Member[], draft: Draft, place: FormPlace): unknown {
  const drafts = isRecord(draft) ? (draft as Readonly<Record<string, Draft>>) : {}
  if (!place.isRequired && !members.some(({ name }) => isFilled(ownOf(drafts, name)))) return undefined
  const entries = members.flatMap(({ name, field, isRequired }): (readonly [string, unknown])[] => {
    const pointer = pointerTo(place.pointer, name)
    const value = read(field, ownOf(drafts, name), { problems: place.problems, isRequired, pointer })
    return value === undefined ? [] : [[name, value]]
  })
  // `fromEntries` sets own properties, even for `__proto__`.
  return Object.fromEntries(entries)
}

function readText(field: Field, text: string): { readonly value: unknown } | { readonly problem: string } {
  if (field.kind === 'text') return { value: text }
  if (field.kind === 'flag') return { value: text === 'true' }
  if (field.kind === 'choice') return { value: field.values[Number(text)] }
  if (field.kind === 'json') return readJson(text)
  const number = Number(text)
  if (text.trim() === '' || !Number.isFinite(number)) return { problem: 'This must be a number.' }
  if (field.kind === 'integer' && !Number.isInteger(number)) return { problem: 'This must be a whole number.' }
  // A number would lose digits of a longer one.
  return { value: /^-?\d+$/.test(text) && !Number.isSafeInteger(number) ? BigInt(text) : number }
}

export function readJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: parseDigits(text) }
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** Returns the JSON pointer of a member (RFC 6901). */
export function pointerTo(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** Returns a draft's value of a name. A server chooses the name. */
export function ownOf(draft: Draft, name: string): Draft {
  return isRecord(draft) && Object.hasOwn(draft, name) ? draft[name] : undefined
}

function isFilled(draft: Draft): boolean {
  if (draft === undefined || draft === '') return false
  if (typeof draft === 'string') return true
  return Array.isArray(draft) ? draft.length > 0 : Object.values(draft).some(isFilled)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
