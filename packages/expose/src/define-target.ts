import { ConfigError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import type { Exposure } from './exposure.ts'
import { ANY, ANY_OUTPUT, type TargetDialect } from './schema/dialect.ts'
import { EXPOSE_TARGETS } from './options.ts'
import { type Extra, EXTRAS, type Parts, type Target } from './targets/target.ts'

/**
 * The features of JSON Schema 2020-12 that a provider supports. Absent: all. Unsupported ones are rewritten, described or
 * removed.
 */
interface SchemaFeatures {
  /** The supported keywords. Default: all, including unknown ones. */
  readonly keywords?: readonly string[] | undefined
  /** Keywords that are not supported at the root. */
  readonly rootLacks?: readonly string[] | undefined
  /** The supported formats. Default: all. */
  readonly formats?: readonly string[] | undefined
  /** Whether references are kept, with their targets in `$defs`, or replaced by their targets. Default `kept`. */
  readonly refs?: 'kept' | 'inlined' | undefined
  /** How several types of one value are written. Default `type-list`. */
  readonly unions?: 'type-list' | 'anyOf' | 'nullable' | undefined
  /** Which values an `enum` may have. Default: any. */
  readonly enums?: 'scalars' | 'texts' | undefined
  /** Whether every object must be closed: `additionalProperties: false`. */
  readonly closed?: boolean | undefined
  /** Whether every property must be required. An optional property then allows null. */
  readonly allRequired?: boolean | undefined
  /** Whether every schema must have a type, and every list `items`. */
  readonly typed?: boolean | undefined
  /** Whether every list must have `items`, even if empty. */
  readonly itemsNeeded?: boolean | undefined
  /** The names that parameters may have. */
  readonly parameterName?: RegExp | undefined
}

/** A tool with converted schemas, for `shape`. Optional fields are present only if `keeps` lists them. */
type ToolParts = Parts

export interface TargetDefinition<Shape extends object> {
  /** The name, such as `cohere`. Must differ from the built-in targets. */
  readonly name: string
  readonly schema?: SchemaFeatures | undefined
  /** The features of the provider's strict mode. Default: it has none. */
  readonly strictSchema?: SchemaFeatures | undefined
  /** The features of output schemas. Default: output schemas are left out. */
  readonly outputSchema?: SchemaFeatures | undefined
  /** The further fields of a tool that the provider accepts. Default: none. */
  readonly keeps?: readonly Extra[] | undefined
  /** The most tools of one request. */
  readonly maxTools?: number | undefined
  /** The most characters of a description. */
  readonly maxDescription?: number | undefined
  /** Names of the provider's own tools. */
  readonly reservedNames?: readonly string[] | undefined
  /** Returns one tool in the provider's form. */
  readonly shape: (tool: ToolParts) => Shape
  /** Returns the fields of a request that carry the tools. Default `{ tools }`, or nothing if there are no tools. */
  readonly request?: ((tools: readonly Shape[], mask: readonly string[] | undefined) => object) | undefined
  /** Whether `request` uses the mask, so that `mode: 'mask'` works. Default `false`. */
  readonly canMask?: boolean | undefined
}

/** A target that a host has defined, for `expose`. */
export interface CustomTarget<Shape extends object = object> {
  readonly name: string
  /** For the compiler only: the type of each tool. */
  readonly '~shape'?: Shape
}

/** Like {@link Exposure}, with the tools in the shape of the host's target. */
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

/** The valid values of fields. */
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

/** Checks the types of values, because a wrong one would make a target that keeps or checks less than it says. */
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

/** Returns the target behind a host's target; `undefined` for an object that `defineTarget` did not create. */
export function customTarget(target: CustomTarget): Target | undefined {
  return defined.get(target)
}

function toRequest(tools: readonly object[]): object {
  return tools.length === 0 ? {} : { tools }
}

function toDialect(field: string, name: string, features: SchemaFeatures, base: TargetDialect): TargetDialect {
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
