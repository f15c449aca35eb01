import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ReadyBody, ServerRow } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { descendantsOf, isAlive, ownProcesses } from './support/processes.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { ERAS, MODERN, textOf } from './support/rpc.ts'
import {
  everythingServer,
  filesServer,
  hostileServer,
  httpServer,
  memoryServer,
  serverConfig,
} from './support/servers.ts'

describe('servers that fail', () => {
  let good: RecordingServer
  let gateway: TestGateway

  before(async () => {
    good = await startRecordingServer([{ name: 'look' }])
    gateway = await startTestGateway({
      servers: [
        httpServer('good', good.url),
        serverConfig('missing', { command: '/nonexistent/server' }),
        hostileServer('exits', 'exit'),
        hostileServer('hangs', 'hang', { startTimeoutMs: 500 }),
        hostileServer('garbage', 'garbage', { startTimeoutMs: 500 }),
        hostileServer('noise', 'garbage-lines'),
        hostileServer('flood', 'flood-stdout'),
        hostileServer('no-list', 'no-list'),
        hostileServer('old', 'wrong-version'),
        hostileServer('bad-list', 'bad-tools'),
        httpServer('nobody', 'http://127.0.0.1:9/mcp'),
      ],
    })
  })

  after(async () => {
    await gateway?.close()
    await good?.close()
  })

  const rows = async () => new Map((await gateway.tools('admin')).servers.map((row) => [row.name, row]))

  it('are down, with the reason', async () => {
    const reasons: Record<string, RegExp> = {
      missing: /\/nonexistent\/server/,
      exits: /exited with code 1.*no such folder/,
      hangs: /did not|no answer|0\.5 s/,
      garbage: /Welcome to the server|did not|no answer|0\.5 s/,
      noise: /JSON|MCP/,
      flood: /more than|MiB/,
      'no-list': /tools\/list/,
      old: /1999-01-01/,
      nobody: /nothing listens/,
    }
    for (const [name, reason] of Object.entries(reasons)) {
      const row = (await rows()).get(name) as ServerRow
      assert.notEqual(row.status, 'ready', name)
      assert.match(row.reason ?? '(none)', reason, name)
      assert.equal(row.toolCount, 0)
    }
  })

  it('do not keep the gateway from being ready, and /readyz has their states without reasons', async () => {
    const { status, body } = await gateway.api('/readyz')
    const ready = body as ReadyBody
    assert.deepEqual([status, ready.status], [200, 'ready'])
    assert.equal(ready.servers?.find(({ name }) => name === 'good')?.status, 'ready')
    assert.doesNotMatch(JSON.stringify(body), /nonexistent|no such folder/)
  })

  for (const era of ERAS)
    it(`do not affect the others, in ${era}`, async () => {
      const list = await gateway.list('admin', era)
      assert.deepEqual(list, ['bad-list__a_b', 'bad-list__good', 'good__look'])
      assert.equal(textOf(await gateway.call('admin', era, 'good__look')), 'look ran')
      const told = textOf(await gateway.call('admin', era, 'exits__echo'))
      assert.match(told, /^Tool "exits__echo" is not available\. Available tools: /)
    })

  it('that list invalid tools have their other tools offered, and each invalid one reported', async () => {
    const row = (await rows()).get('bad-list') as ServerRow
    assert.equal(row.status, 'ready')
    // One is served under another name.
    assert.equal(row.toolCount, 2)
    assert.ok(row.rejected.length >= 10)
    for (const { reason } of row.rejected) assert.ok(reason.length > 0)
  })
})

