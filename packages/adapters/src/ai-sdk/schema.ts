import { ConfigError, type JsonSchema, type StandardSchema } from '@toolgate/core'
import { asSchema, type FlexibleSchema, type Schema } from 'ai'

/** What a schema of the SDK says of an input. */
type Validation = Awaited<ReturnType<NonNullable<Schema['validate']>>>

/** The input of a tool of the SDK, as both sides take it. */
export interface ImportedSchema {
  /** For the gate, which validates with it. */
  readonly forGate: StandardSchema | JsonSchema
  /** For the SDK: worked out once, where the SDK does it again in each step. */
  readonly forSdk: Schema
  /** The rest of the validation, where that is asynchronous: the gate's own is not. */
  readonly parseLater: ((input: unknown) => Promise<unknown> | undefined) | undefined
}

/**
 * Gives a schema of a tool - zod, another Standard Schema, or the SDK's own - for the gate and for the SDK.
 *
 * @throws {ConfigError} `schema_invalid` where it has no JSON Schema, or only a promise of one
 */
export function importSchema(name: string, schema: FlexibleSchema<unknown> | undefined): ImportedSchema {
  const { json, validate } = read(name, schema)
  if (!validate) return { forGate: json, forSdk: toSchema(json), parseLater: undefined }
  let isAsync = false
  const check = (value: unknown): Answer => {
    const answer = standardOf(schema)?.validate?.(value) ?? validate(value)
    if (!isThenable(answer)) return toAnswer(answer)
    // The gate asks at once: what takes longer is asked by the tool itself, before it runs.
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
    forSdk: toSchema(json, (value) => remember(value, validate(value))),
    parseLater: (input) => (isAsync ? parse(validate, input) : undefined),
  }
}

async function parse(validate: NonNullable<Schema['validate']>, input: unknown): Promise<unknown> {
  return valueOf(toAnswer(await validate(input)))
}

/**
 * Gives the input as the model wrote it. The SDK hands on what a schema has made of it, and what a schema has made of an
 * input need not be an input.
 */
export function asWritten(input: unknown): unknown {
  return isObject(input) && written.has(input) ? written.get(input) : input
}

const written = new WeakMap<object, unknown>()

async function remember(value: unknown, answer: Validation | PromiseLike<Validation>): Promise<Validation> {
  const checked = await answer
  if (checked.success && isObject(checked.value) && checked.value !== value) written.set(checked.value, value)
  return checked
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
    throw problem(`has no JSON Schema: ${error instanceof Error ? error.message : String(error)}`, error)
  }
  if (isThenable(json)) throw problem('gives a promise of its JSON Schema: await it, and make the schema of the result')
  if (!isObject(json)) throw problem('has no JSON Schema')
  return { json: json as JsonSchema, validate }
}

/** Gives a schema as the SDK's own `jsonSchema(…)` does, but with a document that is there at once. */
export function toSchema(json: JsonSchema, validate?: Schema['validate']): Schema {
  return { [SCHEMA]: true, [VALIDATOR]: true, _type: undefined, jsonSchema: json, validate } as unknown as Schema
}

/** The SDK's own mark, and that of its version 5; they are registered, so that copies of the SDK know each other's. */
const SCHEMA = Symbol.for('vercel.ai.schema')
const VALIDATOR = Symbol.for('vercel.ai.validator')

/** As Standard Schema 1 answers. */
type Answer = { readonly value: unknown } | { readonly issues: readonly { readonly message: string }[] }

function toAnswer(answer: unknown): Answer {
  const { success, value, error } = answer as { success?: boolean; value?: unknown; error?: unknown }
  if (success === undefined) return answer as Answer
  return success ? { value } : { issues: issuesOf(error) }
}

function issuesOf(error: unknown): readonly { readonly message: string }[] {
  const { issues } = (error ?? {}) as { issues?: unknown }
  if (Array.isArray(issues) && issues.length > 0) return issues as { message: string }[]
  return [{ message: error instanceof Error ? error.message : 'is not valid' }]
}

function valueOf(answer: Answer): unknown {
  if ('value' in answer) return answer.value
  throw new TypeError(`invalid input: ${answer.issues[0]?.message ?? 'is not valid'}`)
}

function standardOf(schema: unknown): StandardSchema['~standard'] | undefined {
  return isObject(schema) || typeof schema === 'function' ? (schema as Partial<StandardSchema>)['~standard'] : undefined
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof (value as { then?: unknown }).then === 'function'
}
