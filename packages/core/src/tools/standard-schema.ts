import { frozenCopy } from '../util/json.ts'
import { messageOf } from '../errors.ts'
import type { InputProblem } from '../util/json.ts'

/**
 * A schema of a validation library, as Standard Schema 1 and Standard JSON Schema 1 have it: zod, ArkType, and valibot
 * by its `toStandardJsonSchema`.
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

/** Gives the input as the tool gets it, or what is wrong with it. */
export type ParseInput = (input: unknown) => { readonly value: unknown } | { readonly problem: InputProblem }

export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard: unknown = (value as Record<string, unknown>)['~standard']
  return typeof standard === 'object' && standard !== null
}

const TARGET = { target: 'draft-2020-12' }

/**
 * Gives the JSON Schema of what such a schema takes (`input`) or gives (`output`).
 *
 * @throws {TypeError} where it does not tell it, or cannot
 */
export function toJsonSchema({ '~standard': standard }: StandardSchema, side: 'input' | 'output'): unknown {
  const { jsonSchema, vendor } = standard
  if (typeof jsonSchema?.[side] !== 'function')
    throw new TypeError(`is a schema of ${named(vendor)} that gives no JSON Schema${hintFor(vendor)}`)
  try {
    return jsonSchema[side](TARGET)
  } catch (error) {
    throw new TypeError(`has no JSON Schema, says ${named(vendor)}: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * Gives the schema's own validation as the door asks for it.
 *
 * What it answers is the input from there on - defaults filled in, unknown keys gone - and must be plain JSON, as that is
 * what is decided, recorded and run. A schema that answers nonsense or is asynchronous refuses every input; one that throws
 * is a fault, which refuses too.
 */
export function toParseInput(schema: StandardSchema): ParseInput | undefined {
  let parse = parsers.get(schema)
  if (!parse) {
    parse = createParser(schema)
    if (parse) parsers.set(schema, parse)
  }
  return parse
}

/** One for each schema, so that a tool that is defined anew with the same schema is the same tool. */
const parsers = new WeakMap<StandardSchema, ParseInput>()

function createParser({ '~standard': standard }: StandardSchema): ParseInput | undefined {
  const { validate, vendor } = standard
  if (typeof validate !== 'function') return undefined
  return (input) => {
    const answer = ask(() => validate.call(standard, input), vendor)
    if (isThenable(answer)) return refuse(`cannot be checked: the schema of ${named(vendor)} is asynchronous`)
    return readAnswer(answer) ?? refuse(`cannot be checked: the schema of ${named(vendor)} gave no answer`)
  }
}

function readAnswer(answer: unknown): ReturnType<ParseInput> | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { issues, value } = answer as { issues?: unknown; value?: unknown }
  if (issues !== undefined) return { problem: toProblem(issues) }
  if (!('value' in answer)) return undefined
  const copy = frozenCopy(value)
  return 'problem' in copy
    ? refuse(`becomes a value of the schema that ${copy.problem.message}`, copy.problem.pointer)
    : copy
}

function toProblem(issues: unknown): InputProblem {
  const first: unknown = Array.isArray(issues) ? issues[0] : undefined
  const { message, path } = (first ?? {}) as { message?: unknown; path?: unknown }
  const steps: readonly unknown[] = Array.isArray(path) ? path : []
  return {
    pointer: steps.map((step) => `/${escaped(step)}`).join(''),
    message: typeof message === 'string' && message !== '' ? message : 'is not valid',
  }
}

/** A step is a key, or an object with one. */
function escaped(step: unknown): string {
  const key = typeof step === 'object' && step !== null ? (step as { key?: unknown }).key : step
  return String(key).replaceAll('~', '~0').replaceAll('/', '~1')
}

/** What a schema throws is for the log: it may name files, and the model is told what a refusal says. */
function ask(validate: () => unknown, vendor: unknown): unknown {
  try {
    return validate()
  } catch (cause) {
    throw new TypeError(`the schema of ${named(vendor)} failed: ${messageOf(cause)}`, { cause })
  }
}

/** That it may reject later must not end the process. */
function isThenable(answer: unknown): boolean {
  if (answer instanceof Promise) answer.catch(() => {})
  return typeof (answer as { then?: unknown } | null | undefined)?.then === 'function'
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
