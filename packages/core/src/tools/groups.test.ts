import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Group, parseGroups } from './groups.ts'

describe('parseGroups', () => {
  it('reads the selectors of each group', () => {
    const { selectors } = parseGroups({ web: { tools: ['browser:*', 'tag:net'] } })
    assert.deepEqual(
      selectors.get('web')?.map(({ kind }) => kind),
      ['glob', 'tag'],
    )
  })

  it('knows what each conditional group stands on, itself first, through groups that are always visible', () => {
    const { conditional } = parseGroups({
      a: { tools: [], visibility: 'conditional', dependsOn: ['b'] },
      b: { tools: [], dependsOn: ['c'] },
      c: { tools: [], visibility: 'conditional' },
      d: { tools: [] },
    })
    const standsOn = [...conditional].map(([name, { standsOn: below }]) => [name, below])
    assert.deepEqual(standsOn, [
      ['a', ['a', 'c']],
      ['b', ['c']],
      ['c', ['c']],
    ])
  })

  it('takes a Map, and names that objects have', () => {
    const group: Group = { tools: ['a'], visibility: 'conditional' }
    const { conditional } = parseGroups(new Map([['__proto__', group]]))
    assert.deepEqual([...conditional.keys()], ['__proto__'])
    assert.equal(parseGroups({}).conditional.get('constructor'), undefined)
  })

  it('refuses a circle, and shows it', () => {
    const groups = {
      a: { tools: [], dependsOn: ['b'] },
      b: { tools: [], dependsOn: ['c'] },
      c: { tools: [], dependsOn: ['b'] },
    }
    assert.throws(() => parseGroups(groups), { path: 'groups.a.dependsOn', problem: 'a cycle: a → b → c → b' })
  })

  it('refuses a group that depends on itself', () => {
    assert.throws(() => parseGroups({ a: { tools: [], dependsOn: ['a'] } }), { problem: 'a cycle: a → a' })
  })

  it('refuses an unknown dependency, and names the groups that there are', () => {
    assert.throws(() => parseGroups({ a: { tools: [], dependsOn: ['toString'] } }), {
      path: 'groups.a.dependsOn',
      problem: 'no group is named "toString"; the groups are a',
    })
  })

  it('refuses a selector that cannot be read, and says where', () => {
    assert.throws(() => parseGroups({ a: { tools: ['b', 'group:a'] } }), {
      code: 'selector_invalid',
      path: 'groups.a.tools[1]',
    })
  })

  it('refuses a group without a list of tools', () => {
    assert.throws(() => parseGroups({ a: {} as Group }), { path: 'groups.a.tools', problem: /must be a list/ })
  })

  it('answers at once for dependencies that meet again and again', () => {
    const groups: Record<string, Group> = {}
    for (let level = 0; level < 60; level++) {
      const dependsOn = level === 59 ? [] : [`left-${level + 1}`, `right-${level + 1}`]
      for (const side of ['left', 'right'])
        groups[`${side}-${level}`] = { tools: [], visibility: 'conditional', dependsOn }
    }
    assert.equal(parseGroups(groups).conditional.get('left-0')?.standsOn.length, 119)
  })
})
