import { type Clause, ConfigError, lint, type Policy } from '@toolgate/core'
import { parseGroups } from '@toolgate/core/groups'
import { didYouMean, nearestOf } from '@toolgate/values'
import { parsePolicies } from '@toolgate/core/policy'
import type { GatewayConfig } from './config.ts'
import { type ConfigPath, formatPath } from './problems.ts'
import {
  type CheckPolicy,
  checkShape,
  has,
  keysOf,
  lengthOf,
  type PolicyProblem,
  readEach,
  type Reading,
} from './reading.ts'
import { aliasesSchema } from './schema/groups.ts'
import { clauseSchema, labelsSchema, policyShellSchema } from './schema/policy.ts'
import { policiesSchema } from './schema.ts'
import type { Source } from './source.ts'

const KINDS = ['allow', 'deny', 'ask'] as const

/**
 * Reads the `policy` of the gateway or an app. Core stops at its first problem, so clauses are checked one by one, to
 * report every problem.
 */
export function readPolicies(reading: Reading, at: ConfigPath): readonly Policy[] {
  const { source } = reading
  const node = source.get(at)
  if (node && !node.items) checkShape(source, at, policiesSchema)
  const before = source.problems.length
  const policies = Array.from({ length: lengthOf(source, at) }, (_, i) => readPolicy(reading, [...at, i]))
  if (source.problems.length === before) {
    // Checks the clauses together, such as for a duplicate id.
    for (const problem of reading.checkPolicy(policies, reading.groupNames))
      reportPolicy(reading, problem, formatPath(at) + problem.path.slice('policy'.length))
  }
  return policies
}

/** Reads the gateway's own `policy`. A file without a policy is rejected, as every key could call every tool. */
export function readOwnPolicies(reading: Reading): readonly Policy[] {
  const { source } = reading
  const at: ConfigPath = ['policy']
  const before = source.problems.length
  const policies = readPolicies(reading, at)
  if (isMisspelt(source) || source.problems.length > before || !source.root?.entries) return policies
  if (!has(source, at)) source.report(at, `is missing, ${OPEN}`)
  else if (policies.length === 0) source.report(at, `found an empty list, ${OPEN}`)
  else if (saysNothing(policies)) source.report(at, `found nothing that is enforced, ${OPEN}`)
  return policies
}

const OPEN = 'and every key could call every tool; write policy: [{ allow: ["*"] }] to mean that'

/** Whether a key is a misspelt `policy`. That unknown key is already reported. */
function isMisspelt(source: Source): boolean {
  return !has(source, ['policy']) && keysOf(source, []).some((key) => nearestOf(key, ['policy']) !== undefined)
}

/** Returns whether policies leave every tool open to everybody without an explicit `allow`. */
export function saysNothing(policies: readonly Policy[]): boolean {
  return policies.every(
    ({ allow, deny = [], ask = [], requireTags = [], mode }) =>
      mode === 'shadow' || (allow === undefined && ![...deny, ...ask].some(isEnforced) && requireTags.length === 0),
  )
}

function isEnforced(clause: string | Clause): boolean {
  return typeof clause === 'string' || clause.mode !== 'shadow'
}

const PARTS = [...KINDS, 'requireTags'] as const

function readPolicy(reading: Reading, at: ConfigPath): Policy {
  const shell = checkShape(reading.source, at, policyShellSchema)
  if (shell && PARTS.every((part) => shell[part] === undefined))
    reading.source.report(at, 'says nothing, expected "allow", "deny", "ask" or "requireTags"')
  const clauses = KINDS.filter((kind) => has(reading.source, [...at, kind])).map((kind) => [
    kind,
    readClauses(reading, [...at, kind]),
  ])
  return { ...shell, ...Object.fromEntries(clauses) }
}

function readClauses(reading: Reading, at: ConfigPath): readonly (string | Clause)[] {
  return Array.from({ length: lengthOf(reading.source, at) }, (_, i) => [...at, i]).flatMap((place) => {
    const clause = checkShape(reading.source, place, clauseSchema)
    if (clause !== undefined) checkClause(reading, place, clause)
    return clause === undefined ? [] : [clause]
  })
}

function checkClause(reading: Reading, at: ConfigPath, clause: string | Clause): void {
  const kind = String(at.at(-2))
  for (const problem of reading.checkPolicy([{ [kind]: [clause] }], reading.groupNames)) {
    const inside = problem.path.slice(`policy[0].${kind}[0]`.length)
    reportPolicy(reading, problem, formatPath(at) + (typeof clause === 'string' ? '' : inside))
  }
}

