import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { Caller } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'
import { descendantsOf, isAlive, nodeServer, STATEFUL_STDIO, until } from '../../../fixtures/servers.ts'
import {
  discovered,
  error,
  type Exchange,
  initialized,
  result,
  startScripted,
  tool,
} from '../../../fixtures/scripted-http.ts'
import type { ServerConfig } from '../../config/config.ts'
import { DEFAULT_INSTANCES, type InstanceLimits, Instances } from './instances.ts'
import { ROUND_MS } from '../transport/limits.ts'
import { PerUserUpstream } from './per-user-upstream.ts'
import { sharedCaches } from '../../util/package-caches.ts'
import { createReaper } from '../../util/reaper.ts'
import { surroundings } from '../../util/surroundings.ts'
import type { CallMethod } from '../../model/upstream.ts'
import type { UpstreamLogLine } from '../transport/server-logs.ts'

const { signal } = new AbortController()
const VERA = { user: 'vera', tenant: 'acme' }
const OTTO = { user: 'otto', tenant: 'acme' }

const toolCall = (name: string, note: string, caller: Caller) => ({
  method: 'tools/call' as const,
  params: { name, arguments: { note } },
  caller,
  signal,
})

interface World {
  readonly upstream: PerUserUpstream
  readonly instances: Instances
  readonly lines: readonly UpstreamLogLine[]
  readonly folder: string
  call(caller: Caller, tool: string, note?: string): Promise<unknown>
}

/** A stateful server with an instance for each user. */
async function start(
  t: TestContext,
  given: Partial<ServerConfig> = {},
  limits: Partial<InstanceLimits> = {},
  instances: Instances = new Instances({ ...DEFAULT_INSTANCES, ...limits }),
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'instances-'))
  const lines: UpstreamLogLine[] = []
  const reaper = createReaper()
  const { cwd: _shared, command, ...config } = nodeServer([STATEFUL_STDIO], { name: 'browser', per: 'user', ...given })
  const { cwd, url } = given
  const upstream = new PerUserUpstream(
    { ...config, ...(cwd ? { cwd } : {}), ...(command && !url ? { command } : {}) },
    { instances, folder, reaper, log: (line) => lines.push(line), backoff: { firstMs: 20 } },
  )
  t.after(async () => {
    await upstream.close()
    await reaper.close()
    rmSync(folder, { recursive: true })
  })
  await upstream.start()
  const call = async (caller: Caller, name: string, note = '') => {
    const { content } = await upstream.call(toolCall(name, note, caller))
    return JSON.parse((content as { text: string }[])[0]?.text ?? '')
  }
  return { upstream, instances, lines, folder, call }
}

interface Recalled {
  readonly notes: readonly string[]
  readonly pid: number
  readonly cwd: string
  readonly home: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly login: string | null
}

