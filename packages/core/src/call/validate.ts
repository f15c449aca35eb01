import {
  type Check,
  compileDocument,
  dialectOf,
  findSkipped,
  type Run,
  type Violation,
} from '@toolgate/values/json-schema'
import { messageOf, WorkSpentError } from '@toolgate/values'
import { escapePointer, type InputProblem } from '@toolgate/values/json'
import type { ValidateInput } from '../ports/ports.ts'
import { findSchemaProblem } from '../tools/schema.ts'

/**
 * The most steps of checking one input, about 5 ns each. A pattern takes one step for each character, so it can search the
 * largest body that the gateway reads once.
 */
const MAX_VALIDATION_STEPS = 5_000_000

/**
 * Creates a validator for JSON Schema draft-04 to 2020-12, chosen by `$schema`.
 *
 * Each schema is compiled once, at its first use. Schemas are untrusted text: they never become code, nothing remote is
 * fetched, patterns take linear time, and an input that would take too many steps is refused. Unsupported keywords are
 * skipped; `findSkipped` lists them. `format` is an annotation, which is the default in 2020-12.
 */
export function createValidator(): ValidateInput {
  const compiled = new WeakMap<object, Check | string>()
  return (schema, input) => {
    let check = compiled.get(schema)
    if (check === undefined) compiled.set(schema, (check = compile(schema)))
    if (typeof check === 'string')
      return { pointer: '', message: `cannot be checked, because the tool's own schema cannot be used: ${check}` }
    const run: Run = { work: { left: MAX_VALIDATION_STEPS }, violation: undefined, depth: 0, scope: [] }
    try {
      return check(input, run, undefined) ? undefined : toProblem(run.violation)
    } catch (error) {
      if (error instanceof WorkSpentError || error instanceof RangeError)
        return { pointer: '', message: `cannot be checked against the tool's schema: ${describeError(error)}` }
      throw error
    }
  }
}

function compile(schema: object): Check | string {
  try {
    const problem = findSchemaProblem(schema)
    if (problem) return `"${problem.pointer}" ${problem.message}`
    const dialect = dialectOf(schema)
    return compileDocument(schema, dialect.draft, findSkipped(schema, dialect))
  } catch (error) {
    if (error instanceof RangeError) return 'it is nested too deep'
    throw error
  }
}

/** The engine's message for a stack overflow does not help a model. */
function describeError(error: Error): string {
  return error instanceof WorkSpentError ? messageOf(error) : 'its schemas lead too deep'
}

function toProblem({ path, message }: Violation = { path: [], message: 'is not valid' }): InputProblem {
  return {
    pointer: path
      .toReversed()
      .map((key) => `/${escapePointer(key)}`)
      .join(''),
    message,
  }
}
