import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RunScope } from '../call/run-source.ts'
import type { AuditRecord } from '../ports/ports.ts'
import { memoryAudit } from '../audit/memory.ts'
import { defineTool } from '../tools/tool.ts'
import { createGate } from './gate.ts'

const tools = ['web:fetch', 'mail:send', 'notes:read'].map((id) => {
  const [namespace, name = ''] = id.split(':')
  return defineTool({ namespace, name, execute: () => `the output of ${id}` })
})
const policy = [
  { allow: ['web:*', 'mail:*'], deny: [{ match: 'mail:send', when: "'untrusted' in run.labels", message: 'read' }] },
]

function gateOf(scopes: Readonly<Record<string, RunScope>>) {
  const audit = memoryAudit()
  const gate = createGate({ tools, policy, audit, runs: { of: ({ run = '' }) => scopes[run] } })
  return { gate, audit }
}

describe('the run of a caller', () => {
  const whole: RunScope = { run: { id: 'a' }, policy: [] }

  it('is narrowed by its policies, which grant nothing', async () => {
    const { gate } = gateOf({ a: { run: { id: 'a' }, policy: [{ allow: ['web:*', 'notes:*'] }] } })
    const view = await gate.view({ user: 'vera', run: 'a' })
    assert.deepEqual(view.ids, ['web:fetch'])
    assert.equal((await view.call({ tool: 'mail:send', input: {} })).status, 'refused')
    assert.deepEqual((await gate.view({ user: 'vera', run: 'a' }, { activeTools: ['mail:send', 'web:fetch'] })).ids, [
      'web:fetch',
    ])
  })

  it('sees nothing once it is over, or where its policy cannot be used', async () => {
    const { gate } = gateOf({ bad: { run: { id: 'bad' }, policy: [{ deny: ['group:none'] }] } })
    assert.deepEqual((await gate.view({ user: 'vera', run: 'gone' })).ids, [])
    assert.deepEqual((await gate.view({ user: 'vera', run: 'bad' })).ids, [])
    assert.equal((await gate.view({ user: 'vera' })).size, 2)
  })

  it('has the history of its calls, in every session and whatever the call names, and is recorded', async () => {
    const { gate, audit } = gateOf({
      a: whole,
      b: { run: { id: 'b', history: 'a' }, policy: [] },
      c: { run: { id: 'c' }, policy: [] },
    })
    const call = async (run: string, tool: 'web:fetch' | 'mail:send', more = {}) =>
      (await (await gate.view({ user: 'vera', run, session: 's' })).call({ tool, input: {}, ...more })).status
    assert.equal(await call('a', 'web:fetch', { run: { id: 'mine' } }), 'done')
    assert.equal(await call('a', 'mail:send', { run: { id: 'other' } }), 'refused')
    assert.equal(await call('b', 'mail:send'), 'refused')
    assert.equal(await call('c', 'mail:send'), 'done')
    const records: readonly AuditRecord[] = audit.query({})
    assert.deepEqual([...new Set(records.map(({ run_id: run }) => run))].toSorted(), ['a', 'b', 'c'])
  })
})
