import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { LIBRARY, TYPES } from './library.ts'

const GUIDE = readFileSync(new URL('../../../../docs/guide/conditions.md', import.meta.url), 'utf8')

/** Returns the names in code in a row of the table of what conditions have. */
function namesIn(row: string): readonly string[] {
  const line = GUIDE.split('\n').find((one) => one.startsWith(`| ${row} |`)) ?? ''
  return [...line.matchAll(/`([A-Za-z_.]+)`/g)].map(([, name]) => name ?? '')
}

describe('the table of CEL in docs/guide/conditions.md', () => {
  it('names every function of the library, and no other', () => {
    const named = ['conversions', 'sizes', 'texts', 'times'].flatMap(namesIn)
    assert.deepEqual(named.toSorted(), [...new Set(LIBRARY.map(({ name }) => name))].toSorted())
  })

  it('names every type, and no other', () => {
    const named = namesIn('types').map((name) => (name === 'null' ? 'null_type' : name))
    assert.deepEqual(named.toSorted(), [...TYPES.keys()].toSorted())
  })
})
