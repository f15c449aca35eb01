import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadConfig, type GroupRow, type NeedRow, type NeedsBody } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, textOf } from './support/rpc.ts'

/** Groups of a file, with every kind of probe, over real ports, files and servers. */

const folder = tempFolder()
const TOOLS = ['port', 'url', 'program', 'variable', 'upstream', 'chain', 'hung', 'free']
let bank: RecordingServer
let port: Server
let web: ReturnType<typeof createHttpServer>
let hung: Server
let gateway: TestGateway
let connections = 0
let status = 503

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port

before(async () => {
  bank = await startRecordingServer(TOOLS.map((name) => ({ name })))
  port = createServer((socket) => {
    connections++
    socket.on('error', () => undefined).end()
  }).listen(0, '127.0.0.1')
  web = createHttpServer((_, response) => response.writeHead(status).end()).listen(0, '127.0.0.1')
  // It accepts connections, and never answers.
  hung = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
  await Promise.all([port, web, hung].map((server) => once(server, 'listening')))
  const file = join(folder.path, 'toolgate.yaml')
  const many = Array.from(
    { length: 40 },
    (_, i) => `  same-${i}: { tools: ["bank:port"], availableWhen: [{ tcp: ${portOf(port)} }] }`,
  )
  writeFileSync(
    file,
    `
policy: [{ allow: ["*"] }]
servers: { bank: { url: "${bank.url}" } }
groups:
${many.join('\n')}
  url: { tools: ["bank:url"], availableWhen: [{ http: "http://127.0.0.1:${portOf(web)}/health?token=very-secret" }] }
  program: { tools: ["bank:program"], availableWhen: [{ command: [test, -e, there] }], suggestion: Make the file. }
  variable: { tools: ["bank:variable"], availableWhen: [{ env: TOOLGATE_TEST_GROUP }] }
  upstream: { tools: ["bank:upstream"], availableWhen: [{ server: bank }] }
  middle: { tools: ["bank:none-*"], dependsOn: [program] }
  chain: { tools: ["bank:chain"], visibility: conditional, dependsOn: [middle] }
  hung: { tools: ["bank:hung"], availableWhen: [{ http: "http://127.0.0.1:${portOf(hung)}/", timeoutMs: 60000 }] }
`,
  )
  const { groups, servers } = loadConfig(file)
  gateway = await startTestGateway({ groups, servers })
})

after(async () => {
  await gateway.close()
  await bank.close()
  for (const server of [port, web, hung]) server.close()
  folder.remove()
})

const listed = async () => (await gateway.list('viewer', MODERN)).map((name) => name.replace('bank__', '')).toSorted()
const group = (name: string) => gateway.groups().find((row) => row.name === name) as GroupRow

describe('groups of a file', () => {
  it('hide only tools that cannot work, and a hanging probe delays no start and no list', async () => {
    assert.deepEqual(await listed(), ['free', 'port', 'upstream'])
    assert.equal(group('hung').badge, 'unknown')
    assert.equal(group('url').badge, 'unavailable')
    assert.equal(group('upstream').badge, 'available')
  })

  it('give the reason, without secrets', async () => {
    assert.equal(group('url').reason, `http://127.0.0.1:${portOf(web)}/health answers with status 503, not 200 to 299`)
    assert.equal(group('variable').reason, 'the environment variable TOOLGATE_TEST_GROUP is not set')
    assert.equal(
      textOf(await gateway.call('viewer', MODERN, 'bank__chain')),
      'bank__chain is unavailable: middle is unavailable because program is unavailable because the command test exits with code 1. Make the file.',
    )
    assert.deepEqual(bank.calls(), [])
  })

  it('run each probe once per interval, for all groups and callers', async () => {
    const start = connections
    await until(async () => {
      await Promise.all([listed(), gateway.tools('viewer'), gateway.list('operator', '2025-06-18')])
      return connections >= start + 4
    })
    // Had each of the 40 groups asked for itself, one round would be more than this.
    assert.ok(connections - start < 20, `${connections - start}`)
  })

  it('follow their requirements', async () => {
    status = 204
    writeFileSync(join(folder.path, 'there'), '')
    process.env['TOOLGATE_TEST_GROUP'] = 'set'
    try {
      await until(async () => (await listed()).length === TOOLS.length - 1)
      assert.equal(textOf(await gateway.call('viewer', MODERN, 'bank__chain')), 'chain ran')
      delete process.env['TOOLGATE_TEST_GROUP']
      await until(async () => !(await listed()).includes('variable'))
      status = 500
      await until(async () => !(await listed()).includes('url'))
    } finally {
      delete process.env['TOOLGATE_TEST_GROUP']
    }
  })
})

