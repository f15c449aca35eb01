import { skeleton } from '../tools/confusables.ts'
import { type Glob, matchesGlob, parseGlob } from '../tools/glob.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { LintWarning } from './lint.ts'
import type { ParsedClause, ParsedPolicy } from './parse.ts'
import type { WrittenSelector } from './unknown-names.ts'

/**
 * Finds tools whose names look like a name of a `deny`, an `ask` or another rule, but are not matched by it. `others`: the
 * selectors of limits, caps and labels.
 */
export function lintLookAlikes(
  policies: readonly ParsedPolicy[],
  snapshot: Toolset,
  others: readonly WrittenSelector[] = [],
): readonly LintWarning[] {
  const clauses = policies.flatMap(({ deny, ask }) => [...deny, ...ask])
  const byCondition = groupSelectors(clauses, (clause) =>
    clause.isShadow ? undefined : keyOfClause(clause, clause.kind),
  )
  const byList = groupSelectors(
    others.map(({ path, selector }) => ({ path, selectors: [selector] })),
    ({ path }) => listOf(path),
  )
  return [
    ...clauses.flatMap((clause) => {
      const { kind, path, selectors } = clause
      const covers = (tool: Tool) =>
        selectors.some((one) => matchesSelector(one, tool, 'possible')) ||
        keysOf(clause).some((key) => byCondition.get(key)?.matches(tool) === true)
      const verb = kind === 'deny' ? 'deny' : 'ask about'
      return selectors.flatMap((selector) => lookAlikesOf({ path, selector, covers, verb }, snapshot))
    }),
    ...others.flatMap(({ path, selector }) => {
      const covers = (tool: Tool) => byList.get(listOf(path))?.matches(tool) === true
      return lookAlikesOf({ path, selector, covers, verb: 'match' }, snapshot)
    }),
  ]
}

/** Selectors of rules that do the same. Each tool is matched once, because a policy may have thousands of clauses. */
class SelectorGroup {
  readonly selectors: Selector[] = []
  readonly #matched = new Map<Tool, boolean>()

  matches(tool: Tool): boolean {
    let matched = this.#matched.get(tool)
    if (matched === undefined) {
      matched = this.selectors.some((one) => matchesSelector(one, tool, 'possible'))
      this.#matched.set(tool, matched)
    }
    return matched
  }
}

/** Returns the selectors of rules by a key. A rule without a key is in no group. */
function groupSelectors<Rule extends { readonly selectors: readonly Selector[] }>(
  rules: readonly Rule[],
  keyOf: (rule: Rule) => string | undefined,
): ReadonlyMap<string, SelectorGroup> {
  const groups = new Map<string, SelectorGroup>()
  for (const rule of rules) {
    const key = keyOf(rule)
    if (key === undefined) continue
    let group = groups.get(key)
    if (!group) groups.set(key, (group = new SelectorGroup()))
    for (const selector of rule.selectors) group.selectors.push(selector)
  }
  return groups
}

/**
 * Returns the keys of the clauses that do the same as a clause, or more, whenever it holds: they deny or are of its kind,
 * and each of their conditions is one of its own.
 */
function keysOf(clause: ParsedClause): readonly string[] {
  const { kind, when, unless, input } = clause
  const keys = new Set<string>()
  for (const as of [kind, 'deny'] as const)
    for (const one of [when, undefined])
      for (const other of [unless, undefined])
        for (const third of [input, undefined]) keys.add(keyOfClause({ when: one, unless: other, input: third }, as))
  return [...keys]
}

function keyOfClause(conditions: Pick<ParsedClause, 'when' | 'unless' | 'input'>, kind: ParsedClause['kind']): string {
  const { when, unless, input } = conditions
  return JSON.stringify([kind, when?.text, unless?.text, input?.text])
}

/** Returns the path of the list that an entry belongs to, such as `limits` or `labels.private`. */
function listOf(path: string): string {
  return path.replace(/\[\d+\]$/, '')
}

interface NameInRule {
  readonly path: string
  readonly selector: Selector
  /** Whether the same rule, or one that does the same, matches a tool. Such a tool is not reported. */
  readonly covers: (tool: Tool) => boolean
  readonly verb: string
}

