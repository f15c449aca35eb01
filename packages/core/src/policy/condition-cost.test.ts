import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compileProgram } from '../../../values/src/cel/compile.ts'
import { createEnvironment } from '@toolgate/values/cel'
import { LIBRARY } from '../../../values/src/cel/library.ts'
import { parseCelText } from '../../../values/src/cel/parser.ts'
import { WorkSpentError } from '@toolgate/values'
import { conditionWork } from './condition.ts'
import { OWN_FUNCTIONS } from './functions.ts'

const environment = createEnvironment({ variables: { input: 'dyn' }, functions: OWN_FUNCTIONS })

/** Returns the steps of a text over an input, and whether they were enough. */
function stepsOf(text: string, input: unknown, left = 1e12): { steps: number; spent: boolean } {
  const work = { left }
  let spent = false
  try {
    compileProgram(parseCelText(text), environment)(work, [input])
  } catch (error) {
    // Another error is a value that the text does not have: it costs its steps, too.
    spent = error instanceof WorkSpentError
  }
  return { steps: left - work.left, spent }
}

/** Everything that grows with its operands, over an input of a size. */
function inputOf(n: number) {
  const list = Array.from({ length: n }, (_, i) => `item-${i}`)
  return {
    list,
    same: [...list],
    numbers: Array.from({ length: n }, (_, i) => i),
    map: Object.fromEntries(list.map((item) => [item, 1])),
    sameMap: Object.fromEntries(list.map((item) => [item, 1])),
    text: 'ab'.repeat(n / 2),
    sameText: `${'ab'.repeat(n / 2 - 1)}aX`,
    white: ' '.repeat(n),
    duration: '1s'.repeat(n / 2),
    digits: '0'.repeat(n),
    wanted: `${'a'.repeat(n / 2)}b`,
    letters: 'é'.repeat(n),
  }
}

const LINEAR: readonly string[] = [
  'input.list == input.same',
  'input.list != input.same',
  'input.map == input.sameMap',
  "'nothing' in input.list",
  '-1.0 in input.numbers',
  'input.list + input.same',
  'input.text + input.text',
  'input.text == input.sameText',
  'input.text < input.sameText',
  'bytes(input.text) + bytes(input.text)',
  'bytes(input.text) == bytes(input.sameText)',
  'bytes(input.text) < bytes(input.sameText)',
  'size(input.map)',
  'size(input.text)',
  'input.text.size()',
  'input.map.size()',
  'input.text.contains(input.wanted)',
  'input.text.startsWith(input.text)',
  'input.text.endsWith(input.text)',
  'input.text.charAt(10)',
  'input.text.indexOf(input.wanted)',
  'input.text.indexOf(input.wanted, 3)',
  'input.text.lastIndexOf(input.wanted)',
  'input.text.lastIndexOf(input.wanted, 3)',
  'input.text.substring(3)',
  'input.text.substring(3, 7)',
  'input.text.lowerAscii()',
  'input.letters.lowerAscii()',
  'input.text.upperAscii()',
  'input.white.trim()',
  'input.text.reverse()',
  "input.text.split('b')",
  "input.text.split('')",
  "input.text.split('b', 1000000)",
  "input.text.replace('a', 'ccc')",
  "input.text.replace('', 'c')",
  "input.text.replace('a', 'ccc', 1000000)",
  'input.list.join()',
  "input.list.join(', ')",
  'int(input.digits)',
  'uint(input.digits)',
  'double(input.digits)',
  'string(bytes(input.text))',
  'bytes(input.text)',
  'duration(input.duration)',
  'input.list.all(x, true)',
  'input.map.all(x, true)',
  'input.list.exists(x, false)',
  'input.list.exists_one(x, true)',
  'input.list.filter(x, true)',
  'input.list.map(x, x)',
  'input.list.map(x, true, [x, {x: x}])',
  'input.list.all(x, x.nothing == 1)',
  "within(input.text, '/a')",
  "within('/a', '/' + input.text)",
  "host('http://h/' + input.text)",
  "like(input.text, '*c*')",
  'like(input.text, input.wanted)',
]

