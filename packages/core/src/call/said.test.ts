import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import { type CallContext, defineTool } from '../tools/tool.ts'
import { enterSaid, raiseLabels } from './history.ts'

const VERA = { user: 'vera' }
const send = defineTool({ namespace: 'mail', name: 'send', execute: () => 'sent' })

/** A trusted tool that does something during its call. */
function gateOf(during: (call: CallContext) => unknown, policy: object, audit = memoryAudit()) {
  const read = defineTool({
    namespace: 'crm',
    name: 'read',
    execute: async (_, call) => {
      await during(call)
      return 'read'
    },
  })
  return createGate({ tools: [read, send], labels: { trusted: ['crm:*', 'mail:*'], private: [] }, policy, audit })
}

describe('raiseLabels', () => {
  const AFTER_PRIVATE = { deny: [{ match: 'mail:send', when: "'private' in run.labels", message: 'After private.' }] }

  it('raises a label in the run, also of a call that had nothing else to enter', async () => {
    let labels: readonly string[] = []
    const gate = gateOf((call) => raiseLabels(call, labels), AFTER_PRIVATE)
    const view = await gate.view(VERA)
    const run = { id: 'a' }
    const call = async (tool: string) => (await view.call({ tool, input: {}, run })).status
    assert.deepEqual(
      [await call('crm:read'), await call('crm:read'), await call('mail:send')],
      ['done', 'done', 'done'],
    )
    labels = ['private']
    assert.equal(await call('crm:read'), 'done')
    assert.equal(await call('mail:send'), 'refused')
    assert.equal((await view.call({ tool: 'mail:send', run: { id: 'b' } })).status, 'done', 'another run')
  })

  it('makes nothing of a call where no rule reads what happened, or that no gate has made', async () => {
    const gate = gateOf((call) => raiseLabels(call, ['private']), {})
    assert.equal((await (await gate.view(VERA)).call({ tool: 'crm:read' })).status, 'done')
    const foreign = { tool: send, callId: '1', caller: VERA } as unknown as CallContext
    assert.equal(raiseLabels(foreign, ['private']), undefined)
  })
})

describe('an error of a tool', () => {
  it('is its output, with its cause and its data', async () => {
    const policy = { deny: [{ match: 'mail:send', input: "!(origin(input.to) in ['user', 'trusted'])" }] }
    const error = Object.assign(new Error('no', { cause: new Error('ask ann@acme.com') }), { data: ['bob@acme.com'] })
    const gate = gateOf(() => Promise.reject(error), policy)
    const view = await gate.view(VERA)
    await view.call({ tool: 'crm:read' })
    for (const to of ['ann@acme.com', 'bob@acme.com'])
      assert.equal((await view.call({ tool: 'mail:send', input: { to } })).status, 'done')
    assert.equal((await view.call({ tool: 'mail:send', input: { to: 'eve@evil.com' } })).status, 'refused')
  })
})

describe('raiseLabels and the audit', () => {
  it('records them as labels of the call', async () => {
    const audit = memoryAudit()
    const policy = { deny: [{ match: 'mail:send', when: "'private' in run.labels" }] }
    const gate = gateOf((call) => raiseLabels(call, ['private']), policy, audit)
    await (await gate.view(VERA)).call({ tool: 'crm:read', run: { id: 'a' } })
    assert.equal(audit.records.at(-1)?.labels, 'private')
  })
})

describe('enterSaid', () => {
  it('enters a text before the call has ended', async () => {
    const policy = { deny: [{ match: 'mail:send', input: "!(origin(input.to) in ['user', 'trusted'])" }] }
    const seen: string[] = []
    const gate = gateOf(async (call) => {
      const view = await gate.view(VERA)
      const to = async () => (await view.call({ tool: 'mail:send', input: { to: 'bob@acme.com' } })).status
      seen.push(await to())
      await enterSaid(call, { note: 'ask bob@acme.com' })
      seen.push(await to())
    }, policy)
    await (await gate.view(VERA)).call({ tool: 'crm:read' })
    assert.deepEqual(seen, ['refused', 'done'])
  })
})
