import { spend } from '../util/work.ts'
import { isSince, type PlainObject } from './document.ts'
import { PLAIN_KEYWORDS } from './keywords-plain.ts'
import {
  type Check,
  type Compiling,
  createEvaluated,
  type Evaluated,
  type Violation,
  KEY_STEPS,
  type Keyword,
  type MakeCheck,
  mergeEvaluated,
  notePropertyOf,
  passesAt,
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

/** Keywords that ask other schemas about the items and properties of a value. */

type List = readonly unknown[]

/** Asks about the items from one place on. */
function rest(schema: unknown, from: number, check: (schema: unknown) => Check): Check {
  if (schema === false)
    return (value, run) => (value as List).length <= from || refuse(run, `must NOT have more than ${from} items`)
  const each = check(schema)
  return (value, run, evaluated) => {
    if (evaluated) evaluated.items = Infinity
    const list = value as List
    if (each === ALWAYS) return true
    for (let i = from; i < list.length; i++) if (!passesAt(each, list[i], i, run)) return false
    return true
  }
}

const prefixItems: MakeCheck = (schemas: List, _, { check }) => {
  const checks = schemas.map(check)
  return (value, run, evaluated) => {
    const list = value as List
    if (evaluated) evaluated.items = Math.max(evaluated.items, Math.min(list.length, checks.length))
    return checks.every((each, i) => i >= list.length || passesAt(each, list[i], i, run))
  }
}

/** A list of schemas before 2020-12, and a schema for the items behind it. */
const items: MakeCheck = (schema: unknown, siblings, compiling) => {
  if (Array.isArray(schema)) return prefixItems(schema as never, siblings, compiling)
  const { prefixItems: before } = siblings
  const from = isSince(compiling.draft, '2020-12') && Array.isArray(before) ? before.length : 0
  return rest(schema, from, compiling.check)
}

const additionalItems: MakeCheck = (schema: unknown, { items: before }, { check }) =>
  Array.isArray(before) ? rest(schema, before.length, check) : undefined

const contains: MakeCheck = (schema: unknown, { minContains, maxContains }, { check, draft, isExact }) => {
  const each = check(schema)
  const counts = isSince(draft, '2019-09')
  const min = counts && typeof minContains === 'number' ? minContains : 1
  const max = counts && typeof maxContains === 'number' && isExact(schema) ? maxContains : Infinity
  const marks = isSince(draft, '2020-12')
  return (value, run, evaluated) => {
    let found = 0
    for (const [i, item] of (value as List).entries()) {
      if (!each(item, run, undefined)) continue
      found++
      if (marks && evaluated) {
        spend(run.work, KEY_STEPS)
        evaluated.furtherItems.add(i)
      } else if (found >= min && max === Infinity) return true
    }
    if (found < min) return refuse(run, `must contain at least ${min} valid item(s)`)
    return found <= max || refuse(run, `must contain at most ${max} valid item(s)`)
  }
}

const unevaluatedItems: MakeCheck = (schema: unknown, _, { check }) => {
  const each = check(schema)
  return (value, run, evaluated) => {
    if (!evaluated) return true
    for (const [i, item] of (value as List).entries())
      if (i >= evaluated.items && !evaluated.furtherItems.has(i) && !passesAt(each, item, i, run)) return false
    evaluated.items = Infinity
    return true
  }
}

const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))

const properties: MakeCheck = (schemas: PlainObject, _, { check }) => {
  const checks = Object.entries(schemas).map(([name, schema]) => [name, check(schema), INHERITED.has(name)] as const)
  return (value, run, evaluated) => {
    const object = value as PlainObject
    spend(run.work, checks.length)
    for (const [name, each, isInherited] of checks) {
      const item = isInherited && !Object.hasOwn(object, name) ? undefined : object[name]
      if (item === undefined) continue
      notePropertyOf(evaluated, name, run)
      if (!passesAt(each, item, name, run)) return false
    }
    return true
  }
}

function keysOf(value: unknown, run: Run): readonly string[] {
  const keys = Object.keys(value as PlainObject)
  spend(run.work, keys.length * KEY_STEPS)
  return keys
}

