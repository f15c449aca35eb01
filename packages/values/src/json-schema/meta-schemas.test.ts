import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { createValidator } from '@toolgate/core/call'
import { metaSchemasOf } from './drafts.ts'

const require = createRequire(import.meta.url)
const validate = createValidator()
const passes = (schema: object, value: unknown) => validate(schema, value) === undefined

const DRAFTS = ['draft-04', 'draft-06', 'draft-07', 'draft/2019-09', 'draft/2020-12']
const uriOf = (draft: string) => `http${draft.includes('/') ? 's' : ''}://json-schema.org/${draft}/schema`

describe('a reference to the meta-schema', () => {
  for (const draft of DRAFTS) {
    const schema = { type: 'object', properties: { schema: { $ref: `${uriOf(draft)}#` } } }
    it(`of ${draft} is followed, in every draft and with either scheme`, () => {
      const schemas = [
        schema,
        { properties: { schema: { $ref: uriOf(draft).replace(/^https?/, 'http') } } },
        { properties: { schema: { $ref: uriOf(draft).replace(/^https?/, 'https') } } },
        ...DRAFTS.map((other) => ({ $schema: uriOf(other), ...schema })),
      ]
      for (const one of schemas) {
        const ok = { type: 'object', properties: { a: { type: ['string', 'null'], minLength: 1, enum: ['x'] } } }
        assert.equal(validate(one, { schema: ok }), undefined)
        for (const wrong of [7, { type: 'text' }, { minLength: -1 }, { properties: { a: { items: { type: 5 } } } }])
          assert.equal(passes(one, { schema: wrong }), false, JSON.stringify([one, wrong]))
      }
    })
  }

  it('reads the older forms of each draft as it does', () => {
    const at = (draft: string) => ({ $ref: uriOf(draft) })
    const exclusive = { minimum: 1, exclusiveMinimum: true }
    assert.deepEqual(
      DRAFTS.map((draft) => passes(at(draft), exclusive)),
      [true, false, false, false, false],
    )
    assert.deepEqual(
      DRAFTS.map((draft) => passes(at(draft), { items: [{}] })),
      [true, true, true, true, false],
    )
    assert.deepEqual(
      DRAFTS.map((draft) => passes(at(draft), true)),
      [false, true, true, true, true],
    )
    assert.deepEqual(
      DRAFTS.map((draft) => passes(at(draft), { $defs: 7 })),
      [true, true, true, false, false],
    )
  })

  it('leads to its parts and its vocabularies', () => {
    const parts: readonly (readonly [$ref: string, good: unknown, bad: unknown])[] = [
      ['http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger', 1, -1],
      ['https://json-schema.org/draft/2020-12/meta/validation', { type: 'string' }, { type: 'text' }],
      ['https://json-schema.org/schema#/properties/definitions', { a: {} }, { a: 7 }],
    ]
    for (const [$ref, good, bad] of parts) {
      assert.equal(validate({ $ref }, good), undefined, $ref)
      assert.equal(passes({ $ref }, bad), false, $ref)
    }
  })

  it('applies the additions of a document to all schemas inside', () => {
    const $id = 'https://example.com/strict'
    const strict = { $id, $dynamicAnchor: 'meta', $ref: uriOf('draft/2020-12'), unevaluatedProperties: false }
    assert.equal(validate(strict, { properties: { a: { type: 'string' } } }), undefined)
    assert.equal(passes(strict, { properties: { a: { typo: 'string' } } }), false)
  })

  it('does not replace a schema that the document has under that URI', () => {
    const own = { $defs: { a: { $id: 'http://json-schema.org/draft-07/schema', type: 'number' } } }
    assert.equal(passes({ ...own, $ref: 'http://json-schema.org/draft-07/schema#' }, 1), true)
    assert.equal(passes({ ...own, $ref: 'http://json-schema.org/draft-07/schema#' }, {}), false)
  })
})

describe('a `$ref` beside an `$id`, where no draft is named', () => {
  const base = 'http://localhost:1234/sibling_id/'
  const schema = {
    $id: `${base}base/`,
    definitions: { foo: { $id: `${base}foo.json`, type: 'string' }, base: { $id: 'foo.json', maxLength: 3 } },
    allOf: [{ $id: base, $ref: 'foo.json' }],
  }
  it('has to hold as either draft reads it', () => {
    assert.deepEqual([passes(schema, 'abc'), passes(schema, 'abcd'), passes(schema, 1)], [true, false, false])
    const draft = (name: string) => ({ $schema: uriOf(name), ...schema })
    assert.deepEqual([passes(draft('draft-07'), 1), passes(draft('draft-07'), 'abcd')], [true, false])
    assert.deepEqual([passes(draft('draft/2020-12'), 1), passes(draft('draft/2020-12'), 'abcd')], [false, true])
  })
})

describe('an empty `enum`', () => {
  it('refuses every input of its field, and no other', () => {
    const schema = { properties: { a: { enum: [] } } }
    for (const a of [null, '', 0, [], {}])
      assert.deepEqual(validate(schema, { a }), { pointer: '/a', message: 'is not allowed: its enum lists no value' })
    assert.equal(validate(schema, { b: 1 }), undefined)
  })
})

describe('the meta-schemas', () => {
  const AJV: Readonly<Record<string, string>> = {
    'draft-04': 'ajv-draft-04/dist/refs/json-schema-draft-04.json',
    'draft-06': 'ajv/dist/refs/json-schema-draft-06.json',
    'draft-07': 'ajv/dist/refs/json-schema-draft-07.json',
  }
  const fileOf = (key: string) => {
    const draft = Object.keys(AJV).find((name) => key.includes(name))
    const later = key.replace('json-schema.org/draft/', 'ajv/dist/refs/json-schema-')
    return readFileSync(require.resolve((draft && AJV[draft]) ?? `${later}.json`), 'utf8')
  }

  it('are those that are published, without annotations', () => {
    for (const draft of DRAFTS)
      for (const [key, document] of metaSchemasOf(uriOf(draft))?.documents ?? [])
        assert.deepEqual(document, withoutAnnotations(JSON.parse(fileOf(key))), key)
  })
})

const ANNOTATIONS =
  /^(?:title|description|default|\$comment|format|\$vocabulary|content.*|readOnly|writeOnly|deprecated)$/
const MAPS = /^(?:properties|definitions|\$defs|dependencies)$/

function withoutAnnotations(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema
  if (Array.isArray(schema)) return schema.map(withoutAnnotations)
  const kept = Object.entries(schema).filter(([key]) => !ANNOTATIONS.test(key))
  const inside = (key: string, value: object) =>
    MAPS.test(key)
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutAnnotations(one)]))
      : withoutAnnotations(value)
  return Object.fromEntries(kept.map(([key, value]) => [key, inside(key, value as object)]))
}
