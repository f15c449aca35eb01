import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { lint } from '../gate/lint.ts'
import { defineTool } from '../tools/tool.ts'
import type { LintWarning } from './lint.ts'
import type { Policy } from './policy.ts'

const ITEM = {
  type: 'object',
  properties: { price: { type: 'number' }, name: { type: 'string' } },
  additionalProperties: false,
}
const schemaOf = (closed: boolean) => ({
  type: 'object',
  properties: {
    amount: { type: 'number' },
    note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    order: { $ref: '#/$defs/order' },
    items: { type: 'array', items: ITEM },
    tags: { type: 'array', items: { type: 'string' } },
    more: { type: 'object', additionalProperties: { type: 'string' } },
  },
  $defs: {
    order: { allOf: [{ type: 'object', properties: { id: { type: 'string' } }, additionalProperties: false }] },
  },
  ...(closed && { additionalProperties: false }),
})
const refund = (closed: boolean) => defineTool({ name: 'refund', inputSchema: schemaOf(closed), execute: () => 'done' })
const asked = (input: string): Policy => ({ ask: [{ match: 'refund', input }] })

function warningsOf(options: Partial<GateOptions>, tools = [refund(false)]): readonly string[] {
  const warnings: LintWarning[] = []
  createGate({ ...options, tools, onWarning: (warning) => void warnings.push(warning) } as GateOptions)
  return warnings.map(({ code, path, text }) => `${code} ${path}: ${text}`)
}

describe('a field that no tool of a rule has', () => {
  const unknown = [
    'has(input.ammount) && input.ammount > 100',
    "'ammount' in input",
    "input['ammount'] > 100",
    "has(input.order) && has(input.order.di) && input.order.di == 'x'",
    "'di' in input.order",
    'input.items.all(i, has(i.pricee) && i.pricee < 3)',
    'input.items.filter(i, i.price > 1).exists(i, has(i.nmae))',
    'input.items[0].pricee > 3',
    'has(input.amount.value)',
    'cel.bind(o, input.order, has(o.di))',
  ]
  for (const input of unknown) {
    it(`is an error where every schema is closed: ${input}`, () => {
      for (const policy of [
        asked(input),
        { deny: [{ match: 'refund', input }] },
        { allow: [{ match: 'refund', input }] },
      ])
        assert.throws(() => createGate({ tools: [refund(true)], policy }), { code: 'condition_invalid' })
      const codes = lint({ tools: [refund(true)], policy: asked(input) }).map(({ code }) => code)
      assert.deepEqual(
        codes.filter((code) => code !== 'field_unknown'),
        [],
      )
      assert.equal(codes.length, 1)
    })
  }

  it('is an error at setPolicy and fork, and in a cost', () => {
    const gate = createGate({ tools: [refund(true)] })
    const policy = asked('has(input.ammount) && input.ammount > 100')
    assert.throws(() => gate.setPolicy(policy), { code: 'condition_invalid', path: 'policy[0].ask[0]' })
    assert.throws(() => gate.fork({ policy }), { code: 'condition_invalid', path: 'fork.policy[0].ask[0]' })
    const limits = [
      {
        match: 'refund',
        max: 10,
        windowMs: 1000,
        per: ['user' as const],
        cost: 'has(input.ammount) ? input.ammount : 0.0',
      },
    ]
    assert.throws(() => createGate({ tools: [refund(true)], limits }), {
      code: 'condition_invalid',
      path: 'limits[0]',
      problem: 'it reads input.ammount, which no tool of refund has; did you mean "amount"?',
    })
  })

  it('is an error of a question about earlier calls', () => {
    const input = "!run.called('refund', { 'input.ammount': 3 })"
    assert.throws(() => createGate({ tools: [refund(true)], policy: { deny: [{ match: 'refund', input }] } }), {
      code: 'condition_invalid',
      problem: "run.called('refund') asks for input.ammount, which no such tool has",
    })
  })

  it('is a warning where a schema allows more fields than it lists', () => {
    assert.deepEqual(warningsOf({ policy: asked('has(input.ammount) && input.ammount > 100') }), [
      'field_unknown policy[0].ask[0]: it reads input.ammount, which no tool of refund has; did you mean "amount"?',
    ])
  })

  for (const input of ['input.amount in [100, 200]', "input.amount in ['100', 200]", "input.tags.all(t, t in ['a'])"])
    it(`does not warn of ${input}`, () => assert.deepEqual(warningsOf({ policy: asked(input) }), []))

  it('is named once, and its parts are not', () => {
    const input = "input.filez.all(f, f in ['a'] && f.name == 'b')"
    assert.deepEqual(warningsOf({ policy: asked(input) }), [
      'field_unknown policy[0].ask[0]: it reads input.filez, which no tool of refund has',
    ])
  })

  it('is a warning where the tools are live', async () => {
    const warnings: string[] = []
    const source = { name: 'live', tools: () => [refund(true)], subscribe: () => () => {} }
    const gate = createGate({
      sources: [source],
      policy: asked("'ammount' in input"),
      onWarning: ({ text }) => void warnings.push(text),
    })
    await gate.view({ user: 'vera' })
    assert.equal(warnings.length, 1)
    assert.equal(gate.lint().filter(({ code }) => code === 'field_unknown').length, 1)
  })

  it('is no error where a schema that refuses what it does not evaluate has the field', () => {
    const draft = 'http://json-schema.org/draft-07/schema#'
    for (const [inputSchema, input] of [
      [{ properties: { a: {} }, unevaluatedProperties: false }, 'input.a.b == 1.0'],
      [{ properties: { a: true }, unevaluatedProperties: false }, 'input.a[0].b == 1.0'],
      [{ allOf: [{ properties: { a: {} } }], unevaluatedProperties: false }, 'has(input.a.b)'],
      [{ properties: { c: {} }, additionalProperties: true, unevaluatedProperties: false }, 'has(input.a)'],
      [
        { properties: { c: {} }, allOf: [{ additionalProperties: true }], unevaluatedProperties: false },
        'has(input.a)',
      ],
      [{ properties: { c: {} }, allOf: [{ unevaluatedProperties: {} }], unevaluatedProperties: false }, 'has(input.a)'],
      [{ $schema: draft, properties: { c: {} }, unevaluatedProperties: false }, 'has(input.a)'],
    ] as const)
      assert.doesNotThrow(() =>
        createGate({ tools: [defineTool({ name: 'refund', inputSchema })], policy: asked(input) }),
      )
    const closed = defineTool({ name: 'refund', inputSchema: { properties: { a: {} }, unevaluatedProperties: false } })
    for (const input of ['has(input.b)', 'input.b.a == 1.0'])
      assert.throws(() => createGate({ tools: [closed], policy: asked(input) }), { code: 'condition_invalid' })
  })

  it('is nothing where a tool declares it, or its schema leaves open what it has', () => {
    const fine = [
      "has(input.note) && input.note == 'x'",
      "has(input.order) && input.order.id == 'x'",
      "'red' in input.tags",
      "'x' in input.more && input.more.x == 'y'",
      'input.items.exists(i, i.price > 3)',
      "input.items.map(i, i.name).exists(n, n == 'x')",
      'input[caller.user] == 1',
    ]
    for (const input of fine) {
      assert.deepEqual(warningsOf({ policy: asked(input) }, [refund(true)]), [], input)
    }
    const open = [
      {},
      { type: 'object', patternProperties: { '^a': {} }, additionalProperties: false },
      { anyOf: [{ type: 'object' }, { type: 'object', properties: {}, additionalProperties: false }] },
      { dependentSchemas: { a: { properties: { ammount: {} } } }, properties: {} },
    ]
    for (const inputSchema of open) {
      const tools = [refund(true), defineTool({ name: 'refund2', inputSchema })]
      const policy = { ask: [{ match: 'refund*', input: 'has(input.ammount)' }] }
      assert.deepEqual(
        warningsOf({ policy }, tools as never).filter((one) => one.startsWith('field')),
        [],
        JSON.stringify(inputSchema),
      )
    }
  })
})

