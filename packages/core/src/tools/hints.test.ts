import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { certainlyHas, HINTS, possiblyHas } from './hints.ts'
import { defineTool, type ToolAnnotations } from './tool.ts'

const hintsOf = (has: typeof certainlyHas, annotations: ToolAnnotations, hintsTrusted: boolean) =>
  HINTS.filter((hint) => has(defineTool({ name: 'a', annotations, hintsTrusted }), hint))

describe('hints', () => {
  const table: readonly (readonly [ToolAnnotations, trusted: readonly string[], possible: readonly string[]])[] = [
    [{}, ['destructive', 'open-world'], ['destructive', 'open-world']],
    [{ readOnlyHint: true }, ['read-only', 'open-world'], ['read-only', 'destructive', 'open-world']],
    [{ destructiveHint: false }, ['open-world'], ['destructive', 'open-world']],
    [
      { destructiveHint: true, readOnlyHint: true },
      ['read-only', 'open-world'],
      ['read-only', 'destructive', 'open-world'],
    ],
    [{ openWorldHint: false }, ['destructive'], ['destructive', 'open-world']],
    [
      { idempotentHint: true },
      ['destructive', 'idempotent', 'open-world'],
      ['destructive', 'idempotent', 'open-world'],
    ],
  ]
  for (const [annotations, trusted, possible] of table) {
    it(`of ${JSON.stringify(annotations)} are taken at their word where trusted, and as a warning where not`, () => {
      assert.deepEqual(hintsOf(certainlyHas, annotations, true), trusted)
      assert.deepEqual(hintsOf(possiblyHas, annotations, true), trusted)
      assert.deepEqual(hintsOf(certainlyHas, annotations, false), [])
      assert.deepEqual(hintsOf(possiblyHas, annotations, false), possible)
    })
  }

  it('take only true and false: an upstream that says something else has said nothing', () => {
    const odd = { readOnlyHint: 'true', destructiveHint: 'false' } as object
    assert.deepEqual(hintsOf(certainlyHas, odd, true), ['destructive', 'open-world'])
  })
})
