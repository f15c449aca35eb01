import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Policy } from '@toolgate/core'
import fc from 'fast-check'
import { rightsKeyOf } from './equal-rights.ts'

const TOOLS = [
  { namespace: 'files', name: 'read' },
  { namespace: 'files', name: 'write', requiredScopes: ['w'] },
  { namespace: 'pay', name: 'send' },
].map((tool) => defineTool({ ...tool, inputSchema: { type: 'object' }, execute: () => 'done' }))
const VERA: Caller = { user: 'vera', tenant: 'acme', roles: ['a', 'b'] }
const NORA: Caller = { user: 'nora', tenant: 'acme', roles: ['b', 'a'] }

async function keysOf(policy: Policy, callers: readonly Caller[]): Promise<number> {
  const gate = createGate({ tools: TOOLS, policy })
  const keyOf = await rightsKeyOf(gate)
  await gate.close()
  return new Set(callers.map(keyOf)).size
}

const allowedIf = (when: string): Policy => ({ allow: [{ match: '*', when }] })

/** Conditions, among them ones that read a caller in ways that no text search recognises. */
const CONDITIONS = [
  "'a' in caller.roles",
  "caller.roles[0] == 'a'",
  'size(caller.roles) > 1',
  "caller.roles.exists(caller, caller == 'a')",
  "['a', 'b'].all(one, one in caller.roles)",
  "caller.tenant == 'acme'",
  "caller.tenant in ['acme', 'other']",
  "'acme' != caller.tenant",
  'has(caller.tenant)',
  "caller.user == 'vera'",
  "has(caller.user) && caller.user.startsWith('v')",
  "caller['us' + 'er'] == 'vera'",
  'caller.user == caller.tenant',
  "has(caller.client) && caller . client == 'cli'",
  "'w' in caller.scopes",
  "caller.scopes[0] == 'w'",
  "caller.attributes.team == 'x'",
  'caller.attributes.isLead',
  "'team' in caller.attributes",
  "has(caller.chat) && caller.chat.type == 'group'",
  "cel.bind(who, caller, who.user == 'vera')",
  "tool.id == 'pay:send'",
]

const text = (...texts: readonly string[]) => fc.option(fc.constantFrom(...texts), { nil: undefined })
const list = (...texts: readonly string[]) => fc.array(fc.constantFrom(...texts), { maxLength: 3 })
const aCaller: fc.Arbitrary<Caller> = fc
  .record({
    user: text('vera', 'nora', 'acme'),
    tenant: text('acme', 'other', 'third'),
    roles: list('a', 'b', 'c'),
    scopes: list('w', 'r'),
    client: text('cli', 'web'),
    chat: fc.option(fc.record({ id: fc.constant('c'), type: fc.constantFrom('group', 'dm') }), { nil: undefined }),
    attributes: fc.option(
      fc.constantFrom<Record<string, string | boolean>>(
        { team: 'x' },
        { team: 'y' },
        { isLead: true },
        { isLead: false },
        {},
      ),
      { nil: undefined },
    ),
  })
  .map((fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))
const aClause = fc.record(
  {
    match: fc.constantFrom('*', 'files:*', 'pay:send'),
    when: fc.constantFrom(...CONDITIONS),
    unless: fc.constantFrom(...CONDITIONS),
    input: fc.constantFrom(...CONDITIONS),
  },
  { requiredKeys: ['match'] },
)
const aPolicy: fc.Arbitrary<Policy> = fc.record(
  {
    allow: fc.array(aClause, { maxLength: 3 }),
    deny: fc.array(aClause, { maxLength: 2 }),
    ask: fc.array(aClause, { maxLength: 2 }),
  },
  { requiredKeys: [] },
)

describe('rightsKeyOf', () => {
  it('gives callers with one key the same decisions, whatever policies read', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(aPolicy, { minLength: 1, maxLength: 2 }),
        fc.array(aCaller, { minLength: 2, maxLength: 12 }),
        async (policy, callers) => {
          const gate = createGate({ tools: TOOLS, policy })
          const keyOf = await rightsKeyOf(gate)
          const known = new Map<string, unknown>()
          for (const caller of callers) {
            const view = await gate.view(caller)
            const seen = TOOLS.map(({ id }) => {
              const { outcome, reasons, mayStill } = view.explain(id)
              return [
                id,
                view.has(id),
                outcome,
                reasons.map((one) => one.text),
                mayStill.map((one) => [one.outcome, one.on]),
              ]
            })
            const key = keyOf(caller)
            if (known.has(key)) assert.deepEqual(seen, known.get(key), `${JSON.stringify(caller)} has the key ${key}`)
            known.set(key, seen)
          }
          await gate.close()
        },
      ),
      { numRuns: 300 },
    )
  })

  it('is one key for everybody whom no rule names', async () => {
    assert.equal(await keysOf(allowedIf("'a' in caller.roles && caller.tenant == 'acme'"), [VERA, NORA]), 1)
    const named = allowedIf("caller.user == 'zoe' || 'z' in caller.roles")
    assert.equal(await keysOf(named, [VERA, NORA, { user: 'tom', roles: ['c'], attributes: { mail: 'tom@x' } }]), 1)
    assert.equal(await keysOf(named, [VERA, { user: 'zoe' }, { user: 'tom', roles: ['z'] }]), 3)
  })

  it('keeps callers apart whom a rule may tell apart', async () => {
    for (const when of CONDITIONS.filter((one) => one.includes('user')))
      assert.equal(await keysOf(allowedIf(when), [VERA, NORA]), 2, when)
    assert.equal(await keysOf(allowedIf('size(caller.roles) > 2'), [VERA, { ...VERA, roles: ['a', 'b', 'c'] }]), 2)
    assert.equal(await keysOf({}, [VERA, { ...VERA, scopes: ['w'] }]), 2)
  })

  it('keeps everybody apart if a function decides', async () => {
    assert.equal(await keysOf({ allow: [{ match: '*', when: () => true }] }, [VERA, NORA]), 2)
    assert.equal(await keysOf({ decide: () => 'allow' } as Policy, [VERA, NORA]), 2)
  })
})
