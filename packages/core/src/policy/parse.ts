import type { Caller } from '../ports/caller.ts'
import type { ApproverRule } from '../ports/ports.ts'
import { catchRejection, checkMethods, checkShape, ConfigError, isThenable, messageOf, shapeOf } from '@toolgate/values'
import { type GroupSelectors, parseSelectorAt, type Selector } from '../tools/selector.ts'
import { ITEM_KINDS, type ItemKind } from '../tools/tool-id.ts'
import type { Tool } from '../tools/tool.ts'
import { isPlain } from '@toolgate/values/json'
import { parseApprover } from './approver.ts'
import { parseCondition, type ParsedCondition } from './condition.ts'
import { joinRunUse, type RunUse } from './run-use.ts'
import {
  type Clause,
  type FunctionPolicy,
  listPolicies,
  type Policies,
  type Policy,
  type PolicyAnswer,
} from './policy.ts'
import { writtenIn } from './written-in.ts'

export const CLAUSE_KINDS = ['deny', 'allow', 'ask'] as const
export type ClauseKind = (typeof CLAUSE_KINDS)[number]

export interface ParsedClause {
  readonly kind: ClauseKind
  /** The position in its list. */
  readonly index: number
  readonly id: string | undefined
  /** Its selectors, separated by commas. */
  readonly match: string
  /** For people: the clause's id, or its selectors. */
  readonly label: string
  /** The path of the clause, such as `policy[0].deny[1]`. */
  readonly path: string
  readonly selectors: readonly Selector[]
  readonly when: ParsedCondition | undefined
  readonly unless: ParsedCondition | undefined
  readonly input: ParsedCondition | undefined
  /** What its conditions read of the run. */
  readonly run: RunUse | undefined
  readonly message: string | undefined
  /** The demands on the approver. */
  readonly approver: ApproverRule | undefined
  readonly isShadow: boolean
}

export interface ParsedPolicy {
  readonly name: string
  /** The path of the policy, such as `policy[0]`. */
  readonly path: string
  /** The variable of the environment in which it is written. The paths of its clauses start with it. */
  readonly variable?: string | undefined
  /** Absent: no allowlist. Empty: nothing is allowed. */
  readonly allow: readonly ParsedClause[] | undefined
  readonly deny: readonly ParsedClause[]
  readonly ask: readonly ParsedClause[]
  readonly requireTags: readonly string[]
  /** The function of a function policy, which has no clauses. */
  readonly decide: FunctionPolicy['decide'] | undefined
  /** The kinds that the function decides in addition to tools. */
  readonly kinds: readonly ItemKind[]
  /** Whether the whole policy is a shadow. Otherwise single clauses may be. */
  readonly isShadow: boolean
  /** Whether this is only a part of a policy: without an allowlist, it does not deny other kinds. */
  readonly isPart?: true
}

/**
 * Parses policies, with their selectors and conditions. `root`: the path where they are written.
 *
 * @throws {ConfigError} for the first problem, with its path, such as `policy[0].deny[1].when`
 */
export function parsePolicies(
  policies: Policies | undefined,
  groups: GroupSelectors,
  root = 'policy',
): readonly ParsedPolicy[] {
  return listPolicies(policies).map((policy, i) => parsePolicyAt(policy, groups, i, root))
}

/** Parses one policy. @throws {ConfigError} for its first problem, with its path */
export function parsePolicyAt(
  policy: Policy | FunctionPolicy,
  groups: GroupSelectors,
  position: number,
  root = 'policy',
): ParsedPolicy {
  const path = `${root}[${position}]`
  return isFunctionPolicy(policy)
    ? parseFunctionPolicy(policy, path, position)
    : parsePolicy(policy, groups, path, position)
}

function isFunctionPolicy(policy: Policy | FunctionPolicy): policy is FunctionPolicy {
  return typeof policy === 'object' && policy !== null && 'decide' in policy
}

