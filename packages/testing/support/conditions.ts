import fc from 'fast-check'
import type { Caller, Tool } from '@toolgate/core'
import type { Condition } from '../../core/src/policy/policy.ts'

/** A condition as data. It can be written as CEL or as a function, and judged without either. */
export type Judgement =
  | { readonly op: 'role' | 'user' | 'chat' | 'team' | 'tag' | 'name' | 'path'; readonly value: string }
  | { readonly op: 'nonsense' | 'fault' }
  | { readonly op: 'not'; readonly of: Judgement }
  | { readonly op: 'and' | 'or'; readonly left: Judgement; readonly right: Judgement }

export interface Subject {
  readonly caller: Caller
  readonly tool: Tool
  readonly input?: unknown
}

/** The value of a condition. An error is neither true nor false. */
export type Verdict = boolean | 'error'

/**
 * Judges a condition by CEL's specification: an absent field is an error, and an error counts only where it decides.
 */
export function judge(judgement: Judgement, { caller, tool, input }: Subject): Verdict {
  const subject = { caller, tool, input }
  switch (judgement.op) {
    case 'role':
      return (caller.roles ?? []).includes(judgement.value)
    case 'user':
      return caller.user === undefined ? 'error' : caller.user === judgement.value
    case 'chat':
      return caller.chat?.type === undefined ? 'error' : caller.chat.type === judgement.value
    case 'team':
      return equals(caller.attributes, 'team', judgement.value)
    case 'tag':
      return tool.tags.includes(judgement.value)
    case 'name':
      return tool.name === judgement.value
    case 'path':
      return equals(input, 'path', judgement.value)
    case 'nonsense':
    case 'fault':
      return 'error'
    case 'not': {
      const inner = judge(judgement.of, subject)
      return inner === 'error' ? 'error' : !inner
    }
    case 'and':
      return both(judge(judgement.left, subject), judge(judgement.right, subject), false)
    case 'or':
      return both(judge(judgement.left, subject), judge(judgement.right, subject), true)
  }
}

/** Combines two verdicts. A false decides in `and`, and a true in `or`; otherwise an error on either side decides. */
function both(left: Verdict, right: Verdict, deciding: boolean): Verdict {
  if (left === deciding || right === deciding) return deciding
  return left === 'error' || right === 'error' ? 'error' : !deciding
}

function equals(holder: unknown, key: string, value: string): Verdict {
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, key)) return 'error'
  return (holder as Record<string, unknown>)[key] === value
}

export function toCel(judgement: Judgement): string {
  switch (judgement.op) {
    case 'role':
      return `${quote(judgement.value)} in caller.roles`
    case 'user':
      return `caller.user == ${quote(judgement.value)}`
    case 'chat':
      return `caller.chat.type == ${quote(judgement.value)}`
    case 'team':
      return `caller.attributes.team == ${quote(judgement.value)}`
    case 'tag':
      return `${quote(judgement.value)} in tool.tags`
    case 'name':
      return `tool.name == ${quote(judgement.value)}`
    case 'path':
      return `input.path == ${quote(judgement.value)}`
    case 'nonsense':
      return 'caller.attributes.number'
    case 'fault':
      return "host('no url') == ''"
    case 'not':
      return `!(${toCel(judgement.of)})`
    case 'and':
      return `(${toCel(judgement.left)}) && (${toCel(judgement.right)})`
    case 'or':
      return `(${toCel(judgement.left)}) || (${toCel(judgement.right)})`
  }
}

function quote(text: string): string {
  return `'${text}'`
}

/** A condition, with its form in a policy. */
export interface WrittenCondition {
  readonly form: 'cel' | 'function'
  readonly judgement: Judgement
}

export function toCondition({ form, judgement }: WrittenCondition): Condition {
  if (form === 'cel') return toCel(judgement)
  return (subject) => {
    const verdict = judge(judgement, subject)
    if (verdict === 'error') throw new Error('a condition that cannot be decided')
    return verdict
  }
}

export interface ConditionValues {
  readonly tags: readonly string[]
  readonly names: readonly string[]
  readonly withInput: boolean
}

/** Generates judgements over the caller and the tool, and optionally over the input. */
export function judgementArbitrary(values: ConditionValues): fc.Arbitrary<Judgement> {
  const of = (op: 'role' | 'user' | 'chat' | 'team' | 'tag' | 'name' | 'path', among: readonly string[]) =>
    fc.record({ op: fc.constant(op), value: fc.constantFrom(...among) })
  const plain = [
    of('role', ROLES),
    of('user', USERS),
    of('chat', CHAT_TYPES),
    of('team', TEAMS),
    of('tag', values.tags),
    of('name', values.names),
    fc.constantFrom<Judgement>({ op: 'nonsense' }, { op: 'fault' }),
  ]
  const leaf: fc.Arbitrary<Judgement> = values.withInput
    ? fc.oneof({ weight: 8, arbitrary: of('path', PATHS) }, ...plain)
    : fc.oneof(...plain)
  return fc.letrec<{ node: Judgement }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'condition' },
      { weight: 4, arbitrary: leaf },
      fc.record({ op: fc.constant('not' as const), of: tie('node') }),
      fc.record({ op: fc.constantFrom('and' as const, 'or' as const), left: tie('node'), right: tie('node') }),
    ),
  })).node
}

export function writtenCondition(values: ConditionValues): fc.Arbitrary<WrittenCondition> {
  return fc.record({
    form: fc.constantFrom('cel' as const, 'function' as const),
    judgement: judgementArbitrary(values),
  })
}

export const ROLES = ['admin', 'viewer', 'constructor'] as const
export const USERS = ['vera', 'omar'] as const
export const CHAT_TYPES = ['dm', 'group'] as const
export const TEAMS = ['red', 'blue'] as const
export const PATHS = ['/a', '/b'] as const
