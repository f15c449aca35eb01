import type { Kind } from './values.ts'

/** The known type of a value before evaluation. `json`: a part of an input, whose numbers are doubles. `dyn`: any type. */
export interface CelTypeInfo {
  readonly kind: Kind | 'json' | 'dyn'
  /** The type of the items of a list, or of the values of a map. */
  readonly of?: CelTypeInfo
  readonly key?: CelTypeInfo
  /** All fields that an object can have. */
  readonly fields?: Readonly<Record<string, CelTypeInfo>>
}

export const DYN: CelTypeInfo = { kind: 'dyn' }
export const JSON_VALUE: CelTypeInfo = { kind: 'json' }
const STRING: CelTypeInfo = { kind: 'string' }

/**
 * The text of a type, such as `list<string>` or `map<json>`, whose keys are strings; or an object with the types of its
 * fields.
 */
export type TypeText = string | { readonly [field: string]: TypeText }

export function typeOf(text: TypeText): CelTypeInfo {
  if (typeof text !== 'string')
    return {
      kind: 'map',
      key: STRING,
      fields: Object.fromEntries(Object.entries(text).map(([name, field]) => [name, typeOf(field)])),
    }
  const [, kind, of] = /^(\w+)(?:<(\w+)>)?$/.exec(text) ?? []
  return {
    kind: kind as Kind,
    ...(of !== undefined && { of: typeOf(of) }),
    ...(kind === 'map' && of !== undefined && { key: STRING }),
  }
}

/** The kinds of CEL values that JSON has. */
const IN_JSON: ReadonlySet<Kind> = new Set(['null', 'bool', 'double', 'string', 'list', 'map'])

/** Returns whether a value of this type can be of a kind. */
export function canBe(type: CelTypeInfo, kind: Kind | 'json' | 'dyn'): boolean {
  if (type.kind === 'dyn' || kind === 'dyn' || kind === 'json') return true
  return type.kind === 'json' ? IN_JSON.has(kind) : type.kind === kind
}

const NUMBERS: ReadonlySet<string> = new Set(['int', 'uint', 'double'])

export function isNumeric({ kind }: CelTypeInfo): boolean {
  return NUMBERS.has(kind)
}

/** Returns whether values of two types can be equal. */
export function canEqual(a: CelTypeInfo, b: CelTypeInfo): boolean {
  if (isNumeric(a) && (isNumeric(b) || canBe(b, 'double'))) return true
  if (isNumeric(b) && canBe(a, 'double')) return true
  if (b.kind === 'json') return a.kind === 'json' || canBe(b, a.kind)
  if (!canBe(a, b.kind)) return a.kind === 'dyn'
  const [of, other] = [a.of, b.of]
  return of === undefined || other === undefined || canEqual(of, other)
}

/** Returns the type of a value that is of one of several types. */
export function joinTypes(types: readonly CelTypeInfo[]): CelTypeInfo {
  const [first, ...more] = types
  if (!first) return DYN
  if (more.every((one) => one === first || (one.kind === first.kind && !one.of && !first.of && !one.fields)))
    return first
  if (types.every(({ kind }) => kind === 'json' || IN_JSON.has(kind as Kind))) return JSON_VALUE
  return DYN
}

/** Returns the name of a type, for people. */
export function nameOf({ kind, of }: CelTypeInfo): string {
  if (kind === 'json') return 'dyn'
  return of && kind === 'list' ? `${kind}<${nameOf(of)}>` : kind
}
