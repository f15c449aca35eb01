import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Group, parseGroups } from './groups.ts'

describe('parseGroups', () => {
  it('reads the selectors of each group, and takes who joins it', () => {
    const { selectors } = parseGroups({ web: { tools: ['browser:*', 'tag:net'] } })
    assert.deepEqual(
      selectors.get('web')?.map(({ kind }) => kind),
      ['glob', 'tag', 'joined'],
    )
  })

  it('knows what each conditional group stands on, itself first, through groups that are always visible', () => {
    const { conditional } = parseGroups({
      a: { tools: [], visibility: 'conditional', dependsOn: ['b'] },
      b: { tools: [], dependsOn: ['c'] },
      c: { tools: [], visibility: 'conditional' },
      d: { tools: [] },
    })
    const requires = [...conditional].map(([name, { requires: below }]) => [name, below])
    assert.deepEqual(requires, [
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
    assert.throws(() => parseGroups(groups), { path: 'groups.b.dependsOn', problem: 'a cycle: b → c → b' })
  })

  it('refuses a group that depends on itself', () => {
    assert.throws(() => parseGroups({ a: { tools: [], dependsOn: ['a'] } }), { problem: 'a cycle: a → a' })
  })

  it('refuses an unknown dependency, and names the groups that there are', () => {
    assert.throws(() => parseGroups({ a: { tools: [], dependsOn: ['toString'] } }), {
      path: 'groups.a.dependsOn[0]',
      problem: 'no group is named "toString"; the groups are a',
    })
  })

  it('names every unknown dependency of a group, each with the nearest group', () => {
    assert.throws(() => parseGroups({ web: { tools: [] }, a: { tools: [], dependsOn: ['wbe', 'nothing', 'web'] } }), {
      path: 'groups.a.dependsOn[0]',
      problem: 'no group is named "wbe" (did you mean "web"?) or "nothing"; the groups are web, a',
    })
  })

  it('refuses an unknown visibility, and names the allowed ones', () => {
    for (const [visibility, said] of [
      ['condtional', /must be always or conditional, not "condtional"; did you mean "conditional"\?/],
      ['hidden', /must be always or conditional, not "hidden"/],
      [null, /must be always or conditional, not null/],
    ] as const)
      assert.throws(() => parseGroups({ a: { tools: [], visibility: visibility as 'always' } }), {
        path: 'groups.a.visibility',
        problem: said,
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

  it('takes a group with probes for a conditional one, and refuses to call it always visible', () => {
    const { conditional, probed } = parseGroups({ a: { tools: [], availableWhen: [() => true] }, b: { tools: [] } })
    assert.deepEqual([...conditional.keys()], ['a'])
    assert.equal(probed, true)
    assert.equal(parseGroups({ b: { tools: [] } }).probed, false)
    assert.throws(() => parseGroups({ a: { tools: [], visibility: 'always', availableWhen: [() => true] } }), {
      path: 'groups.a.visibility',
    })
  })

  it('refuses what is no probe, no time and no loader, and says where', () => {
    const wrong = [
      [{ availableWhen: ['tcp:1'] }, 'groups.a.availableWhen[0]'],
      [{ availableWhen: [{ key: 'k', ask: () => true, timeoutMs: 0 }] }, 'groups.a.availableWhen[0].timeoutMs'],
      [{ availableWhen: () => true }, 'groups.a.availableWhen'],
      [{ ttlMs: Number.NaN }, 'groups.a.ttlMs'],
      [{ load: [] }, 'groups.a.load'],
      [{ load: () => [], loadTimeoutMs: -1 }, 'groups.a.loadTimeoutMs'],
      [{ dependsOn: 'b' }, 'groups.a.dependsOn'],
    ] as unknown as [Partial<Group>, string][]
    for (const [group, path] of wrong) assert.throws(() => parseGroups({ a: { tools: [], ...group } }), { path })
  })

  it('answers at once for a thousand groups that each need the next', () => {
    const names = Array.from({ length: 1000 }, (_, i) => `g${i}`)
    const chain = names.map((name, i): [string, Group] => [
      name,
      { tools: [], visibility: 'conditional', dependsOn: names.slice(i + 1, i + 2) },
    ])
    assert.equal(parseGroups(new Map(chain)).conditional.get('g0')?.requires.length, 1000)
  })

  it('answers at once for dependencies that meet again and again', () => {
    const groups: Record<string, Group> = {}
    for (let level = 0; level < 60; level++) {
      const dependsOn = level === 59 ? [] : [`left-${level + 1}`, `right-${level + 1}`]
      for (const side of ['left', 'right'])
        groups[`${side}-${level}`] = { tools: [], visibility: 'conditional', dependsOn }
    }
    assert.equal(parseGroups(groups).conditional.get('left-0')?.requires.length, 119)
  })
})
