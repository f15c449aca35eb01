import type { CallPattern } from '../history/facts.ts'
import { CALL_EVENTS, type CallEvent, type Origin, ORIGINS } from '../ports/fact-read.ts'
import { type GroupSelectors, parseSelector, type Selector } from '../tools/selector.ts'
import { didYouMean, messageOf } from '@toolgate/values'
import { type CelNode, isMacro, mentions, someNode, textOf } from './cel-tree.ts'
import type { RunUse } from './run-use.ts'
import { ADDRESSEES, type CallQuestion, isAddressees, registerQuestion } from './run-functions.ts'

/** The rule that contains a condition. */
export interface PolarityPlace {
  /** Whether the rule gets stricter when the condition holds. */
  readonly tightens: boolean
  readonly groups: GroupSelectors
  /** Returns the error about a node. */
  readonly fail: (problem: string, node: CelNode) => Error
}

/**
 * Returns what a condition reads of the run, if anything.
 *
 * Labels, `began`, and the origins `untrusted` and `unknown` may only tighten a rule; `called`, and the origins `user` and
 * `trusted`, may only loosen it. So an unknown run has well-defined strictest facts, and nothing that an attacker adds to a
 * run loosens a rule. A condition whose direction is uncertain is rejected.
 *
 * @throws the error of `place.fail`
 */
export function checkPolarity(tree: CelNode, place: PolarityPlace): RunUse | undefined {
  if (!readsRun(tree)) return undefined
  const use: PolarityReading = { place, readsRun: false, readsOrigin: false, labels: new Set(), patterns: new Map() }
  judge(tree, place.tightens, use)
  return {
    readsRun: use.readsRun,
    readsOrigin: use.readsOrigin,
    readsAddressees: mentions(tree, ADDRESSEES),
    labels: [...use.labels],
    patterns: [...use.patterns.values()],
  }
}

interface PolarityReading {
  readonly place: PolarityPlace
  readsRun: boolean
  readsOrigin: boolean
  readonly labels: Set<string>
  readonly patterns: Map<string, CallPattern>
}

function readsRun(tree: CelNode): boolean {
  return someNode(tree, (node) => {
    if (node.op === 'id') return node.args === 'run' || node.args === ADDRESSEES
    return isOrigin(node)
  })
}

function isOrigin(node: CelNode): boolean {
  return node.op === 'call' && node.args[0] === 'origin'
}

/** Checks a boolean part of a condition. `tightens`: whether the rule gets stricter when this part is true. */
function judge(node: CelNode, tightens: boolean, use: PolarityReading): void {
  if (!readsRun(node)) return
  switch (node.op) {
    case '!_':
      return judge(node.args, !tightens, use)
    case '&&':
    case '||':
      for (const part of node.args) judge(part, tightens, use)
      return
    case '?:':
      return judgeChoice(node.args, tightens, use)
    case 'in':
    case '==':
    case '!=':
      return judgeComparison(node, node.args, tightens, use)
    case 'rcall':
      return judgeMethod(node, node.args, tightens, use)
    default:
      throw use.place.fail(UNCLEAR, node)
  }
}

const UNCLEAR =
  "what is read of the run cannot be judged here; write 'label' in run.labels, run.called('tool', {…}), run.began('tool', {…}) or origin(value) in ['user', 'trusted'], joined by &&, ||, !, ? :, all() and exists()"

function judgeChoice([asked, ...branches]: readonly CelNode[], tightens: boolean, use: PolarityReading): void {
  // The part would tighten in one branch and loosen in the other.
  refuseRun(asked, use, 'the condition of ? : cannot read the run; write it with && and ||')
  for (const branch of branches) judge(branch, tightens, use)
}

function refuseRun(node: CelNode | undefined, { place }: PolarityReading, problem: string): void {
  if (node && readsRun(node)) throw place.fail(problem, node)
}

type ComparedNodes = readonly [left: CelNode, right: CelNode]

