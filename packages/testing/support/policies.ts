import fc from 'fast-check'
import type { Caller, Clause, FunctionPolicy, Policy, Tool } from '@toolgate/core'
import type { PolicyAnswer } from '../../core/src/policy/policy.ts'
import {
  judge,
  type Judgement,
  judgementArbitrary,
  toCondition,
  type WrittenCondition,
  writtenCondition,
} from './conditions.ts'

/** A policy as data: clauses, or the answers of a function. */
export interface WrittenPolicy {
  readonly allow?: readonly WrittenClause[] | undefined
  readonly deny?: readonly WrittenClause[] | undefined
  readonly ask?: readonly WrittenClause[] | undefined
  readonly requireTags?: readonly string[] | undefined
  /** A function, in place of all clauses. */
  readonly decide?: WrittenDecide | undefined
  readonly mode?: 'shadow'
}

export interface WrittenClause {
  readonly match: readonly string[]
  readonly when?: WrittenCondition | undefined
  readonly unless?: WrittenCondition | undefined
  readonly input?: WrittenCondition | undefined
  readonly message?: string | undefined
  readonly mode?: 'shadow'
}

/** The function's answers if the judgement is true, and otherwise. If it cannot be judged, the function throws. */
export interface WrittenDecide {
  /** The kinds that it decides in addition to tools. */
  readonly kinds: readonly ('resource' | 'template' | 'prompt')[]
  readonly judgement: Judgement
  readonly yes: WrittenAnswer
  readonly no: WrittenAnswer
}

/** An answer of a policy. `promise` and `nonsense` are invalid. */
export type WrittenAnswer = PolicyAnswer | 'deny with a message' | 'promise' | 'nonsense'

export function toPolicy({ allow, deny, ask, requireTags, decide, mode }: WrittenPolicy): Policy | FunctionPolicy {
  const shadow = mode && { mode }
  if (decide) return { kinds: decide.kinds, decide: (tool, caller) => answer(decide, tool, caller), ...shadow }
  return {
    ...shadow,
    ...(allow && { allow: allow.map(toClause) }),
    ...(deny && { deny: deny.map(toClause) }),
    ...(ask && { ask: ask.map(toClause) }),
    ...(requireTags && { requireTags }),
  }
}

function toClause({ match, when, unless, input, message, mode }: WrittenClause): Clause {
  return {
    match,
    ...(mode && { mode }),
    ...(when && { when: toCondition(when) }),
    ...(unless && { unless: toCondition(unless) }),
    ...(input && { input: toCondition(input) }),
    ...(message !== undefined && { message }),
  }
}

function answer(
  { judgement, yes, no }: WrittenDecide,
  tool: Tool,
  caller: Caller,
): ReturnType<FunctionPolicy['decide']> {
  const verdict = judge(judgement, { tool, caller })
  if (verdict === 'error') throw new Error('a policy that cannot decide')
  const word = verdict ? yes : no
  if (word === 'promise') return Promise.resolve('allow') as unknown as PolicyAnswer
  if (word === 'nonsense') return 'of course' as PolicyAnswer
  return word === 'deny with a message' ? { outcome: 'deny', message: 'Not for you.' } : word
}

interface Names {
  readonly tags: readonly string[]
  readonly names: readonly string[]
}

/** The selectors of `allow`, and of the other lists. */
interface Selectors {
  readonly inAllow: fc.Arbitrary<string>
  readonly elsewhere: fc.Arbitrary<string>
}

export function policyArbitrary({ inAllow, elsewhere }: Selectors, names: Names): fc.Arbitrary<WrittenPolicy> {
  const clauses = (maxLength: number, selector = elsewhere) => fc.array(clauseArbitrary(selector, names), { maxLength })
  const byClauses = fc.record({
    allow: fc.option(clauses(3, inAllow), { nil: undefined, freq: 2 }),
    deny: fc.option(clauses(2), { nil: undefined, freq: 2 }),
    ask: fc.option(clauses(2), { nil: undefined, freq: 2 }),
    requireTags: fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      fc.subarray([...names.tags], { maxLength: 1 }),
    ),
  })
  const word = fc.constantFrom<WrittenAnswer>(
    'allow',
    'allow',
    'allow',
    'ask',
    'deny',
    'deny with a message',
    'promise',
    'nonsense',
  )
  const byFunction = fc.record({
    decide: fc.record({
      kinds: fc.subarray(['resource', 'template', 'prompt'] as const),
      judgement: judgementArbitrary({ ...names, withInput: false }),
      yes: word,
      no: word,
    }),
  })
  return fc.oneof({ weight: 6, arbitrary: byClauses }, byFunction)
}

function clauseArbitrary(selector: fc.Arbitrary<string>, names: Names): fc.Arbitrary<WrittenClause> {
  const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary })
  return fc.record({
    match: fc.array(selector, { minLength: 1, maxLength: 2 }),
    when: rarely(writtenCondition({ ...names, withInput: false })),
    unless: rarely(writtenCondition({ ...names, withInput: false })),
    input: rarely(writtenCondition({ ...names, withInput: true })),
    message: fc.constantFrom(undefined, undefined, 'Not for you.'),
  })
}
