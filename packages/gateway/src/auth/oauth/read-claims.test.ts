import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { claimAt } from './read-claims.ts'

describe('claimAt', () => {
  it('finds names with dots and slashes, and paths through them', () => {
    const claims = {
      sub: 'ann',
      'https://acme.com/roles': ['a'],
      'https://acme.com/app': { roles: ['b'] },
      realm_access: { roles: ['c'] },
      resource_access: { 'tool.gate': { roles: ['d'] }, tool: { gate: { roles: ['e'] }, other: 1 } },
    }
    const cases: readonly (readonly [string, unknown])[] = [
      ['sub', 'ann'],
      ['https://acme.com/roles', ['a']],
      ['https://acme.com/app.roles', ['b']],
      ['realm_access.roles', ['c']],
      // The longest name is taken.
      ['resource_access.tool.gate.roles', ['d']],
      ['resource_access.tool.other', 1],
      ['resource_access.none.roles', undefined],
      ['sub.length', undefined],
      ['realm_access.', undefined],
      ['.sub', undefined],
      ['', undefined],
      ['constructor', undefined],
      ['realm_access.constructor', undefined],
      ['realm_access.roles.0', undefined],
    ]
    for (const [path, value] of cases) assert.deepEqual(claimAt(claims, path), value, path)
  })

  it('takes a name before a path', () => {
    assert.equal(claimAt({ 'a.b': 1, a: { b: 2 } }, 'a.b'), 1)
  })
})
