import { catchRejection, isThenable, messageOf } from '@toolgate/values'
import { escapePointer, frozenCopy, type InputProblem, mutableCopy } from '@toolgate/values/json'
import { holdsOtherType, toDecided } from './decided-input.ts'

/**
 * A schema of a validation library that implements Standard Schema 1 and Standard JSON Schema 1: zod, ArkType, and valibot
 * with its `toStandardJsonSchema`.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
    readonly validate?: ((value: unknown) => unknown) | undefined
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: string }) => Record<string, unknown>
      readonly output: (options: { readonly target: string }) => Record<string, unknown>
    }
  }
}

/** An input that a schema accepts. */
export interface ParsedInput {
  /** The input as JSON: it is decided, hashed, shown and recorded. */
  readonly value: unknown
  /** The input for the tool, if it is not `value`. */
  readonly forTool?: { readonly input: unknown } | undefined
}

/** Returns the input, or the first problem. */
export type ParseInput = (input: unknown) => ParsedInput | { readonly problem: InputProblem }

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return '~standard' in value && typeof value['~standard'] === 'object' && value['~standard'] !== null
}

const TARGET = { target: 'draft-2020-12' }

/**
 * Returns the JSON Schema of a schema's input or output.
 *
 * @throws {TypeError} if the schema has none
 */
export function toJsonSchema({ '~standard': standard }: StandardSchema, side: 'input' | 'output'): unknown {
  const { jsonSchema, vendor } = standard
  if (typeof jsonSchema?.[side] !== 'function')
    throw new TypeError(`is a schema of ${named(vendor)} that has no JSON Schema${hintFor(vendor)}`)
  try {
    return jsonSchema[side](TARGET)
  } catch (error) {
    const hint = side === 'input' ? TRANSFORM_HINT : ''
    throw new TypeError(`has no JSON Schema, says ${named(vendor)}: ${messageOf(error)}${hint}`, { cause: error })
  }
}

/** What to write in place of a schema such as `z.date()`. A transform of JSON has a JSON Schema. */
export const TRANSFORM_HINT =
  '; declare what the model writes, and transform that: z.string().transform((text) => new Date(text))'

/** The key under which an adapter's schema returns the input that its tool gets, beside the value to decide. */
export const FOR_TOOL: unique symbol = Symbol('toolgate.for-tool')

/**
 * Returns the schema's own validation.
 *
 * Its result replaces the input: defaults are filled in, unknown keys are removed. The result is decided, recorded and
 * run. If JSON cannot express a part of it, such as a `Date`, or if a part has another type than in the JSON Schema, the
 * tool gets the result, and that part is decided as it came. An asynchronous schema, an invalid result and an exception
 * refuse the input; an exception is also a fault.
 */
export function toParseInput(schema: StandardSchema): ParseInput | undefined {
  let parse = parsers.get(schema)
  if (!parse) {
    parse = createParser(schema)
    if (parse) parsers.set(schema, parse)
  }
  return parse
}

/** One parser for each schema, so that two tools with the same schema are equal. */
const parsers = new WeakMap<StandardSchema, ParseInput>()

function createParser({ '~standard': standard }: StandardSchema): ParseInput | undefined {
  const { validate, vendor } = standard
  if (typeof validate !== 'function') return undefined
  const accepted = lazily(() => acceptedBy(standard))
  return (input) => {
    const answer = ask((given) => validate.call(standard, given), input, vendor)
    if (isThenable(answer)) {
      catchRejection(answer)
      return refuse(`cannot be checked: the schema of ${named(vendor)} is asynchronous`)
    }
    const read = readAnswer(answer, input, accepted)
    return read ?? refuse(`cannot be checked: the schema of ${named(vendor)} returned no result`)
  }
}

/** Returns the JSON Schema of the input, which says what type a field has to rules; `undefined` if there is none. */
function acceptedBy({ jsonSchema }: StandardSchema['~standard']): unknown {
  try {
    return jsonSchema?.input(TARGET)
  } catch {
    return undefined
  }
}

function lazily(read: () => unknown): () => unknown {
  let known: { readonly value: unknown } | undefined
  return () => (known ??= { value: read() }).value
}

/** A valid answer of a schema, or an invalid one. */
interface SchemaAnswer {
  readonly issues?: unknown
  readonly value?: unknown
  readonly [FOR_TOOL]?: ParsedInput['forTool']
}

function readAnswer(answer: unknown, came: unknown, accepted: () => unknown): ReturnType<ParseInput> | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { issues, value, [FOR_TOOL]: forTool }: SchemaAnswer = answer
  if (issues !== undefined) return { problem: toProblem(issues) }
  if (!('value' in answer)) return undefined
  const copy = frozenCopy(value)
  if ('value' in copy && !holdsOtherType(copy.value, came, accepted())) return forTool ? { ...copy, forTool } : copy
  const decided = frozenCopy(toDecided(value, came, accepted()))
  if ('problem' in decided) return decided
  return { ...decided, forTool: forTool ?? { input: 'value' in copy ? copy.value : value } }
}

function toProblem(issues: unknown): InputProblem {
  const first: object | null | undefined = Array.isArray(issues) ? issues[0] : undefined
  const { message, path }: { message?: unknown; path?: unknown } = first ?? {}
  const steps: readonly unknown[] = Array.isArray(path) ? path : []
  return {
    pointer: steps.map((step) => `/${escapePointer(keyOf(step))}`).join(''),
    message: typeof message === 'string' && message !== '' ? message : 'is not valid',
  }
}

/** A step is a key, or an object with a `key`. */
function keyOf(step: unknown): string {
  if (typeof step !== 'object' || step === null) return String(step)
  return String('key' in step ? step.key : undefined)
}

/**
 * Validates an input. ArkType changes an input in place, which fails for a frozen one, so it gets a copy then.
 *
 * The exception of a schema goes to the log only: it may name files, and the model sees the text of a refusal.
 */
function ask(validate: (input: unknown) => unknown, input: unknown, vendor: unknown): unknown {
  try {
    return validate(vendor === 'arktype' ? mutableCopy(input) : input)
  } catch (cause) {
    throw new TypeError(`the schema of ${named(vendor)} failed: ${messageOf(cause)}`, { cause })
  }
}

function refuse(message: string): { problem: InputProblem } {
  return { problem: { pointer: '', message } }
}

function named(vendor: unknown): string {
  return typeof vendor === 'string' && vendor !== '' ? vendor.slice(0, 40) : 'a library'
}

function hintFor(vendor: unknown): string {
  return vendor === 'valibot' ? '; wrap it with toStandardJsonSchema of @valibot/to-json-schema' : ''
}
