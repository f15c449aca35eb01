import { isDeepStrictEqual } from 'node:util'
import type { RunFacts } from '../../core/src/history/facts.ts'
import { type CallEvent, type Origin, ORIGINS } from '../../core/src/ports/fact-read.ts'
import type { OutcomeWord, Policy } from '@toolgate/core'

/** The events of a run: every call, complete. It does not use what the monitors store. */
export interface Trace {
  readonly calls: readonly TracedCall[]
}

export interface TracedCall {
  readonly tool: string
  readonly input: Json
  /** The labels of its tool's output. */
  readonly raises: readonly string[]
  /** The end of the call. Absent while it is running. */
  readonly ended?: { readonly done: boolean; readonly output: Json }
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A value in a condition: a path in the input, an item of `input.items`, or a literal. */
export type Operand = { readonly path: string } | { readonly item: true } | { readonly written: Json }

/** A condition about a run as data. It can be written as CEL, and judged over a whole trace without CEL. */
export type RunJudgement =
  | { readonly op: 'label'; readonly label: string }
  | { readonly op: CallEvent; readonly tool: string; readonly fields: readonly (readonly [string, Operand])[] }
  | {
      readonly op: 'origin'
      readonly of: Operand | 'addressees'
      readonly names: readonly Origin[]
      readonly how: 'in' | '!='
    }
  | { readonly op: 'equals'; readonly path: string; readonly value: string }
  | { readonly op: 'not'; readonly of: RunJudgement }
  | { readonly op: 'and' | 'or'; readonly left: RunJudgement; readonly right: RunJudgement }
  | { readonly op: 'choice'; readonly asked: RunJudgement; readonly yes: RunJudgement; readonly no: RunJudgement }
  | { readonly op: 'all' | 'exists'; readonly of: RunJudgement }

export function toCel(judgement: RunJudgement): string {
  switch (judgement.op) {
    case 'label':
      return `'${judgement.label}' in run.labels`
    case 'called':
    case 'began': {
      const fields = judgement.fields.map(([field, operand]) => `'${field}': ${operandText(operand)}`)
      return `run.${judgement.op}('${judgement.tool}'${fields.length > 0 ? `, { ${fields.join(', ')} }` : ''})`
    }
    case 'origin': {
      const of = `origin(${judgement.of === 'addressees' ? judgement.of : operandText(judgement.of)})`
      return judgement.how === '!='
        ? `${of} != '${judgement.names[0]}'`
        : `${of} in [${judgement.names.map((name) => `'${name}'`).join(', ')}]`
    }
    case 'equals':
      return `input.${judgement.path} == '${judgement.value}'`
    case 'not':
      return `!(${toCel(judgement.of)})`
    case 'and':
    case 'or':
      return `(${toCel(judgement.left)}) ${judgement.op === 'and' ? '&&' : '||'} (${toCel(judgement.right)})`
    case 'choice':
      return `(${toCel(judgement.asked)}) ? (${toCel(judgement.yes)}) : (${toCel(judgement.no)})`
    case 'all':
    case 'exists':
      return `input.items.${judgement.op}(item, ${toCel(judgement.of)})`
  }
}

function operandText(operand: Operand): string {
  if ('path' in operand) return `input.${operand.path}`
  return 'item' in operand ? 'item' : JSON.stringify(operand.written)
}

/** The data that a judgement is about. */
export interface RunSubject {
  readonly trace: Trace
  readonly input: Json
  /** The origins of values. Other values have `unknown`. */
  readonly origins: ReadonlyMap<Json, Origin>
  /** The input fields that contain recipients. */
  readonly addressees: readonly string[]
  readonly item?: Json
}

/** An absent field is an error, which counts only where it decides. */
export type Verdict = boolean | 'error'

export function judgeRun(judgement: RunJudgement, subject: RunSubject): Verdict {
  switch (judgement.op) {
    case 'label':
      return subject.trace.calls.some(({ raises }) => raises.includes(judgement.label))
    case 'called':
    case 'began':
      return happened(judgement, subject)
    case 'origin': {
      const origin = originIn(judgement.of, subject)
      if (origin === 'error') return 'error'
      return judgement.names.includes(origin) === (judgement.how === 'in')
    }
    case 'equals': {
      const value = at(subject.input, judgement.path)
      return value === undefined ? 'error' : value === judgement.value
    }
    case 'not': {
      const inner = judgeRun(judgement.of, subject)
      return inner === 'error' ? inner : !inner
    }
    case 'and':
      return both([judgeRun(judgement.left, subject), judgeRun(judgement.right, subject)], false)
    case 'or':
      return both([judgeRun(judgement.left, subject), judgeRun(judgement.right, subject)], true)
    case 'choice': {
      const asked = judgeRun(judgement.asked, subject)
      return asked === 'error' ? asked : judgeRun(asked ? judgement.yes : judgement.no, subject)
    }
    case 'all':
    case 'exists': {
      const items = at(subject.input, 'items')
      if (!Array.isArray(items)) return 'error'
      return both(
        (items as readonly Json[]).map((item) => judgeRun(judgement.of, { ...subject, item })),
        judgement.op === 'exists',
      )
    }
  }
}

/** Combines verdicts. A verdict equal to `deciding` decides; otherwise an error does. */
function both(verdicts: readonly Verdict[], deciding: boolean): Verdict {
  if (verdicts.includes(deciding)) return deciding
  return verdicts.includes('error') ? 'error' : !deciding
}

/** Judges whether something happened. An unreadable value gets the strict answer. */
function happened({ op, tool, fields }: Extract<RunJudgement, { op: CallEvent }>, subject: RunSubject): boolean {
  const wanted = fields.map(([field, operand]) => [field, valueOf(operand, subject)] as const)
  if (wanted.some(([, value]) => value === undefined)) return op === 'began'
  return subject.trace.calls.some(
    (call) =>
      isNamed(call.tool, tool) &&
      (op === 'began' || call.ended?.done === true) &&
      wanted.every(([field, value]) => isDeepStrictEqual(fieldOf(call, field), value)),
  )
}

function isNamed(id: string, selector: string): boolean {
  return selector === id || (selector.endsWith(':*') && id.startsWith(selector.slice(0, -1)))
}

function fieldOf({ input, ended }: TracedCall, field: string): Json | undefined {
  return field.startsWith('input.') ? at(input, field.slice(6)) : ended && at(ended.output, field.slice(7))
}

function valueOf(operand: Operand, { input, item }: RunSubject): Json | undefined {
  if ('path' in operand) return at(input, operand.path)
  return 'item' in operand ? item : operand.written
}

function at(value: Json | undefined, path: string): Json | undefined {
  let found = value
  for (const key of path.split('.')) {
    const isHolder = typeof found === 'object' && found !== null && !Array.isArray(found)
    found = isHolder && Object.hasOwn(found as object, key) ? (found as Record<string, Json>)[key] : undefined
  }
  return found
}

function originIn(of: Operand | 'addressees', subject: RunSubject): Origin | 'error' {
  if (of !== 'addressees') {
    const value = valueOf(of, subject)
    return value === undefined ? 'error' : originOf(value, subject)
  }
  if (subject.addressees.length === 0) return 'untrusted'
  const present = subject.addressees
    .map((name) => at(subject.input, name))
    .filter((value): value is Json => value !== undefined)
  return present.length === 0 ? 'user' : originOf(present, subject)
}

function originOf(value: Json, subject: RunSubject): Origin {
  const origins = new Set<Origin>(leavesOf(value).map((one) => subject.origins.get(one) ?? 'unknown'))
  return ORIGINS.find((origin) => origins.has(origin)) ?? 'unknown'
}

function leavesOf(value: Json): readonly Json[] {
  if (value === null || value === '') return []
  return typeof value === 'object' ? Object.values(value).flatMap(leavesOf) : [value]
}

/** A clause about one tool, as data. */
export interface RunClause {
  readonly when?: RunJudgement | undefined
  readonly unless?: RunJudgement | undefined
  readonly input?: RunJudgement | undefined
}

export interface RunPolicy {
  readonly allow?: readonly RunClause[] | undefined
  readonly deny?: readonly RunClause[] | undefined
  readonly ask?: readonly RunClause[] | undefined
}

export function toRunPolicy({ allow, deny, ask }: RunPolicy, match: string): Policy {
  const clauses = (list: readonly RunClause[]) =>
    list.map(({ when, unless, input }) => ({
      match,
      ...(when && { when: toCel(when) }),
      ...(unless && { unless: toCel(unless) }),
      ...(input && { input: toCel(input) }),
    }))
  return {
    ...(allow && { allow: [...clauses(allow), { match: '*', when: `tool.id != '${match}'` }] }),
    ...(deny && { deny: clauses(deny) }),
    ...(ask && { ask: clauses(ask) }),
  }
}

/** Decides as the guide says: deny, then allow, then ask. An error decides against the call. */
export function decideRun({ allow, deny = [], ask = [] }: RunPolicy, subject: RunSubject): OutcomeWord {
  const verdicts = (list: readonly RunClause[]) => list.map((clause) => holds(clause, subject))
  const [denied, asked] = [verdicts(deny), verdicts(ask)]
  if ([...denied, ...asked].includes('error') || denied.includes(true)) return 'deny'
  if (allow && !allow.some((clause) => allows(clause, subject))) return 'deny'
  return asked.includes(true) ? 'ask' : 'allow'
}

function holds({ when, unless, input }: RunClause, subject: RunSubject): Verdict {
  const applies = when ? judgeRun(when, subject) : true
  if (applies !== true) return applies
  if (unless && judgeRun(unless, subject) === true) return false
  return input ? judgeRun(input, subject) : true
}

function allows({ when, unless, input }: RunClause, subject: RunSubject): boolean {
  return (
    (!when || judgeRun(when, subject) === true) &&
    (!unless || judgeRun(unless, subject) === false) &&
    (!input || judgeRun(input, subject) === true)
  )
}

/** Returns the facts of a trace. It computes them from the whole trace for each question. */
export function naiveFacts({ trace, origins }: Pick<RunSubject, 'trace' | 'origins'>): RunFacts {
  return {
    labels: [...new Set(trace.calls.flatMap(({ raises }) => raises))].toSorted(),
    matched: ({ event, selector, fields }, values) =>
      trace.calls.some(
        (call) =>
          isNamed(call.tool, selector.text) &&
          (event === 'began' || call.ended?.done === true) &&
          fields.every((field, i) => {
            const value = fieldOf(call, field)
            return value !== undefined && isDeepStrictEqual(value, values[i])
          }),
      ),
    origin: (value) => originOf(value as Json, { trace, origins, input: null, addressees: [] }),
  }
}
