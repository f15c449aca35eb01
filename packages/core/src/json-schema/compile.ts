import { createPattern, type Pattern } from '../util/regex/pattern.ts'
import { spend } from '../util/work.ts'
import { createReferences, type Draft, isPlainObject, isSince, type PlainObject, type References } from './document.ts'
import {
  type Check,
  type Compiling,
  createEvaluated,
  type Evaluated,
  type Group,
  GROUPS,
  type Keyword,
  mergeEvaluated,
  type Run,
} from './run.ts'
import { ALWAYS, ANY_KEYWORDS, booleanCheck, PART_KEYWORDS } from './keywords-inner.ts'
import { PLAIN_KEYWORDS } from './keywords-plain.ts'
import type { Skipped } from './skipped.ts'

/** Keywords in the order in which they are asked, which decides what an input with several faults is told. */
const ALL_KEYWORDS: readonly Keyword[] = [
  ...PLAIN_KEYWORDS.slice(0, 1),
  ...ANY_KEYWORDS.slice(0, 3),
  ...PLAIN_KEYWORDS.slice(1),
  ...ANY_KEYWORDS.slice(3),
  ...PART_KEYWORDS,
]

/** Levels of schemas inside schemas that one input may lead through: what the stack holds. */
const MAX_LEVELS = 800

/** What asking one schema costs, in steps, and each of its keywords. */
const SCHEMA_STEPS = 6
const KEYWORD_STEPS = 3

/**
 * Gives the check of a whole document. Nothing of it becomes code, and every keyword that is asked costs steps of the
 * run's work, so that no schema can keep the process, whoever wrote it.
 */
export function compileDocument(document: object, draft: Draft, skipped: Skipped): Check {
  const references = createReferences(document, draft)
  const keywords = ALL_KEYWORDS.filter(
    ({ since, until }) => (!since || isSince(draft, since)) && (!until || isSince(until, draft)),
  )
  const checks = new Map<object, Check>()
  const patterns = new Map<string, Pattern>()
  const compiling: Compiling = {
    draft,
    tracks: mentionsUnevaluated(document),
    check,
    refer,
    pattern,
    isExact: skipped.isExact,
  }
  return check(document)

  function check(schema: unknown): Check {
    if (!isPlainObject(schema)) return booleanCheck(schema !== false)
    let known = checks.get(schema)
    if (!known) checks.set(schema, (known = checkOf(rulesOf(schema), compiling.tracks)))
    return references.resources > 1 && references.resourceOf(schema) === schema ? inScope(known, schema) : known
  }

  function pattern(source: string): Pattern | undefined {
    if (skipped.patterns.has(source)) return undefined
    let known = patterns.get(source)
    if (!known) patterns.set(source, (known = createPattern(source, 'ecma')))
    return known
  }

  function rulesOf(schema: PlainObject): Rules {
    const rules = new Map<Group, Check[]>()
    for (const { name, about, make } of keywords) {
      if (!Object.hasOwn(schema, name)) continue
      const made = make(schema[name] as never, schema, compiling)
      if (made && made !== ALWAYS) rules.set(about, [...(rules.get(about) ?? []), made])
    }
    return Object.fromEntries(GROUPS.map((group) => [group, rules.get(group) ?? []])) as unknown as Rules
  }

  function refer(reference: string, from: PlainObject, kind: string): Check {
    const target = references.find(reference, from)
    if (target === undefined || skipped.loops.has(from)) return ALWAYS
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

type Rules = Readonly<Record<Group, readonly Check[]>>

function checkOf(rules: Rules, tracks: boolean): Check {
  const steps = SCHEMA_STEPS + KEYWORD_STEPS * Object.values(rules).flat().length
  const owns = tracks && rules['unevaluated items'].length + rules['unevaluated properties'].length > 0
  const groupsOf = (groups: readonly Group[]) => groups.flatMap((group) => rules[group])
  const [forNumber, forString, forArray, forObject, forOther] = (
    [
      ['type', 'number', 'any'],
      ['type', 'string', 'any'],
      ['type', 'any', 'array'],
      ['type', 'any', 'object'],
      ['type', 'any'],
    ] as const
  ).map(groupsOf) as [Check[], Check[], Check[], Check[], Check[]]
  const rulesFor = (value: unknown) => {
    if (typeof value === 'string') return forString
    if (typeof value === 'number') return forNumber
    if (Array.isArray(value)) return forArray
    return isPlainObject(value) ? forObject : forOther
  }
  const unevaluatedFor = (value: unknown) => {
    if (Array.isArray(value)) return rules['unevaluated items']
    return isPlainObject(value) ? rules['unevaluated properties'] : []
  }
  return (value, run, outer) => {
    spend(run.work, steps)
    if (++run.depth > MAX_LEVELS) throw new RangeError('its schemas lead too deep')
    const evaluated = owns ? createEvaluated() : outer
    const passes =
      all(rulesFor(value), value, run, evaluated) && (!owns || all(unevaluatedFor(value), value, run, evaluated))
    run.depth--
    if (passes && owns && outer && evaluated) mergeEvaluated(outer, evaluated, run)
    return passes
  }
}

function all(checks: readonly Check[], value: unknown, run: Run, evaluated: Evaluated | undefined): boolean {
  for (const check of checks) if (!check(value, run, evaluated)) return false
  return true
}

/** Remembers which resource is entered, for the references that ask. */
function inScope(check: Check, resource: object): Check {
  return (value, run, evaluated) => {
    run.scope.push(resource)
    const passes = check(value, run, evaluated)
    run.scope.pop()
    return passes
  }
}

/** `$dynamicRef` and `$recursiveRef` lead to the outermost resource that was entered and answers to the name. */
function chooser(
  reference: string,
  target: object,
  kind: string,
  references: References,
): ((run: Run) => object | undefined) | undefined {
  if (references.resources === 1) return undefined
  if (kind === '$recursiveRef') {
    const isOpen = (resource: object) => (resource as PlainObject)['$recursiveAnchor'] === true
    return isOpen(target) ? (run) => run.scope.find(isOpen) : undefined
  }
  const name = reference.slice(1)
  if ((target as PlainObject)['$dynamicAnchor'] !== name) return undefined
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
