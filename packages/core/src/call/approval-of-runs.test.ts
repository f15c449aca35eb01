import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import type { ApprovalStore } from '../ports/ports.ts'
import type { Policy } from '../policy/policy.ts'
import { defineTool } from '../tools/tool.ts'
import { InputRequired } from './outcome.ts'

const tools = ['web:fetch', 'crm:get', 'mail:send', 'notes:read'].map((id) => {
  const [namespace, name = ''] = id.split(':')
  return defineTool({
    namespace,
    name,
    addressees: ['to'],
    execute: (_, { context }) => (context === 'ask' ? new InputRequired({ more: true }) : `output of ${id}`),
  })
})
const POLICY: Policy = {
  ask: [
    { match: 'mail:send', id: 'tainted', when: "'untrusted' in run.labels", message: 'Look at the address.' },
    { match: 'mail:send', id: 'private', when: "'private' in run.labels" },
  ],
}
const approver = { user: 'ada', roles: ['approver'] }
const run = { id: 'r1' }
const mail = { tool: 'mail:send', input: { to: 'a@b.test' }, run }

async function make(wrap: (store: ApprovalStore) => ApprovalStore = (store) => store) {
  const gate = createGate({
    tools,
    policy: POLICY,
    labels: { trusted: ['notes:*'], private: ['crm:*'] },
    approvals: wrap(memoryApprovals()),
  })
  const view = await gate.view({ user: 'vera' })
  const ask = async () => {
    const outcome = await view.call(mail)
    assert.ok(outcome.status === 'waiting', outcome.text)
    return { outcome, approval: outcome.approval }
  }
  const approve = async (id: string) => void (await gate.approvals.decide(approver, id, { decision: 'approve' }))
  return { view, ask, approve }
}

describe('an approval because of what the run has done', () => {
  it('tells the model and the person what it has read', async () => {
    const { view, ask } = await make()
    assert.equal((await view.call(mail)).status, 'done', 'nothing was read yet')
    await view.call({ tool: 'web:fetch', run })
    const { outcome, approval } = await ask()
    const because = 'Look at the address. This run has read mail:send, web:fetch, whose output is untrusted.'
    assert.equal(outcome.text, `Waiting for approval of mail:send. ${because}`)
    assert.equal(
      approval.why,
      `${because} policy "policy 1" asks for approval of tainted, when 'untrusted' in run.labels`,
    )
  })

  it('is used where nothing has changed, or nothing that counts', async () => {
    const { view, ask, approve } = await make()
    await view.call({ tool: 'web:fetch', run })
    await approve((await ask()).approval.id)
    await view.call({ tool: 'web:fetch', run })
    await view.call({ tool: 'notes:read', run })
    assert.equal((await view.call(mail)).status, 'done')
  })

  it('is asked for again where another clause asks', async () => {
    const { view, ask, approve } = await make()
    await view.call({ tool: 'web:fetch', run })
    const first = (await ask()).approval.id
    await approve(first)
    await view.call({ tool: 'crm:get', run })
    const second = (await ask()).approval
    assert.notEqual(second.id, first)
    assert.match(second.why ?? '', /crm:get, whose output is labelled private/)
    const refused = await view.call({ ...mail, spends: first })
    assert.ok(refused.status === 'refused')
    assert.equal(refused.decision.reasons[0]?.code, 'approval_required')
    await approve(second.id)
    assert.equal((await view.call(mail)).status, 'done')
  })

  it('is asked for again in a later round, where another clause asks', async () => {
    const { view, ask, approve } = await make()
    await view.call({ tool: 'web:fetch', run })
    await approve((await ask()).approval.id)
    const first = await view.call({ ...mail, context: 'ask' })
    assert.ok(first.status === 'input_required', first.text)
    const next = { ...mail, continues: first.continues }
    await view.call({ tool: 'crm:get', run })
    const second = await view.call(next)
    assert.ok(second.status === 'waiting', second.text)
    assert.match(second.approval.why ?? '', /asks for approval of private/)
  })

  it('is not enough where the run has read more while it was taken', async () => {
    let meanwhile = async (): Promise<unknown> => undefined
    const { view, ask, approve } = await make((store) => ({
      ...store,
      async consume(...given) {
        await meanwhile()
        return store.consume(...given)
      },
    }))
    await view.call({ tool: 'web:fetch', run })
    const { id } = (await ask()).approval
    await approve(id)
    meanwhile = () => view.call({ tool: 'crm:get', run })
    const refused = await view.call(mail)
    assert.ok(refused.status === 'refused', refused.text)
    assert.equal(refused.decision.reasons[0]?.code, 'approval_required')
  })
})
