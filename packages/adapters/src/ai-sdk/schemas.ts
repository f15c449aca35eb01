import { ConfigError, type JsonSchema, type StandardSchema } from '@toolgate/core'
import { TRANSFORM_HINT } from '@toolgate/core/internal'
import { frozenCopy, holdsBigint, isObject, mutableCopy } from '@toolgate/values/json'
import { isThenable, messageOf } from '@toolgate/values'
import { asSchema, type FlexibleSchema, type Schema } from 'ai'
import { fieldsOf, hasFields } from '../shared/fields.ts'

/** The answer of an SDK schema to an input. */
type Validation = Awaited<ReturnType<NonNullable<Schema['validate']>>>

/** An input schema for the gate and for the SDK. */
export interface ImportedSchema {
  /** The schema with which the gate validates. */
  readonly forGate: StandardSchema | JsonSchema
  /** The schema for the SDK. It is computed once; the SDK would compute it in each step. */
  readonly forSdk: Schema
  /** Finishes an asynchronous validation. The gate's own validation is synchronous. */
  readonly parseLater: ((input: unknown) => Promise<unknown> | undefined) | undefined
  /** Returns an input of the SDK as the schema returned it, for functions of the host. */
  readonly asParsed: (input: unknown) => Promise<unknown>
}

/**
 * Returns the schema of a tool (zod, another Standard Schema or the SDK's own) for the gate and for the SDK.
 *
 * @throws {ConfigError} `schema_invalid` if it has no JSON Schema, or only a promise of one
 */
export function importSchema(name: string, schema: FlexibleSchema<unknown> | undefined): ImportedSchema {
  const { json, validate } = read(name, schema)
  if (!validate)
    return { forGate: json, forSdk: toSchema(json), parseLater: undefined, asParsed: async (input) => input }
  let isAsync = false
  const check = (value: unknown): unknown => {
    const answer = standardOf(schema)?.validate?.(value) ?? validate(value)
    if (!isThenable(answer)) return toAnswer(answer)
    // The gate cannot wait. The tool finishes an asynchronous validation before it runs.
    isAsync = true
    void Promise.resolve(answer).catch(() => {})
    return { value }
  }
  const forGate: StandardSchema = {
    '~standard': {
      version: 1,
      vendor: standardOf(schema)?.vendor ?? 'ai',
      validate: check,
      jsonSchema: { input: () => json, output: () => json },
    },
  }
  return {
    forGate,
    // A copy, because some libraries change an input in place.
    forSdk: toSchema(json, (value) => remember(value, validate(mutableCopy(value)))),
    parseLater: (input) => (isAsync ? parse(validate, input) : undefined),
    asParsed: (input) => asParsed(validate, input),
  }
}

async function parse(validate: NonNullable<Schema['validate']>, input: unknown): Promise<unknown> {
  return valueOf(toAnswer(await validate(input)))
}

/**
 * Returns an input as the model wrote it. The SDK passes on the schema's output, which may not be a valid input again.
 */
export function asWritten(input: unknown): unknown {
  return hasFields(input) && written.has(input) ? written.get(input) : input
}

/** Inputs as the model wrote them, by the schema's output. */
const written = new WeakMap<object, unknown>()
/** Outputs of schemas that JSON cannot express, by the input as the model wrote it. */
const parsed = new WeakMap<object, unknown>()

/**
 * Returns the answer for the SDK. Its messages and streams are JSON, so it keeps the input as the model wrote it if JSON
 * cannot express the schema's output.
 */
async function remember(value: unknown, answer: Validation | PromiseLike<Validation>): Promise<Validation> {
  const checked = await answer
  if (!checked.success || !hasFields(checked.value)) return checked
  if (isJson(checked.value)) written.set(checked.value, value)
  else if (hasFields(value)) {
    parsed.set(value, checked.value)
    return { ...checked, value }
  }
  return checked
}

async function asParsed(validate: NonNullable<Schema['validate']>, input: unknown): Promise<unknown> {
  if (!hasFields(input) || written.has(input)) return input
  if (parsed.has(input)) return parsed.get(input)
  // Messages from a client have the input as the model wrote it.
  const checked = await validate(mutableCopy(input))
  return checked.success && !isJson(checked.value) ? checked.value : input
}

function isJson(value: unknown): boolean {
  return 'value' in frozenCopy(value) && !holdsBigint(value)
}

function read(
  name: string,
  schema: FlexibleSchema<unknown> | undefined,
): { readonly json: JsonSchema; readonly validate: Schema['validate'] } {
  const problem = (text: string, cause?: unknown) =>
    new ConfigError(`tool "${name}"`, `inputSchema ${text}`, { code: 'schema_invalid', cause })
  let json: unknown
  let validate: Schema['validate']
  try {
    const own = asSchema(schema)
    validate = own.validate
    json = own.jsonSchema
  } catch (error) {
    throw problem(`has no JSON Schema: ${messageOf(error)}${TRANSFORM_HINT}`, error)
  }
  if (isThenable(json))
    throw problem('returns a promise of its JSON Schema: await it, and make the schema of the result')
  if (!isObject(json)) throw problem('has no JSON Schema')
  return { json, validate }
}

/** Returns a schema like the SDK's own `jsonSchema(…)`, with a document that is already computed. */
export function toSchema(json: JsonSchema, validate?: Schema['validate']): Schema {
  // The type has this property under a symbol that the SDK does not export.
  return { [SCHEMA]: true, [VALIDATOR]: true, _type: undefined, jsonSchema: json, validate } as unknown as Schema
}

/** The SDK's marks of a schema. They are registered symbols, so copies of the SDK recognise each other's. */
const SCHEMA = Symbol.for('vercel.ai.schema')
const VALIDATOR = Symbol.for('vercel.ai.validator')

/** Converts an answer to Standard Schema 1. The gate refuses anything else. */
function toAnswer(answer: unknown): unknown {
  const { success, value, error } = fieldsOf(answer)
  if (success === undefined) return answer
  return success ? { value } : { issues: issuesOf(error) }
}

function issuesOf(error: unknown): readonly unknown[] {
  const { issues } = fieldsOf(error)
  if (Array.isArray(issues) && issues.length > 0) return issues
  return [{ message: error instanceof Error ? error.message : 'is not valid' }]
}

function valueOf(answer: unknown): unknown {
  const { value, issues } = fieldsOf(answer)
  if ('value' in fieldsOf(answer)) return value
  const { message } = fieldsOf(fieldsOf(issues)[0])
  throw new TypeError(`invalid input: ${typeof message === 'string' ? message : 'is not valid'}`)
}

function standardOf(schema: unknown): StandardSchema['~standard'] | undefined {
  return isStandard(schema) ? schema['~standard'] : undefined
}

function isStandard(schema: unknown): schema is StandardSchema {
  return fieldsOf(schema)['~standard'] !== undefined
}
