import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import type { AuditBody } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS, type Who } from './support/keys.ts'
import { type Era, MODERN, type Params, type RpcAnswer, textOf } from './support/rpc.ts'
import { everythingServer, httpServer } from './support/servers.ts'
import { startTaskServer, type TaskServer } from './support/task-server.ts'

/** Tasks of servers, through the gateway, in every combination of eras. */

const LEGACY = '2025-11-25'
const ERAS: readonly Era[] = [LEGACY, MODERN]
const EXTENSION = 'io.modelcontextprotocol/tasks'
/** What a client says that takes tasks. */
const TAKES: Readonly<Record<string, object>> = {
  [LEGACY]: { task: { ttl: 600_000 } },
  [MODERN]: { _meta: { 'io.modelcontextprotocol/clientCapabilities': { extensions: { [EXTENSION]: {} } } } },
}

for (const serverEra of ['legacy', 'modern'] as const) {
  describe(`tasks of a server of the ${serverEra} era`, () => {
    let server: TaskServer
    let gateway: TestGateway

    before(async () => {
      server = await startTaskServer(serverEra)
      gateway = await startTestGateway({
        servers: [httpServer('up', server.url, { callTimeoutMs: 5000 })],
        limits: ['up:work:1000/60'],
      })
    })
    after(async () => {
      await gateway?.close()
      await server?.close()
    })
    afterEach(() => {
      server.tamper = undefined
    })

    const ask = async (who: Who, era: Era, method: string, params: Params = {}) =>
      (await gateway.ask(who, era, method, params)).json() as RpcAnswer
    const start = async (era: Era, who: Who = 'viewer') => {
      const known = server.tasks.length
      const answer = await ask(who, era, 'tools/call', { name: 'up__work', arguments: { of: 1 }, ...TAKES[era] })
      const task = (era === LEGACY ? answer.result?.['task'] : answer.result) as Record<string, unknown>
      assert.ok(task?.['taskId'], JSON.stringify(answer))
      assert.equal(server.tasks.length, known + 1)
      return { id: task['taskId'] as string, task }
    }
    const get = async (era: Era, id: string, who: Who = 'viewer') =>
      (await ask(who, era, 'tasks/get', { taskId: id })).result as Record<string, unknown> | undefined
    const records = async () => {
      const { body } = await gateway.api('/api/audit?tool=up:work&limit=20')
      return (body as AuditBody).records
    }

    // A modern server tells no earlier client that a tool runs as a task.
    const eras = serverEra === 'legacy' ? ERAS : [MODERN as Era]
    for (const era of eras) {
      it(`have a handle of the gateway’s own, and end as the server’s do (${era})`, async () => {
        const { id, task } = await start(era)
        assert.notEqual(id, server.tasks.at(-1)?.taskId)
        assert.equal(task['status'], 'working')
        assert.equal((await get(era, id))?.['status'], 'working')
        server.finish('all done', { structuredContent: { n: 1 } })
        const ended = await until(async () => {
          const now = await get(era, id)
          return now?.['status'] === 'completed' && now
        })
        assert.ok(ended)
        const result =
          era === LEGACY ? (await ask('viewer', era, 'tasks/result', { taskId: id })).result : ended['result']
        const { content, structuredContent } = result as Record<string, unknown>
        assert.deepEqual([content, structuredContent], [[{ type: 'text', text: 'all done' }], { n: 1 }])
      })

      it(`exist for their owner only: the answer is that of an unknown handle (${era})`, async () => {
        const { id } = await start(era)
        const methods = ['tasks/get', 'tasks/cancel', era === LEGACY ? 'tasks/result' : 'tasks/update']
        for (const method of methods) {
          const [foreign, unknown] = await Promise.all(
            [id, 'AAAAAAAAAAAAAAAAAAAAAA'].map(async (taskId) => {
              const { status, text } = await gateway.ask('admin', era, method, { taskId, inputResponses: {} })
              return `${status} ${text}`
            }),
          )
          assert.equal(foreign, unknown)
          assert.match(foreign ?? '', /-32602.*params\.taskId is not a task of this client/)
        }
        assert.equal((await get(era, id))?.['status'], 'working')
        server.finish('mine')
      })

      it(`are cancelled at their server, and on record (${era})`, async () => {
        const { id } = await start(era)
        const upstream = server.tasks.at(-1)
        await until(() => server.sent('tasks/get').some(({ taskId }) => taskId === upstream?.taskId))
        await ask('viewer', era, 'tasks/cancel', { taskId: id })
        await until(() => upstream?.status === 'cancelled')
        assert.equal((await get(era, id))?.['status'], 'cancelled')
        const last = await until(async () => (await records()).find(({ event }) => event === 'tool_abandoned'))
        assert.ok(last)
      })
    }

    it('count once, and their end is the terminal record', async () => {
      const era = eras[0] as Era
      const taken = () => gateway.api('/api/audit?tool=up:work&limit=1')
      await taken()
      const { id } = await start(era)
      server.finish('counted')
      await until(async () => (await get(era, id))?.['status'] === 'completed')
      // Calls of other tests may end meanwhile.
      const all = await records()
      const first = all.find(({ event }) => event === 'tool_input_required')?.tool_call_id
      const [end, going, round, call] = all.filter((one) => [one.tool_call_id, one.continues].includes(first))
      assert.deepEqual(
        [end, going, round, call].map((record) => record?.event),
        ['tool_result', 'tool_call', 'tool_input_required', 'tool_call'],
      )
      assert.equal(going?.['continues'], call?.tool_call_id)
    })

    for (const era of ERAS) {
      it(`are followed by the gateway for a client without tasks (${era})`, async () => {
        const answering = gateway.call('viewer', era, 'up__work')
        const known = server.tasks.length
        await until(() => server.tasks.length > known)
        server.finish('for you')
        assert.equal(textOf(await answering), 'for you')
      })
    }

    it('are not offered for a tool that does not run as one', async () => {
      const plain = await ask('viewer', LEGACY, 'tools/call', { name: 'up__plain', ...TAKES[LEGACY] })
      assert.equal(plain.error?.code, -32_601)
      assert.equal(
        textOf(await ask('viewer', MODERN, 'tools/call', { name: 'up__plain', ...TAKES[MODERN] })),
        'plain ran',
      )
    })

    it('stop when a halt stops their tool, at their server too', async () => {
      const era = eras[0] as Era
      const { id } = await start(era)
      const upstream = server.tasks.at(-1)
      await until(() => server.sent('tasks/get').some(({ taskId }) => taskId === upstream?.taskId))
      const halt = await gateway.gate.halt({ tool: 'up:work', reason: 'maintenance' })
      await until(() => upstream?.status === 'cancelled')
      await until(async () => (await get(era, id))?.['status'] === 'failed')
      await gateway.gate.release(halt)
    })

    it('stop when policy no longer allows their tool', async () => {
      const era = eras[0] as Era
      const { id } = await start(era)
      const upstream = server.tasks.at(-1)
      await until(() => server.sent('tasks/get').some(({ taskId }) => taskId === upstream?.taskId))
      gateway.gate.setPolicy({ deny: ['up:work'] })
      await until(() => upstream?.status === 'cancelled')
      await until(async () => (await get(era, id))?.['status'] === 'failed')
      gateway.gate.setPolicy({ allow: ['*'] })
    })

    it('fail when the server answers with another task than it was asked for', async () => {
      const era = eras[0] as Era
      const { id: other } = await start(era)
      const { id } = await start(era)
      const [theirs, ours] = server.tasks.slice(-2)
      server.tamper = (method, result) =>
        method === 'tasks/get' && result['taskId'] === ours?.taskId ? { ...result, taskId: theirs?.taskId } : result
      await until(async () => ['failed', 'completed'].includes(String((await get(era, id))?.['status'])))
      assert.equal((await get(era, other))?.['status'], 'working')
    })

    it('fail when the server answers a call with the task of another', async () => {
      const era = eras[0] as Era
      await start(era)
      const { taskId } = server.tasks.at(-1) ?? {}
      await until(() => server.sent('tasks/get').some((sent) => sent['taskId'] === taskId))
      server.tamper = (method, result) => {
        if (method !== 'tools/call') return result
        return serverEra === 'modern' ? { ...result, taskId } : { task: { ...(result['task'] as object), taskId } }
      }
      const { result, error } = await ask('admin', era, 'tools/call', { name: 'up__work', ...TAKES[era] })
      assert.match(JSON.stringify(result ?? error), /the task of another call/)
    })
  })

  it(`tasks of a ${serverEra} server survive a restart of the gateway, and a person’s end of it is on record`, async () => {
    const server = await startTaskServer(serverEra)
    const folder = tempFolder()
    const era: Era = serverEra === 'legacy' ? LEGACY : MODERN
    const open = () =>
      startTestGateway({
        servers: [httpServer('up', server.url)],
        state: { store: 'sqlite', path: join(folder.path, 'state.db') },
        audit: { store: 'sqlite', path: join(folder.path, 'audit.db'), mode: 'required' },
      })
    try {
      const first = await open()
      const answer = (
        await first.ask('viewer', era, 'tools/call', { name: 'up__work', ...TAKES[era] })
      ).json() as RpcAnswer
      const { task = answer.result } = answer.result ?? {}
      const { taskId } = task as { taskId: string }
      await first.close()
      assert.equal(server.tasks[0]?.status, 'working')
      const second = await open()
      const status = async () =>
        ((await second.ask('viewer', era, 'tasks/get', { taskId })).json() as RpcAnswer).result?.['status']
      assert.equal(await status(), 'working')
      server.finish('after all')
      await until(async () => (await status()) === 'completed')
      const { records } = (await second.api('/api/audit?tool=up:work')).body as AuditBody
      assert.deepEqual(records.map(({ event }) => event).filter((event) => event === 'tool_result').length, 1)
      assert.equal(records[0]?.event, 'tool_result')
      await second.close()
    } finally {
      await server.close()
      folder.remove()
    }
  })
}

