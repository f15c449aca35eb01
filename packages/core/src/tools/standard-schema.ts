import { catchRejection, isThenable, messageOf } from '@toolgate/values'
import { escapePointer, frozenCopy, type InputProblem } from '@toolgate/values/json'

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

/** Returns the input that the tool receives, or the first problem. */
export type ParseInput = (input: unknown) => { readonly value: unknown } | { readonly problem: InputProblem }

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
    throw new TypeError(`has no JSON Schema, says ${named(vendor)}: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * Returns the schema's own validation.
 *
 * Its result replaces the input: defaults are filled in, unknown keys are removed. The result must be plain JSON, because
 * it is decided, recorded and run. An asynchronous schema, an invalid result and an exception refuse the input; an
 * exception is also a fault.
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
  return (input) => {
    const answer = ask(() => validate.call(standard, input), vendor)
    if (isThenable(answer)) {
      catchRejection(answer)
      return refuse(`cannot be checked: the schema of ${named(vendor)} is asynchronous`)
    }
    return readAnswer(answer) ?? refuse(`cannot be checked: the schema of ${named(vendor)} returned no result`)
  }
}

function readAnswer(answer: unknown): ReturnType<ParseInput> | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { issues, value }: { issues?: unknown; value?: unknown } = answer
  if (issues !== undefined) return { problem: toProblem(issues) }
  if (!('value' in answer)) return undefined
  const copy = frozenCopy(value)
  return 'problem' in copy
    ? refuse(`becomes a value of the schema that ${copy.problem.message}`, copy.problem.pointer)
    : copy
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

/** The exception of a schema goes to the log only: it may name files, and the model sees the text of a refusal. */
function ask(validate: () => unknown, vendor: unknown): unknown {
  try {
    return validate()
  } catch (cause) {
    throw new TypeError(`the schema of ${named(vendor)} failed: ${messageOf(cause)}`, { cause })
  }
}

function refuse(message: string, pointer = ''): { problem: InputProblem } {
  return { problem: { pointer, message } }
}

function named(vendor: unknown): string {
  return typeof vendor === 'string' && vendor !== '' ? vendor.slice(0, 40) : 'a library'
}

function hintFor(vendor: unknown): string {
  return vendor === 'valibot' ? '; wrap it with toStandardJsonSchema of @valibot/to-json-schema' : ''
}