/** A class may have `decide` on its prototype, so of the own fields only `name` is read. */
function parseFunctionPolicy(policy: FunctionPolicy, path: string, position: number): ParsedPolicy {
  const { decide } = policy
  if (typeof decide !== 'function') throw new ConfigError(`${path}.decide`, 'must be a function')
  for (const kind of RULES) {
    if (kind in policy) throw new ConfigError(`${path}.${kind}`, 'a policy that decides by a function has no clauses')
  }
  // An instance of a class may have other fields beside `decide`.
  if (isPlain(policy)) checkShape(path, policy, FUNCTION_POLICY)
  return {
    name: nameOf(policy, path, position),
    path,
    allow: undefined,
    deny: [],
    ask: [],
    requireTags: [],
    decide: (tool, caller) => decide.call(policy, tool, caller),
    kinds: checkKinds(`${path}.kinds`, policy.kinds),
    isShadow: parseMode(path, policy.mode),
  }
}

function nameOf({ name }: Policy | FunctionPolicy, path: string, position: number): string {
  return name === undefined ? `policy ${position + 1}` : checkText(`${path}.name`, name)
}

function checkKinds(path: string, kinds: unknown = []): readonly ItemKind[] {
  checkList(path, kinds)
  const list = kinds as readonly ItemKind[]
  if (list.some((kind) => kind === 'tool' || !ITEM_KINDS.includes(kind)))
    throw new ConfigError(path, 'may hold resource, template and prompt')
  return [...list]
}

const POLICY = shapeOf<Policy>({ name: true, allow: true, deny: true, ask: true, requireTags: true, mode: true }, 'key')
const RULES = [...CLAUSE_KINDS, 'requireTags'] as const
const CLAUSE = shapeOf<Clause>(
  {
    id: true,
    match: true,
    when: true,
    unless: true,
    input: true,
    message: true,
    by: true,
    login: true,
    approvers: true,
    edit: true,
    mode: true,
  },
  'key',
)
const FUNCTION_POLICY = shapeOf<FunctionPolicy>({ name: true, kinds: true, decide: true, mode: true }, 'key')

function parsePolicy(policy: Policy, groups: GroupSelectors, path: string, position: number): ParsedPolicy {
  checkShape(path, policy, POLICY)
  // A class with a misspelt `decide` would be a policy that denies nothing.
  if (!isPlain(policy)) {
    checkMethods(path, policy, ['decide'])
    if (!RULES.some((key) => key in policy))
      throw new ConfigError(path, 'is of a class that has neither a decide() nor clauses')
  }
  const isShadow = parseMode(path, policy.mode)
  const clauses = (kind: ClauseKind) =>
    policy[kind]?.map((clause, i) => parseClause(clause, kind, i, groups, `${startOfPath(policy, path, kind)}[${i}]`))
  for (const kind of CLAUSE_KINDS) checkList(`${path}.${kind}`, policy[kind])
  checkList(`${path}.requireTags`, policy.requireTags)
  return {
    name: nameOf(policy, path, position),
    path,
    ...(writtenIn(policy) === undefined ? {} : { variable: writtenIn(policy) }),
    allow: clauses('allow'),
    deny: clauses('deny') ?? [],
    ask: clauses('ask') ?? [],
    requireTags: (policy.requireTags ?? []).map((tag, i) => checkText(`${path}.requireTags[${i}]`, tag)),
    decide: undefined,
    kinds: [],
    isShadow,
  }
}

/** Each entry of a variable of the environment is one clause. */
function startOfPath(policy: Policy, path: string, kind: ClauseKind): string {
  return writtenIn(policy) ?? `${path}.${kind}`
}

function parseMode(path: string, mode: unknown): boolean {
  if (mode !== undefined && mode !== 'shadow')
    throw new ConfigError(`${path}.mode`, 'must be "shadow"; leave it out to enforce the rule')
  return mode === 'shadow'
}

