import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RuleChange } from '../../model/reload.ts'
import { describeChanges } from './describe-rules.ts'

const rule = (what: RuleChange['what'], kind: string, clause: object | string, more = ''): RuleChange => ({
  section: 'policy',
  what,
  name: `base: ${kind}: ${typeof clause === 'string' ? clause : JSON.stringify(clause)}${more}`,
})

describe('describeChanges', () => {
  it('shows a clause with its fields, each in a line', () => {
    const clause = { match: ['files:*', 'web:*'], when: "'a' in caller.roles", message: 'One.\nTwo.' }
    assert.deepEqual(describeChanges([rule('added', 'deny', clause, ' #2'), rule('removed', 'ask', 'tag:x')]), [
      '+ policy: base: deny: files:*, web:* #2',
      "    when: 'a' in caller.roles",
      '    message: "One.\\nTwo."',
      '- policy: base: ask: tag:x',
    ])
  })

  it('finds a changed clause by its id, or else its match, and shows what differs', () => {
    const before = { id: 'drafts', match: 'tag:write', input: 'a', mode: 'shadow' }
    const { mode: _, ...after } = { ...before, match: 'tag:w', unless: 'b' }
    const changes = [
      rule('removed', 'deny', before),
      rule('removed', 'deny', { match: 'x', when: 'c' }),
      rule('added', 'deny', after),
      rule('added', 'ask', { match: 'x', when: 'c' }),
      rule('added', 'deny', { match: 'x', when: 'd' }),
    ]
    assert.deepEqual(describeChanges(changes), [
      '~ policy: base: deny: drafts',
      '  - match: tag:write',
      '  - mode: shadow',
      '  + match: tag:w',
      '  + unless: b',
      '~ policy: base: deny: x',
      '  - when: c',
      '  + when: d',
      '+ policy: base: ask: x',
      '    when: c',
    ])
  })

  it('leaves what is no clause as it is', () => {
    assert.deepEqual(
      describeChanges([
        { section: 'servers', what: 'changed', name: 'files', fields: ['args'] },
        rule('added', 'deny', '{"match": broken}'),
        { section: 'limits', what: 'added', name: 'a: deny: {"match":"x"}' },
      ]),
      ['~ servers: files (args)', '+ policy: base: deny: {"match": broken}', '+ limits: a: deny: {"match":"x"}'],
    )
  })
})
