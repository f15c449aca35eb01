import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { ApprovalRow, WaitingApprovalsBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig, CALLERS } from './support/keys.ts'
import { startRecordingServer, type RecordingServer } from './support/recording-server.ts'
import { type Era, MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Approvals that need several people, and those that people change, at every door. */

const TASKS = 'io.modelcontextprotocol/tasks'
const WITH_TASKS = {
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} }, extensions: { [TASKS]: {} } },
}
const LEGACY = '2025-11-25'
const FORM = 'application/x-www-form-urlencoded'
let server: RecordingServer
let gateway: TestGateway

before(async () => {
  const properties = { amount: { type: 'number' }, to: { type: 'string' }, password: { type: 'string' } }
  const inputSchema = { type: 'object', properties, required: ['amount'], additionalProperties: false }
  server = await startRecordingServer([
    { name: 'send', inputSchema },
    { name: 'wire', inputSchema },
    { name: 'both', inputSchema },
  ])
  gateway = await startTestGateway({
    servers: [httpServer('pay', server.url)],
    callers: [
      ...CALLERS,
      ...['ada', 'bob'].map((user) => callerConfig(`${user}-key`, { user, roles: ['approver'] }, 'console')),
      callerConfig('flo-key', { user: 'flo', roles: ['finance'] }, 'console'),
      callerConfig('sam-key', { user: 'sam', roles: ['finance', 'security'] }, 'console'),
      callerConfig('viewer-key', { user: 'viewer', roles: ['approver'] }, 'console'),
    ],
    policy: [
      {
        ask: [
          { match: 'pay:send', edit: true },
          { match: 'pay:wire', edit: true, approvers: 2 },
          { match: 'pay:both', approvers: { finance: 1, security: 1 } },
        ],
        deny: [{ match: 'pay:*', input: 'has(input.amount) && input.amount > 1000.0', message: 'More than 1000.' }],
      },
    ],
    search: { offer: 'always' },
  })
})
after(async () => {
  await gateway?.close()
  await server?.close()
})
beforeEach(() => server.forget())

let amount = 100

/** Makes a call that waits. Returns its id, and a function that repeats it. */
async function ask(tool: string, more: object = {}, era: Era = LEGACY) {
  const input = { amount: ++amount, ...more }
  const repeat = async () => {
    const { result } = (
      await gateway.ask('viewer', era, 'tools/call', { name: `pay__${tool}`, arguments: input })
    ).json() as RpcAnswer
    return (result?.content ?? []).map(({ text }) => text ?? '')
  }
  assert.match((await repeat()).join(), /Waiting for approval/)
  return { id: await idOf(input), input, repeat }
}

async function idOf(input: object): Promise<string> {
  const pending = await gateway.gate.approvals.list({ status: 'pending' })
  return pending.find((one) => (one.input as typeof input & { amount: number }).amount === amount)?.id ?? ''
}

async function say(who: string, id: string, body: object = { decision: 'approve' }) {
  const answer = await gateway.api(`/api/approvals/${id}`, { method: 'POST', body, key: `${who}-key` })
  return { status: answer.status, body: answer.body as ApprovalRow & { error: { code: string; message: string } } }
}

async function page(who: string, id: string, form?: Readonly<Record<string, string>>) {
  const url = `${gateway.url}/approvals/${id}`
  const login = await send(url, {
    headers: { 'content-type': FORM, origin: gateway.url },
    body: new URLSearchParams({ key: `${who}-key` }).toString(),
  })
  const headers = { cookie: String(login.headers['set-cookie']).split(';')[0] ?? '', origin: gateway.url }
  if (form) {
    const body = new URLSearchParams(form).toString()
    const posted = await send(url, { headers: { ...headers, 'content-type': FORM }, body })
    if (posted.status !== 303) return posted.text
  }
  return (await send(url, { method: 'GET', headers })).text
}

const ran = (tool: string) => server.calls(tool).map(({ params }) => (params as { arguments: unknown }).arguments)

describe('an approval by two people', () => {
  it('shows each yes, and runs after the last one', async () => {
    const { id, repeat } = await ask('wire')
    const first = await say('ada', id, { decision: 'approve', reason: 'fine' })
    const { status, needs, mayDecide, deciders } = first.body
    assert.deepEqual([first.status, status, mayDecide], [200, 'pending', true])
    assert.deepEqual([needs?.count, needs?.mayTakeBack], [2, true])
    assert.deepEqual(
      needs?.approvedBy.map(({ by, reason }) => [by, reason]),
      [['ada', 'fine']],
    )
    assert.deepEqual(deciders, ['bob', 'owner'])
    const waits = async (key: string) => {
      const { body } = await gateway.api('/api/approvals/waiting', { key })
      return (body as WaitingApprovalsBody).approvals.find((one) => one.id === id)?.mayDecide
    }
    assert.deepEqual([await waits('ada-key'), await waits('bob-key')], [false, true])
    assert.match((await repeat()).join(), /Waiting for approval/)
    const again = await say('ada', id)
    assert.deepEqual([again.status, again.body.error.code], [409, 'approval_decided'])
    assert.equal((await say('bob', id)).body.status, 'approved')
    assert.equal((await repeat()).join(), 'wire ran')
    assert.equal(ran('wire').length, 1)
  })

  it('refuses the person who asks, says so, and records it', async () => {
    const { id } = await ask('wire')
    const { status, body } = await say('viewer', id)
    assert.deepEqual(
      [status, body.error.code, body.error.message],
      [403, 'approval_needs_other', 'Another person than the one who asked must approve this call.'],
    )
    const { body: audit } = await gateway.api('/api/audit?event=approval_refused')
    const [record] = (audit as { records: readonly Record<string, unknown>[] }).records
    assert.deepEqual(
      [record?.['user_id'], record?.['approval_id'], record?.['reason']],
      ['viewer', id, 'approval_needs_other'],
    )
    await say('ada', id, { decision: 'reject' })
  })

  it('takes a yes back on its page', async () => {
    const { id } = await ask('wire')
    assert.match(await page('ada', id, { decision: 'approve' }), /1 of 2, by ada.*Take my approval back/s)
    assert.match(await page('ada', id, { decision: 'revoke' }), /<dd>0 of 2<\/dd>/)
    await say('ada', id, { decision: 'reject' })
  })

  it('needs one person of each role, in place of approvers', async () => {
    const { id, repeat } = await ask('both')
    assert.equal((await say('ada', id)).body.error.code, 'approval_forbidden')
    const first = await say('sam', id)
    assert.deepEqual([first.body.status, first.body.needs?.roles], ['pending', { finance: 1, security: 1 }])
    assert.match(await page('flo', id), /1 of 2, by sam\. Still needed: security/)
    assert.equal((await say('flo', id)).body.status, 'approved')
    assert.equal((await repeat()).join(), 'both ran')
  })
})