describe('a server that fails later', () => {
  const folder = tempFolder()
  let gateway: TestGateway

  before(async () => {
    gateway = await startTestGateway({
      servers: [
        hostileServer('frail', 'serve'),
        hostileServer('proto', 'proto-names'),
        memoryServer(join(folder.path, 'memory.jsonl')),
      ],
    })
  })

  after(async () => {
    await gateway?.close()
    folder.remove()
  })

  const frail = async () => (await gateway.tools('admin')).servers.find(({ name }) => name === 'frail') as ServerRow
  const lists = async () => (await gateway.list('admin', MODERN)).includes('frail__echo')
  const others = async () =>
    assert.notEqual((await gateway.call('admin', MODERN, 'memory__read_graph')).result?.isError, true)

  it('by exiting during a call: the call says so, its tools become unavailable, and come back', async () => {
    assert.equal(await lists(), true)
    const died = await gateway.call('admin', MODERN, 'frail__die')
    assert.equal(died.result?.isError, true)
    assert.match(textOf(died), /server "frail"/)
    assert.doesNotMatch(textOf(died), /it was too much/, 'what it wrote to stderr is not for callers')
    await others()
    await until(async () => (await frail()).restarts >= 1 && (await lists()))
    assert.equal(textOf(await gateway.call('admin', '2025-11-25', 'frail__echo', { message: 'back' })), 'back')
  })

  it('by being killed: its tools become unavailable, and come back', async () => {
    const { restarts } = await frail()
    const [pid] = ownProcesses('hostile-stdio.js serve')
    process.kill(pid as number, 'SIGKILL')
    await until(async () => !(await lists()))
    const told = textOf(await gateway.call('admin', MODERN, 'frail__echo'))
    assert.match(told, /^frail__echo is unavailable: the server frail is (down|starting)/)
    await others()
    await until(async () => (await frail()).restarts > restarts && (await lists()))
    assert.equal(textOf(await gateway.call('admin', MODERN, 'frail__echo', { message: 'again' })), 'again')
  })

  it('by not answering: the call ends at its timeout, and the server stays up', async () => {
    const hasty = await startTestGateway({ servers: [hostileServer('hasty', 'serve', { callTimeoutMs: 300 })] })
    try {
      const hung = await hasty.call('admin', MODERN, 'hasty__hang')
      assert.equal(hung.result?.isError, true)
      assert.match(textOf(hung), /server "hasty" did not answer in \d+(\.\d)? s/)
      // On a machine that pauses, an answer may take that long too.
      await until(
        async () => textOf(await hasty.call('admin', MODERN, 'hasty__echo', { message: 'still' })) === 'still',
      )
      assert.equal((await hasty.tools('admin')).servers[0]?.restarts, 0)
    } finally {
      await hasty.close()
    }
  })

  it('by an answer that is too deep or too large: only the call fails', async () => {
    for (const tool of ['frail__deep', 'frail__huge']) {
      const answer = await gateway.call('admin', MODERN, tool)
      assert.equal(answer.result?.isError, true, tool)
      await others()
    }
    await until(lists)
  })

  it('by requests to its client that are not governed: they are refused, and do not reach a client', async () => {
    await until(lists)
    for (const era of ERAS) {
      const { result } = await gateway.call('admin', era, 'frail__ask')
      assert.match(JSON.stringify(result?.structuredContent), /"code":-32601/)
    }
  })

  it('by tool names that objects inherit: they are ordinary tools', async () => {
    const list = await gateway.list('admin', MODERN)
    assert.equal(list.filter((name) => name.startsWith('proto_')).length, 4)
  })
})

describe('a gateway that is killed', () => {
  it('leaves no process behind, even one that ignores signals', async () => {
    const folder = tempFolder()
    const servers = [
      filesServer(folder.path),
      everythingServer(),
      hostileServer('stubborn', 'stubborn'),
      hostileServer('parent', 'grandchild'),
    ]
    const script = join(import.meta.dirname, 'support/run-gateway.ts')
    const args = ['--conditions=toolgate-source', script, JSON.stringify(servers)]
    const gateway = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      const [line] = (await once(gateway.stdout, 'data')) as [Buffer]
      const started = JSON.parse(line.toString()) as { servers: ServerRow[] }
      assert.deepEqual(
        started.servers.map(({ status }) => status),
        servers.map(() => 'ready'),
      )
      const children = descendantsOf(gateway.pid as number)
      assert.ok(children.length >= 5, `${children.length} children`)
      gateway.kill('SIGKILL')
      await until(() => children.every((pid) => !isAlive(pid)))
    } finally {
      gateway.kill('SIGKILL')
      folder.remove()
    }
  })
})