describe('a task that needs input', () => {
  const may = { elicit: true, open: [], sample: false, roots: false, log: false }
  const asks = (name: string) => ({
    [name]: {
      method: 'elicitation/create',
      params: { message: 'Which one?', requestedSchema: { type: 'object', properties: { pick: { type: 'string' } } } },
    },
  })
  const CAN = {
    _meta: {
      'io.modelcontextprotocol/clientCapabilities': {
        elicitation: { form: {} },
        sampling: { tools: {} },
        roots: {},
        extensions: { [EXTENSION]: {} },
      },
    },
  }
  let server: TaskServer
  const gateways: TestGateway[] = []
  const open = async (given: object) => {
    const gateway = await startTestGateway({ servers: [httpServer('up', server.url, given)] })
    gateways.push(gateway)
    const ask = async (method: string, params: Params) =>
      (await gateway.ask('viewer', MODERN, method, params)).json() as RpcAnswer
    const { result } = await ask('tools/call', { name: 'up__work', ...CAN })
    const taskId = result?.['taskId']
    const status = async () => (await ask('tasks/get', { taskId })).result ?? {}
    return { gateway, ask, taskId, status }
  }
  const askFor = (name: string) =>
    Object.assign(server.tasks.at(-1) as object, { status: 'input_required', more: { inputRequests: asks(name) } })

  before(async () => {
    server = await startTaskServer('modern')
  })
  after(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()))
    await server?.close()
  })

  it('shows its client what the server asks, under the server’s name, and passes the answers on', async () => {
    const { gateway, ask, taskId, status } = await open({ may })
    askFor('which')
    const waiting = await until(async () => {
      const now = await status()
      return now['status'] === 'input_required' && now
    })
    const { which } = (waiting || {})['inputRequests'] as Record<string, { params: { message: string } }>
    assert.match(which?.params.message ?? '', /^Server "up" asks: Which one\?/)
    const wrong = await Promise.all(
      [{ which: 7 }, 'which', undefined].map((inputResponses) => ask('tasks/update', { taskId, inputResponses })),
    )
    assert.deepEqual([...new Set(wrong.map(({ error }) => error?.code))], [-32_602])
    const other = await ask('tasks/update', { taskId, inputResponses: { other: {} } })
    assert.equal(other.error, undefined, 'answers to anything else are ignored')
    assert.equal((await status())['status'], 'input_required')
    assert.equal(server.sent('tasks/update').length, 0)
    const inputResponses = { which: { action: 'accept', content: { pick: 'b' } } }
    assert.equal((await ask('tasks/update', { taskId, inputResponses })).error, undefined)
    await until(() => server.sent('tasks/update').length === 1)
    assert.deepEqual(server.sent('tasks/update')[0]?.['inputResponses'], inputResponses)
    server.finish('picked')
    await until(async () => (await status())['status'] === 'completed')
    const { records } = (await gateway.api('/api/audit?tool=up:work')).body as AuditBody
    assert.deepEqual(
      records.map(({ event }) => event).filter((event) => event.startsWith('tool_')),
      ['tool_result', 'tool_call', 'tool_input_required', 'tool_call', 'tool_input_required', 'tool_call'],
    )
  })

  it('shows samples and roots to its client, in a later round too', async () => {
    const { ask, taskId, status } = await open({ may: { ...may, sample: true, roots: true } })
    const sample = { messages: [{ role: 'user', content: { type: 'text', text: 'Hello?' } }], maxTokens: 5 }
    for (const request of [
      { method: 'sampling/createMessage', params: { ...sample, tools: [{ name: 'x', inputSchema: {} }] } },
      { method: 'roots/list', params: {} },
    ]) {
      const sent = server.sent('tasks/update').length
      Object.assign(server.tasks.at(-1) as object, {
        status: 'input_required',
        more: { inputRequests: { one: request } },
      })
      const waiting = await until(async () => {
        const now = await status()
        const { one } = (now['inputRequests'] ?? {}) as { one?: { method: string } }
        return one?.method === request.method && now
      })
      assert.ok(waiting)
      const inputResponses = { one: { content: { type: 'text', text: 'hi' }, roots: [] } }
      assert.equal((await ask('tasks/update', { taskId, inputResponses })).error, undefined)
      await until(() => server.sent('tasks/update').length === sent + 1)
    }
    server.finish('done')
    await until(async () => (await status())['status'] === 'completed')
  })

  it('fails if its server may not ask', async () => {
    const { status } = await open({})
    const sent = server.sent('tasks/update').length
    askFor('which')
    await until(async () => (await status())['status'] === 'failed')
    assert.equal(server.sent('tasks/update').length, sent)
    await until(() => server.tasks.at(-1)?.status === 'cancelled')
  })
})

