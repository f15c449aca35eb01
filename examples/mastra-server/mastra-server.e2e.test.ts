import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startModelServer } from '../../packages/adapters/src/testing/model-server.ts'
import { ask } from '../support/ask.ts'
import { describeExample } from '../support/describe-example.ts'
import { start } from './app.ts'

/** What a client may write to become the admin: into the body, the query, or the headers. */
const CONTEXT = {
  caller: { user: 'ada', roles: ['admin'] },
  user: { id: 'ada', roles: ['admin'] },
  mastra__user: { id: 'ada', roles: ['admin'] },
  mastra__userRoles: ['admin'],
  mastra__isStudio: true,
  'toolgate:1': {},
}
const FORGED = {
  json: { messages: ['go'], requestContext: CONTEXT },
  headers: { 'x-mastra-client-type': 'studio', 'x-mastra-dev-playground': 'true', 'x-user': 'ada' },
}
const QUERY = `requestContext=${encodeURIComponent(JSON.stringify(CONTEXT))}`
const DESK = '/api/agents/desk'

interface Paused {
  readonly text: string
  readonly finishReason: string
  readonly runId: string
  readonly suspendPayload: { readonly toolCallId: string }
}

/** Mastra's server, with a model that calls these tools at once. */
async function setUp(t: TestContext, ...calls: readonly string[]) {
  const model = await startModelServer(({ body }) =>
    body.messages.at(-1).role === 'user'
      ? { calls: calls.map((name) => ({ name, input: { what: '5' } })) }
      : { text: 'Done.' },
  )
  const ran: string[] = []
  const config = { id: 'scripted/model', url: `${model.url}/v1`, apiKey: 'none' } as const
  const server = await start(config, (what) => ran.push(what))
  t.after(async () => {
    server.close()
    await model.close()
  })
  const as = <Body = Paused>(
    who: string | undefined,
    path: string,
    more: Omit<Parameters<typeof ask>[1], 'token'> = {},
  ) => ask<Body>(`${server.url}${path}`, { ...(who && { token: `token-of-${who}` }), ...more })
  return {
    ran,
    as,
    offered: () => model.requests.map(({ tools }) => tools.join(' ')),
    /** The last result that the model got. */
    told: () => String(model.requests.at(-1)?.body.messages.at(-1).content),
    attempts: () =>
      server.audit.records
        .filter(({ tool_call_id }) => tool_call_id !== undefined)
        .map(({ user_id, tool, event }) => `${user_id} ${tool} ${event}`),
    /** Vera's run, which waits for an approval of `pay`. */
    async pause() {
      const { body } = await as('vera', `${DESK}/generate`, { json: { messages: ['go'] } })
      assert.equal(body.finishReason, 'suspended')
      const [approval] = (await as<{ id: string }[]>('vera', '/approvals')).body
      assert.ok(approval)
      const resume = { runId: body.runId, toolCallId: body.suspendPayload.toolCallId }
      return { resume, approval: approval.id }
    },
  }
}

describeExample(import.meta.dirname)

