import { spend } from '../work.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { isSince } from './document.ts'
import { dependentRequired } from './keywords-plain.ts'
import {
  type Check,
  type Compiling,
  createEvaluated,
  type Evaluated,
  isList,
  isString,
  KEY_STEPS,
  type Keyword,
  type MakeCheck,
  mergeEvaluated,
  noteProperty,
  passesAt,
  reads,
  refuse,
  type Run,
  type Violation,
  isNumber,
} from './run.ts'

const NEVER: Check = (_, run) => refuse(run, 'is not allowed')
export const ALWAYS: Check = () => true

/** Runs a check that may fail without consequence. The parts it evaluated count only if it passes. */
function tries(check: Check, value: unknown, run: Run, evaluated: Evaluated | undefined): boolean {
  if (!evaluated) return check(value, run, undefined)
  const own = createEvaluated()
  if (!check(value, run, own)) return false
  mergeEvaluated(evaluated, own, run)
  return true
}

const allOf = reads(isList, (schemas, _, { check }) => {
  const checks = schemas.map(check)
  return (value, run, evaluated) => checks.every((each) => each(value, run, evaluated))
})

const anyOf = reads(isList, (schemas, _, { check }) => {
  const checks = schemas.map(check)
  return (value, run, evaluated) => {
    let first: Violation | undefined
    let passes = false
    for (const each of checks) {
      if (tries(each, value, run, evaluated)) passes = true
      else first ??= run.violation
      // The others run only because of the parts they evaluate.
      if (passes && !evaluated) return true
    }
    if (!passes) run.violation = first
    return passes
  }
})

const oneOf = reads(isList, (schemas, schema, compiling) => {
  // A branch that is not checked in full may pass a wrong value, so "exactly one" cannot be checked.
  if (!schemas.every(compiling.isExact)) return anyOf(schemas, schema, compiling)
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
})

const not: MakeCheck<unknown> = (schema, _, { check, isExact }) => {
  if (!isExact(schema)) return undefined
  const inner = check(schema)
  return (value, run) => !inner(value, run, undefined) || refuse(run, 'must NOT be valid')
}

const condition: MakeCheck<unknown> = (schema, { then: yes, else: no }, { check, isExact }) => {
  if (!isExact(schema)) return undefined
  const inner = check(schema)
  const whenYes = yes === undefined ? ALWAYS : check(yes)
  const whenNo = no === undefined ? ALWAYS : check(no)
  return (value, run, evaluated) => (tries(inner, value, run, evaluated) ? whenYes : whenNo)(value, run, evaluated)
}

function reference(kind: '$ref' | '$dynamicRef' | '$recursiveRef'): MakeCheck<unknown> {
  return reads(isString, (to, schema, { refer }) => refer(to, schema, kind))
}

/** Checks `dependentSchemas`, and the schemas in `dependencies`. */
function checkDependentSchemas(schemas: JsonObject, { check }: Compiling): Check<JsonObject> {
  const checks = Object.entries(schemas).map(([name, schema]) => [name, check(schema)] as const)
  return (value, run, evaluated) => {
    run.work.left -= checks.length
    return checks.every(([name, each]) => !Object.hasOwn(value, name) || each(value, run, evaluated))
  }
}

export function booleanCheck(schema: boolean): Check {
  return schema ? ALWAYS : NEVER
}

/** Keywords that apply other schemas to the same value. */
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

type JsonList = readonly unknown[]

/** Checks the items from an index on. */
function rest(schema: unknown, from: number, check: (schema: unknown) => Check): Check<JsonList> {
  if (schema === false)
    return (list, run) => list.length <= from || refuse(run, `must NOT have more than ${from} items`)
  const each = check(schema)
  return (list, run, evaluated) => {
    if (evaluated) evaluated.items = Infinity
    if (each === ALWAYS) return true
    for (let i = from; i < list.length; i++) if (!passesAt(each, list[i], i, run)) return false
    return true
  }
}

const prefixItems = reads(isList, (schemas, _, { check }): Check<JsonList> => {
  const checks = schemas.map(check)
  return (list, run, evaluated) => {
    if (evaluated) evaluated.items = Math.max(evaluated.items, Math.min(list.length, checks.length))
    return checks.every((each, i) => i >= list.length || passesAt(each, list[i], i, run))
  }
})

/** Before 2020-12 a list of schemas; since then a schema for the items after `prefixItems`. */
const items: MakeCheck<JsonList> = (schema, siblings, compiling) => {
  if (Array.isArray(schema)) return prefixItems(schema, siblings, compiling)
  const { prefixItems: before } = siblings
  const from = isSince(compiling.draft, '2020-12') && Array.isArray(before) ? before.length : 0
  return rest(schema, from, compiling.check)
}

const additionalItems: MakeCheck<JsonList> = (schema, { items: before }, { check }) =>
  Array.isArray(before) ? rest(schema, before.length, check) : undefined