function parseClause(
  written: string | Clause,
  kind: ClauseKind,
  index: number,
  groups: GroupSelectors,
  path: string,
): ParsedClause {
  const clause: Clause = typeof written === 'string' ? { match: written } : written
  checkShape(path, clause, CLAUSE)
  const texts = typeof clause.match === 'string' ? [clause.match] : clause.match
  checkList(`${path}.match`, texts)
  if (texts === undefined || texts.length === 0) throw new ConfigError(`${path}.match`, 'a clause must match something')
  const isShadow = parseMode(path, clause.mode)
  const condition = (field: 'when' | 'unless' | 'input') =>
    clause[field] === undefined
      ? undefined
      : parseCondition(
          `${path}.${field}`,
          clause[field],
          field === 'input' ? 'input, caller and tool' : 'caller and tool',
          { groups, tightens: (kind === 'allow') === (field === 'unless') },
        )
  const [when, unless, input] = [condition('when'), condition('unless'), condition('input')]
  const id = clause.id === undefined ? undefined : checkText(`${path}.id`, clause.id)
  const match = texts.join(', ')
  if (isShadow && kind === 'allow')
    throw new ConfigError(
      `${path}.mode`,
      'a single allow clause cannot be a shadow: without it, more would be denied; write the whole policy as a shadow',
    )
  return {
    kind,
    index,
    id,
    match,
    label: id ?? match,
    path,
    selectors: texts.map((text, i) =>
      parseSelectorAt(
        clause.match === text ? `${path}.match` : `${path}.match[${i}]`,
        text,
        groups,
        kind === 'allow' ? 'items' : 'servers',
      ),
    ),
    when,
    unless,
    input,
    run: joinRunUse([when?.run, unless?.run, input?.run]),
    message: clause.message === undefined ? undefined : checkText(`${path}.message`, clause.message),
    approver: parseApprover(clause, kind, path),
    isShadow,
  }
}

function checkList(path: string, value: unknown): void {
  if (value !== undefined && !Array.isArray(value)) throw new ConfigError(path, 'must be a list')
}

function checkText(path: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new ConfigError(path, 'must be a string that is not empty')
  return value
}

/** The result of a function policy for one tool. `failure` is the reason of a `policy_error`. */
export interface FunctionAnswer {
  readonly outcome: PolicyAnswer
  readonly message: string | undefined
  readonly failure: string | undefined
}

/**
 * Runs a function policy for a tool and a caller.
 *
 * An unknown tool is denied without running it. An exception, a promise and any invalid result deny too.
 */
export function askFunction(
  decide: FunctionPolicy['decide'],
  tool: Tool | null | undefined,
  caller: Caller,
): FunctionAnswer {
  if (tool === null || tool === undefined) return DENY
  try {
    return readAnswer(decide(tool, caller))
  } catch (error) {
    return failed(`it failed: ${messageOf(error).split('\n')[0]}`)
  }
}

const ALLOW: FunctionAnswer = { outcome: 'allow', message: undefined, failure: undefined }
const ASK: FunctionAnswer = { outcome: 'ask', message: undefined, failure: undefined }
const DENY: FunctionAnswer = { outcome: 'deny', message: undefined, failure: undefined }
const WORDS: ReadonlyMap<unknown, FunctionAnswer> = new Map([
  ['allow', ALLOW],
  ['ask', ASK],
  ['deny', DENY],
])
const KEYS: ReadonlySet<string> = new Set(['outcome', 'message'])

function readAnswer(answer: unknown): FunctionAnswer {
  const word = WORDS.get(answer)
  if (word) return word
  if (typeof answer !== 'object' || answer === null) return failed('it did not return allow, ask or deny')
  if (isThenable(answer)) {
    catchRejection(answer)
    return failed('it returned a promise, and a policy must be synchronous')
  }
  const { outcome, message } = Object.fromEntries(Object.entries(answer))
  const plain = WORDS.get(outcome)
  if (!plain || Object.keys(answer).some((key) => !KEYS.has(key)))
    return failed('it returned neither allow, ask or deny nor { outcome, message }')
  if (message === undefined) return plain
  if (typeof message !== 'string' || message === '') return failed('its message is not a text')
  return { outcome: plain.outcome, message, failure: undefined }
}

function failed(failure: string): FunctionAnswer {
  return { outcome: 'deny', message: undefined, failure }
}
