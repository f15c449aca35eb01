import type { Compiling, Keyword, MakeCheck } from './keyword.ts'
import {
  type Check,
  createEvaluated,
  type Evaluated,
  type Violation,
  mergeEvaluated,
  type PlainObject,
  refuse,
  type Run,
} from './run.ts'

/** Keywords that ask other schemas about the same value. */

const NEVER: Check = (_, run) => refuse(run, 'is not allowed')
export const ALWAYS: Check = () => true

/** Asks a schema whose answer may be thrown away: what it evaluated counts only if it passes. */
function tries(check: Check, value: unknown, run: Run, evaluated: Evaluated | undefined): boolean {
  if (!evaluated) return check(value, run, undefined)
  const own = createEvaluated()
  if (!check(value, run, own)) return false
  mergeEvaluated(evaluated, own, run)
  return true
}

const allOf: MakeCheck = (schemas: readonly unknown[], _, { check }) => {
  const checks = schemas.map(check)
  return (value, run, evaluated) => checks.every((each) => each(value, run, evaluated))
}

const anyOf: MakeCheck = (schemas: readonly unknown[], _, { check }) => {
  const checks = schemas.map(check)
  return (value, run, evaluated) => {
    let first: Violation | undefined
    let passes = false
    for (const each of checks) {
      if (tries(each, value, run, evaluated)) passes = true
      else first ??= run.violation
      // The others are asked for what they evaluate alone.
      if (passes && !evaluated) return true
    }
    if (!passes) run.violation = first
    return passes
  }
}

const oneOf: MakeCheck = (schemas: readonly unknown[], schema, compiling) => {
  // A branch that is not checked in full may pass what it should not: then "exactly one" cannot be asked.
  if (!schemas.every(compiling.isExact)) return anyOf(schemas as never, schema, compiling)
  const checks = schemas.map(compiling.check)
  return (value, run, evaluated) => {
    let first: Violation | undefined
    let passed = 0
    for (const each of checks) {
      if (tries(each, value, run, evaluated)) passed++
      else first ??= run.violation
      if (passed > 1) return refuse(run, 'must match exactly one schema in oneOf')
    }
    if (passed === 0) run.violation = first
    return passed === 1
  }
}

const not: MakeCheck = (schema: unknown, _, { check, isExact }) => {
  if (!isExact(schema)) return undefined
  const inner = check(schema)
  return (value, run) => !inner(value, run, undefined) || refuse(run, 'must NOT be valid')
}

const condition: MakeCheck = (schema: unknown, { then: yes, else: no }, { check, isExact }) => {
  if (!isExact(schema)) return undefined
  const inner = check(schema)
  const [whenYes, whenNo] = [yes, no].map((branch) => (branch === undefined ? ALWAYS : check(branch))) as [Check, Check]
  return (value, run, evaluated) => (tries(inner, value, run, evaluated) ? whenYes : whenNo)(value, run, evaluated)
}

function reference(kind: '$ref' | '$dynamicRef' | '$recursiveRef'): MakeCheck {
  return (to: string, schema, { refer }) => refer(to, schema, kind)
}

/** `dependentSchemas`, and of `dependencies` those that are schemas. */
export function dependentSchemas(schemas: Readonly<Record<string, unknown>>, { check }: Compiling): Check {
  const checks = Object.entries(schemas).map(([name, schema]) => [name, check(schema)] as const)
  return (value, run, evaluated) => {
    run.work.left -= checks.length
    return checks.every(([name, each]) => !Object.hasOwn(value as PlainObject, name) || each(value, run, evaluated))
  }
}

export function booleanCheck(schema: boolean): Check {
  return schema ? ALWAYS : NEVER
}

export const ANY_KEYWORDS: readonly Keyword[] = [
  { name: '$ref', about: 'any', make: reference('$ref') },
  { name: '$recursiveRef', about: 'any', since: '2019-09', until: '2019-09', make: reference('$recursiveRef') },
  { name: '$dynamicRef', about: 'any', since: '2020-12', make: reference('$dynamicRef') },
  { name: 'not', about: 'any', make: not },
  { name: 'anyOf', about: 'any', make: anyOf },
  { name: 'oneOf', about: 'any', make: oneOf },
  { name: 'allOf', about: 'any', make: allOf },
  { name: 'if', about: 'any', since: 'draft-07', make: condition },
]
