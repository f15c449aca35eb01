import fc from 'fast-check'
import { type Origin, ORIGINS } from '../../core/src/ports/fact-read.ts'
import type { Json, Operand, RunClause, RunJudgement, RunPolicy, Trace, TracedCall } from './naive-history.ts'

/** The tool that these worlds' policies are about. */
export const ASKED = 'mail:send'
export const ADDRESSED = ['to', 'cc'] as const

/** The tools of earlier calls, with the labels of their outputs. */
export const RAISES: ReadonlyMap<string, readonly string[]> = new Map([
  ['web:fetch', ['untrusted']],
  ['web:trap', ['untrusted']],
  ['crm:get', ['private', 'untrusted']],
  ['fraud:check', []],
  [ASKED, ['untrusted']],
])
export const LABELS = ['untrusted', 'private'] as const
const SELECTORS = ['web:fetch', 'web:*', 'fraud:check', ASKED]
const INPUTS = ['order', 'deep.id', 'to']
const VALUES: readonly Json[] = ['o1', 'o2', '1', 1, true, null, ['o1'], { id: 'o1' }]
const TEXTS = ['o1', 'o2', '1', 'a@user.test', 'a@trusted.test', 'a@untrusted.test', 'a@unknown.test']

export const ORIGINS_OF: ReadonlyMap<Json, Origin> = new Map<Json, Origin>(
  ORIGINS.map((origin) => [`a@${origin}.test`, origin]),
)

const valueArbitrary = fc.constantFrom<Json>(...VALUES, ...TEXTS)

/** Generates objects that have most of the fields. */
function mostly(fields: Readonly<Record<string, fc.Arbitrary<Json>>>): fc.Arbitrary<Json> {
  const options = Object.entries(fields).map(([key, value]) =>
    fc.tuple(fc.constant(key), fc.option(value, { nil: undefined, freq: 9 })),
  )
  return fc
    .tuple(...options)
    .map((entries) => Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Json)
}

export const inputArbitrary: fc.Arbitrary<Json> = mostly({
  order: valueArbitrary,
  deep: mostly({ id: valueArbitrary }),
  to: fc.constantFrom<Json>(...TEXTS, '', null, ['a@user.test', 'a@unknown.test']),
  cc: fc.constantFrom<Json>(...TEXTS),
  items: fc.array(fc.constantFrom<Json>(...TEXTS), { maxLength: 3 }),
})

const outputArbitrary = fc.oneof(
  { weight: 9, arbitrary: mostly({ ok: fc.constantFrom<Json>(true, true, false, 'true', 1) }) },
  fc.constant<Json>('ok: true'),
)

/** Generates an earlier call, with the labels of its tool. */
export const callArbitrary: fc.Arbitrary<TracedCall> = fc
  .record(
    {
      tool: fc.constantFrom(...RAISES.keys()),
      input: inputArbitrary,
      ended: fc.record({ done: fc.boolean(), output: outputArbitrary }),
    },
    { requiredKeys: ['tool', 'input'] },
  )
  .map((call) => ({ ...call, raises: RAISES.get(call.tool) ?? [] }))

export const traceArbitrary: fc.Arbitrary<Trace> = fc.record({ calls: fc.array(callArbitrary, { maxLength: 6 }) })

function operandArbitrary(inMacro: boolean): fc.Arbitrary<Operand> {
  return fc.oneof(
    fc.constantFrom<Operand>(...INPUTS.map((path) => ({ path }))),
    fc.constantFrom<Operand>(...['o1', 'a@untrusted.test', 1].map((written) => ({ written }))),
    ...(inMacro ? [fc.constant<Operand>({ item: true })] : []),
  )
}

const equalsArbitrary: fc.Arbitrary<RunJudgement> = fc.record({
  op: fc.constant('equals' as const),
  path: fc.constantFrom(...INPUTS),
  value: fc.constantFrom('o1', 'o2'),
})