describe('a server with an instance for each user', () => {
  it('keeps what users do apart: memory, files, HOME, environment and arguments', async (t) => {
    const { call, folder } = await start(t, {
      args: [STATEFUL_STDIO, '--profile=${tenant}/${user}'],
      env: { OWNER: '${tenant}/${user}' },
    })
    await call(VERA, 'remember', 'veras secret')
    await call(OTTO, 'remember', 'ottos secret')
    await call(VERA, 'remember', 'more')
    const [vera, otto] = (await Promise.all([call(VERA, 'recall'), call(OTTO, 'recall')])) as [Recalled, Recalled]
    assert.deepEqual(vera.notes, ['veras secret', 'more'])
    assert.deepEqual(otto.notes, ['ottos secret'])
    assert.equal(otto.login, 'ottos secret')
    assert.notEqual(vera.pid, otto.pid)
    for (const [who, name] of [
      [vera, 'vera'],
      [otto, 'otto'],
    ] as const) {
      assert.deepEqual(who.args, [`--profile=acme/${name}`])
      assert.equal(who.env['OWNER'], `acme/${name}`)
      const given = {
        ...surroundings(),
        ...sharedCaches({ command: 'node', set: {}, fallback: join(folder, '.caches') }),
      }
      assert.deepEqual(Object.keys(who.env).toSorted(), [...Object.keys(given), 'OWNER'].toSorted())
      for (const own of [who.home, who.cwd]) {
        assert.ok(own.startsWith(join(folder, 'browser', `${name}~`)), own)
        assert.equal(statSync(own).mode & 0o777, 0o700)
      }
      assert.deepEqual(readdirSync(who.cwd), ['notes.txt'])
    }
    assert.equal(statSync(join(folder, 'browser')).mode & 0o777, 0o700)
  })

  it('separates users of one name in two tenants, and a user without a tenant', async (t) => {
    const { call } = await start(t)
    const callers = [VERA, { user: 'vera', tenant: 'other' }, { user: 'vera' }, { user: 'Vera', tenant: 'acme' }]
    await Promise.all(callers.map((caller, i) => call(caller, 'remember', `note ${i}`)))
    for (const [i, caller] of callers.entries())
      assert.deepEqual(((await call(caller, 'recall')) as Recalled).notes, [`note ${i}`])
    const session = { ...VERA, session: 's2', chat: { id: 'c' } }
    assert.deepEqual(((await call(session, 'recall')) as Recalled).notes, ['note 0'])
  })

  it('starts no instance before a call, and its list comes from one that answers none', async (t) => {
    const { upstream, call, folder } = await start(t)
    assert.deepEqual(upstream.instances, [])
    assert.deepEqual(readdirSync(join(folder, 'browser')), ['~listing'])
    assert.equal(upstream.items.tools.length, 5)
    await call(VERA, 'remember', 'x')
    await call(VERA, 'learn')
    assert.ok(!existsSync(join(folder, 'browser/~listing/work/notes.txt')))
  })

  it('keeps the list of the listing instance when a user’s changes its own', async (t) => {
    const { upstream, call } = await start(t)
    let changes = 0
    await call(OTTO, 'recall')
    upstream.subscribe(() => changes++)
    await call(VERA, 'learn')
    await call(VERA, 'recall')
    assert.equal(changes, 0)
    assert.equal(upstream.items.tools.length, 5)
  })

  it('sends progress and log lines to the user whose they are', async (t) => {
    const { upstream, lines } = await start(t)
    const progress = async (caller: Caller, note: string) => {
      const seen: unknown[] = []
      const onProgress = ({ message }: { message?: string | undefined }) => seen.push(message)
      await upstream.call({ ...toolCall('steps', note, caller), onProgress })
      return seen
    }
    const [vera, otto] = await Promise.all([progress(VERA, 'v'), progress(OTTO, 'o')])
    assert.deepEqual(
      [vera, otto],
      [
        ['v', 'v', 'v'],
        ['o', 'o', 'o'],
      ],
    )
    const ready = lines.flatMap(({ message, user }) => (message.startsWith('is ready') ? [user] : []))
    assert.deepEqual(new Set(ready), new Set([undefined, 'vera', 'otto']))
  })

  it('fails, restarts and is down for one user only', async (t) => {
    const { upstream, call } = await start(t)
    await call(OTTO, 'remember', 'kept')
    await assert.rejects(call(VERA, 'crash'), { code: 'upstream_down' })
    assert.deepEqual(((await call(OTTO, 'recall')) as Recalled).notes, ['kept'])
    assert.equal(upstream.state.status, 'ready')
    assert.equal(upstream.state.restarts, 0)
    await until(() => upstream.instances.every(({ state }) => state === 'idle'))
    assert.deepEqual(((await call(VERA, 'recall')) as Recalled).notes, [])
  })

  it('keeps the folders when an instance ends, so that a login survives', async (t) => {
    const { upstream, call } = await start(t, {}, { idleMs: 20 })
    await call(VERA, 'remember', 'logged in')
    await until(() => upstream.instances.length === 0)
    const { notes, login } = (await call(VERA, 'recall')) as Recalled
    assert.deepEqual({ notes, login }, { notes: [], login: 'logged in' })
  })

  it('ends with all its processes', async (t) => {
    const before = new Set(descendantsOf(process.pid))
    const { upstream, call } = await start(t)
    await Promise.all([call(VERA, 'recall'), call(OTTO, 'recall')])
    const children = descendantsOf(process.pid).filter((pid) => !before.has(pid))
    assert.ok(children.length >= 3)
    await upstream.close()
    await assert.rejects(call(VERA, 'recall'), { code: 'upstream_down' })
    // The shell that reaps stays until its own end.
    assert.ok(children.filter(isAlive).length <= 1)
  })

  it('fails the calls of a user whose instance does not start, and of no other', async (t) => {
    const { call, lines } = await start(t, { args: [STATEFUL_STDIO, '${user}'], startTimeoutMs: 1_500 })
    const hanging = assert.rejects(call({ user: 'hangs' }, 'recall'), { code: 'upstream_down' })
    const failing = assert.rejects(call({ user: 'fails' }, 'recall'), {
      code: 'upstream_down',
      message: 'server "browser" is not running',
    })
    await call({ user: 'vera' }, 'remember', 'x')
    await Promise.all([hanging, failing])
    const down = lines.find(({ user, message }) => user === 'fails' && message.startsWith('is down'))
    assert.match(down?.message ?? '', /the profile is broken/)
  })

  it('lets a caller leave while the instance starts', async (t) => {
    const { upstream } = await start(t, { args: [STATEFUL_STDIO, '${user}'] })
    const leaving = new AbortController()
    const asked = { ...toolCall('recall', '', { user: 'hangs' }), signal: leaving.signal }
    const call = assert.rejects(upstream.call(asked), { code: 'aborted' })
    leaving.abort()
    await call
    assert.deepEqual(
      upstream.instances.map(({ state }) => state),
      ['starting'],
    )
  })

  it('names the folder that cannot be made', async (t) => {
    const { upstream, call, lines } = await start(t, { cwd: join(process.execPath, '${user}') })
    assert.equal(upstream.state.status, 'down')
    await assert.rejects(call(VERA, 'recall'), { code: 'upstream_down' })
    assert.ok(lines.some(({ message }) => message.includes('/node/vera" could not be made (ENOTDIR)')))
  })

  it('does not let a name out of its folder', async (t) => {
    const root = mkdtempSync(join(tmpdir(), 'names-'))
    t.after(() => rmSync(root, { recursive: true }))
    const { call } = await start(t, { cwd: join(root, 'in', '${user}'), args: [STATEFUL_STDIO, '${user}'] })
    const users = ['../../x', 'a b', 'a\nb', '..', '-rf', '/etc']
    const cwds = await Promise.all(
      users.map(async (user) => {
        const { cwd, args } = (await call({ user }, 'recall')) as Recalled
        assert.equal(cwd, join(root, 'in', args[0] as string))
        return cwd
      }),
    )
    assert.equal(new Set(cwds).size, users.length)
    assert.deepEqual(readdirSync(root), ['in'])
    assert.equal(readdirSync(join(root, 'in')).length, users.length + 1)
  })
})