/** These functions have bounds of their own, so their steps need not grow with the input. */
const CONSTANT: ReadonlySet<string> = new Set(['bool', 'type', 'dyn', 'timestamp', ...getters()])

function getters(): readonly string[] {
  return LIBRARY.filter(({ name }) => name.startsWith('get')).map(({ name }) => name)
}

describe('the steps of a condition', () => {
  const [small, large] = [inputOf(2000), inputOf(4000)]

  for (const text of LINEAR)
    it(`grow as the operands do: ${text}`, () => {
      const [one, two] = [stepsOf(text, small).steps, stepsOf(text, large).steps]
      assert.ok(two > 1.5 * one, `${one} steps, and ${two} for twice as much`)
      assert.ok(two < 2.2 * one, `${one} steps, and ${two} for twice as much`)
    })

  for (const text of LINEAR.filter((one) => !/all\(|exists|filter\(|map\(x/.test(one)))
    it(`grow with the items of a macro: ${text}`, () => {
      const inside = `input.numbers.all(n, [${text}] != [])`
      const ratio = stepsOf(inside, inputOf(400)).steps / stepsOf(inside, inputOf(200)).steps
      assert.ok(ratio > 2.4 && ratio < 4.4, `${ratio} times the steps for twice as much of both`)
    })

  for (const [text, most] of [
    // A native error takes about 10 µs, a step about 5 ns.
    ["host(x) == ''", 1800],
    ["within(x, 'file:///etc')", 1800],
    ["string(b'\\xff') == x", 1800],
    ["timestamp('2026-02-28T00:00:00Z') == x", 25_000],
    ["timestamp('2026-02-28T00:00:00Z').getHours('nowhere') == 1", 1800],
  ] as const)
    it(`cover errors of the engine, and what it reads: ${text}`, () => {
      let read = 0
      const items = Array.from({ length: 40_000 }, (_, i) =>
        Object.defineProperty({}, 'x', { enumerable: true, get: () => (read++, `nothing ${i}`) }),
      )
      const spent = stepsOf(`input.exists(i, [i.x].exists_one(x, ${text}))`, items, conditionWork().left).spent
      assert.ok(spent, 'the steps are spent')
      assert.ok(read < most, `${read} items were read`)
    })

  it('are asked for each function of the library', () => {
    for (const name of new Set([...LIBRARY, ...OWN_FUNCTIONS].map((one) => one.name)))
      assert.ok(CONSTANT.has(name) || LINEAR.some((text) => text.includes(`${name}(`)), `${name} is in neither list`)
  })

  it('count the reading of a timestamp, which takes about a microsecond', () => {
    const times = { times: Array.from({ length: 24_000 }, () => '2025-01-01T00:00:00.123Z') }
    const text = "input.times.all(x, timestamp(x) < timestamp('2026-01-01T00:00:00Z'))"
    assert.ok(stepsOf(text, times, conditionWork().left).spent)
  })

  it('end a condition over a real size, or are spent', () => {
    const real = inputOf(24_000)
    for (const text of LINEAR) {
      const { steps, spent } = stepsOf(
        `input.list.map(x, [${text.replaceAll('(x,', '(y,').replaceAll(/\bx\b/g, 'y')}])`,
        real,
        conditionWork().left,
      )
      // The last operation is counted before or after it is done.
      assert.ok(spent || steps <= conditionWork().left, text)
      assert.ok(steps < 3 * conditionWork().left, `${text}: ${steps} steps`)
    }
  })

  it('are spent for good: no operator makes up for it', () => {
    const heavy = 'input.list.all(x, x in input.same)'
    const real = inputOf(24_000)
    const around = [
      `${heavy} || true`,
      `true && (${heavy} || true)`,
      `!(false && ${heavy}) && (${heavy} || true)`,
      `[1].exists(y, ${heavy} || y == 1)`,
      `[1, 2].all(y, ${heavy} && false)`,
      `${heavy} ? true : true`,
      `[${heavy}].size() == 1 || true`,
    ]
    for (const text of around)
      assert.throws(
        () => compileProgram(parseCelText(text), environment)(conditionWork(), [real]),
        WorkSpentError,
        text,
      )
  })
})