function callJudgement(op: 'called' | 'began', inMacro: boolean): fc.Arbitrary<RunJudgement> {
  const fields = op === 'called' ? ['input.order', 'input.deep.id', 'output.ok'] : ['input.order', 'input.deep.id']
  const operand = fc.oneof(operandArbitrary(inMacro), fc.constant<Operand>({ written: true }))
  return fc.record({
    op: fc.constant(op),
    tool: fc.constantFrom(...SELECTORS),
    fields: fc.uniqueArray(fc.tuple(fc.constantFrom(...fields), operand), {
      maxLength: 2,
      selector: ([field]) => field,
    }),
  })
}

/** Generates a judgement about origins. A rule may only ask for the worst up to one, or for the best from one on. */
function originJudgement(tightens: boolean, inMacro: boolean): fc.Arbitrary<RunJudgement> {
  const of = fc.oneof(operandArbitrary(inMacro), fc.constant('addressees' as const))
  return fc.tuple(of, fc.integer({ min: 1, max: 3 }), fc.boolean()).map(([asked, count, isNot]): RunJudgement => {
    if (isNot) return { op: 'origin', of: asked, how: '!=', names: [tightens ? 'user' : 'untrusted'] }
    return { op: 'origin', of: asked, how: 'in', names: tightens ? ORIGINS.slice(0, count) : ORIGINS.slice(-count) }
  })
}

/** Generates a condition that is valid where it tightens, or where it loosens. */
export function judgementArbitrary(tightens: boolean, depth = 2, inMacro = false): fc.Arbitrary<RunJudgement> {
  const label = fc.constantFrom<RunJudgement>(...LABELS.map((one) => ({ op: 'label' as const, label: one })))
  const leaf = fc.oneof(
    ...(tightens ? [label, callJudgement('began', inMacro)] : [callJudgement('called', inMacro)]),
    originJudgement(tightens, inMacro),
    equalsArbitrary,
  )
  if (depth === 0) return leaf
  const of = judgementArbitrary(tightens, depth - 1, inMacro)
  return fc.oneof(
    { weight: 2, arbitrary: leaf },
    {
      weight: 2,
      arbitrary: judgementArbitrary(!tightens, depth - 1, inMacro).map((one) => ({ op: 'not' as const, of: one })),
    },
    fc.record({ op: fc.constantFrom('and' as const, 'or' as const), left: of, right: of }),
    fc.record({ op: fc.constant('choice' as const), asked: equalsArbitrary, yes: of, no: of }),
    ...(inMacro
      ? []
      : [
          fc.record({
            op: fc.constantFrom('all' as const, 'exists' as const),
            of: judgementArbitrary(tightens, depth - 1, true),
          }),
        ]),
  )
}

function clauseArbitrary(isAllow: boolean): fc.Arbitrary<RunClause> {
  // `when` and `unless` have no input.
  const early = (tightens: boolean) => judgementArbitrary(tightens, 1).filter((one) => !readsInput(one))
  return fc.record(
    { when: early(!isAllow), unless: early(isAllow), input: judgementArbitrary(!isAllow) },
    { requiredKeys: [] },
  )
}

function readsInput(judgement: RunJudgement): boolean {
  switch (judgement.op) {
    case 'label':
      return false
    case 'called':
    case 'began':
      return judgement.fields.some(([, operand]) => 'path' in operand)
    case 'origin':
      return judgement.of !== 'addressees' && 'path' in judgement.of
    case 'not':
      return readsInput(judgement.of)
    case 'and':
    case 'or':
      return readsInput(judgement.left) || readsInput(judgement.right)
    default:
      return true
  }
}

const some = (isAllow: boolean) => fc.array(clauseArbitrary(isAllow), { minLength: 1, maxLength: 2 })

export const runPolicyArbitrary: fc.Arbitrary<RunPolicy> = fc.oneof(
  fc.record({ deny: some(false) }),
  fc.record({ ask: some(false) }),
  fc.record({ allow: some(true) }),
  fc.record({ allow: some(true), deny: some(false), ask: some(false) }, { requiredKeys: [] }),
)
