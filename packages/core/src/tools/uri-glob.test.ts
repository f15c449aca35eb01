import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseGlob } from './glob.ts'
import { matchesUri, toPlainGlob } from './uri-glob.ts'

function matches(pattern: string, uri: string): boolean {
  const glob = parseGlob(pattern)
  return matchesUri(glob, toPlainGlob(glob), uri)
}

describe('matchesUri', () => {
  for (const [pattern, ...uris] of [
    ['db://h/a%28*', 'db://h/a(', 'db://h/a(1)', 'db://h/a%28', 'db://h/%61%28b'],
    ['db://h/a(*', 'db://h/a%281', 'db://h/a(1'],
    ['db://h/*?b=/c', 'db://h/a?b=/c', 'db://h/a?b=%2Fc'],
    ['db://*=/c', 'db://h/a?b=%2Fc', 'db://h/a?b=/c'],
    ['db://*=%2Fc', 'db://h/a?b=%2Fc'],
    ['db://h/%2A', 'db://h/*', 'db://h/%2a'],
    ['db://h/{a}', 'db://h/{a}'],
  ] as const)
    it(`of ${pattern} is true for ${uris.join(', ')}`, () => {
      for (const uri of uris) assert.equal(matches(pattern, uri), true, uri)
    })

  it('keeps apart what servers keep apart', () => {
    for (const [pattern, uri] of [
      ['db://h/a/b', 'db://h/a%2Fb'],
      ['db://h/%2A', 'db://h/ab'],
      ['db://h/a?b=c&d', 'db://h/a?b=c%26d'],
      ['db://h/a?b=c%2Bd', 'db://h/a?b=c+d'],
      ['db://h/a?b=c', 'db://h/a%3Fb=c'],
      ['https://h/a', 'https://%68/a'],
    ] as const)
      assert.equal(matches(pattern, uri), false, pattern)
  })
})
