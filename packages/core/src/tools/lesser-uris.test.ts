import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { lesserUrisOf } from './lesser-uris.ts'

describe('lesserUrisOf', () => {
  for (const [uri, ...lesser] of [
    ['db://h/a:b'],
    ['db://h/a?b=c', 'db://h/a'],
    ['ssh://git@h:22/a', 'ssh://git@h/a', 'ssh://h/a', 'ssh://h:22/a'],
    ['https://h/a;v=1/b;c?d=e%3Bf', 'https://h/a/b', 'https://h/a/b?d=e%3Bf', 'https://h/a;v=1/b;c'],
    ['mail:a@b'],
    ['db://h/a@b:80'],
  ] as const)
    it(`of ${uri} are ${lesser.join(', ') || 'none'}`, () =>
      assert.deepEqual(lesserUrisOf(uri).toSorted(), lesser.toSorted()))
})
