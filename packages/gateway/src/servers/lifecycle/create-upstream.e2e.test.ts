import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  descendantsOf,
  HOSTILE,
  isAlive,
  nodeServer,
  runFor,
  serverConfig,
  SERVERS,
  testUpstream,
  until,
} from '../../../fixtures/servers.ts'
import type { ServerConfig } from '../../config/config.ts'
import { createBackoff } from './create-upstream.ts'
import { LIMITS } from '../transport/limits.ts'
import { UpstreamError } from '../../model/upstream.ts'

const { signal } = new AbortController()
const call = (tool: string, input: unknown = {}) => ({
  method: 'tools/call' as const,
  params: { name: tool, arguments: input },
  caller: {},
  signal,
})
const hostile = (mode: string, given: Partial<ServerConfig> = {}) => nodeServer([HOSTILE, mode], given)
const never = { firstMs: 1_000_000, maxMs: 1_000_000 }

async function tempFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'upstream-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

/** Lets no time go by, however long a slow machine takes. */
function holdTime(t: TestContext): void {
  const nowMs = performance.now()
  t.mock.method(performance, 'now', () => nowMs)
  t.mock.timers.enable({ apis: ['setTimeout'] })
}

describe('createUpstream', () => {
  it('serves the filesystem server over stdio', async (t) => {
    const folder = await tempFolder(t)
    await writeFile(join(folder, 'a.txt'), 'hello')
    const files = testUpstream(t, nodeServer([SERVERS.filesystem, folder], { name: 'files' }))
    assert.equal(files.state.status, 'starting')
    await files.start()
    assert.equal(files.state.status, 'ready')
    assert.equal(files.state.era, 'legacy')
    assert.equal(files.state.protocolVersion, '2025-11-25')
    assert.equal(files.state.serverInfo?.name, 'secure-filesystem-server')
    assert.equal(files.items.tools.length, 14)
    const { content, structuredContent } = await files.call(call('read_text_file', { path: join(folder, 'a.txt') }))
    assert.deepEqual(content, [{ type: 'text', text: 'hello' }])
    assert.deepEqual(structuredContent, { content: 'hello' })
  })

  it('serves the memory server, whose file is named by its environment', async (t) => {
    const file = join(await tempFolder(t), 'memory.json')
    const memory = testUpstream(t, nodeServer([SERVERS.memory], { env: { MEMORY_FILE_PATH: file } }))
    await memory.start()
    assert.equal(memory.items.tools.length, 9)
    const entities = [{ name: 'Vera', entityType: 'person', observations: ['likes tea'] }]
    await memory.call(call('create_entities', { entities }))
    assert.match(await readFile(file, 'utf8'), /likes tea/)
  })

  it('returns the result of a tool unchanged, with its errors and unknown fields', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    await server.start()
    assert.deepEqual(await server.call(call('echo', { message: 'ü' })), {
      content: [{ type: 'text', text: 'ü' }],
      extra: { kept: [1] },
    })
    assert.ok(server.lines.some(({ detail }) => detail === 'Welcome to the server!'))
    const files = testUpstream(t, nodeServer([SERVERS.filesystem, tmpdir()]))
    await files.start()
    const outside = await files.call(call('read_text_file', { path: '/etc/hostname' }))
    assert.equal(outside.isError, true)
  })

  it('takes a byte order mark, CRLF and ids that are text from a server on stdio', async (t) => {
    const server = testUpstream(t, hostile('text-ids'))
    await server.start()
    assert.equal(server.state.reason, undefined)
    assert.deepEqual((await server.call(call('echo', { message: 'ü' }))).content, [{ type: 'text', text: 'ü' }])
    assert.equal(server.lines.filter(({ level }) => level === 'warn').length, 0)
  })

  it('runs calls side by side', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    await server.start()
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, i) => server.call(call('echo', { message: String(i) }))),
    )
    assert.deepEqual(
      results.map(({ content }) => content?.[0]),
      Array.from({ length: 100 }, (_, i) => ({ type: 'text', text: String(i) })),
    )
  })

  it('refuses requests of the server with an error', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    await server.start()
    const { structuredContent } = await server.call(call('ask'))
    assert.deepEqual(structuredContent, {
      error: { code: -32_601, message: 'No running call has a client that can be asked.' },
    })
  })

  it('reports progress', async (t) => {
    const server = testUpstream(t, nodeServer([SERVERS.everything, 'stdio']))
    await server.start()
    const seen: unknown[] = []
    const onProgress = (progress: unknown) => void seen.push(progress)
    await server.call({ ...call('trigger-long-running-operation', { duration: 0.1, steps: 2 }), onProgress })
    assert.deepEqual(seen, [
      { progress: 1, total: 2 },
      { progress: 2, total: 2 },
    ])
  })

  it('ends a call that takes too long, and progress puts that off', async (t) => {
    const server = testUpstream(t, nodeServer([SERVERS.everything, 'stdio'], { callTimeoutMs: 400 }))
    await server.start()
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const slow = call('trigger-long-running-operation', { duration: 0.3, steps: 6 })
    const late = assert.rejects(server.call(slow), { code: 'upstream_timeout' })
    t.mock.timers.tick(400)
    await late
    let heard = 0
    const onProgress = () => {
      heard++
      t.mock.timers.tick(399)
    }
    const { content } = await server.call({ ...slow, onProgress })
    assert.match(JSON.stringify(content), /completed/)
    assert.ok(heard > 1)
    assert.equal(server.state.status, 'ready')
  })

  it('notifies the server when a caller aborts, and does not call for a caller that aborted before', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    await server.start()
    const leaving = new AbortController()
    const hanging = server.call({ ...call('hang'), signal: leaving.signal })
    leaving.abort(new Error('gone'))
    await assert.rejects(hanging, { code: 'aborted' })
    await assert.rejects(server.call({ ...call('grow'), signal: leaving.signal }), { code: 'aborted' })
    // Ids: 1 initialize, 2 tools/list, 3 the call that hangs.
    assert.deepEqual((await server.call(call('log'))).structuredContent, { cancelled: [3] })
    assert.ok(!server.items.tools.some(({ name }) => name === 'grown0'))
  })

  it('reads the tools again when the server announces a change, once for many changes', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    await server.start()
    const before = server.items.tools
    let told = 0
    server.subscribe(() => told++)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    await Promise.all([server.call(call('grow')), server.call(call('grow')), server.call(call('grow'))])
    t.mock.timers.tick(24)
    await server.call(call('echo'))
    assert.deepEqual([told, server.items.tools], [0, before])
    t.mock.timers.tick(1)
    await until(() => server.items.tools.some(({ name }) => name === 'grown2'))
    assert.equal(told, 1)
    assert.equal(server.items.tools.length, before.length + 3)
  })

  it('answers a deeply nested result with an error for that call alone', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    await server.start()
    for (const tool of ['deep', 'very-deep']) {
      const [deep, echo] = await Promise.allSettled([server.call(call(tool)), server.call(call('echo'))])
      assert.match(String(deep.status === 'rejected' && deep.reason), /nested more than 64 levels/)
      assert.equal(echo.status, 'fulfilled')
      assert.equal(server.state.status, 'ready')
    }
  })

  it('fails all calls at once when the child dies, keeps its tools, and starts it again', async (t) => {
    const server = testUpstream(t, hostile('banner', { name: 'frail' }))
    await server.start()
    const { tools } = server.items
    const statuses: string[] = []
    server.subscribe(() => statuses.push(`${server.state.status} ${server.state.reason ?? ''}`))
    const [hang, die] = await Promise.allSettled([server.call(call('hang')), server.call(call('die'))])
    for (const ended of [hang, die]) {
      assert.ok(ended.status === 'rejected' && ended.reason instanceof UpstreamError)
      assert.equal(ended.reason.code, 'upstream_down')
      // Its stderr is for operators, not for callers.
      assert.equal(ended.reason.message, 'server "frail" is not running')
    }
    assert.equal(server.items.tools, tools)
    await until(() => server.state.status === 'ready')
    assert.deepEqual(statuses[0], 'down exited with code 3 (Error: it was too much)')
    assert.equal(server.state.restarts, 1)
    assert.equal(server.state.reason, undefined)
    assert.equal(server.items.tools, tools, 'an equal list is the same list')
    await server.call(call('echo'))
  })

  it('takes large answers one after the other, also when their callers have gone away', async (t) => {
    holdTime(t)
    const server = testUpstream(t, hostile('banner'), { backoff: never })
    await server.start()
    for (let i = 0; i < 6; i++) await server.call(call('large'))
    for (let i = 0; i < 6; i++) {
      const leaving = new AbortController()
      const left = assert.rejects(server.call({ ...call('large'), signal: leaving.signal }), { code: 'aborted' })
      leaving.abort()
      await left
    }
    await server.call(call('echo'))
    assert.deepEqual([server.state.status, server.state.reason], ['ready', undefined])
  })

  it('refuses calls while it is down', async (t) => {
    const server = testUpstream(t, hostile('exit', { name: 'gone' }), { backoff: never })
    await server.start()
    await assert.rejects(server.call(call('echo')), { code: 'upstream_down', message: 'server "gone" is not running' })
  })

  describe('goes down with a reason when the server', () => {
    const short = { startTimeoutMs: 1_000 }
    /** A busy machine takes longer than the usual 10 s for them. */
    const patient = { startTimeoutMs: 60_000 }
    const cases: readonly (readonly [string, ServerConfig, RegExp])[] = [
      ['is missing', serverConfig({ command: 'no-such-command' }), /^command "no-such-command" was not found$/],
      ['may not be run', serverConfig({ command: HOSTILE }), /^command ".*" may not be executed$/],
      ['has no folder', nodeServer(['-v'], { cwd: '/no/such/folder' }), /^folder "\/no\/such\/folder" does not exist$/],
      ['exits', hostile('exit'), /^exited with code 1 \(Error: no such folder\)$/],
      ['hangs', hostile('hang', short), /^did not answer in \d+(\.\d)? s$/],
      ['says nothing else', hostile('garbage-lines'), /^answered something that is not MCP: "not json"$/],
      ['writes a line without end', hostile('flood-stdout', patient), /^answered more than 16 MiB in one message$/],
      ['lists pages without end', hostile('endless-pages', patient), /^lists more than 1000 pages of tools$/],
      ['lists pages in a circle', hostile('circle'), /^lists its tools in a circle/],
      ['lists too many tools', hostile('too-many-tools', patient), /^lists more than 10000 tools$/],
      ['lists none', hostile('no-list'), /^answered tools\/list without a list$/],
      ['speaks another revision', hostile('wrong-version'), /^speaks MCP 1999-01-01; supported are 2026-07-28, /],
      [
        'is not of the era that it is said to be',
        hostile('banner', { era: 'modern' }),
        /^does not speak MCP 2026-07-28$/,
      ],
    ]
    for (const [what, config, reason] of cases) {
      it(what, async (t) => {
        const server = testUpstream(t, config, { backoff: never })
        await server.start()
        assert.equal(server.state.status, 'down')
        assert.match(server.state.reason ?? '', reason)
        assert.deepEqual(server.items.tools, [])
      })
    }

    it('sends messages without end', async (t) => {
      holdTime(t)
      const server = testUpstream(t, hostile('flood-messages'), { backoff: never })
      await server.start()
      assert.equal(server.state.reason, 'wrote more than 64 MiB in 10 s to stdout')
    })

    it('sends something else', async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const server = testUpstream(t, hostile('garbage'), { backoff: never })
      const starting = server.start()
      await until(() => server.lines.some(({ detail }) => detail === 'Welcome to the server!'))
      t.mock.timers.tick(10_000)
      await starting
      assert.equal(server.state.status, 'down')
      assert.equal(server.state.reason, 'answered something that is not MCP: "Welcome to the server!"')
    })

    it('answers too much for which nobody has asked', async (t) => {
      const server = testUpstream(t, hostile('banner'), { backoff: never })
      await server.start()
      await assert.rejects(server.call(call('huge-nobody')), { code: 'upstream_too_large' })
      assert.equal(server.state.reason, 'answered more than 16 MiB in one message')
    })

    it('sends an answer without end', async (t) => {
      const server = testUpstream(t, hostile('banner', { callTimeoutMs: 600_000 }), { backoff: never })
      await server.start()
      await assert.rejects(server.call(call('endless')), { code: 'upstream_too_large' })
      assert.equal(server.state.reason, 'answered more than 16 MiB in one message')
    })

    it('stops in the middle of a large answer', async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const server = testUpstream(t, hostile('banner', { callTimeoutMs: 2 ** 31 - 1 }), { backoff: never })
      await server.start()
      const stuck = assert.rejects(server.call(call('stuck')), { code: 'upstream_too_large' })
      const isDown = () => {
        t.mock.timers.tick(LIMITS.skippedMs)
        return server.state.status === 'down'
      }
      await until(isDown, 60_000)
      await stuck
      assert.equal(server.state.reason, 'answered more than 16 MiB in one message')
    })

    it('writes to stderr without end', async (t) => {
      holdTime(t)
      const server = testUpstream(t, hostile('flood-stderr'), { backoff: never })
      await server.start()
      await until(() => server.state.status === 'down')
      assert.equal(server.state.reason, 'wrote more than 64 MiB in 10 s to stderr')
    })
  })

  for (const name of ['huge', 'huge-id-last', 'blob'])
    it(`fails only the call whose answer is too large: ${name}`, async (t) => {
      const server = testUpstream(t, hostile('banner', { callTimeoutMs: 2 ** 31 - 1 }))
      await server.start()
      const other = assert.rejects(server.call(call('hang')), { code: 'upstream_down' })
      const large = { code: 'upstream_too_large', message: 'server "server" answered more than 16 MiB in one message' }
      await assert.rejects(server.call(call(name)), large)
      assert.deepEqual((await server.call(call('echo', { message: 'on' }))).content, [{ type: 'text', text: 'on' }])
      assert.deepEqual([server.state.status, server.state.restarts], ['ready', 0])
      await server.close()
      await other
    })

  it('ignores a notification that is too large', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    await server.start()
    assert.deepEqual((await server.call(call('huge-notice'))).content, [])
    assert.ok(server.lines.some(({ message }) => message === 'sent a message that is too large, which was ignored'))
    assert.equal(server.state.restarts, 0)
  })

  it('does not let one bad server disturb another', async (t) => {
    const good = testUpstream(t, hostile('banner'))
    const bad = ['flood-stdout', 'flood-stderr', 'garbage-lines', 'exit', 'endless-pages'].map((mode) =>
      testUpstream(t, hostile(mode)),
    )
    await Promise.all([good, ...bad].map((server) => server.start()))
    for (let i = 0; i < 20; i++) await good.call(call('echo', { message: String(i) }))
    assert.equal(good.state.restarts, 0)
  })

  it('rejects tools that cannot be offered, each with its reason', async (t) => {
    const server = testUpstream(t, hostile('bad-tools'))
    await server.start()
    assert.deepEqual(
      server.items.tools.map(({ name }) => name),
      // Those that rules cannot name are served under other names.
      ['good', 'a b', 'a:b', 'task'],
    )
    const reasons = new Map(server.state.rejected.map(({ name, reason }) => [name, reason]))
    assert.equal(reasons.get('good'), 'is listed twice; the first counts')
    assert.equal(reasons.get('tools[1]'), 'the name must be a string that is not empty')
    assert.match(reasons.get(`${'x'.repeat(8)}…`) ?? '', /has 129 characters/)
    assert.equal(reasons.get('schema'), 'has no inputSchema that is an object')
    assert.equal(reasons.get('hint'), 'has annotations of the wrong type')
    assert.equal(server.state.rejected.length, 10)
  })

  it('rejects tools that are too deep or too large, each with its reason, and keeps the others', async (t) => {
    const server = testUpstream(t, hostile('large-tools'))
    await server.start()
    assert.deepEqual(
      server.items.tools.map(({ name }) => name),
      ['first', 'last'],
    )
    assert.deepEqual(server.state.rejected, [
      { kind: 'tool', name: 'deep', reason: 'is nested more than 60 levels deep' },
      { kind: 'tool', name: 'wide', reason: 'holds more than 5000 keys' },
      { kind: 'tool', name: 'wider', reason: 'is larger than 262144 characters' },
      { kind: 'tool', name: 'long', reason: 'is larger than 262144 characters' },
    ])
  })

  it('shows many tools bit by bit, and is ready with the last', async (t) => {
    const server = testUpstream(t, hostile('many-tools'))
    const seen: (readonly [number, string])[] = []
    server.subscribe(() => seen.push([server.items.tools.length, server.state.status]))
    await server.start()
    assert.deepEqual(seen, [
      [200, 'starting'],
      [400, 'starting'],
      [600, 'starting'],
      [800, 'starting'],
      [1000, 'ready'],
    ])
  })

  it('takes names of Object.prototype for names', async (t) => {
    const server = testUpstream(t, hostile('proto-names'))
    await server.start()
    assert.deepEqual(
      server.items.tools.map(({ name }) => name),
      ['__proto__', 'constructor', 'toString', 'hasOwnProperty'],
    )
    assert.deepEqual(server.state.rejected, [])
  })

  it('closes a stubborn child and its descendants within two seconds', async (t) => {
    const before = new Set(descendantsOf(process.pid))
    const servers = [testUpstream(t, hostile('stubborn')), testUpstream(t, hostile('grandchild'))]
    await Promise.all(servers.map((server) => server.start()))
    const started = descendantsOf(process.pid).filter((pid) => !before.has(pid))
    assert.ok(started.filter(isAlive).length >= 3)
    const closing = Promise.all(servers.map((server) => server.close()))
    const late = runFor(2_000).then(() => 'late')
    assert.notEqual(await Promise.race([closing, late]), 'late')
    assert.equal(servers[0]?.state.status, 'stopped')
    // The reapers' shells live until the end of the test.
    await until(() => started.filter(isAlive).length <= servers.length)
  })

  it('can be closed while it starts, before it starts, and twice', async (t) => {
    const server = testUpstream(t, hostile('hang'))
    const starting = server.start()
    await sleep(50)
    await Promise.all([server.close(), server.close()])
    await starting
    assert.equal(server.state.status, 'stopped')
    const unused = testUpstream(t, hostile('banner'))
    await unused.close()
    await unused.start()
    assert.equal(unused.state.status, 'stopped')
    await assert.rejects(unused.call(call('echo')), { code: 'upstream_down' })
  })

  it('calls listeners after every change, and a listener that throws does not stop it', async (t) => {
    const server = testUpstream(t, hostile('banner'))
    let told = 0
    server.subscribe(() => {
      throw new Error('broken listener')
    })
    const unsubscribe = server.subscribe(() => told++)
    await server.start()
    assert.equal(told, 1)
    unsubscribe()
    await server.close()
    assert.equal(told, 1)
    assert.ok(server.lines.some(({ level, message }) => level === 'error' && message === 'a listener failed'))
  })
})

describe('createBackoff', () => {
  it('doubles the delay to its maximum and starts again after a good run', () => {
    const backoff = createBackoff({ firstMs: 100, maxMs: 400, resetMs: 1_000, random: () => 1 })
    const delays = (count: number) => Array.from({ length: count }, () => backoff.nextDelayMs())
    assert.deepEqual(delays(4), [100, 200, 400, 400])
    backoff.ranFor(999)
    assert.deepEqual(delays(1), [400])
    backoff.ranFor(1_000)
    assert.deepEqual(delays(2), [100, 200])
  })

  it('takes half of each delay at random', () => {
    assert.equal(createBackoff({ firstMs: 100, random: () => 0 }).nextDelayMs(), 50)
    assert.equal(createBackoff({ firstMs: 100, random: () => 0.5 }).nextDelayMs(), 75)
  })
})
