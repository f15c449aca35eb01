import assert from 'node:assert/strict'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { after, before, beforeEach, describe, it } from 'node:test'
import { openSqliteStores } from '@toolgate/stores/sqlite'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { startRecordingServer, type RecordingServer } from './support/recording-server.ts'
import { MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** The door of clients with tasks: a call that waits for a person is a task, which the decision ends. */

const TASKS = 'io.modelcontextprotocol/tasks'
const OTHER_KEY = 'other-key-of-viewer'
const CAPABLE = {
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} }, extensions: { [TASKS]: {} } },
}
const folder = tempFolder()
let server: RecordingServer
let gateway: TestGateway

const TOOL = { name: 'send', inputSchema: { type: 'object', properties: { cents: { type: 'number' } } } }

async function start(): Promise<TestGateway> {
  return startTestGateway({
    servers: [httpServer('pay', server.url)],
    callers: [...CALLERS, callerConfig(OTHER_KEY, { user: 'viewer', roles: ['viewer'] })],
    policy: [{ ask: ['pay:send'] }],
    search: { offer: 'always' },
    state: { store: 'sqlite', path: join(folder.path, 'state.db') },
    // Else the pins hold a changed tool back before the task looks.
    pins: 'off',
  })
}

before(async () => {
  server = await startRecordingServer([TOOL])
  gateway = await start()
})
after(async () => {
  await gateway?.close()
  await server?.close()
  folder.remove()
})
beforeEach(() => server.forget())

interface Shown {
  readonly resultType?: string
  readonly taskId?: string
  readonly status?: string
  readonly inputRequests?: {
    readonly approval?: { readonly params?: { readonly url?: string; readonly mode?: string } }
  }
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text?: string }[] }
  readonly error?: { readonly message?: string }
}

async function ask(method: string, params: object, key: string = KEYS.viewer) {
  const { text } = await gateway.ask(
    'viewer',
    MODERN,
    method,
    { ...params, _meta: CAPABLE },
    {
      headers: { authorization: `Bearer ${key}` },
    },
  )
  const answer = JSON.parse(text) as RpcAnswer
  return { text, answer, shown: (answer.result ?? {}) as unknown as Shown }
}

let cents = 0

/** Makes a call that waits, as a task. */
async function begin(isThroughMeta = false) {
  const direct = { name: 'pay__send', arguments: { cents: ++cents } }
  const { shown } = await ask('tools/call', isThroughMeta ? { name: 'call_tool', arguments: direct } : direct)
  assert.equal(shown.resultType, 'task')
  const taskId = shown.taskId ?? ''
  const task = (await ask('tasks/get', { taskId })).shown
  const url = task.inputRequests?.approval?.params?.url ?? ''
  return { taskId, task, url, approvalId: url.split('/').at(-1) ?? '' }
}

const get = async (taskId: string) => (await ask('tasks/get', { taskId })).shown
async function ended(taskId: string): Promise<Shown> {
  await until(async () => ['completed', 'failed', 'cancelled'].includes((await get(taskId)).status ?? ''))
  return get(taskId)
}

async function decide(id: string, decision: string) {
  assert.equal((await gateway.api(`/api/approvals/${id}`, { method: 'POST', body: { decision } })).status, 200)
}

const pendingOf = async (amount: number) =>
  (await gateway.gate.approvals.list({ status: 'pending' })).filter(({ input }) =>
    isDeepStrictEqual(input, { cents: amount }),
  ).length
const runs = () => server.calls('send').length

