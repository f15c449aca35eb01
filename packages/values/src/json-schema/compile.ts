import { createPattern, type Pattern } from '../regex/pattern.ts'
import { spend } from '../work.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { createReferences, isSince, isUntil, type References } from './document.ts'
import type { Draft } from './drafts.ts'
import {
  type Check,
  type Compiling,
  createEvaluated,
  type Evaluated,
  type KeywordGroup,
  type GroupValues,
  isList,
  isNumber,
  type Keyword,
  mergeEvaluated,
  type Run,
} from './run.ts'
import { ALWAYS, ANY_KEYWORDS, booleanCheck, PART_KEYWORDS } from './keywords-inner.ts'
import { PLAIN_KEYWORDS } from './keywords-plain.ts'
import type { Skipped } from './skipped.ts'

/** Keywords in the order of their checks, which decides which of several violations is reported. */
const ALL_KEYWORDS: readonly Keyword[] = [
  ...PLAIN_KEYWORDS.slice(0, 1),
  ...ANY_KEYWORDS.slice(0, 3),
  ...PLAIN_KEYWORDS.slice(1),
  ...ANY_KEYWORDS.slice(3),
  ...PART_KEYWORDS,
]

/** The most nested schemas for one input, so that the stack does not overflow. */
const MAX_LEVELS = 800

/** Steps for checking one schema, and for each of its keywords. */
const SCHEMA_STEPS = 6
const KEYWORD_STEPS = 3

/**
 * Returns the check of a whole document.
 *
 * No part of the document becomes code. Every keyword costs steps of the run's work, so that no schema can block the process.
 */
export function compileDocument(document: object, draft: Draft, skipped: Skipped): Check {
  return compileSchemas(document, draft, skipped)(document)
}

/** Returns the check of each schema inside a document. */
export function compileSchemas(document: object, draft: Draft, skipped: Skipped): (schema: unknown) => Check {
  const references = createReferences(document, draft)
  const checks = new Map<object, Check>()
  const patterns = new Map<string, Pattern>()
  const tracks = mentionsUnevaluated(document)
  const compilings = new Map<Draft, { readonly compiling: Compiling; readonly keywords: readonly Keyword[] }>()
  return check

  function check(schema: unknown): Check {
    if (!isObject(schema)) return booleanCheck(schema !== false)
    let known = checks.get(schema)
    if (!known) checks.set(schema, (known = checkOf(rulesOf(schema), tracks)))
    return references.resources > 1 && references.resourceOf(schema) === schema ? inScope(known, schema) : known
  }

  /** Each meta-schema is read by its own draft. */
  function ofDraft(of: Draft) {
    let known = compilings.get(of)
    if (!known) {
      const keywords = ALL_KEYWORDS.filter(
        ({ since, until }) => (!since || isSince(of, since)) && (!until || isUntil(of, until)),
      )
      const compiling = { draft: of, tracks, check, refer, pattern, isExact: skipped.isExact }
      compilings.set(of, (known = { keywords, compiling }))
    }
    return known
  }

  function pattern(source: string): Pattern | undefined {
    if (skipped.patterns.has(source)) return undefined
    let known = patterns.get(source)
    if (!known) patterns.set(source, (known = createPattern(source, 'ecma')))
    return known
  }

  function rulesOf(schema: JsonObject): ChecksByGroup {
    const rules: ChecksByGroup = {
      type: [],
      number: [],
      string: [],
      any: [],
      array: [],
      object: [],
      'unevaluated items': [],
      'unevaluated properties': [],
    }
    const { keywords, compiling } = ofDraft(references.draftOf(schema))
    for (const keyword of keywords) if (Object.hasOwn(schema, keyword.name)) addRule(rules, keyword, schema, compiling)
    return rules
  }

  function refer(reference: string, from: JsonObject, kind: string): Check {
    const targets = references.find(reference, from)
    if (skipped.loops.has(from)) return ALWAYS
    const each = targets.map((target) => referTo(target, reference, from, kind))
    const [first = ALWAYS, second] = each
    return second ? (...given) => first(...given) && second(...given) : first
  }

  function referTo(target: object | boolean, reference: string, from: JsonObject, kind: string): Check {
    if (typeof target === 'boolean') return booleanCheck(target)
    const choose = kind === '$ref' ? undefined : chooser(reference, target, kind, references)
    let own: Check | undefined
    return (value, run, evaluated) => {
      const dynamic = choose?.(run)
      if (dynamic && dynamic !== target) return check(dynamic)(value, run, evaluated)
      return (own ??= entering(target, from))(value, run, evaluated)
    }
  }

  function entering(target: object, from: object): Check {
    const resource = references.resourceOf(target)
    const inner = check(target)
    return resource === references.resourceOf(from) || resource === target ? inner : inScope(inner, resource)
  }
}

