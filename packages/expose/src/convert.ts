import type { JsonSchema, Tool } from '@toolgate/core'
import { cut } from '@toolgate/values'
import { deepFreeze } from '@toolgate/values/json'
import type { ExposeError, ExposeErrorCode, ExposeWarning } from './exposure.ts'
import { type TargetDialect, overLimit } from './schema/dialect.ts'
import { below, isObject, listOf, type Note, SchemaProblem, sortKeys, toText } from './schema/node.ts'
import { type WrittenSchema, writeSchema } from './schema/writer.ts'
import { type Extra, EXTRAS, type Parts, type Target } from './targets/target.ts'

/** One tool in the form of a target. */
interface Converted {
  readonly definition: object | undefined
  readonly warnings: readonly ExposeWarning[]
  readonly error: ExposeError | undefined
}

interface Manner {
  readonly name: string
  readonly strict: boolean
  readonly deferred: boolean
}

interface KeptConversion extends Manner {
  readonly target: Target
  readonly converted: Converted
}

/** Cached with the tools, which are immutable. */
const conversions = new WeakMap<Tool, KeptConversion[]>()

/** Returns a tool in the form of a target, frozen. */
export function convert(tool: Tool, target: Target, manner: Manner): Converted {
  const kept = conversions.get(tool)
  const known = kept?.find((each) => each.target === target && isSame(each, manner))
  if (known) return known.converted
  const converted = convertNew(tool, target, manner)
  if (kept) kept.push({ ...manner, target, converted })
  else conversions.set(tool, [{ ...manner, target, converted }])
  return converted
}

function isSame(a: Manner, b: Manner): boolean {
  return a.name === b.name && a.strict === b.strict && a.deferred === b.deferred
}

function convertNew(tool: Tool, target: Target, manner: Manner): Converted {
  const warnings: ExposeWarning[] = []
  try {
    const { schema, strict } = writeInput(tool, target, manner.strict, warnings)
    const output = writeOutput(tool, target, warnings)
    const definition = target.define({
      name: manner.name,
      description: fitDescription(tool, target, warnings),
      input: schema,
      output,
      ...keptExtras(tool, target),
      strict,
      deferred: manner.deferred,
    })
    warnOfLosses(tool, target, warnings)
    if (tool.strict && manner.strict && !target.strictDialect)
      warnings.push({ tool: tool.id, path: '', feature: 'strict', from: 'true', action: 'removed' })
    return { definition: deepFreeze(definition), warnings: warnings.toSorted(byPlace), error: undefined }
  } catch (error) {
    if (!(error instanceof SchemaProblem)) throw error
    return { definition: undefined, warnings: [], error: toError(tool, error.code, error.path, error.message) }
  }
}

/** Writes an input schema, in strict mode if it fits the limits. */
function writeInput(
  tool: Tool,
  target: Target,
  strict: boolean,
  warnings: ExposeWarning[],
): { schema: JsonSchema; strict: boolean } {
  const finish = ({ schema, notes }: WrittenSchema, dialect: TargetDialect): JsonSchema => {
    for (const note of notes) warnings.push(toWarning(tool, note))
    return withAllowedNames(tool, schema, dialect, warnings)
  }
  const { dialect, strictDialect } = target
  if (strict && strictDialect) {
    const written = writeSchema(tool.inputSchema, strictDialect)
    const over = strictDialect.limits && overLimit(written.schema, strictDialect.limits)
    if (over === undefined) return { schema: finish(written, strictDialect), strict: true }
    warnings.push({ tool: tool.id, path: '', feature: 'strict', from: over, action: 'removed' })
  }
  return { schema: finish(writeSchema(tool.inputSchema, dialect), dialect), strict: false }
}