describe('the task of a call that waits for a person', () => {
  it('shows the link, and completes with the result when the person approves', async () => {
    const { taskId, task, url, approvalId } = await begin()
    assert.equal(task.status, 'input_required')
    assert.match(url, new RegExp(`^${gateway.url}/approvals/`))
    await decide(approvalId, 'approve')
    const done = await ended(taskId)
    assert.deepEqual([done.status, done.result?.content?.[0]?.text], ['completed', 'send ran'])
    assert.equal(runs(), 1)
  })

  it('is the same for a call through call_tool', async () => {
    const { taskId, approvalId } = await begin(true)
    await decide(approvalId, 'approve')
    const done = await ended(taskId)
    assert.deepEqual([done.status, done.result?.content?.[0]?.text], ['completed', 'send ran'])
    assert.deepEqual([runs(), server.calls('send')[0]?.params], [1, { name: 'send', arguments: { cents } }])
  })

  it('completes with an error when the person rejects', async () => {
    const { taskId, approvalId } = await begin()
    await decide(approvalId, 'reject')
    const done = await ended(taskId)
    assert.deepEqual([done.status, done.result?.isError], ['completed', true])
    assert.match(done.result?.content?.[0]?.text ?? '', /a person rejected this call/)
    assert.equal(runs(), 0)
  })

  it('is not approved by what its client answers', async () => {
    const { taskId, approvalId } = await begin()
    await ask('tasks/update', { taskId, inputResponses: { approval: { action: 'accept' } } })
    assert.equal((await get(taskId)).status, 'input_required')
    assert.equal((await gateway.gate.approvals.get(approvalId))?.status, 'pending')
    await ask('tasks/cancel', { taskId })
  })

  it('exists for its client only', async () => {
    const { taskId } = await begin()
    const unknown = (await ask('tasks/get', { taskId: 'A'.repeat(22) })).text
    for (const key of [KEYS.operator, OTHER_KEY])
      for (const method of ['tasks/get', 'tasks/cancel'])
        assert.equal((await ask(method, { taskId }, key)).text, unknown)
    assert.equal((await get(taskId)).status, 'input_required')
    await ask('tasks/cancel', { taskId })
  })

  it('withdraws its request when the client cancels it', async () => {
    const { taskId, approvalId } = await begin()
    await ask('tasks/cancel', { taskId })
    assert.equal((await get(taskId)).status, 'cancelled')
    await until(async () => (await gateway.gate.approvals.get(approvalId))?.status === 'rejected')
    assert.equal(runs(), 0)
  })

  it('fails when the policy denies the call by then, and never runs it', async () => {
    const { taskId, approvalId } = await begin()
    gateway.gate.setPolicy([{ deny: ['pay:send'] }])
    await decide(approvalId, 'approve')
    assert.equal((await ended(taskId)).status, 'failed')
    gateway.gate.setPolicy([{ ask: ['pay:send'] }])
    await new Promise((resolve) => setTimeout(resolve, 1200))
    assert.deepEqual([(await get(taskId)).status, runs()], ['failed', 0])
  })

  it('fails when the tool has changed, and asks nobody again', async () => {
    const { taskId, approvalId } = await begin()
    server.setTools([{ ...TOOL, description: 'Now it does something else.' }])
    await until(async () => gateway.gate.catalog.get('pay:send')?.description.startsWith('Now'))
    await decide(approvalId, 'approve')
    const done = await ended(taskId)
    assert.deepEqual([done.status, runs()], ['failed', 0])
    assert.deepEqual(await gateway.gate.approvals.list({ status: 'pending' }), [])
    server.setTools([TOOL])
    await until(async () => !gateway.gate.catalog.get('pay:send')?.description.startsWith('Now'))
  })

  it('runs once when its client also calls again by itself', async () => {
    const { taskId, approvalId } = await begin()
    const other = gateway.gate.subscribe(({ event }) => {
      if (event !== 'approval-decided') return
      void gateway.call('viewer', '2025-11-25', 'pay__send', { cents })
    })
    await decide(approvalId, 'approve')
    const done = await ended(taskId)
    other()
    assert.ok(['completed', 'failed'].includes(done.status ?? ''))
    assert.equal(runs(), 1, 'one of the two')
  })

  it('spends its own approval only: of two tasks with one approval, one runs, and nobody is asked again', async () => {
    const first = await begin()
    const again = (await ask('tools/call', { name: 'pay__send', arguments: { cents } })).shown
    assert.equal((await get(again.taskId ?? '')).inputRequests?.approval?.params?.url, first.url)
    await decide(first.approvalId, 'approve')
    const ends = [await ended(first.taskId), await ended(again.taskId ?? '')].map(({ status }) => status)
    assert.deepEqual(ends.toSorted(), ['completed', 'failed'])
    assert.equal(runs(), 1)
    assert.equal(await pendingOf(cents), 0)
  })

  it('does not run a call that a person rejected, even if the policy no longer asks', async () => {
    const { taskId, approvalId } = await begin()
    gateway.gate.setPolicy([{ allow: ['pay:send'] }])
    await decide(approvalId, 'reject')
    const done = await ended(taskId)
    gateway.gate.setPolicy([{ ask: ['pay:send'] }])
    assert.deepEqual([done.status, done.result?.isError, runs()], ['completed', true, 0])
  })

  it('fails when the policy has come to want another approver', async () => {
    const { taskId, approvalId } = await begin()
    gateway.gate.setPolicy([{ ask: [{ match: 'pay:send', by: 'other' }] }])
    await decide(approvalId, 'approve')
    const done = await ended(taskId)
    gateway.gate.setPolicy([{ ask: ['pay:send'] }])
    assert.deepEqual([done.status, runs()], ['failed', 0])
    assert.equal(await pendingOf(cents), 0)
  })

  it('does not hold up other tasks when its request cannot be withdrawn', async () => {
    const stuck = await begin()
    const other = await begin()
    const { approvals } = gateway.gate
    const find = approvals.get
    // A store that fails for one of them.
    approvals.get = (id) => (id === stuck.approvalId ? Promise.reject(new Error('broken row')) : find(id))
    try {
      await ask('tasks/cancel', { taskId: stuck.taskId })
      await decide(other.approvalId, 'approve')
      assert.equal((await ended(other.taskId)).status, 'completed')
    } finally {
      approvals.get = find
    }
  })

  it('fails in the next gateway when the earlier one ended while its call ran', async () => {
    const { taskId, approvalId } = await begin()
    await gateway.close()
    const stores = openSqliteStores({ path: join(folder.path, 'state.db') })
    await stores.state.add(`gateway/approval-runs/${taskId}`, 'the-attempt', { expiresAt: Date.now() + 60_000 })
    stores.close()
    gateway = await start()
    await decide(approvalId, 'approve')
    const done = await ended(taskId)
    assert.deepEqual([done.status, runs()], ['failed', 0])
    assert.match(done.error?.message ?? '', /gateway ended/)
  })

  it('goes on in the next gateway', async () => {
    const { taskId, approvalId } = await begin()
    await gateway.close()
    gateway = await start()
    assert.equal((await get(taskId)).status, 'input_required')
    await decide(approvalId, 'approve')
    assert.equal((await ended(taskId)).status, 'completed')
    assert.equal(runs(), 1)
  })

  it('is the link or the text where there are too many tasks', async () => {
    const texts: string[] = []
    for (let i = 0; i < 101; i++)
      texts.push((await ask('tools/call', { name: 'pay__send', arguments: { cents: 1e6 + (i % 60) } })).text)
    assert.ok(
      !texts.some((text) => text.includes('-32603')),
      texts.find((text) => text.includes('-32603')),
    )
    assert.match(texts.at(-1) ?? '', /"resultType":"input_required"/)
  })
})