const patternProperties: MakeCheck = (schemas: PlainObject, _, { check, pattern }) => {
  const checks = Object.entries(schemas).flatMap(([source, schema]) => {
    const compiled = pattern(source)
    return compiled ? [{ compiled, each: check(schema) }] : []
  })
  return (value, run, evaluated) => {
    for (const name of keysOf(value, run)) {
      for (const { compiled, each } of checks) {
        if (!compiled.test(name, run.work)) continue
        notePropertyOf(evaluated, name, run)
        if (!passesAt(each, (value as PlainObject)[name], name, run)) return false
      }
    }
    return true
  }
}

const additionalProperties: MakeCheck = (
  schema: unknown,
  { properties: named, patternProperties: patterned },
  { check, pattern },
) => {
  const names = new Set(Object.keys((named as PlainObject | undefined) ?? {}))
  const patterns = Object.keys((patterned as PlainObject | undefined) ?? {}).map(pattern)
  // Which properties are additional cannot be told without every pattern.
  if (patterns.includes(undefined)) return undefined
  const each = check(schema)
  return (value, run, evaluated) => {
    for (const name of keysOf(value, run)) {
      if (names.has(name) || patterns.some((compiled) => compiled?.test(name, run.work))) continue
      notePropertyOf(evaluated, name, run)
      if (schema === false) return unknownProperty(name, run)
      if (!passesAt(each, (value as PlainObject)[name], name, run)) return false
    }
    return true
  }
}

function unknownProperty(name: string, run: Run): false {
  refuse(run, 'is not a known property')
  run.violation?.path.push(name)
  return false
}

const MAX_NAME_TOLD = 60

const propertyNames: MakeCheck = (schema: unknown, _, { check }) => {
  const each = check(schema)
  return (value, run) => {
    for (const name of keysOf(value, run)) {
      if (each(name, run, undefined)) continue
      return refuse(
        run,
        `has the property name ${JSON.stringify(name.slice(0, MAX_NAME_TOLD))}, which ${run.violation?.message ?? 'is not allowed'}`,
      )
    }
    return true
  }
}

const unevaluatedProperties: MakeCheck = (schema: unknown, _, { check }) => {
  const each = check(schema)
  return (value, run, evaluated) => {
    if (!evaluated || evaluated.allProperties) return true
    for (const name of keysOf(value, run)) {
      if (evaluated.properties.has(name)) continue
      if (schema === false) return unknownProperty(name, run)
      if (!passesAt(each, (value as PlainObject)[name], name, run)) return false
    }
    evaluated.allProperties = true
    return true
  }
}

/** Lists of names and schemas in one, until 2019-09 made two keywords of it; later drafts still write it. */
const dependencies: MakeCheck = (mixed: PlainObject, schema, compiling) => {
  const lists = Object.fromEntries(Object.entries(mixed).filter(([, each]) => Array.isArray(each)))
  const schemas = Object.fromEntries(Object.entries(mixed).filter(([, each]) => !Array.isArray(each)))
  const names = DEPENDENT_REQUIRED?.make(lists as never, schema, compiling) ?? ALWAYS
  const others = dependentSchemas(schemas, compiling)
  return (value, run, evaluated) => names(value, run, evaluated) && others(value, run, evaluated)
}

const DEPENDENT_REQUIRED = PLAIN_KEYWORDS.find(({ name }) => name === 'dependentRequired')

export const PART_KEYWORDS: readonly Keyword[] = [
  { name: 'prefixItems', about: 'array', since: '2020-12', make: prefixItems },
  { name: 'items', about: 'array', make: items },
  { name: 'additionalItems', about: 'array', until: '2019-09', make: additionalItems },
  { name: 'contains', about: 'array', since: 'draft-06', make: contains },
  { name: 'propertyNames', about: 'object', since: 'draft-06', make: propertyNames },
  { name: 'additionalProperties', about: 'object', make: additionalProperties },
  { name: 'dependencies', about: 'object', make: dependencies },
  {
    name: 'dependentSchemas',
    about: 'object',
    since: '2019-09',
    make: (schemas: PlainObject, _, compiling) => dependentSchemas(schemas, compiling),
  },
  { name: 'properties', about: 'object', make: properties },
  { name: 'patternProperties', about: 'object', make: patternProperties },
  { name: 'unevaluatedItems', about: 'unevaluated items', since: '2019-09', make: unevaluatedItems },
  { name: 'unevaluatedProperties', about: 'unevaluated properties', since: '2019-09', make: unevaluatedProperties },
]