const contains: MakeCheck<JsonList> = (schema, { minContains, maxContains }, { check, draft, isExact }) => {
  const each = check(schema)
  const counts = isSince(draft, '2019-09')
  const min = counts && isNumber(minContains) ? minContains : 1
  const max = counts && isNumber(maxContains) && isExact(schema) ? maxContains : Infinity
  const marks = isSince(draft, '2020-12')
  return (list, run, evaluated) => {
    let found = 0
    for (const [i, item] of list.entries()) {
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

const unevaluatedItems: MakeCheck<JsonList> = (schema, _, { check }) => {
  const each = check(schema)
  return (list, run, evaluated) => {
    if (!evaluated) return true
    for (const [i, item] of list.entries())
      if (i >= evaluated.items && !evaluated.furtherItems.has(i) && !passesAt(each, item, i, run)) return false
    evaluated.items = Infinity
    return true
  }
}

const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))

const properties = reads(isObject, (schemas, _, { check }): Check<JsonObject> => {
  const checks = Object.entries(schemas).map(([name, schema]) => [name, check(schema), INHERITED.has(name)] as const)
  return (object, run, evaluated) => {
    spend(run.work, checks.length)
    for (const [name, each, isInherited] of checks) {
      const item = isInherited && !Object.hasOwn(object, name) ? undefined : object[name]
      if (item === undefined) continue
      if (evaluated) noteProperty(evaluated, name, run)
      if (!passesAt(each, item, name, run)) return false
    }
    return true
  }
})

function keysOf(value: JsonObject, run: Run): readonly string[] {
  const keys = Object.keys(value)
  spend(run.work, keys.length * KEY_STEPS)
  return keys
}

const patternProperties = reads(isObject, (schemas, _, { check, pattern }): Check<JsonObject> => {
  const checks = Object.entries(schemas).flatMap(([source, schema]) => {
    const compiled = pattern(source)
    return compiled ? [{ compiled, each: check(schema) }] : []
  })
  return (value, run, evaluated) => {
    for (const name of keysOf(value, run)) {
      for (const { compiled, each } of checks) {
        if (!compiled.test(name, run.work)) continue
        if (evaluated) noteProperty(evaluated, name, run)
        if (!passesAt(each, value[name], name, run)) return false
      }
    }
    return true
  }
})

const additionalProperties: MakeCheck<JsonObject> = (
  schema,
  { properties: named, patternProperties: patterned },
  { check, pattern },
) => {
  const names = new Set(isObject(named) ? Object.keys(named) : [])
  const patterns = isObject(patterned) ? Object.keys(patterned).map(pattern) : []
  // Without every pattern it is unknown which properties are additional.
  if (patterns.includes(undefined)) return undefined
  const each = check(schema)
  return (value, run, evaluated) => {
    for (const name of keysOf(value, run)) {
      if (names.has(name) || patterns.some((compiled) => compiled?.test(name, run.work))) continue
      if (evaluated) noteProperty(evaluated, name, run)
      if (schema === false) return unknownProperty(name, run)
      if (!passesAt(each, value[name], name, run)) return false
    }
    return true
  }
}

function unknownProperty(name: string, run: Run): false {
  refuse(run, 'is not a known property')
  run.violation?.path.push(name)
  return false
}

const MAX_NAME_SHOWN = 60

const propertyNames: MakeCheck<JsonObject> = (schema, _, { check }) => {
  const each = check(schema)
  return (value, run) => {
    for (const name of keysOf(value, run)) {
      if (each(name, run, undefined)) continue
      return refuse(
        run,
        `has the property name ${JSON.stringify(name.slice(0, MAX_NAME_SHOWN))}, which ${run.violation?.message ?? 'is not allowed'}`,
      )
    }
    return true
  }
}

const unevaluatedProperties: MakeCheck<JsonObject> = (schema, _, { check }) => {
  const each = check(schema)
  return (value, run, evaluated) => {
    if (!evaluated || evaluated.allProperties) return true
    for (const name of keysOf(value, run)) {
      if (evaluated.properties.has(name)) continue
      if (schema === false) return unknownProperty(name, run)
      if (!passesAt(each, value[name], name, run)) return false
    }
    evaluated.allProperties = true
    return true
  }
}

/** Holds lists of names and schemas. 2019-09 split it into two keywords; schemas of later drafts still use it. */
const dependencies = reads(isObject, (mixed, schema, compiling): Check<JsonObject> => {
  const lists = Object.fromEntries(Object.entries(mixed).filter(([, each]) => Array.isArray(each)))
  const schemas = Object.fromEntries(Object.entries(mixed).filter(([, each]) => !Array.isArray(each)))
  const names = dependentRequired(lists, schema, compiling) ?? ALWAYS
  const others = checkDependentSchemas(schemas, compiling)
  return (value, run, evaluated) => names(value, run, evaluated) && others(value, run, evaluated)
})

const dependentSchemas = reads(isObject, (schemas, _, compiling) => checkDependentSchemas(schemas, compiling))

/** Keywords that apply other schemas to the items and properties of a value. */
export const PART_KEYWORDS: readonly Keyword[] = [
  { name: 'prefixItems', about: 'array', since: '2020-12', make: prefixItems },
  { name: 'items', about: 'array', make: items },
  { name: 'additionalItems', about: 'array', until: '2019-09', make: additionalItems },
  { name: 'contains', about: 'array', since: 'draft-06', make: contains },
  { name: 'propertyNames', about: 'object', since: 'draft-06', make: propertyNames },
  { name: 'additionalProperties', about: 'object', make: additionalProperties },
  { name: 'dependencies', about: 'object', make: dependencies },
  { name: 'dependentSchemas', about: 'object', since: '2019-09', make: dependentSchemas },
  { name: 'properties', about: 'object', make: properties },
  { name: 'patternProperties', about: 'object', make: patternProperties },
  { name: 'unevaluatedItems', about: 'unevaluated items', since: '2019-09', make: unevaluatedItems },
  { name: 'unevaluatedProperties', about: 'unevaluated properties', since: '2019-09', make: unevaluatedProperties },
]
