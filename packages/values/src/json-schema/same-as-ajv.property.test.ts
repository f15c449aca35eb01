/* oxlint-disable unicorn/no-thenable -- `then` is a keyword of JSON Schema */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { createValidator } from '@toolgate/core/call'
import { runs } from '../../../testing/src/runs.ts'

const OPTIONS = {
  strict: false,
  validateFormats: false,
  ownProperties: true,
  addUsedSchema: false,
  logger: false,
} as const

const name = fc.constantFrom('a', 'b', 'c')
const small = fc.integer({ min: 0, max: 3 })
const text = fc.constantFrom('', 'a', 'ab', 'b1', '😀', 'éé')
const pattern = fc.constantFrom('^a', 'b$', '[0-9]', '^.{2,3}$', 'a|b')
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'value' },
    fc.constantFrom(null, true, false, 0, 1, 2.5, -3, 4),
    text,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value

type Drafts = 'draft-04' | 'draft-06' | 'draft-07' | '2019-09' | '2020-12' | 'no draft'

/** The keywords above that a draft does not have. */
const ABSENT: Readonly<Record<string, readonly string[]>> = {
  'draft-04': ['const', 'propertyNames', 'if', 'then', 'else'],
  'draft-06': ['if', 'then', 'else'],
}
const HAS_LISTS_OF_ITEMS: ReadonlySet<Drafts> = new Set(['draft-04', 'draft-06', 'draft-07'])

/** Schemas of a draft: few names and numbers, so that inputs meet them. */
function schemasOf(draft: Drafts): fc.Arbitrary<object> {
  const { schema } = fc.letrec<{ schema: object; one: unknown }>((tie) => {
    const one = tie('one')
    const several = fc.array(one, { minLength: 1, maxLength: 3 })
    const named = fc.dictionary(name, one, { maxKeys: 3 })
    const rows: Record<string, fc.Arbitrary<unknown>> = {
      type: fc.oneof(
        fc.constantFrom('null', 'boolean', 'object', 'array', 'number', 'string', 'integer'),
        fc.constant(['string', 'object', 'array']),
      ),
      enum: fc.uniqueArray(value, { minLength: 1, maxLength: 4, selector: (item) => JSON.stringify(item) }),
      const: value,
      minimum: small,
      maximum: small,
      exclusiveMinimum: small,
      exclusiveMaximum: small,
      multipleOf: fc.constantFrom(1, 2, 0.5),
      minLength: small,
      maxLength: small,
      pattern,
      minItems: small,
      maxItems: small,
      uniqueItems: fc.boolean(),
      minProperties: small,
      maxProperties: small,
      required: fc.uniqueArray(name, { maxLength: 2 }),
      properties: named,
      patternProperties: fc.dictionary(pattern, one, { maxKeys: 2 }),
      additionalProperties: one,
      propertyNames: one,
      items: one,
      allOf: several,
      anyOf: several,
      oneOf: several,
      not: one,
      if: one,
      then: one,
      else: one,
      $ref: fc.constantFrom('#/$defs/x', '#/$defs/y'),
      ...(draft === 'draft-04' ? { exclusiveMinimum: fc.boolean(), exclusiveMaximum: fc.boolean() } : {}),
      ...(HAS_LISTS_OF_ITEMS.has(draft)
        ? {
            items: fc.oneof(one, several),
            additionalItems: one,
            dependencies: fc.dictionary(name, fc.oneof(one, fc.uniqueArray(name, { maxLength: 2 })), { maxKeys: 2 }),
          }
        : {
            dependentRequired: fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), { maxKeys: 2 }),
            dependentSchemas: named,
          }),
      ...(draft === '2020-12' || draft === 'no draft' ? { prefixItems: several } : {}),
    }
    const whole: fc.Arbitrary<unknown> = draft === 'draft-04' ? fc.constantFrom({}, { not: {} }) : fc.boolean()
    for (const keyword of ABSENT[draft] ?? []) delete rows[keyword]
    return {
      one: fc.oneof({ maxDepth: 3, depthIdentifier: 'schema' }, whole, tie('schema')),
      schema: fc
        .subarray(Object.keys(rows), { minLength: 1, maxLength: 4 })
        .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, rows[key] as fc.Arbitrary<unknown>])))),
    }
  })
  // Definitions refer to nothing, so that no reference leads back to itself.
  const plain = fc.constantFrom<object | boolean>(
    true,
    false,
    { type: 'string' },
    { minLength: 2 },
    { required: ['a'] },
  )
  return fc.tuple(schema, plain, plain).map(([document, x, y]) => ({ ...document, $defs: { x, y } }))
}

interface Oracle {
  compile(schema: object): (input: unknown) => boolean
}

const draft06 = new Ajv(OPTIONS)
draft06.addMetaSchema(createRequire(import.meta.url)('ajv/dist/refs/json-schema-draft-06.json') as object)
const draft07 = new Ajv(OPTIONS)
const draft2020 = new Ajv2020(OPTIONS)

/** ajv has no draft-04. */
const draft04: Oracle = { compile: (schema) => draft07.compile(toDraft07(schema) as object) }

function toDraft07(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(toDraft07)
  if (typeof given !== 'object' || given === null) return given
  const out: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(given))
    if (key !== '$schema') out[key] = key === 'enum' ? item : toDraft07(item)
  for (const [limit, exclusive] of LIMITS) {
    if (typeof out[exclusive] !== 'boolean') continue
    if (out[exclusive] && typeof out[limit] === 'number') out[exclusive] = out[limit]
    else delete out[exclusive]
  }
  return out
}

const LIMITS = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const

const DIALECTS: Readonly<Record<Drafts, { readonly $schema?: string; readonly ajv: Oracle }>> = {
  'draft-04': { $schema: 'http://json-schema.org/draft-04/schema#', ajv: draft04 },
  'draft-06': { $schema: 'http://json-schema.org/draft-06/schema#', ajv: draft06 },
  'draft-07': { $schema: 'http://json-schema.org/draft-07/schema#', ajv: draft07 },
  '2019-09': { $schema: 'https://json-schema.org/draft/2019-09/schema', ajv: new Ajv2019(OPTIONS) },
  '2020-12': { $schema: 'https://json-schema.org/draft/2020-12/schema', ajv: draft2020 },
  'no draft': { ajv: draft2020 },
}

/** The code that ajv writes for a nested `oneOf` refers to variables that it did not declare. */
function answerOf(validate: (input: unknown) => boolean, input: unknown): boolean | undefined {
  try {
    return validate(input)
  } catch (error) {
    if (error instanceof ReferenceError || error instanceof TypeError) return undefined
    throw error
  }
}

/** `contains` and `unevaluated…` are left out: ajv has faults there, and `compile.test.ts` has the cases of the specification. */
describe('createValidator', () => {
  for (const [draft, { $schema, ajv }] of Object.entries(DIALECTS)) {
    it(`answers as ajv does to schemas of ${draft}`, () => {
      const validate = createValidator()
      fc.assert(
        fc.property(schemasOf(draft as Drafts), fc.array(value, { minLength: 8, maxLength: 8 }), (document, inputs) => {
          const schema = $schema === undefined ? document : { $schema, ...document }
          const expected = ajv.compile(schema)
          for (const input of inputs) {
            const problem = validate(schema, input)
            assert.equal(
              problem === undefined,
              answerOf(expected, input) ?? problem === undefined,
              JSON.stringify({ schema, input, problem }),
            )
          }
        }),
        runs(300, 300),
      )
    })
  }
})