describe('a changed call', () => {
  for (const era of [LEGACY, MODERN] as const)
    it(`runs as a person changed it, and the model is told (${era})`, async () => {
      const { id, input, repeat } = await ask('send', { to: 'bob', password: 'hunter2-hunter2' }, era)
      const { body } = await say('ada', id, { decision: 'approve', input: { to: 'eve' } })
      assert.deepEqual([body.status, body.edit?.input, body.mayEdit], ['approved', { to: 'eve' }, undefined])
      assert.deepEqual(await repeat(), ['A person changed to from "bob" to "eve" before it ran.', 'send ran'])
      assert.deepEqual(ran('send'), [{ ...input, to: 'eve' }])
    })

  it('runs through call_tool and as a task, too', async () => {
    const call = { name: 'pay__send', arguments: { amount: ++amount } }
    const params = { name: 'call_tool', arguments: call, _meta: WITH_TASKS }
    const { result } = (await gateway.ask('viewer', MODERN, 'tools/call', params)).json() as RpcAnswer
    const { taskId } = result as unknown as { taskId: string }
    await say('ada', await idOf(call.arguments), { decision: 'approve', input: { amount: 7 } })
    const task = async () => {
      const got = (await gateway.ask('viewer', MODERN, 'tasks/get', { taskId, _meta: WITH_TASKS })).json() as RpcAnswer
      return got.result as unknown as { status: string; result?: { content: readonly { text: string }[] } }
    }
    await until(async () => (await task()).status === 'completed')
    const texts = (await task()).result?.content.map(({ text }) => text)
    assert.deepEqual(texts, [`A person changed amount from ${amount} to 7 before it ran.`, 'send ran'])
    assert.deepEqual(ran('send'), [{ amount: 7 }])
  })

  it('is refused where a rule denies the changed input, and the model is told', async () => {
    const { id, repeat } = await ask('send')
    await say('ada', id, { decision: 'approve', input: { amount: 2000 } })
    assert.equal(
      (await repeat()).join(),
      `A person changed amount from ${amount} to 2000. TOOL_CALL_BLOCKED: More than 1000.`,
    )
    assert.equal(ran('send').length, 0)
  })

  it('refuses at once what cannot be, and what nobody saw', async () => {
    const { id } = await ask('send', { password: 'hunter2-hunter2' })
    for (const input of [{ amount: 'x' }, { fee: 1 }, { amount: null }, { password: '[redacted:secret]' }]) {
      const { status, body } = await say('ada', id, { decision: 'approve', input })
      assert.deepEqual([status, body.error.code], [409, 'approval_edit_refused'], JSON.stringify(input))
    }
    for (const body of [
      { decision: 'approve', input: [1] },
      { decision: 'reject', input: { amount: 1 } },
    ])
      assert.equal((await say('ada', id, body)).status, 400)
    assert.equal((await say('ada', id, { decision: 'reject' })).body.status, 'rejected')
  })

  it('is changed on its page, and a second person approves what they see there', async () => {
    const { id, repeat } = await ask('wire', { to: 'bob' })
    const html = await page('ada', id)
    assert.ok(html.includes(`name="edit:[&quot;amount&quot;]" value="${amount}"`), html)
    const fields = { 'edit:["amount"]': '50', 'edit:["to"]': 'bob' }
    assert.match(
      await page('ada', id, { decision: 'approve', ...fields }),
      /ada changed the input: \{&quot;amount&quot;:50\}/,
    )
    assert.match(await page('bob', id, { decision: 'approve' }), /ada changed amount\. To approve the changed call/)
    const seen = await page('bob', id)
    assert.match(seen, /You approve the call as ada changed it\./)
    const edit = /name="edit" value="([^"]*)"/.exec(seen)?.[1]?.replaceAll('&quot;', '"') ?? ''
    assert.match(await page('bob', id, { decision: 'approve', edit }), /This call is approved/)
    assert.deepEqual(await repeat(), [`A person changed amount from ${amount} to 50 before it ran.`, 'wire ran'])
    assert.deepEqual(ran('wire'), [{ amount: 50, to: 'bob' }])
  })
})
