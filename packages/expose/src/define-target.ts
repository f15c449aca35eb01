import { ConfigError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import type { Exposure } from './exposure.ts'
import { ANY, ANY_OUTPUT, type Dialect } from './schema/dialect.ts'
import { EXPOSE_TARGETS } from './options.ts'
import { type Extra, EXTRAS, type Parts, type Target } from './targets/target.ts'

/** The features of JSON Schema 2020-12 that a provider supports. Absent: all. Others are rewritten, described or removed. */
export interface SchemaFeatures {
  /** The keywords it takes. Default: all, and unknown ones. */
  readonly keywords?: readonly string[] | undefined
  /** Keywords that it refuses at the root only. */
  readonly rootLacks?: readonly string[] | undefined
  /** The formats it takes. Default: all. */
  readonly formats?: readonly string[] | undefined
  /** Whether references stay, with what they lead to in `$defs`, or are written out. Default `kept`. */
  readonly refs?: 'kept' | 'inlined' | undefined
  /** How several types of one value are written. Default `type-list`. */
  readonly unions?: 'type-list' | 'anyOf' | 'nullable' | undefined
  /** Which values an `enum` may have. Default: any. */
  readonly enums?: 'scalars' | 'texts' | undefined
  /** Every object is closed: `additionalProperties: false`. */
  readonly closed?: boolean | undefined
  /** Every property is required; one that was optional may be null. */
  readonly allRequired?: boolean | undefined
  /** Every schema has a type, and every list its items. */
  readonly typed?: boolean | undefined
  /** Every list says its items, if only that they are any. */
  readonly itemsNeeded?: boolean | undefined
  /** The names that parameters may have. */
  readonly parameterName?: RegExp | undefined
}

/** A tool with converted schemas, for `shape`. Optional fields are present only if `keeps` lists them. */
export type ToolParts = Parts

export interface TargetDefinition<Shape extends object> {
  /** Such as `cohere`; not one of the built-in targets. */
  readonly name: string
  readonly schema?: SchemaFeatures | undefined
  /** Of the provider's strict mode. Default: it has none. */
  readonly strictSchema?: SchemaFeatures | undefined
  /** Of output schemas. Default: they have no place. */
  readonly outputSchema?: SchemaFeatures | undefined
  /** The fields it has a place for. Default: none. */
  readonly keeps?: readonly Extra[] | undefined
  /** Tools of one request. */
  readonly maxTools?: number | undefined
  /** Characters of a description. */
  readonly maxDescription?: number | undefined
  /** Names that the provider's own tools have. */
  readonly reservedNames?: readonly string[] | undefined
  /** Returns one tool in the provider's form. */
  readonly shape: (tool: ToolParts) => Shape
  /** Returns the fields of a request that carry the tools. Default `{ tools }`, and nothing where there are none. */
  readonly request?: ((tools: readonly Shape[], mask: readonly string[] | undefined) => object) | undefined
  /** Whether `request` uses the mask, so that `mode: 'mask'` works. Default `false`. */
  readonly canMask?: boolean | undefined
}

/** A target that a host has defined, for `expose`. */
export interface CustomTarget<Shape extends object = object> {
  readonly name: string
  /** For the compiler only: what each tool becomes. */
  readonly '~shape'?: Shape
}

/** As {@link Exposure}, with the tools in the shape of the host's target. */
export interface CustomExposure<Shape extends object> extends Omit<Exposure, 'target' | 'tools'> {
  readonly target: string
  readonly tools: readonly Shape[]
}

const TARGET = shapeOf<TargetDefinition<object>>({
  name: true,
  schema: true,
  strictSchema: true,
  outputSchema: true,
  keeps: true,
  maxTools: true,
  maxDescription: true,
  reservedNames: true,
  shape: true,
  request: true,
  canMask: true,
})
const FEATURES = shapeOf<SchemaFeatures>({
  keywords: true,
  rootLacks: true,
  formats: true,
  refs: true,
  unions: true,
  enums: true,
  closed: true,
  allRequired: true,
  typed: true,
  itemsNeeded: true,
  parameterName: true,
})

/** The values that a field may have. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  refs: ['kept', 'inlined'],
  unions: ['type-list', 'anyOf', 'nullable'],
  enums: ['scalars', 'texts'],
  closed: [true, false],
  allRequired: [true, false],
  typed: [true, false],
  itemsNeeded: [true, false],
  canMask: [true, false],
}
const LISTS: ReadonlySet<string> = new Set(['keywords', 'rootLacks', 'formats', 'keeps', 'reservedNames'])
const COUNTS: ReadonlySet<string> = new Set(['maxTools', 'maxDescription'])

/** Checks the types of values: a wrong one would make a target that keeps or checks less than it says. */
function checkValues(path: string, fields: object): void {
  for (const [field, value] of Object.entries(fields)) {
    const problem = value === undefined ? undefined : problemOf(field, value)
    if (problem !== undefined) throw new ConfigError(`${path}.${field}`, problem)
  }
}

function problemOf(field: string, value: unknown): string | undefined {
  const values = VALUES[field]
  if (values && !values.includes(value)) return `must be one of ${values.join(', ')}`
  if (LISTS.has(field) && !(Array.isArray(value) && value.every((one) => typeof one === 'string')))
    return 'must be a list of texts'
  if (COUNTS.has(field) && !(Number.isInteger(value) && (value as number) > 0)) return 'must be a whole number above 0'
  if (field === 'parameterName' && !(value instanceof RegExp)) return 'must be a regular expression'
  if (field === 'request' && typeof value !== 'function') return 'must be a function'
  return undefined
}

const defined = new WeakMap<CustomTarget, Target>()

/**
 * Returns a target of the host's own, for `expose` beside the built-in ones.
 *
 * @throws {ConfigError} for an unknown field, a name that is taken, a `shape` that is not a function, and `canMask`
 * without `request`
 * @example
 * const cohere = defineTarget({
 *   name: 'cohere',
 *   schema: { keywords: ['type', 'properties', 'required', 'description', 'items', 'enum'], refs: 'inlined' },
 *   shape: ({ name, description, input }) => ({ type: 'function', function: { name, description, parameters: input } }),
 * })
 * expose(view, cohere).tools
 */
export function defineTarget<Shape extends object>(definition: TargetDefinition<Shape>): CustomTarget<Shape> {
  checkShape('defineTarget', definition, TARGET)
  checkValues('defineTarget', definition)
  const { name, schema, strictSchema, outputSchema, keeps = [], shape, request, canMask = false } = definition
  if (typeof name !== 'string' || name === '')
    throw new ConfigError('defineTarget.name', 'must be a string that is not empty')
  if (EXPOSE_TARGETS.some((taken) => taken === name))
    throw new ConfigError('defineTarget.name', `"${name}" is a built-in target`)
  if (typeof shape !== 'function') throw new ConfigError('defineTarget.shape', 'must be a function')
  if (canMask && !request)
    throw new ConfigError('defineTarget.canMask', 'needs a request that makes something of the mask')
  const unknown = keeps.find((extra) => !EXTRAS.includes(extra))
  if (unknown !== undefined)
    throw new ConfigError('defineTarget.keeps', `"${unknown}" is not one of ${EXTRAS.join(', ')}`)
  const target: Target<Shape> = {
    dialect: toDialect('schema', name, schema ?? {}, ANY),
    ...(strictSchema && { strictDialect: toDialect('strictSchema', name, strictSchema, ANY) }),
    ...(outputSchema && { outputDialect: toDialect('outputSchema', name, outputSchema, ANY_OUTPUT) }),
    keeps: new Set(keeps),
    ...(definition.maxTools !== undefined && { maxTools: definition.maxTools }),
    ...(definition.maxDescription !== undefined && { maxDescription: definition.maxDescription }),
    ...(definition.reservedNames && { reserved: new Set(definition.reservedNames) }),
    canMask,
    canDefer: false,
    define: shape,
    collect(named, { mask }) {
      const tools = named.map(({ definition: one }) => one)
      return { tools, request: { ...(request ?? toRequest)(tools, mask) } }
    },
  }
  const custom: CustomTarget<Shape> = Object.freeze({ name })
  defined.set(custom, target)
  return custom
}

/** Returns what `expose` needs of a host's target; `undefined` for an object that `defineTarget` did not make. */
export function customTarget(target: CustomTarget): Target | undefined {
  return defined.get(target)
}

function toRequest(tools: readonly object[]): object {
  return tools.length === 0 ? {} : { tools }
}

function toDialect(field: string, name: string, features: SchemaFeatures, base: Dialect): Dialect {
  checkShape(`defineTarget.${field}`, features, FEATURES)
  checkValues(`defineTarget.${field}`, features)
  const { keywords, rootLacks, formats, ...others } = features
  const given = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined))
  return {
    ...base,
    ...given,
    name: `${name} ${field}`,
    ...(keywords && { keywords: new Set(keywords) }),
    ...(rootLacks && { rootLacks: new Set(rootLacks) }),
    ...(formats && { formats: new Set(formats) }),
  }
}