function judgeComparison(node: CelNode, [left, right]: ComparedNodes, tightens: boolean, use: PolarityReading): void {
  if (node.op === 'in' && isLabels(right)) return judgeLabel(node, left, tightens, use)
  if (isOrigin(left)) return judgeOrigin(node, left, namesIn(node.op === 'in' ? right : [right], use), tightens, use)
  if (isOrigin(right) && node.op !== 'in') return judgeOrigin(node, right, namesIn([left], use), tightens, use)
  throw use.place.fail(UNCLEAR, node)
}

function isLabels(node: CelNode): boolean {
  return node.op === '.' && node.args[1] === 'labels' && isRun(node.args[0])
}

function isRun(node: CelNode): boolean {
  return node.op === 'id' && node.args === 'run'
}

function judgeLabel(node: CelNode, label: CelNode, tightens: boolean, use: PolarityReading): void {
  const { fail } = use.place
  const name = literalOf(label)
  if (name === undefined || name === '')
    throw fail("a label must be written out, as in 'untrusted' in run.labels", label)
  if (name === 'trusted')
    throw fail("'trusted' is no label: an output that is not trusted has the label 'untrusted'", label)
  if (!tightens)
    throw fail(
      `a label may only tighten a rule, and ${textOf(node)} loosens this one; write a deny or ask clause that holds with the label`,
      node,
    )
  use.readsRun = true
  use.labels.add(name)
}

function literalOf(node: CelNode | undefined): string | undefined {
  return node?.op === 'value' && typeof node.args === 'string' ? node.args : undefined
}

/** Returns the origins that a value is compared with. */
function namesIn(compared: CelNode | readonly CelNode[], { place }: PolarityReading): ReadonlySet<Origin> {
  const nodes = 'op' in compared ? (compared.op === 'list' ? compared.args : undefined) : compared
  if (!nodes || nodes.length === 0)
    throw place.fail(
      "an origin is compared with a list that is written out, as in origin(input.to) in ['user', 'trusted']",
      compared as CelNode,
    )
  return new Set(nodes.map((node) => originIn(node, place)))
}

function originIn(node: CelNode, { fail }: PolarityPlace): Origin {
  const name = literalOf(node)
  const known = ORIGINS.find((origin) => origin === name)
  if (known !== undefined) return known
  const near = name === undefined ? '' : didYouMean(name, ORIGINS)
  throw fail(`${textOf(node)} is no origin; the origins are ${ORIGINS.join(', ')}${near}`, node)
}

function judgeOrigin(
  node: CelNode,
  origin: CelNode,
  named: ReadonlySet<Origin>,
  tightens: boolean,
  use: PolarityReading,
): void {
  const { fail } = use.place
  const [arg, ...more] = origin.op === 'call' ? origin.args[1] : []
  if (!arg || more.length > 0) throw fail('origin(value) has one argument', origin)
  if (!isAddressees(arg)) refuseRun(arg, use, 'the argument of origin() cannot read the run')
  const holds = ORIGINS.filter((one) => (node.op === '!=' ? !named.has(one) : named.has(one)))
  // In the order of ORIGINS, worst first: the comparison must hold for all origins up to one, or for all from one on.
  const isWorst = ORIGINS.slice(0, holds.length).every((one) => holds.includes(one))
  const isBest = ORIGINS.slice(ORIGINS.length - holds.length).every((one) => holds.includes(one))
  if (tightens ? !isWorst : !isBest) throw fail(problemOfOrigin(node, textOf(origin), holds, tightens), node)
  use.readsOrigin = true
}

function problemOfOrigin(node: CelNode, origin: string, holds: readonly Origin[], tightens: boolean): string {
  const places = holds.map((one) => ORIGINS.indexOf(one))
  const [rule, better] = tightens
    ? ['untrusted and unknown may only tighten a rule', ORIGINS.slice(0, Math.max(...places) + 1)]
    : ['user and trusted may only loosen a rule', ORIGINS.slice(Math.min(...places))]
  // A list of all origins is always true, so the opposite was probably meant.
  const meant = better.length < ORIGINS.length ? `${origin} in ${listed(better)}` : `!(${origin} in ${listed(holds)})`
  return `${rule}, and ${textOf(node)} does the opposite; write ${meant}`
}