/** Removes parameters with invalid names. They cannot be renamed, because the tool would not know the new names. */
function withAllowedNames(
  tool: Tool,
  schema: JsonSchema,
  { parameterName }: TargetDialect,
  warnings: ExposeWarning[],
): JsonSchema {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const refused = parameterName ? Object.keys(properties).filter((name) => !parameterName.test(name)) : []
  if (refused.length === 0) return schema
  const needed = refused.find((name) => listOf(tool.inputSchema['required']).includes(name))
  if (needed !== undefined)
    throw new SchemaProblem(
      'parameter_name',
      below('/properties', needed),
      `requires a parameter with the name ${toText(needed)}, which is not allowed there`,
    )
  for (const name of refused) {
    const path = below('/properties', name)
    warnings.push({ tool: tool.id, path, feature: 'parameter name', from: toText(name), action: 'removed' })
  }
  const kept = Object.entries(properties).filter(([name]) => !refused.includes(name))
  const required = listOf(schema['required']).filter((name) => !refused.some((one) => one === name))
  return { ...schema, properties: Object.fromEntries(kept), ...('required' in schema && { required }) }
}

/** Writes an output schema. If that is not possible, it is left out: the tool can be called without it. */
function writeOutput(tool: Tool, target: Target, warnings: ExposeWarning[]): JsonSchema | undefined {
  const { outputDialect } = target
  if (!tool.outputSchema || !outputDialect) return undefined
  let written: WrittenSchema
  try {
    written = writeSchema(tool.outputSchema, outputDialect)
  } catch (error) {
    if (!(error instanceof SchemaProblem)) throw error
    warnings.push({
      tool: tool.id,
      path: error.path,
      feature: 'outputSchema',
      from: `a schema that ${error.message}`,
      action: 'removed',
    })
    return undefined
  }
  for (const note of written.notes) warnings.push(toWarning(tool, { ...note, feature: `outputSchema ${note.feature}` }))
  return written.schema
}

function fitDescription(
  { id, description }: Tool,
  { maxDescription = Infinity }: Target,
  warnings: ExposeWarning[],
): string | undefined {
  if (description.length <= maxDescription) return description === '' ? undefined : description
  const fitting = cut(description, maxDescription)
  warnings.push({
    tool: id,
    path: '',
    feature: 'description',
    from: `${description.length} characters`,
    to: `${fitting.length} characters`,
    action: 'rewritten',
  })
  return fitting
}

function warnOfLosses(tool: Tool, target: Target, warnings: ExposeWarning[]): void {
  const lose = (feature: string, value: unknown): void =>
    void warnings.push({ tool: tool.id, path: '', feature, from: toText(value), action: 'removed' })
  for (const extra of EXTRAS) if (says(tool[extra]) && !target.keeps.has(extra)) lose(extra, tool[extra])
  if (tool.outputSchema && !target.outputDialect) lose('outputSchema', tool.outputSchema)
}

type Extras = Pick<Parts, Extra>

/** Returns the fields that the target keeps, with sorted keys, so that equal definitions have equal bytes. */
function keptExtras(tool: Tool, { keeps }: Target): Extras {
  const kept = EXTRAS.map((extra) => [extra, keeps.has(extra) && says(tool[extra]) ? sortKeys(tool[extra]) : undefined])
  return Object.fromEntries(kept) as Extras
}

/** Returns whether a value has content. An empty object has none. */
function says(value: unknown): boolean {
  return value !== undefined && (typeof value !== 'object' || value === null || Object.keys(value).length > 0)
}

function toWarning(tool: Tool, { path, feature, from, to, action }: Note): ExposeWarning {
  return { tool: tool.id, path, feature, from, ...(to !== undefined && { to }), action }
}

export function toError(tool: Pick<Tool, 'id'>, code: ExposeErrorCode, path: string, problem: string): ExposeError {
  return Object.freeze({ tool: tool.id, path, code, message: `The tool "${tool.id}" ${problem}.` })
}

function byPlace(a: ExposeWarning, b: ExposeWarning): number {
  return compare(a.path, b.path) || compare(a.feature, b.feature)
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