describe('the bounds of instances', () => {
  const refusal = (place: ReturnType<PerUserUpstream['admit']>) => (place && 'text' in place ? place : undefined)

  it('let a user open 1,000 calls at once with one instance', async (t) => {
    const { upstream, call } = await start(t, { callTimeoutMs: 60_000 })
    const answers = await Promise.all(Array.from({ length: 1000 }, () => call(VERA, 'recall')))
    assert.equal(new Set((answers as Recalled[]).map(({ pid }) => pid)).size, 1)
    assert.equal(upstream.instances.length, 1)
  })

  it('refuse a further user while all are in use, with the reason, and let them in when one is idle', async (t) => {
    const { upstream, call } = await start(t, {}, { max: 2 })
    const vera = upstream.admit(VERA)
    const otto = upstream.admit(OTTO)
    assert.ok(vera && otto && 'release' in vera && 'release' in otto)
    assert.deepEqual(refusal(upstream.admit({ user: 'zoe' })), {
      text: 'server "browser" has no instance for this user, and all 2 instances of all users are in use',
      message: 'all instances of its servers are in use',
    })
    await assert.rejects(call({ user: 'zoe' }, 'recall'), { code: 'upstream_down' })
    assert.equal(refusal(upstream.admit(VERA)), undefined)
    const { pid } = (await call(OTTO, 'recall')) as Recalled
    otto.release()
    assert.ok(((await call({ user: 'zoe' }, 'recall')) as Recalled).pid)
    // An instance starts only after the one before it has ended.
    assert.ok(!isAlive(pid))
    assert.deepEqual(upstream.instances.map(({ user }) => user).toSorted(), ['vera', 'zoe'])
  })

  it('end the instance that was idle longest, and none in use', async (t) => {
    const { upstream, call } = await start(t, {}, { max: 3 })
    await call({ user: 'a' }, 'recall')
    await call({ user: 'b' }, 'recall')
    await call({ user: 'c' }, 'recall')
    const held = upstream.admit({ user: 'a' })
    await call({ user: 'b' }, 'recall')
    await call({ user: 'd' }, 'recall')
    assert.deepEqual(upstream.instances.map(({ user }) => user).toSorted(), ['a', 'b', 'd'])
    if (held && 'release' in held) held.release()
  })

  it('count the instances of one user over all servers', async (t) => {
    const { upstream, instances } = await start(t, {}, { perUser: 1 })
    const other = (await start(t, { name: 'other' }, {}, instances)).upstream.admit(VERA)
    assert.ok(other && 'release' in other)
    assert.deepEqual(refusal(upstream.admit(VERA)), {
      text: 'server "browser" has no instance for this user, and all 1 instances of this user are in use',
      message: 'all 1 instances that you may have are in use',
    })
    assert.equal(refusal(upstream.admit(OTTO)), undefined)
    other.release()
    assert.equal(refusal(upstream.admit(VERA)), undefined)
  })

  it('have no place for a caller without any identity', async (t) => {
    const { upstream, call } = await start(t)
    assert.match(refusal(upstream.admit({ roles: ['admin'] }))?.text ?? '', /this caller has no user/)
    await assert.rejects(call({}, 'recall'), { code: 'upstream_down' })
    assert.deepEqual(upstream.instances, [])
  })
})