function addRule<G extends KeywordGroup>(
  rules: ChecksByGroup,
  { name, about, make }: Keyword<G>,
  schema: JsonObject,
  compiling: Compiling,
): void {
  const made = make(schema[name], schema, compiling)
  if (made && made !== ALWAYS) rules[about].push(made)
}

type ChecksByGroup = { readonly [G in KeywordGroup]: Check<GroupValues[G]>[] }

function checkOf(rules: ChecksByGroup, tracks: boolean): Check {
  const steps = SCHEMA_STEPS + KEYWORD_STEPS * Object.values(rules).flat().length
  const unevaluatedItems = rules['unevaluated items']
  const unevaluatedProperties = rules['unevaluated properties']
  const owns = tracks && unevaluatedItems.length + unevaluatedProperties.length > 0
  const forNumber = [...rules.type, ...rules.number, ...rules.any]
  const forString = [...rules.type, ...rules.string, ...rules.any]
  const forArray = [...rules.type, ...rules.any, ...rules.array]
  const forObject = [...rules.type, ...rules.any, ...rules.object]
  const forOther = [...rules.type, ...rules.any]

  function passesOwn(value: unknown, run: Run, evaluated: Evaluated | undefined): boolean {
    if (typeof value === 'string') return all(forString, value, run, evaluated)
    if (isNumber(value)) return all(forNumber, value, run, evaluated)
    if (isList(value)) return all(forArray, value, run, evaluated)
    return isObject(value) ? all(forObject, value, run, evaluated) : all(forOther, value, run, evaluated)
  }

  function passesUnevaluated(value: unknown, run: Run, evaluated: Evaluated | undefined): boolean {
    if (isList(value)) return all(unevaluatedItems, value, run, evaluated)
    return !isObject(value) || all(unevaluatedProperties, value, run, evaluated)
  }

  return (value, run, outer) => {
    spend(run.work, steps)
    if (++run.depth > MAX_LEVELS) throw new RangeError('its schemas lead too deep')
    const evaluated = owns ? createEvaluated() : outer
    const passes = passesOwn(value, run, evaluated) && (!owns || passesUnevaluated(value, run, evaluated))
    run.depth--
    if (passes && owns && outer && evaluated) mergeEvaluated(outer, evaluated, run)
    return passes
  }
}

function all<Value>(
  checks: readonly Check<Value>[],
  value: Value,
  run: Run,
  evaluated: Evaluated | undefined,
): boolean {
  for (const check of checks) if (!check(value, run, evaluated)) return false
  return true
}

/** Records the schema resource that the check enters, for dynamic references. */
function inScope(check: Check, resource: object): Check {
  return (value, run, evaluated) => {
    run.scope.push(resource)
    const passes = check(value, run, evaluated)
    run.scope.pop()
    return passes
  }
}

/** Returns a function that resolves a `$dynamicRef` or `$recursiveRef`: the outermost entered resource with the name. */
function chooser(
  reference: string,
  target: object,
  kind: string,
  references: References,
): ((run: Run) => object | undefined) | undefined {
  if (references.resources === 1) return undefined
  if (kind === '$recursiveRef') {
    const isOpen = (resource: object) => isObject(resource) && resource['$recursiveAnchor'] === true
    return isOpen(target) ? (run) => run.scope.find(isOpen) : undefined
  }
  const name = reference.slice(reference.indexOf('#') + 1)
  if (!isObject(target) || target['$dynamicAnchor'] !== name) return undefined
  return (run) => {
    const resource = run.scope.find((each) => references.findDynamic(name, each) !== undefined)
    return resource && references.findDynamic(name, resource)
  }
}

function mentionsUnevaluated(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return (
    Object.hasOwn(value, 'unevaluatedProperties') ||
    Object.hasOwn(value, 'unevaluatedItems') ||
    Object.values(value).some(mentionsUnevaluated)
  )
}
