import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../../gate/gate.ts'
import { defineTool } from '../../tools/tool.ts'
import type { Policy } from '../../policy/policy.ts'

/** Texts that a server may take for /etc/passwd. */
const TRICKS = [
  '//etc/passwd',
  ' /etc/passwd',
  '/etc/passwd ',
  'file:///etc/passwd',
  '/a/%2e%2e/etc/passwd',
  '/%65tc/passwd',
  '/ETC/passwd',
  '/etc./passwd',
  '../../etc/passwd',
  '/a\\..\\..\\etc',
]

async function call(policy: Policy, input: object) {
  const gate = createGate({ tools: [defineTool({ name: 'read', execute: () => 'done' })], policy })
  const view = await gate.view({ user: 'vera', attributes: { home: ' /home/vera' } })
  const outcome = await view.call({ tool: 'read', input })
  const reasons = outcome.status === 'refused' ? outcome.decision.reasons.map(({ code }) => code) : []
  return { status: outcome.status, text: outcome.text, reasons }
}

describe('a path that servers may read differently', () => {
  const rules: readonly (readonly [Policy, { status: string; code?: string }])[] = [
    [{ deny: [{ match: 'read', input: "within(input.path, '/etc')" }] }, { status: 'refused', code: 'input_denied' }],
    [{ deny: [{ match: 'read', input: "!within(input.path, '/w')" }] }, { status: 'refused', code: 'input_denied' }],
    [{ ask: [{ match: 'read', input: "within(input.path, '/etc')" }] }, { status: 'waiting' }],
    [{ ask: [{ match: 'read', input: "!within(input.path, '/w')" }] }, { status: 'waiting' }],
    [{ allow: [{ match: 'read', input: "within(input.path, '/w')" }] }, { status: 'refused', code: 'input_denied' }],
    [{ allow: [{ match: 'read', input: "!within(input.path, '/etc')" }] }, { status: 'refused', code: 'input_denied' }],
    [
      { deny: [{ match: 'read', input: "['/etc', '/root'].exists(root, within(input.path, root))" }] },
      { status: 'refused', code: 'input_denied' },
    ],
    [
      { deny: [{ match: 'read', input: "within(input.path, '/etc') ? true : false" }] },
      { status: 'refused', code: 'input_denied' },
    ],
  ]
  for (const [policy, expected] of rules) {
    it(`gets the strict answer of ${JSON.stringify(policy)}`, async () => {
      for (const path of TRICKS) {
        const { status, reasons } = await call(policy, { path })
        assert.equal(status, expected.status, path)
        if (expected.code) assert.deepEqual(reasons, [expected.code], path)
      }
    })
  }

  it('exempts nobody, and an exemption asks about it', async () => {
    const unless = (condition: string): Policy => ({ deny: [{ match: 'read', unless: condition }] })
    assert.equal((await call(unless("within(caller.attributes.home, '/home')"), {})).status, 'refused')
    assert.equal((await call(unless("!within(caller.attributes.home, '/etc')"), {})).status, 'refused')
  })

  it('is told the message of the rule', async () => {
    for (const input of ["!within(input.path, '/w')", "within(input.path, '/etc')"]) {
      const { text } = await call({ deny: [{ match: 'read', input, message: 'Only below /w.' }] }, { path: '//etc/x' })
      assert.equal(text, 'TOOL_CALL_BLOCKED: Only below /w.')
    }
  })

  it('passes as before where every reader agrees', async () => {
    for (const path of ['/w/a b.txt', 'src/x.ts', '/w/\u00fcber.md', '/w/a%20b', ''])
      assert.equal(
        (await call({ deny: [{ match: 'read', input: "!within(input.path, '/w')" }] }, { path })).status,
        'done',
      )
    for (const path of ['/w/a b.txt', '/home/\u00fcber.md', '/etcetera/a%20b', '/w/etc'])
      assert.equal(
        (await call({ deny: [{ match: 'read', input: "within(input.path, '/etc')" }] }, { path })).status,
        'done',
      )
  })
})