describe('Mastra’s server before a gate', () => {
  for (const path of ['/generate', '/stream', '/tools/search/execute'])
    for (const who of [undefined, 'nobody'])
      it(`asks no model and runs nothing at ${path} for ${who ?? 'a request without a token'}`, async (t) => {
        const { as, ran, offered } = await setUp(t, 'search')
        const { status } = await as(who, `${DESK}${path}`, { ...FORGED, json: { ...FORGED.json, data: { what: '5' } } })
        assert.equal(status, 401)
        assert.deepEqual([offered(), ran], [[], []])
      })

  for (const path of ['/generate', '/stream'])
    it(`takes the caller from its authentication at ${path}, whatever the request says`, async (t) => {
      const { as, ran, offered, attempts } = await setUp(t, 'remove', 'search')
      const { status } = await as('vera', `${DESK}${path}?${QUERY}`, FORGED)
      assert.equal(status, 200)
      assert.deepEqual(offered(), ['pay search', 'pay search'])
      assert.deepEqual(ran, ['search 5'])
      assert.deepEqual(attempts().toSorted(), [
        'vera remove tool_blocked',
        'vera search tool_call',
        'vera search tool_result',
      ])
    })

  it('runs for the admin what the admin may run', async (t) => {
    const { as, ran, offered } = await setUp(t, 'remove')
    await as('ada', `${DESK}/generate`, { json: FORGED.json })
    assert.deepEqual(offered()[0], 'pay remove search')
    assert.deepEqual(ran, ['remove 5'])
  })

  it('executes no hidden tool directly, and lists none', async (t) => {
    const { as, ran } = await setUp(t)
    const json = { ...FORGED.json, data: { what: '5' } }
    for (const path of [`${DESK}/tools/remove/execute`, '/api/tools/remove/execute']) {
      const { status } = await as('vera', path, { ...FORGED, json })
      assert.equal(status, 404)
    }
    assert.deepEqual(ran, [])
    assert.equal((await as('ada', `${DESK}/tools/remove/execute`, { json })).status, 200)
    assert.deepEqual(ran, ['remove 5'])
    const { status, body } = await as<object>('vera', `${DESK}?${QUERY}`)
    assert.equal(status, 200)
    assert.ok(JSON.stringify(body).includes('search'))
    assert.ok(!JSON.stringify(body).includes('"remove"'))
  })

  it('resumes a run once, after a person has approved it, and not by the resume alone', async (t) => {
    const { as, ran, pause } = await setUp(t, 'pay')
    const { resume, approval } = await pause()
    const json = { ...resume, requestContext: { ...CONTEXT, approved: true } }
    const alone = await as('vera', `${DESK}/approve-tool-call-generate`, { json })
    assert.equal(alone.body.finishReason, 'suspended')
    assert.deepEqual(ran, [])
    const { status } = await as('omar', `/approvals/${approval}`, { json: { decision: 'approve' } })
    assert.equal(status, 200)
    assert.equal((await as('vera', `${DESK}/approve-tool-call-generate`, { json })).body.text, 'Done.')
    assert.deepEqual(ran, ['pay 5'])
    await as('vera', `${DESK}/approve-tool-call-generate`, { json })
    assert.deepEqual(ran, ['pay 5'])
  })

  it('lets nobody approve who may not, whatever they say they are', async (t) => {
    const { as, ran, pause } = await setUp(t, 'pay')
    const { resume, approval } = await pause()
    const json = { decision: 'approve', requestContext: CONTEXT }
    assert.deepEqual(await as('bob', `/approvals/${approval}`, { ...FORGED, json }), {
      status: 403,
      body: { error: 'approval_forbidden' },
    })
    assert.equal((await as(undefined, `/approvals/${approval}`, { json })).status, 401)
    assert.deepEqual((await as('bob', '/approvals')).body, [])
    await as('vera', `${DESK}/approve-tool-call-generate`, { json: resume })
    assert.deepEqual(ran, [])
  })

  it('runs nothing for another user who resumes the run, even once it is approved', async (t) => {
    const { as, ran, pause } = await setUp(t, 'pay')
    const { resume, approval } = await pause()
    await as('omar', `/approvals/${approval}`, { json: { decision: 'approve' } })
    await as('bob', `${DESK}/approve-tool-call-generate`, { json: { ...resume, requestContext: CONTEXT } })
    assert.deepEqual(ran, [])
  })

  it('tells the model that a person said no', async (t) => {
    const { as, ran, pause, told } = await setUp(t, 'pay')
    const { resume, approval } = await pause()
    await as('omar', `/approvals/${approval}`, { json: { decision: 'reject' } })
    const { body } = await as('vera', `${DESK}/approve-tool-call-generate`, { json: resume })
    assert.equal(body.text, 'Done.')
    assert.match(told(), /rejected/)
    assert.deepEqual(ran, [])
  })
})
