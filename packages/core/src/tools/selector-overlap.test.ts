import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSelector } from './selector.ts'
import { selectorsOverlap } from './selector-overlap.ts'

const ALIASES = Object.assign(new Map(), { aliases: new Map([['exec', 'sh:bash']]) })
const overlap = (a: string, b: string): boolean =>
  selectorsOverlap(parseSelector(a, ALIASES), parseSelector(b, ALIASES))

describe('selectorsOverlap', () => {
  for (const [a, b, expected] of [
    ['files:read', 'files:read', true],
    ['files:read', 'files:*', true],
    ['files:read', 'web:*', false],
    ['files:read_*', 'files:*', true],
    ['files:read_*', 'files:write_*', false],
    ['files:*_file', 'files:read_*', true],
    ['files:*_file', 'files:*_folder', false],
    ['files:a*b*c', 'files:*x*', true],
    ['*:delete_*', 'files:*', true],
    ['*:delete_*', 'files:read', false],
    ['*', 'files:*', true],
    ['*', 'search', true],
    ['search', 'files:*', false],
    ['search', 'sea*', true],
    ['fi*:read', 'files:*', true],
    ['fi*:read', 'web:*', false],
    ['exec', 'sh:*', true],
    ['tag:read', 'tag:read', true],
    ['tag:read', 'tag:write', false],
    ['tag:read', '*', false],
  ] as const)
    it(`says that some tool ${expected ? 'can match' : 'cannot match'} both ${a} and ${b}`, () => {
      assert.equal(overlap(a, b), expected)
      assert.equal(overlap(b, a), expected)
    })
})