describe('the requirements of an app of a file', () => {
  // Other tests listen on ports of 127.0.0.1, also on one that has just been closed. Linux has more addresses of its own.
  const host = process.platform === 'linux' ? '127.0.77.1' : '127.0.0.1'

  it('are at /api/needs, and follow a port that opens and closes', async () => {
    const closed = createServer((socket) => socket.on('error', () => undefined).end())
    closed.listen(0, host)
    await once(closed, 'listening')
    const number = portOf(closed)
    await close(closed)
    const own = tempFolder()
    const file = join(own.path, 'toolgate.yaml')
    writeFileSync(
      file,
      `
policy: [{ allow: ["*"] }]
servers:
  bank: { url: "${bank.url}" }
  gone: { url: "http://${host}:${number}/mcp" }
groups:
  pay: { tools: ["bank:port"], dependsOn: [machine] }
  machine: { tools: ["bank:none-*"], availableWhen: [{ tcp: "${host}:${number}" }], suggestion: Start the machine. }
  lost: { tools: ["gone:*"], availableWhen: [{ server: gone }] }
apps:
  till: { import: [pay] }
  abroad: { tools: ["gone:*"] }
`,
    )
    const { groups, servers, apps } = loadConfig(file)
    const shop = await startTestGateway({ groups, servers, apps: apps ?? [] })
    const needsOf = async (query: string) => ((await shop.api(`/api/needs${query}`)).body as NeedsBody).needs
    const machineOnce = async (state: NeedRow['state']): Promise<NeedRow> => {
      let row: NeedRow | undefined
      await until(async () => {
        row = (await needsOf('?app=till')).find(({ kind }) => kind === 'tcp')
        return row?.state === state
      })
      return row as NeedRow
    }
    const again = createServer((socket) => socket.on('error', () => undefined).end())
    try {
      const { since = 0, ...need } = await machineOnce('unavailable')
      assert.deepEqual(need, {
        kind: 'tcp',
        what: `${host}:${number}`,
        groups: ['pay', 'machine'],
        state: 'unavailable',
        reason: `nothing listens on ${host}:${number} (ECONNREFUSED)`,
        suggestion: 'Start the machine.',
      })
      assert.deepEqual(
        (await needsOf('?app=till')).map(({ what, state }) => [what, state]),
        [
          ['the server bank', 'available'],
          [`${host}:${number}`, 'unavailable'],
        ],
      )
      // Its tools were never listed, so the catalog knows nothing of them.
      assert.deepEqual(
        (await needsOf('?app=abroad')).map(({ what, groups: asking, state }) => [what, asking, state]),
        [['the server gone', ['lost'], 'unavailable']],
      )
      assert.equal((await needsOf('')).length, 3)
      assert.equal((await shop.api('/api/needs?app=tll')).status, 404)

      again.listen(number, host)
      await once(again, 'listening')
      const up = await machineOnce('available')
      assert.deepEqual([up.reason, up.suggestion], [undefined, undefined])
      assert.ok((up.since ?? 0) >= since)
      await close(again)
      await machineOnce('unavailable')
    } finally {
      again.close()
      await shop.close()
      own.remove()
    }
  })
})

async function close(server: Server): Promise<void> {
  server.close()
  await once(server, 'close')
}
