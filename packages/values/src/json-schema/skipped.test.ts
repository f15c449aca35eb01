/* oxlint-disable unicorn/no-thenable -- `then` is a keyword of JSON Schema */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { createGate, defineTool, type JsonSchema } from '@toolgate/core'
import { createValidator } from '@toolgate/core/call'
import { dialectOf } from './document.ts'
import { findSkipped } from './skipped.ts'

const warningsOf = (schema: object) => findSkipped(schema, dialectOf(schema)).warnings
const validate = createValidator()
const unrunnable = { pattern: '(a)\\1' }

/** Definitions of which each applies the next one twice. */
const doubling = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, i) => [
      `d${i}`,
      { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
    ]),
  )

describe('findSkipped', () => {
  const table: readonly (readonly [what: string, schema: object, pointers: readonly string[]])[] = [
    ['a backreference', { properties: { a: unrunnable } }, ['/properties/a/pattern']],
    ['an atomic group', { items: { pattern: '(?>a)' } }, ['/items/pattern']],
    ['a key of patternProperties', { patternProperties: { '(x)\\1a/b': {} } }, ['/patternProperties/(x)\\1a~1b']],
    ['a pattern in what is referred to', { $ref: '#/$defs/x', $defs: { x: unrunnable } }, ['/$defs/x/pattern']],
    ['a dialect that is not known', { $schema: 'https://example.com/meta' }, ['/$schema']],
    ['a reference that leads back to where it stands', { $ref: '#' }, ['/$ref']],
    [
      'a ring of references',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { allOf: [{ $ref: '#/$defs/a' }] } } },
      ['/$defs/b/allOf/0/$ref'],
    ],
    [
      'a reference to very many schemas',
      { $ref: '#/$defs/d0', $defs: { ...doubling(60), d60: {} } },
      [...[47, 35, 23, 11].flatMap((i) => [`/$defs/d${i}/allOf/0/$ref`, `/$defs/d${i}/allOf/1/$ref`]), '/$ref'],
    ],
    [
      'patterns that are too large together',
      { allOf: Array.from({ length: 3 }, (_, i) => ({ pattern: `a{5${i}00}` })) },
      ['/allOf/2/pattern'],
    ],
  ]
  for (const [what, schema, pointers] of table) {
    it(`names ${what}`, () => {
      assert.deepEqual(
        warningsOf(schema).map(({ pointer }) => pointer),
        pointers,
      )
    })
  }

  const none: readonly (readonly [what: string, schema: object])[] = [
    [
      'what only looks like a pattern',
      { const: unrunnable, enum: [unrunnable], default: unrunnable, properties: { pattern: { type: 'string' } } },
    ],
    ['definitions that nothing refers to', { $defs: { x: unrunnable } }],
    ['a tree that refers to itself through its parts', { properties: { child: { $ref: '#' } }, items: { $ref: '#' } }],
    ['unknown keywords and formats', { format: 'nope', 'x-order': 1, nullable: true }],
    ['draft-04 to 2020-12', { $schema: 'http://json-schema.org/draft-04/schema' }],
    ['2019-09', { $schema: 'https://json-schema.org/draft/2019-09/schema' }],
  ]
  for (const [what, schema] of none) it(`says nothing of ${what}`, () => assert.deepEqual(warningsOf(schema), []))
})