/** Checks the selector of one limit or cap, and that the text is a single entry. */
export function checkEntry(
  { source, groupNames }: Reading,
  at: ConfigPath,
  entry: { readonly limits: LimitEntry } | { readonly concurrency: WrittenCap },
): void {
  const groups = new Map(groupNames.map((name) => [name, { tools: [] }]))
  const [written] = Object.values(entry)
  const lists = 'limits' in entry ? { limits: [entry.limits] } : { concurrency: [entry.concurrency] }
  for (const { code, text } of lint({ tools: [], groups, ...lists }))
    // The servers' tools are not known yet.
    if (code !== 'selector_unmatched') source.report(typeof written === 'string' ? at : [...at, 'match'], text)
}

type LimitEntry = GatewayConfig['limits'][number]
type WrittenCap = NonNullable<GatewayConfig['calls']>['concurrency'][number]

/** Checks one selector outside of a policy, such as a group's. */
export function checkSelector(reading: Reading, at: ConfigPath, selector: string): void {
  for (const { message } of reading.checkPolicy([{ deny: [selector] }], reading.groupNames))
    reading.source.report(at, message)
}

function reportPolicy({ source }: Reading, { message, offset }: PolicyProblem, path: string): void {
  source.report(parsePath(path), message, { offset })
}

/** Parses `policy[0].deny[1].when`, or `apps["7days"].policy[0]`. These keys contain no quotes. */
function parsePath(path: string): ConfigPath {
  return [...path.matchAll(/\[(\d+)\]|([^.[\]"]+)/g)].map(([, index, key]) =>
    index === undefined ? (key ?? '') : Number(index),
  )
}

/** Checks policies with core, which stops at its first problem. */
export const checkPolicy: CheckPolicy = (policies, groupNames) => {
  const groups = parseGroups(new Map(groupNames.map((name) => [name, { tools: [] }])))
  try {
    parsePolicies(policies as readonly Policy[], groups.selectors)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [{ path: error.path, message: toMessage(error), offset: error.offset }]
  }
}

/** Removes the path and the character offset, which line and column already state. */
function toMessage({ path, message }: ConfigError): string {
  const text = message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message
  return withNearest(text.replace(/ at character \d+ of ".*"$/s, ''))
}

/** The fields of `caller` and `tool` in conditions. */
const FIELDS =
  'user tenant roles scopes session chat type agent client actor attributes id namespace name category tags requiredScopes'
const VARIABLES = ['caller', 'tool', 'input', 'run']

function withNearest(problem: string): string {
  const [, kind, word] = /^(No such key|Unknown variable): (\w+)$/.exec(problem) ?? []
  if (kind === undefined || word === undefined) return problem
  if (kind === 'No such key') return `no such field "${word}"${didYouMean(word, FIELDS.split(' '))}`
  if (word === 'input') return 'found "input", which is known only to a condition of "input:"'
  return `no such variable "${word}"${didYouMean(word, VARIABLES)}`
}

/** Reads `labels`. Their tools are known only when the servers run. */
export function readLabels(reading: Reading): Pick<GatewayConfig, 'labels'> {
  const { source } = reading
  const at: ConfigPath = ['labels']
  if (!has(source, at)) return {}
  const labels = Object.fromEntries(
    readEach(source, at, labelsSchema, (place, key) => {
      const label = String(key)
      const selectors = checkShape(source, place, labelsSchema.valueType)
      reportLabels(reading, place, { [label]: [] })
      for (const [i, selector] of (selectors ?? []).entries())
        reportLabels(reading, [...place, i], { trusted: [selector] })
      return selectors && ([label, selectors] as const)
    }),
  )
  reportLabels(reading, at, Object.fromEntries(Object.keys(labels).map((label) => [label, []])), 'labels')
  return { labels }
}

/** Reports the problems that core finds in labels; with a path, only those at this path. */
function reportLabels({ source, groupNames }: Reading, at: ConfigPath, labels: LabelLists, only?: string): void {
  const groups = new Map(groupNames.map((name) => [name, { tools: [] }]))
  for (const { code, path, text } of lint({ tools: [], groups, labels }))
    if (code !== 'selector_unmatched' && (only ?? path) === path) source.report(at, text, { atKey: at.length < 3 })
}

type LabelLists = NonNullable<GatewayConfig['labels']>

/** Reads `aliases`. Their tools are known only when the servers run. */
export function readAliases({ source }: Reading): Pick<GatewayConfig, 'aliases'> {
  if (!has(source, ['aliases'])) return {}
  const aliases = checkShape(source, ['aliases'], aliasesSchema)
  if (!aliases) return {}
  // Aliases are checked one by one, so that every problem is reported.
  for (const [alias, tool] of Object.entries(aliases)) {
    const others = Object.keys(aliases).filter((other) => other === tool && other !== alias)
    const named = { [alias]: tool, ...Object.fromEntries(others.map((other) => [other, 'another'])) }
    for (const { code, path, text } of lint({ tools: [], aliases: named }))
      if (code !== 'selector_unmatched' && path === `aliases.${alias}`) source.report(['aliases', alias], text)
  }
  return { aliases }
}
