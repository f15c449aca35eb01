import { messageOf } from '../errors.ts'
import type { MaybePromise } from '../ports.ts'
import { chain } from './chain.ts'
import { createValidator } from './validate.ts'

/** An input as a schema gives it, or why it refuses it. */
export type Checked = { readonly value: unknown } | { readonly problem: string }

/**
 * Checks an input against a schema as the AI SDK takes them: a Standard Schema (zod, valibot, ArkType), the SDK's own
 * with a `validate` or with nothing but its JSON Schema, or a function that gives one. Without a schema any will do.
 *
 * One that throws, rejects or answers nonsense refuses every input.
 */
export function checkAgainst(schema: unknown, input: unknown): MaybePromise<Checked> {
  try {
    return guarded(check(schema, input))
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

function guarded(checked: MaybePromise<Checked>): MaybePromise<Checked> {
  return checked instanceof Promise ? checked.catch((error: unknown) => ({ problem: messageOf(error) })) : checked
}

interface SdkSchema {
  readonly '~standard'?: { readonly validate?: (value: unknown) => unknown }
  readonly validate?: (value: unknown) => unknown
  readonly jsonSchema?: unknown
}

function check(schema: unknown, input: unknown): MaybePromise<Checked> {
  if (schema === undefined || schema === null) return { value: input }
  const { '~standard': standard, validate, jsonSchema } = schema as SdkSchema
  if (typeof standard?.validate === 'function') return chain(awaitable(standard.validate(input)), readStandard)
  if (typeof schema === 'function') return check((schema as () => unknown)(), input)
  if (typeof validate === 'function') return chain(awaitable(validate(input)), readSdk)
  return chain(awaitable(jsonSchema), (document) => checkJson(document, input))
}

function awaitable(answer: unknown): MaybePromise<unknown> {
  return answer instanceof Promise
    ? answer
    : typeof (answer as PromiseLike<unknown> | undefined)?.then === 'function'
      ? Promise.resolve(answer)
      : answer
}

/** Standard Schema 1: a failure has issues, and a success none. */
function readStandard(answer: unknown): Checked {
  const { value, issues } = answer as { value?: unknown; issues?: readonly { message?: unknown }[] }
  if (issues !== undefined) return { problem: messageOf(issues[0]?.message) }
  return 'value' in (answer as object) ? { value } : { problem: 'the schema gave no value' }
}

function readSdk(answer: unknown): Checked {
  const { success, value, error } = answer as { success?: unknown; value?: unknown; error?: unknown }
  return success === true ? { value } : { problem: messageOf(error) }
}

const validateJson = createValidator()

function checkJson(schema: unknown, input: unknown): Checked {
  if (typeof schema !== 'object' || schema === null) return { problem: 'the tool has no schema that can be used' }
  const problem = validateJson(schema, input)
  return problem ? { problem: `"${problem.pointer}" ${problem.message}` } : { value: input }
}