describe('a remote server', () => {
  it('that keeps sessions has one for each user, and the list has its own', async (t) => {
    let sessions = 0
    const calls: [unknown, unknown][] = []
    const server = await startScripted(t, {
      initialize: (exchange) => initialized(exchange, { session: `s${++sessions}` }),
      'tools/list': (exchange) => result(exchange, { tools: [tool('recall')] }),
      'tools/call': (exchange) => {
        calls.push([exchange.headers['mcp-session-id'], exchange.headers['x-user']])
        result(exchange, { content: [{ type: 'text', text: '"ok"' }] })
      },
    })
    const { upstream, call } = await start(t, remote(server.url))
    await Promise.all([call(VERA, 'recall'), call(VERA, 'recall'), call(OTTO, 'recall')])
    assert.equal(sessions, 3)
    assert.equal(upstream.instances.length, 2)
    assert.ok(!calls.some(([session]) => session === 's1'))
    assert.equal(new Set(calls.map(([session]) => session)).size, 2)
  })

  it('that keeps no sessions has one connection', async (t) => {
    const server = await startScripted(t, {
      'server/discover': (exchange) => discovered(exchange),
      'tools/list': (exchange) => result(exchange, { resultType: 'complete', tools: [tool('recall')] }),
      'tools/call': (exchange) =>
        result(exchange, { resultType: 'complete', content: [{ type: 'text', text: '"ok"' }] }),
    })
    const { upstream, call } = await start(t, remote(server.url))
    assert.equal(upstream.admit(VERA), undefined)
    assert.equal(await call(VERA, 'recall'), 'ok')
    assert.deepEqual(upstream.instances, [])
  })

  it('gets the name of each user in a header that cannot be broken', async (t) => {
    const seen: unknown[] = []
    const server = await startScripted(t, {
      'server/discover': (exchange) => discovered(exchange),
      'tools/list': (exchange) => result(exchange, { resultType: 'complete', tools: [tool('recall')] }),
      'tools/call': (exchange) => {
        seen.push(exchange.headers['x-user'])
        result(exchange, { resultType: 'complete', content: [{ type: 'text', text: '"ok"' }] })
      },
    })
    const { call } = await start(t, { ...remote(server.url), headers: { 'x-user': '${tenant}/${user}' } })
    await call(VERA, 'recall')
    await call({ user: 'a\r\nx-admin: 1', tenant: 'ü' }, 'recall')
    assert.deepEqual(seen, ['acme/vera', '%C3%BC/a%0D%0Ax%2Dadmin%3A%201'.replace('%2D', '-')])
  })
})

const remote = (url: string): Partial<ServerConfig> => ({ url, args: [] })

