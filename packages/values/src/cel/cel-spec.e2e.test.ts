import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import {
  getConformanceSuite,
  type IncrementalTest,
  type IncrementalTestSuite,
} from '@bufbuild/cel-spec/testdata/tests.js'
import { createEnvironment } from './environment.ts'
import { compileProgram } from './compile.ts'
import { checkTypes } from './check.ts'
import { parseCelText } from './parser.ts'
import { CelProblem } from './tree.ts'
import { CelMap, CelType, Duration, kindOf, Timestamp, toMapKey, Uint } from './values.ts'

/** What no condition can say: messages of protocol buffers, their enums and extensions, containers, and a block of a compiler. */
const UNSAYABLE =
  /TestAllTypes|NestedTest|GlobalEnum|NestedEnum|google\.protobuf\.(?!Timestamp\b|Duration\b)|proto\.(?:hasExt|getExt)|cel\.(?:@|block|index|iterVar)|\bStandaloneEnum\b|[A-Za-z]\{/

/** Why a standard case is refused when it is loaded. Every other refusal is a failure. */
const DIFFERENCES: readonly (readonly [reason: string, text: RegExp])[] = [
  ['there are no optional values; has() asks for a field', /\.\?|\[\?|\{\?|\boptional|\.opt|, \?/],
  ['matches() may take exponential time', /matches\(/],
  ['format() and strings.quote() are not offered', /\.format\(|strings\.quote/],
  ['math is not offered', /\bmath\./],
  ['base64 is not offered', /\bbase64\./],
  ['macros have one variable', /\.(?:all|exists|existsOne|exists_one|transformList|transformMap)\(\w+, *\w+,/],
  ['names have no back quotes and no leading dot', /`|(?:^|[\s(])\.[a-z]/],
  ['an unknown name is an error when it is loaded', /^(?:x|f_unknown\(17\)|a\.\w+\(\)) \|\| true$/],
]

/** The suite rounds an `int` to a double before it compares. The definition of the language, and conditions, compare by value. */
const EXACT: ReadonlySet<string> = new Set([
  'not_lt_dyn_int_big_lossy_double',
  'not_gt_dyn_big_double_int',
  'lte_dyn_big_double_int',
  'gte_dyn_int_big_lossy_double',
])

type Outcome = 'passed' | { readonly refused: string } | { readonly wrong: string }

function sectionsOf(
  suite: IncrementalTestSuite,
): readonly (readonly [name: string, tests: readonly IncrementalTest[]])[] {
  return suite.suites.map((file) => [file.name, file.suites.flatMap(({ tests }) => tests)] as const)
}

type Value = NonNullable<IncrementalTest['original']['bindings'][string]['kind']>['value']

/** Returns a value of the suite as the evaluator has it; `undefined` for a message. */
function toValue(value: Value | undefined): unknown {
  const kind = (value as { kind?: { case?: string; value?: unknown } } | undefined)?.kind
  switch (kind?.case) {
    case 'nullValue':
      return null
    case 'uint64Value':
      return new Uint(kind.value as bigint)
    case 'listValue':
      return (kind.value as { values: Value[] }).values.map(toValue)
    case 'mapValue': {
      const entries = (kind.value as { entries: { key: Value; value: Value }[] }).entries
      return new CelMap(
        new Map(
          entries.map(({ key, value: item }) => {
            const name = toValue((key as unknown as { kind: { value: Value } }).kind.value as Value) ?? toValue(key)
            return [toMapKey(name) as string, [name, toValue(item)] as const]
          }),
        ),
      )
    }
    case 'typeValue':
      return new CelType(kind.value as string)
    case 'objectValue':
      return toTime(kind.value as { typeUrl: string; value: Uint8Array })
    case 'enumValue':
    case undefined:
      return undefined
    default:
      return kind?.value
  }
}

/** Reads the two numbers of a timestamp or a duration, the only messages that conditions have. */
function toTime({ typeUrl, value }: { typeUrl: string; value: Uint8Array }): unknown {
  const of = typeUrl.endsWith('.Timestamp') ? Timestamp : typeUrl.endsWith('.Duration') ? Duration : undefined
  const fields = new Map<number, bigint>()
  for (let at = 0; at < value.length;) {
    const field = (value[at++] ?? 0) >> 3
    let number = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = value[at++] ?? 0
      number |= BigInt(byte & 127) << shift
      if (byte < 128) break
    }
    fields.set(field, BigInt.asIntN(64, number))
  }
  return of && new of((fields.get(1) ?? 0n) * 1_000_000_000n + (fields.get(2) ?? 0n))
}

/** A value with its type, as a text. */
function shown(value: unknown): string {
  const kind = kindOf(value)
  if (value instanceof CelMap)
    return `{${[...value.entries.values()]
      .map(([key, item]) => `${shown(key)}:${shown(item)}`)
      .toSorted()
      .join()}}`
  if (Array.isArray(value)) return `[${value.map(shown).join()}]`
  if (value instanceof Uint) return `uint ${value.value}`
  if (value instanceof Timestamp || value instanceof Duration) return `${kind} ${value.nanos}`
  if (value instanceof CelType) return `type ${value.name}`
  return `${kind} ${Object.is(value, -0) ? '-0' : String(value)}`
}

function isSayable({ original: { expr, bindings, container, resultMatcher, typeEnv } }: IncrementalTest): boolean {
  const values = Object.values(bindings).map(({ kind }) =>
    kind.case === 'value' ? toValue(kind.value as Value) : undefined,
  )
  const isMessage = resultMatcher.case === 'value' && toValue(resultMatcher.value as unknown as Value) === undefined
  const types = JSON.stringify(typeEnv, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return (
    container === '' &&
    !typeEnv.some(({ declKind }) => declKind.case === 'function') &&
    !Object.keys(bindings).some((name) => name.includes('.')) &&
    !UNSAYABLE.test(expr) &&
    !UNSAYABLE.test(types) &&
    !values.includes(undefined) &&
    !isMessage
  )
}

function judge({ original }: IncrementalTest): Outcome {
  const { expr, bindings, resultMatcher, disableCheck, checkOnly } = original
  const names = [...new Set([...Object.keys(bindings), ...original.typeEnv.map(({ name }) => name)])]
  const environment = createEnvironment({ variables: Object.fromEntries(names.map((name) => [name, 'dyn'])) })
  const mustFail = resultMatcher.case === 'evalError' || resultMatcher.case === 'anyEvalErrors'
  const expected = resultMatcher.case === 'value' ? toValue(resultMatcher.value as unknown as Value) : true
  let text: string
  try {
    const tree = parseCelText(expr)
    if (!disableCheck) checkTypes(tree, environment)
    const program = compileProgram(tree, environment)
    if (checkOnly || resultMatcher.case === 'typedResult') return 'passed'
    const values = names.map((name) => {
      const bound = bindings[name]?.kind
      return bound?.case === 'value' ? toValue(bound.value as Value) : undefined
    })
    text = shown(program({ left: 1_000_000 }, values))
  } catch (error) {
    if (mustFail) return 'passed'
    return error instanceof CelProblem ? { refused: error.message } : { wrong: String(error) }
  }
  if (mustFail) return { wrong: `${text} where CEL has an error` }
  return text === shown(expected) ? 'passed' : { wrong: `${text}, not ${shown(expected)}` }
}

describe('the conformance cases of CEL', () => {
  const table: Record<string, { cases: number; passed: number; refused: number; exact: number }> = {}
  const refusals = new Map<string, number>()
  for (const [name, tests] of sectionsOf(getConformanceSuite())) {
    const sayable = tests.filter(isSayable)
    if (sayable.length === 0) continue
    it(`have their values: ${name}`, () => {
      const row = { cases: sayable.length, passed: 0, refused: 0, exact: 0 }
      const wrong: string[] = []
      for (const test of sayable) {
        const outcome = judge(test)
        if (outcome === 'passed') row.passed++
        else if (EXACT.has(test.name)) row.exact++
        else if ('wrong' in outcome) wrong.push(`${test.name}: ${test.original.expr}: ${outcome.wrong}`)
        else {
          row.refused++
          const [reason] = DIFFERENCES.find(([, text]) => text.test(test.original.expr)) ?? []
          if (reason === undefined) wrong.push(`${test.name}: ${test.original.expr}: refused: ${outcome.refused}`)
          else refusals.set(reason, (refusals.get(reason) ?? 0) + 1)
        }
      }
      table[name] = row
      assert.deepEqual(wrong, [])
    })
  }

  it('are counted', () => {
    const sum = (of: 'cases' | 'passed' | 'refused' | 'exact') =>
      Object.values(table).reduce((total, row) => total + row[of], 0)
    const all = { cases: sum('cases'), passed: sum('passed'), refused: sum('refused'), exact: sum('exact') }
    const [cases, passed] = [all.cases, all.passed].map((count) => count.toLocaleString('en-US'))
    const page = readFileSync(new URL('../../../../docs/guide/referees.md', import.meta.url), 'utf8').replaceAll(
      / +/g,
      ' ',
    )
    assert.ok(page.includes(`| ours | ${cases} | ${passed} | 0 | ${all.exact} | ${all.refused} |`), JSON.stringify(all))
    table['all'] = all
    console.table(table)
    console.table(Object.fromEntries(refusals))
  })
})