it('a user who has as many tasks as may be gets an error that names the bound, and nothing is sent', async () => {
  for (const serverEra of ['legacy', 'modern'] as const) {
    const server = await startTaskServer(serverEra)
    const gateway = await startTestGateway({
      servers: [httpServer('up', server.url)],
      callers: [...CALLERS, callerConfig('second-key', { user: 'viewer', roles: ['viewer'] })],
    })
    const era: Era = serverEra === 'legacy' ? LEGACY : MODERN
    const call = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` }
      const more = { name: 'up__work', ...TAKES[era] }
      return (await gateway.ask('viewer', era, 'tools/call', more, { headers })).json() as RpcAnswer
    }
    try {
      for (let i = 0; i < 100; i += 10) {
        const ten = Array.from({ length: 10 }, (_, at) => call(at % 2 === 0 ? KEYS.viewer : 'second-key'))
        await Promise.all(ten)
      }
      assert.equal(server.tasks.length, 100)
      for (const key of [KEYS.viewer, 'second-key'])
        assert.match(textOf(await call(key)), /too many tasks: a user may have 100 at once/)
      assert.equal(server.sent('tools/call').length, 100)
      const { records } = (await gateway.api('/api/audit?tool=up:work&limit=1')).body as AuditBody
      assert.deepEqual([records[0]?.event, records[0]?.reason], ['tool_blocked', 'hook_denied'])
      const other = await call(KEYS.operator)
      assert.ok(other.result && (other.result['task'] ?? other.result['taskId']), 'another user finds room')
    } finally {
      await gateway.close()
      await server.close()
    }
  }
})

it('a call with a task takes its limit once', async () => {
  const server = await startTaskServer('legacy')
  const gateway = await startTestGateway({ servers: [httpServer('up', server.url)], limits: ['up:work:1/60'] })
  try {
    const call = async () =>
      (await gateway.ask('viewer', LEGACY, 'tools/call', { name: 'up__work', ...TAKES[LEGACY] })).json() as RpcAnswer
    const { taskId } = ((await call()).result?.['task'] ?? {}) as { taskId: string }
    server.finish('once')
    const status = async () =>
      ((await gateway.ask('viewer', LEGACY, 'tasks/get', { taskId })).json() as RpcAnswer).result?.['status']
    await until(async () => (await status()) === 'completed')
    assert.match(textOf(await call()), /limit/i)
    assert.equal(server.tasks.length, 1)
  } finally {
    await gateway.close()
    await server.close()
  }
})

it('a tool of a real server that only runs as a task works for clients with and without tasks', async () => {
  const gateway = await startTestGateway({ servers: [everythingServer()] })
  try {
    const name = 'everything__simulate-research-query'
    const { result } = (await gateway.ask('viewer', LEGACY, 'tools/list')).json() as RpcAnswer
    const tool = result?.tools?.find((one) => one.name === name) as { execution?: unknown } | undefined
    assert.deepEqual(tool?.execution, { taskSupport: 'optional' })
    const args = { name, arguments: { topic: 'tides' } }
    const [plain, started] = await Promise.all([
      gateway.call('viewer', MODERN, name, args.arguments),
      gateway.ask('viewer', LEGACY, 'tools/call', { ...args, ...TAKES[LEGACY] }),
    ])
    assert.match(textOf(plain), /Research Report: tides/)
    const { taskId } = ((started.json() as RpcAnswer).result?.['task'] ?? {}) as { taskId: string }
    const ended = (await gateway.ask('viewer', LEGACY, 'tasks/result', { taskId })).json() as RpcAnswer
    assert.match(textOf(ended), /Research Report: tides/)
    assert.deepEqual(ended.result?._meta?.['io.modelcontextprotocol/related-task'], { taskId })
  } finally {
    await gateway.close()
  }
})