describe('createValidator, with a keyword that cannot be run', () => {
  type Row = readonly [what: string, schema: object, valid: readonly unknown[], invalid: readonly unknown[]]
  const table: readonly Row[] = [
    ['checks what is beside it', { ...unrunnable, maxLength: 3 }, ['xyz', 'ab'], ['abcd']],
    ['does not take every input for one that `not` forbids', { not: unrunnable, type: 'string' }, ['x'], [1]],
    [
      'does not count on a branch of `oneOf` that it cannot check',
      { oneOf: [unrunnable, { type: 'string' }] },
      ['x'],
      [],
    ],
    [
      'does not choose by an `if` that it cannot check',
      { if: unrunnable, then: false, else: false, type: 'string' },
      ['x'],
      [1],
    ],
    [
      'does not refuse a property that may match',
      { patternProperties: { '(a)\\1': {} }, additionalProperties: false },
      [{ c: 1 }],
      [],
    ],
    ['counts no more than it can check', { contains: unrunnable, maxContains: 1 }, [['x', 'y']], []],
    [
      'takes one that is referred to within `not`',
      { not: { $ref: '#/$defs/x' }, $defs: { x: { items: unrunnable } } },
      [['x']],
      [],
    ],
    ['goes on behind a reference that leads back', { $ref: '#', minLength: 2 }, ['ab'], ['a']],
    [
      'reads an unknown dialect as 2020-12',
      { $schema: 'https://example.com/meta', prefixItems: [{ type: 'string' }] },
      [['a']],
      [[1]],
    ],
  ]
  for (const [what, schema, valid, invalid] of table) {
    it(what, () => {
      for (const input of valid) assert.equal(validate(schema, input), undefined, JSON.stringify(input))
      for (const input of invalid) assert.notEqual(validate(schema, input), undefined, JSON.stringify(input))
    })
  }
})

describe('a schema of many references', () => {
  const shared = { ...doubling(10), d10: { maxLength: 2 } }
  const schemas: readonly (readonly [what: string, schema: object])[] = [
    ['that double at each of 60 levels', { $ref: '#/$defs/d0', $defs: { ...doubling(60), d60: {} } }],
    [
      'beside each other, each to many schemas',
      { allOf: Array.from({ length: 1500 }, () => ({ $ref: '#/$defs/d0' })), $defs: shared },
    ],
  ]
  for (const [what, schema] of schemas) {
    it(`can be called: ${what}`, () => {
      assert.notDeepEqual(warningsOf(schema), [])
      assert.equal(validate(schema, {}), undefined)
    })
  }

  it('is checked in full where it applies few schemas to one value', () => {
    const schema = { $ref: '#/$defs/d0', $defs: shared }
    assert.deepEqual(warningsOf(schema), [])
    assert.notEqual(validate(schema, 'abc'), undefined)
  })
})