describe('a field of another type than it is compared with', () => {
  for (const input of [
    "input.amount == '100'",
    'has(input.order) && input.order.id > 3',
    'input.items.all(i, i.name < 3)',
    "within(input.amount, '/w')",
    "has(input.amount) && input.amount in ['100', '200']",
    "input.items.exists(i, i.price in ['1'])",
  ]) {
    it(`is an error: ${input}`, () => {
      assert.throws(() => createGate({ tools: [refund(false)], policy: asked(input) }), { code: 'condition_invalid' })
    })
  }

  it('is named once, and its parts are not', () => {
    const input = "input.filez.all(f, f in ['a'] && f.name == 'b')"
    assert.deepEqual(warningsOf({ policy: asked(input) }), [
      'field_unknown policy[0].ask[0]: it reads input.filez, which no tool of refund has',
    ])
  })

  it('is a warning where the tools are live', async () => {
    const warnings: string[] = []
    const source = { name: 'live', tools: () => [refund(true)], subscribe: () => () => {} }
    const gate = createGate({
      sources: [source],
      policy: asked("input.amount == 'x'"),
      onWarning: ({ code, text }) => void warnings.push(`${code} ${text}`),
    })
    await gate.view({ user: 'vera' })
    assert.deepEqual(warnings, [
      'field_type input.amount is compared with a string, and is of type number in every tool of refund',
    ])
  })
})

describe('addressees that are no fields', () => {
  it('are warned of', () => {
    const send = defineTool({ name: 'send', inputSchema: schemaOf(true), addressees: ['too'] })
    assert.deepEqual(warningsOf({}, [send]), ['field_unknown tools.send.addressees: its input has no field "too"'])
  })
})