function lookAlikesOf({ path, selector, covers, verb }: NameInRule, snapshot: Toolset): readonly LintWarning[] {
  const patterns = patternsOf(selector)
  if (patterns.length === 0) return []
  const alike = snapshot.tools.filter((tool) => patterns.some((pattern) => readsLike(pattern, tool)) && !covers(tool))
  if (alike.length === 0) return []
  const tools = alike.map(({ id }) => id)
  const text = `"${selector.text}" does not ${verb} ${tools.map((id) => JSON.stringify(id)).join(', ')}, whose name reads like it`
  return [{ code: 'name_confusable', path, text, tools }]
}

/** The names of a selector, in a form that is equal for names that read alike. */
interface Pattern {
  readonly namespace: Glob | undefined
  readonly name: Glob
  /** The whole name, if it has no star. */
  readonly whole: string | undefined
  /** Only a tool with an unusual name can read like it without being matched. */
  readonly isPlain: boolean
}

const patternsBySelector = new WeakMap<Selector, readonly Pattern[]>()

function patternsOf(selector: Selector): readonly Pattern[] {
  let known = patternsBySelector.get(selector)
  if (!known) patternsBySelector.set(selector, (known = readPatterns(selector)))
  return known
}

function readPatterns(selector: Selector): readonly Pattern[] {
  if (selector.kind === 'group') return selector.members.flatMap(patternsOf)
  if (selector.kind === 'id') {
    const [namespace, name] = splitId(selector.target ?? selector.text)
    return [toPattern(parseGlob(namespace), parseGlob(name))]
  }
  // A star alone matches every name already.
  if (selector.kind !== 'glob' || (selector.namespace === undefined && selector.name.every((part) => part === '')))
    return []
  return [toPattern(selector.namespace, selector.name)]
}

function toPattern(namespace: Glob | undefined, name: Glob): Pattern {
  const [only, ...more] = name
  return {
    namespace: namespace?.map(spacedLikeness),
    name: name.map(spacedLikeness),
    whole: more.length === 0 && only !== undefined ? likenessOf(only) : undefined,
    isPlain: [...(namespace ?? []), ...name].every((part) => !UNUSUAL.test(part)),
  }
}

function splitId(id: string): readonly [namespace: string, name: string] {
  const colon = id.indexOf(':')
  return [id.slice(0, Math.max(colon, 0)), id.slice(colon + 1)]
}

/** Matches names that another usual name can look like: with capitals, other separators, other scripts, or `1` for `l`. */
const UNUSUAL = /[^a-z2-9_]|rn|vv/

function readsLike({ namespace, name, whole, isPlain }: Pattern, tool: Tool): boolean {
  const likeness = likenessOfTool(tool)
  if (whole === undefined ? isPlain && likeness.isPlain : whole !== likeness.whole) return false
  if (namespace !== undefined && !matchesGlob(namespace, likeness.namespace)) return false
  return whole !== undefined || matchesGlob(name, likeness.name)
}

interface Likeness {
  readonly namespace: string
  readonly name: string
  readonly whole: string
  readonly isPlain: boolean
}

const known = new WeakMap<Tool, Likeness>()

function likenessOfTool(tool: Tool): Likeness {
  let found = known.get(tool)
  if (!found) {
    const { namespace = '', name } = tool
    const isPlain = !UNUSUAL.test(namespace) && !UNUSUAL.test(name)
    found = { namespace: spacedLikeness(namespace), name: spacedLikeness(name), whole: likenessOf(name), isPlain }
    known.set(tool, found)
  }
  return found
}

/** Returns equal texts for names that look alike, or differ only in letter case, `-`, `_` and `.`. */
function likenessOf(name: string): string {
  return skeleton(skeleton(name.replaceAll(/[-_.]/g, '')).toLowerCase())
}

/** Keeps the gaps between words, for names with stars: `delete_*` reads like `deleteAll`, and not like `deleted`. */
function spacedLikeness(name: string): string {
  const spaced = name.replaceAll(/(\p{Ll}|\p{Nd})(\p{Lu})/gu, '$1_$2').replaceAll(/[-_.]+/g, '_')
  return skeleton(skeleton(spaced).toLowerCase())
}