describe('the schemas that zod writes', () => {
  /** Each format of zod 4, with a text of it; those whose pattern cannot be run are named. */
  const formats: readonly (readonly [schema: z.ZodType, valid: string, invalid: string | undefined])[] = [
    [z.email(), 'vera@example.org', 'no'],
    [z.email({ pattern: z.regexes.html5Email }), 'vera@example.org', 'no'],
    [z.email({ pattern: z.regexes.rfc5322Email }), 'vera@example.org', 'no'],
    [z.email({ pattern: z.regexes.unicodeEmail }), 'vera@example.org', 'no'],
    [z.uuid(), '0b5e1f3c-2d7a-4f6e-9c8b-1a2b3c4d5e6f', 'no'],
    [z.uuidv7(), '01890a5d-ac96-774b-bcce-b302099a8057', 'no'],
    [z.guid(), '0b5e1f3c-2d7a-4f6e-9c8b-1a2b3c4d5e6f', 'no'],
    [z.url(), 'https://example.org', undefined],
    [z.httpUrl(), 'https://example.org', undefined],
    [z.hostname(), 'example.org', '-'],
    [z.emoji(), '😀', 'a'],
    [z.base64(), 'aGVsbG8=', '*'],
    [z.base64url(), 'aGVsbG8', '*'],
    [z.hex(), 'abc123', 'xyz'],
    [z.jwt(), 'a.b.c', undefined],
    [z.nanoid(), 'V1StGXR8_Z5jdHi6B-myT', 'no'],
    [z.cuid(), 'ckopqwooh000001la8mbi2im9', 'no'],
    [z.cuid2(), 'tz4a98xxat96iws9zmbrgj3a', 'NO'],
    [z.ulid(), '01ARZ3NDEKTSV4RRFFQ69G5FAV', 'no'],
    [z.ipv4(), '127.0.0.1', '999.0.0.1'],
    [z.ipv6(), '::1', 'no'],
    [z.cidrv4(), '10.0.0.0/8', '10.0.0.0'],
    [z.cidrv6(), '2001:db8::/32', 'no'],
    [z.mac(), '00:1a:2b:3c:4d:5e', 'no'],
    [z.e164(), '+491701234567', 'no'],
    [z.iso.date(), '2026-11-22', '2026-13-01'],
    [z.iso.time(), '12:30:00', '99'],
    [z.iso.datetime(), '2026-11-22T12:30:00Z', 'no'],
    [z.iso.duration(), 'P1DT2H', 'P1W2D'],
    [z.string().regex(/^[a-z]+$/i), 'abc', '1'],
    [z.string().startsWith('a').endsWith('z').includes('m'), 'amz', 'b'],
    [z.templateLiteral(['v', z.number()]), 'v12', 'w'],
  ]

  /** Without what makes zod check the input itself. */
  const jsonSchemaOf = (schema: z.ZodType, target: (typeof targets)[number] = 'draft-2020-12') =>
    JSON.parse(JSON.stringify(z.toJSONSchema(schema, { target }))) as JsonSchema

  const targets = ['draft-04', 'draft-07', 'draft-2020-12'] as const
  for (const [schema, valid, invalid] of formats) {
    for (const target of targets) {
      it(`can be called: ${(schema as { format?: string }).format ?? schema.type} for ${target}`, async () => {
        const inputSchema = jsonSchemaOf(z.object({ text: schema }), target)
        const tool = defineTool({ name: 'tool', inputSchema, execute: () => 'done' })
        const view = await createGate({ tools: [tool], onWarning: () => {} }).view({ user: 'vera' })
        assert.equal((await view.call({ tool: 'tool', input: { text: valid } })).status, 'done')
        if (invalid !== undefined)
          assert.equal((await view.call({ tool: 'tool', input: { text: invalid } })).status, 'refused')
        assert.equal((await view.call({ tool: 'tool', input: { text: 7 } })).status, 'refused')
      })
    }
  }

  it('check a duration, which has a lookahead in its middle', () => {
    const inputSchema = jsonSchemaOf(z.object({ for: z.iso.duration() }))
    assert.deepEqual(warningsOf(inputSchema), [])
    assert.equal(validate(inputSchema, { for: 'PT1H' }), undefined)
    assert.equal(validate(inputSchema, { for: 'P1W2D' })?.pointer, '/for')
  })

  it('name a pattern with a backreference, which is not checked', async () => {
    const inputSchema = jsonSchemaOf(z.object({ quoted: z.string().regex(/^(["']).*\1$/) }))
    const warnings: string[] = []
    const gate = createGate({
      tools: [defineTool({ name: 'say', inputSchema })],
      onWarning: ({ code, path, text }) => warnings.push(`${code} ${path} ${text}`),
    })
    const told = 'is not checked: this pattern cannot be run, it has a backreference'
    assert.deepEqual(warnings, [`schema_skipped tools.say.inputSchema/properties/quoted/pattern ${told}`])
    assert.deepEqual(
      gate.lint().map(({ code }) => code),
      ['schema_skipped'],
    )
    const view = await gate.view({ user: 'vera' })
    assert.deepEqual(view.explain('say').schemaWarnings, [{ pointer: '/properties/quoted/pattern', message: told }])
    assert.equal('schemaWarnings' in view.explain('nothing'), false)
  })

  it('are reported once, also for tools that are added later', () => {
    const warnings: string[] = []
    const listeners: (() => void)[] = []
    let names: readonly string[] = []
    createGate({
      sources: [
        {
          name: 'live',
          tools: () => names.map((name) => ({ name, inputSchema: unrunnable })),
          subscribe(listener) {
            listeners.push(listener)
            return () => {}
          },
        },
      ],
      onWarning: ({ path }) => warnings.push(path),
    })
    for (const next of [['a'], ['a', 'b'], [], ['a']]) {
      names = next
      for (const listener of listeners) listener()
    }
    assert.deepEqual(warnings, ['tools.a.inputSchema/pattern', 'tools.b.inputSchema/pattern'])
  })
})