describe('an instance whose call goes on', () => {
  const IDLE_MS = 1_000

  /** A server of 2026-07-28 with an instance for each user, whose answers are given, and a clock of the test. */
  async function startModern(t: TestContext, answers: Record<string, object | Error>, max = 8) {
    const answer = (exchange: Exchange) => {
      const { method, params } = exchange.message as {
        method: string
        params: { name?: string; requestState?: string }
      }
      const given = answers[params.requestState ?? params.name ?? method]
      if (given instanceof Error) error(exchange, -32_602)
      else result(exchange, { resultType: 'complete', content: [], ...given })
    }
    const methods = ['tools/call', 'tasks/get', 'tasks/update', 'tasks/cancel']
    const server = await startScripted(t, {
      'server/discover': (exchange) => discovered(exchange),
      'tools/list': (exchange) => result(exchange, { resultType: 'complete', tools: [tool('ask')] }),
      ...Object.fromEntries(methods.map((method) => [method, answer])),
    })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { upstream } = await start(
      t,
      { ...remote(server.url), headers: { 'x-user': '${user}' } },
      { idleMs: IDLE_MS, max },
    )
    const tick = (ms: number) => t.mock.timers.tick(ms)
    const send = (method: CallMethod, params: JsonObject, state?: string) =>
      upstream.call({
        method,
        params,
        caller: VERA,
        signal,
        ...(state === undefined ? {} : { answers: { inputResponses: {}, requestState: state } }),
      })
    const users = () => upstream.instances.map(({ user, state }) => `${user} ${state}`)
    return { upstream, tick, send, users }
  }

  const asks = (requestState: string) => ({ resultType: 'input_required', inputRequests: {}, requestState })

  it('stays in use while its server waits for the next round, and is idle after the last', async (t) => {
    const { send, tick, users } = await startModern(t, { ask: asks('one'), one: asks('two'), two: {} })
    await send('tools/call', { name: 'ask' })
    tick(5 * IDLE_MS)
    assert.deepEqual(users(), ['vera running'])
    await send('tools/call', { name: 'ask' }, 'one')
    tick(5 * IDLE_MS)
    assert.deepEqual(users(), ['vera running'])
    await send('tools/call', { name: 'ask' }, 'two')
    assert.deepEqual(users(), ['vera idle'])
    tick(IDLE_MS)
    assert.deepEqual(users(), [])
  })

  it('is idle when the time for an answer is over', async (t) => {
    const { send, tick, users } = await startModern(t, { ask: asks('one') })
    await send('tools/call', { name: 'ask' })
    tick(ROUND_MS - 1)
    assert.deepEqual(users(), ['vera running'])
    tick(1)
    assert.deepEqual(users(), ['vera idle'])
  })

  const working = { resultType: 'task', taskId: 't1', status: 'working', ttlMs: 60_000 }

  it('stays in use while it runs a task, and is idle when the task ends or is cancelled', async (t) => {
    const answers: Record<string, object | Error> = { ask: working, 'tasks/get': { taskId: 't1', status: 'working' } }
    const { send, tick, users } = await startModern(t, answers)
    await send('tools/call', { name: 'ask' })
    await send('tasks/get', { taskId: 't1' })
    await send('tasks/update', { taskId: 't1' })
    tick(5 * IDLE_MS)
    assert.deepEqual(users(), ['vera running'])
    answers['tasks/get'] = { taskId: 't1', status: 'completed', result: { content: [] } }
    await send('tasks/get', { taskId: 't1' })
    assert.deepEqual(users(), ['vera idle'])
    await send('tools/call', { name: 'ask' })
    assert.deepEqual(users(), ['vera running'])
    await send('tasks/cancel', { taskId: 't1' })
    assert.deepEqual(users(), ['vera idle'])
  })

  it('is idle when the time of its task is over, and when its server has lost the task', async (t) => {
    const { send, tick, users } = await startModern(t, { ask: working, 'tasks/get': new Error('no such task') })
    await send('tools/call', { name: 'ask' })
    tick(60_000)
    assert.deepEqual(users(), ['vera idle'])
    await send('tools/call', { name: 'ask' })
    await assert.rejects(send('tasks/get', { taskId: 't1' }), { code: 'upstream_rpc' })
    assert.deepEqual(users(), ['vera idle'])
  })

  it('does not make room for another user', async (t) => {
    const { upstream, send } = await startModern(t, { ask: asks('one'), one: {} }, 1)
    await send('tools/call', { name: 'ask' })
    const refused = upstream.admit(OTTO)
    assert.ok(refused && 'text' in refused)
    await send('tools/call', { name: 'ask' }, 'one')
    const place = upstream.admit(OTTO)
    assert.ok(place && 'release' in place)
    place.release()
  })

  it('is not kept by more than 64 pauses: the oldest is released', async (t) => {
    const { send, users } = await startModern(t, { ask: asks('same'), same: {} })
    for (let i = 0; i < 70; i++) await send('tools/call', { name: 'ask' })
    for (let i = 0; i < 64; i++) await send('tools/call', { name: 'ask' }, 'same')
    assert.deepEqual(users(), ['vera idle'])
  })
})
