import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RunFacts } from '../../history/facts.ts'
import { defineCaller } from '../../ports/caller.ts'
import { parsePolicies } from '../../policy/parse.ts'
import type { Policy } from '../../policy/policy.ts'
import { defineResource, defineTemplate } from '../../tools/items.ts'
import { defineTool, type Tool } from '../../tools/tool.ts'
import { createToolset } from '../../tools/toolset.ts'
import { outcomeAt } from '../decide.ts'
import { evaluate } from '../evaluation.ts'
import { decideAtCall } from './at-call.ts'
import { indexPolicy } from './clauses.ts'
import { callerEffects, fixedEffects } from './policy.ts'

const caller = defineCaller({ user: 'vera', roles: ['clerk'] })
const TOOLS = [
  defineTool({ namespace: 'mail', name: 'send', addressees: ['to'] }),
  defineTool({ namespace: 'web', name: 'fetch' }),
  defineTool({ namespace: 'pay', name: 'refund' }),
]
const CLEAN: RunFacts = { labels: [], matched: () => false, origin: () => 'user' }
const READ_THE_WEB: RunFacts = { ...CLEAN, labels: ['untrusted'], raisedBy: () => [{ tool: 'web:fetch', atMs: 5 }] }

function indexOf(policy: Policy, tools: readonly Tool[] = TOOLS) {
  return indexPolicy(parsePolicies(policy, new Map())[0]!, 0, createToolset(tools))
}

/** The outcome of a tool in lists, and of a call with those facts. */
function outcomes(policy: Policy, id: string, facts?: RunFacts, input: unknown = {}, tools?: readonly Tool[]) {
  const index = indexOf(policy, tools)
  const at = index.snapshot.indexOf(id)
  const listed = evaluate(index.snapshot, [...fixedEffects(index), ...callerEffects(index, caller)])
  const decision = decideAtCall(index, at, { caller, tool: index.snapshot.tools[at] as Tool, input, facts })
  return {
    listed: outcomeAt(listed, at),
    called: decision.outcome,
    codes: decision.reasons.map(({ code }) => code),
    decision,
  }
}

describe('a clause about the run', () => {
  const tainted = "'untrusted' in run.labels"
  const clauses: readonly (readonly [shows: string, policy: Policy, word: string, code: string])[] = [
    ['a deny with when', { deny: [{ match: 'mail:send', when: tainted }] }, 'deny', 'input_denied'],
    ['a deny with input', { deny: [{ match: 'mail:send', input: tainted }] }, 'deny', 'input_denied'],
    ['an ask with when', { ask: [{ match: 'mail:send', when: tainted }] }, 'ask', 'policy_ask'],
    ['an allow with unless', { allow: [{ match: 'mail:send', unless: tainted }] }, 'deny', 'input_denied'],
    ['an allow with when', { allow: [{ match: 'mail:send', when: `!(${tainted})` }] }, 'deny', 'input_denied'],
    [
      'a deny with unless',
      { deny: [{ match: 'mail:send', when: tainted, unless: "run.called('web:fetch')" }] },
      'deny',
      'input_denied',
    ],
  ]
  for (const [shows, policy, word, code] of clauses) {
    it(`${shows} leaves lists as they are, and is decided at the call`, () => {
      assert.deepEqual(outcomes(policy, 'mail:send', CLEAN).called, 'allow')
      const { listed, called, codes } = outcomes(policy, 'mail:send', READ_THE_WEB)
      assert.deepEqual([listed, called, codes], ['allow', word, [code]])
    })

    it(`${shows} gives its strictest answer where the run is unknown`, () => {
      const { called, codes } = outcomes(policy, 'mail:send')
      assert.deepEqual([called, codes], [word, ['history_unknown']])
    })
  }

  it('still reads the caller in lists, where it allows', () => {
    const policy = (role: string): Policy => ({
      allow: [{ match: 'mail:send', when: `'${role}' in caller.roles`, unless: tainted }],
    })
    assert.equal(outcomes(policy('clerk'), 'mail:send', CLEAN).listed, 'allow')
    assert.equal(outcomes(policy('boss'), 'mail:send', CLEAN).listed, 'deny')
  })

  it('says what it read, with the tools of it', () => {
    const policy: Policy = {
      deny: [{ match: 'mail:send', input: `${tainted} && !run.called('pay:*') && origin(addressees) == 'untrusted'` }],
    }
    const facts: RunFacts = { ...READ_THE_WEB, origin: () => 'untrusted' }
    const { decision } = outcomes(policy, 'mail:send', facts, { to: 'x@evil.test' })
    assert.deepEqual(decision.reasons[0]?.read, [
      { kind: 'label', of: 'untrusted', tools: ['web:fetch'], calls: [{ tool: 'web:fetch', atMs: 5 }] },
      { kind: 'called', of: 'pay:*', fields: [], tools: ['pay:refund'] },
      {
        kind: 'origin',
        of: 'addressees',
        origin: 'untrusted',
        values: [{ field: 'to', value: 'x@evil.test', origin: 'untrusted' }],
      },
    ])
  })

  it('says what it read, where no allow clause holds', () => {
    const policy: Policy = { allow: [{ match: 'mail:send', when: "run.called('pay:refund')" }] }
    assert.deepEqual(
      outcomes(policy, 'mail:send', CLEAN).decision.reasons[0]?.read?.map(({ kind }) => kind),
      ['called'],
    )
  })

  it('is not asked of tools that it is not about', () => {
    const facts: RunFacts = {
      ...CLEAN,
      get labels(): readonly string[] {
        throw new Error('read')
      },
    }
    assert.equal(outcomes({ deny: [{ match: 'mail:send', when: tainted }] }, 'web:fetch', facts).called, 'allow')
  })

  describe('about resources', () => {
    const items = [
      defineResource({ namespace: 'db', name: 'one', uri: 'db://users/1', execute: () => '' }),
      defineTemplate({ namespace: 'db', name: 'all', uriTemplate: 'db://users/{id}' }),
    ]
    const all = ['resource:db:*']

    it('is decided when one is read, and not in lists', () => {
      const policy: Policy = { allow: all, deny: [{ match: 'resource:db:db://users/1', when: tainted }] }
      const { listed, called } = outcomes(
        policy,
        'resource:db:db://users/1',
        READ_THE_WEB,
        { uri: 'db://users/1' },
        items,
      )
      assert.deepEqual([listed, called], ['allow', 'deny'])
    })

    it('denies a resource with the template that may match it', () => {
      const policy: Policy = { allow: all, deny: [{ match: 'resource:db:db://users/{id}', when: tainted }] }
      const input = { uri: 'db://users/1' }
      assert.equal(outcomes(policy, 'resource:db:db://users/1', READ_THE_WEB, input, items).called, 'deny')
      assert.equal(outcomes(policy, 'resource:db:db://users/1', CLEAN, input, items).called, 'allow')
    })

    it('leaves the URI to be judged in lists', () => {
      const policy: Policy = {
        allow: [{ match: 'resource:db:*', when: "run.called('a')" }],
        deny: [{ match: 'resource:db:*', input: "input.uri == 'db://users/1'" }],
      }
      assert.equal(outcomes(policy, 'resource:db:db://users/1', CLEAN, {}, items).listed, 'deny')
      assert.equal(outcomes({ allow: policy.allow! }, 'resource:db:db://users/1', CLEAN, {}, items).listed, 'allow')
    })
  })
})