function listed(origins: readonly Origin[]): string {
  return `[${origins.map((one) => `'${one}'`).join(', ')}]`
}

type TextMethod = readonly [name: string, receiver: CelNode, args: readonly CelNode[]]

function judgeMethod(node: CelNode, [name, receiver, args]: TextMethod, tightens: boolean, use: PolarityReading): void {
  if (isRun(receiver)) return judgeCall(node, name, args, tightens, use)
  const { fail } = use.place
  if (!isMacro(node) || (name !== 'all' && name !== 'exists')) throw fail(UNCLEAR, node)
  refuseRun(receiver, use, UNCLEAR)
  const [variable, holds] = args
  refuseRun(variable, use, 'a variable of this name would hide the run; name it otherwise')
  if (holds) judge(holds, tightens, use)
}

function judgeCall(
  node: CelNode,
  name: string,
  args: readonly CelNode[],
  tightens: boolean,
  use: PolarityReading,
): void {
  const { fail } = use.place
  const event = CALL_EVENTS.find((one) => one === name)
  if (!event) throw fail(`run has no ${name}(); it has called() and began()${didYouMean(name, CALL_EVENTS)}`, node)
  if (event === 'called' && tightens)
    throw fail(
      `run.called() may only loosen a rule, and ${textOf(node)} tightens this one; write !run.called(…) for a call that must come first, or run.began(…) for one that must not happen twice`,
      node,
    )
  if (event === 'began' && !tightens)
    throw fail(
      `run.began() may only tighten a rule, and ${textOf(node)} loosens this one: a call that began may have failed; write run.called(…)`,
      node,
    )
  const question = questionOf(event, args, node, use)
  registerQuestion(node, question)
  use.readsRun = true
  use.patterns.set(question.pattern.key, question.pattern)
}

const FIELD = /^(?:input|output)(?:\.[^.]+)+$/

function questionOf(event: CallEvent, args: readonly CelNode[], node: CelNode, use: PolarityReading): CallQuestion {
  const { fail } = use.place
  const [named, map] = args
  const text = literalOf(named)
  if (!named || text === undefined)
    throw fail(
      `run.${event}() wants a tool or another selector, written out, as in run.${event}('fraud:check')`,
      named ?? node,
    )
  if (map && map.op !== 'map') throw fail("the fields must be written out, as in { 'input.order': input.order }", map)
  const values = new Map<string, CelNode>()
  for (const [key, value] of map?.op === 'map' ? map.args : []) {
    const field = fieldIn(event, key, use)
    if (values.has(field)) throw fail(`"${field}" stands there twice`, key)
    refuseRun(value, use, 'the value of a field cannot read the run')
    values.set(field, value)
  }
  const sorted = [...values].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const selector = selectorIn(event, text, named, use)
  const fields = sorted.map(([field]) => field)
  const name = selector.kind === 'id' ? (selector.target ?? text) : text
  const key = JSON.stringify([event, name, ...fields])
  return {
    pattern: { event, selector, fields, key },
    values: sorted.map(([, value]) => value),
  }
}

function selectorIn(
  event: CallEvent,
  text: string,
  node: CelNode,
  { place: { fail, groups } }: PolarityReading,
): Selector {
  try {
    return parseSelector(text, groups, event === 'began' ? 'servers' : 'items')
  } catch (error) {
    throw fail(messageOf(error), node)
  }
}

function fieldIn(event: CallEvent, key: CelNode, { place: { fail } }: PolarityReading): string {
  const field = literalOf(key)
  if (field === undefined || !FIELD.test(field))
    throw fail(
      `the name of a field must be written out, and begin with "input." or "output.", as 'input.order' does`,
      key,
    )
  if (event === 'began' && field.startsWith('output.'))
    throw fail('run.began() has no output: the call may still be under way; write run.called(…)', key)
  return field
}
