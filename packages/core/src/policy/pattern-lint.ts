import { type CelNode, childrenOf, isMacro, mentions, someNode, textOf } from './cel-tree.ts'
import type { LintWarning } from './lint.ts'
import { CLAUSE_KINDS, type ParsedClause, type ParsedPolicy } from './parse.ts'

const FIELDS = ['when', 'unless', 'input'] as const

/**
 * Finds text comparisons that another spelling evades: patterns that tighten a rule, since `RM x` evades a denial of `rm
 * *`, and prefixes of paths and URLs that loosen one.
 */
export function lintPatterns(policies: readonly ParsedPolicy[]): readonly LintWarning[] {
  return policies.flatMap((policy) => CLAUSE_KINDS.flatMap((kind) => policy[kind] ?? []).flatMap(lintClause))
}

function lintClause(clause: ParsedClause): readonly LintWarning[] {
  const texts = FIELDS.flatMap((field) => {
    const tree = clause[field]?.tree
    if (!tree) return []
    const tightens = (clause.kind === 'allow') === (field === 'unless')
    const found: string[] = []
    judge(tree, { tightens, names: ['input'], tree, found })
    return found
  })
  return [...new Set(texts)].map((text) => ({ code: 'pattern_evadable', path: clause.path, text }))
}

interface Judging {
  readonly tightens: boolean
  /** Variables that hold parts of the input. */
  readonly names: readonly string[]
  readonly tree: CelNode
  readonly found: string[]
}

function judge(node: CelNode, judging: Judging): void {
  if (node.op === '!_') return judge(node.args, { ...judging, tightens: !judging.tightens })
  if (node.op === '&&' || node.op === '||') return node.args.forEach((part) => judge(part, judging))
  if (node.op === '?:') return node.args.slice(1).forEach((branch) => judge(branch, judging))
  if (node.op === 'rcall' && isMacro(node)) {
    const [, receiver, [variable, body]] = node.args
    const isOfInput = judging.names.some((name) => mentions(receiver, name))
    const names = variable?.op === 'id' && isOfInput ? [...judging.names, variable.args] : judging.names
    return body && judge(body, { ...judging, names })
  }
  const compared = comparisonIn(node)
  if (!compared || !judging.names.some((name) => mentions(compared.text, name))) return
  const problem = problemOf(compared, judging)
  if (problem) judging.found.push(`${textOf(node)} ${problem}`)
}

interface PatternUse {
  readonly text: CelNode
  readonly with: string
  readonly how: 'whole' | 'beginning' | 'part'
}

const METHODS: ReadonlyMap<unknown, PatternUse['how']> = new Map([
  ['startsWith', 'beginning'],
  ['endsWith', 'part'],
  ['contains', 'part'],
])

function comparisonIn(node: CelNode): PatternUse | undefined {
  if (node.op === 'call' && node.args[0] === 'like') {
    const [text, pattern] = node.args[1]
    return text && pattern && comparison(text, pattern, 'beginning')
  }
  if (node.op === 'rcall') {
    const how = METHODS.get(node.args[0])
    const [, receiver, [arg]] = node.args
    return how && arg && comparison(receiver, arg, how)
  }
  if (node.op !== '==') return undefined
  const [left, right] = node.args
  return comparison(left, right, 'whole') ?? comparison(right, left, 'whole')
}

function comparison(text: CelNode, other: CelNode, how: PatternUse['how']): PatternUse | undefined {
  return other.op === 'value' && typeof other.args === 'string' ? { text, with: other.args, how } : undefined
}

const URL_LIKE = /^[a-z][a-z0-9+.-]*:\/\//i
const PATH_LIKE = /^(?:\/.|~|\.\.?\/)/

function problemOf({ text, with: other, how }: PatternUse, { tightens, tree }: Judging): string | undefined {
  const isUrl = URL_LIKE.test(other)
  const isPlace = isUrl || PATH_LIKE.test(other)
  const instead = isUrl ? `host(${textOf(text)}) or within()` : `within(${textOf(text)}, '/folder')`
  const passed = 'is passed by another spelling of the same text, such as another case or a space more'
  if (tightens && isPlace) return `${passed}; compare places with ${instead}`
  if (tightens && how !== 'whole' && other !== '/')
    return `${passed}; write what is allowed instead: an allow clause, or a deny of what does not match`
  if (!tightens && isPlace && how === 'beginning' && !comparesPlace(tree, textOf(text)))
    return `also holds for places elsewhere, by what follows; compare places with ${instead}`
  return undefined
}

/** Returns whether a condition also compares a text as a path or URL. */
function comparesPlace(tree: CelNode, text: string): boolean {
  return someNode(
    tree,
    (node) =>
      node.op === 'call' &&
      (node.args[0] === 'within' || node.args[0] === 'host') &&
      childrenOf(node).some((child) => textOf(child) === text),
  )
}
