import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import type { RunningGateway, ServerRow } from '@toolgate/gateway'
import { openSqliteStores } from '@toolgate/stores/sqlite'
import { clientFolder } from '../testing/client-folder.ts'
import { fakeIo } from '../testing/fake-io.ts'
import type { Finding } from './doctor-gateway.ts'
import { doctorCommand, type DoctorOptions } from './doctor.ts'

const CONFIG = `servers:
  files: { command: node, args: [server.js, "a b"] }
callers: [{ user: reader, key: key-of-reader-1 }]
policy: [{ deny: ["*"] }]
listen: { port: 0 }
`

const DOWN = { name: 'files', status: 'down', reason: 'exited with code 1 (Error: no such folder)' }

function world(t: TestContext, config: string = CONFIG, row: object = DOWN) {
  const folder = clientFolder(t, config)
  chmodSync(folder.config, 0o600)
  const start = async () => {
    const gateway: Partial<RunningGateway> = {
      gate: createGate({ tools: [defineTool({ namespace: 'files', name: 'read' })], policy: { deny: ['*'] } }),
      ready: Promise.resolve(),
      servers: () => [row as ServerRow],
      close: async () => {},
    }
    return gateway as RunningGateway
  }
  const run = async (options: Partial<DoctorOptions> = {}, env = {}) => {
    const io = fakeIo({ HOME: folder.home, ...env })
    const exit = await doctorCommand({ config: folder.config, start: false, json: true, ...options }, { io, start })
    if (options.json === false) return { exit, out: io.out(), wrong: [] }
    const { findings } = JSON.parse(io.out()) as { findings: readonly Finding[] }
    const wrong = findings.filter(({ level }) => level !== 'ok').map(({ about, text, mend }) => [about, text, mend])
    return { exit, out: io.out(), wrong }
  }
  return { ...folder, run }
}

describe('toolgate doctor', () => {
  it('finds nothing wrong where nothing is', async (t) => {
    const { exit, wrong } = await world(t).run()
    assert.deepEqual([exit, wrong], ['ok', []])
  })

  it('names what a server waits for once, with its line, and goes on', async (t) => {
    const { run, config } = world(t, CONFIG.replace('"a b"]', '"${NO_WORD}"]'))
    const said = [
      `${config}:2:46`,
      `servers.files.args[1]: the environment variable NO_WORD is not set; set it or write \${NO_WORD:-default}`,
      'export NO_WORD=…',
    ]
    assert.deepEqual((await run({ start: true })).wrong[0], said)
    assert.equal(
      (await run({ start: true })).wrong.filter(([, text]) => /NO_WORD|no such folder/.test(text ?? '')).length,
      1,
    )
  })

  it('names a store that the gateway cannot open', async (t) => {
    const { run, config } = world(t)
    const folder = path.join(path.dirname(config), '.toolgate')
    mkdirSync(folder, { recursive: true })
    const [audit, state] = [path.join(folder, 'audit.db'), path.join(folder, 'state.db')]
    writeFileSync(audit, '{"catalog_revision":1}\n'.repeat(100))
    openSqliteStores({ path: state }).close()
    const db = new DatabaseSync(state)
    db.exec('PRAGMA user_version = 99')
    db.close()
    const before = readFileSync(state)
    const { exit, wrong } = await run()
    assert.equal(exit, 'no')
    assert.deepEqual(
      wrong.map(([about]) => about),
      [audit, state],
    )
    assert.match(wrong[0]?.[1] ?? '', /not a database/)
    assert.match(wrong[1]?.[1] ?? '', /it has version 99, and this Toolgate knows/)
    assert.deepEqual(readFileSync(state), before)
  })

  it('names the command for a missing configuration', async (t) => {
    const { exit, wrong } = await world(t).run({ config: '/nowhere/toolgate.yaml' })
    assert.deepEqual([exit, wrong], ['no', [['/nowhere/toolgate.yaml', 'there is no such file', 'toolgate init']]])
  })

  it('looks at the gateway that runs, where no configuration is', async (t) => {
    const { run } = world(t)
    const asked: (string | undefined)[] = []
    const server = createServer(({ url = '', headers }, response) => {
      asked.push(`${url.split('?')[0]} ${headers.authorization}`)
      if (url === '/healthz') return void response.end('{"status":"ok"}')
      if (headers.authorization !== 'Bearer key-of-owner')
        return void response.writeHead(401).end('{"error":{"code":"unauthenticated","message":"No key."}}')
      const servers = [
        { name: 'files', status: 'ready', toolCount: 2, may: ['elicit', 'open https://a.example'] },
        { name: 'web', status: 'down', reason: 'exited with code 1' },
        { name: 'mail', status: 'starting', reason: 'it downloads, unless they are in a cache: mail@1.0.0' },
      ]
      const failing = { since: '2026-11-28T14:00:00.000Z', why: 'it answered 503' }
      const receivers = [{ name: 'ops', format: 'slack', input: false, waiting: 2, failing }]
      response.end(JSON.stringify(url === '/api/notifications' ? { receivers } : { tools: [], servers }))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const TOOLGATE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const there = await run({ config: undefined }, { TOOLGATE_URL, TOOLGATE_KEY: 'key-of-owner' })
    assert.match(there.out, /"2 tools; may ask clients for: elicit, open https:\/\/a\.example"/)
    assert.deepEqual(there.wrong, [
      ['server web', 'exited with code 1', 'toolgate logs web'],
      [
        'server mail',
        'it is still starting: it downloads, unless they are in a cache: mail@1.0.0',
        'toolgate logs mail; for clients that list only once: servers.mail.waitForStart: true',
      ],
      [
        'receiver ops',
        'it takes no notifications since 2026-11-28T14:00:00.000Z: it answered 503; 2 wait',
        'toolgate notify test ops',
      ],
    ])
    assert.deepEqual(asked, [
      '/healthz undefined',
      '/api/tools Bearer key-of-owner',
      '/api/notifications Bearer key-of-owner',
    ])
    const keyless = await run({ config: undefined }, { TOOLGATE_URL, TOOLGATE_KEY: 'other' })
    assert.deepEqual(
      [keyless.exit, keyless.wrong],
      ['ok', [[TOOLGATE_URL, 'No key.', 'export TOOLGATE_KEY=<a console key>']]],
    )
    const url = 'http://127.0.0.1:1'
    const nobody = await run({ config: undefined, url })
    assert.deepEqual(nobody.wrong, [[url, 'no gateway answers there', 'toolgate serve --config <file>']])
  })

  it('names the place of each problem, and the variable that is missing', async (t) => {
    const { run, config } = world(
      t,
      'servers: {}\npolicy: [{ allow: ["*"] }]\ncallers: [{ user: a, key: "${TG_NONE}" }]\n',
    )
    const { exit, wrong } = await run()
    assert.equal(exit, 'no')
    assert.equal(wrong[0]?.[0]?.startsWith(`${config}:3:`), true)
    assert.equal(wrong[0]?.[2], 'export TG_NONE=…')
    const { wrong: other } = await world(t, 'servers: {}\npolcy: []\n').run()
    assert.match(other[0]?.[2] ?? '', /^edit .*toolgate\.yaml, line \d; then: toolgate check /)
  })

  it('starts the servers, and shows what a failed one wrote and how to see more', async (t) => {
    const { run, config } = world(t)
    const { exit, wrong } = await run({ start: true })
    assert.equal(exit, 'no')
    assert.deepEqual(wrong, [
      ['server files', 'exited with code 1 (Error: no such folder)', "node server.js 'a b'"],
      ['reader', 'the policy shows this agent no tool', `toolgate why files:read --as reader --config ${config}`],
    ])
  })

  it('names the line of the file that mends a server over HTTP', async (t) => {
    const text = CONFIG.replace(/ {2}files:.*/, '  files: { url: "https://files.example.com/mcp", proxy: none }')
    const reason = 'redirects to https://files.example.com/v2; write that as "url"'
    const { run, config } = world(t, text, { name: 'files', status: 'down', reason })
    const { wrong } = await run({ start: true })
    assert.deepEqual(wrong[0], [
      'server files',
      reason,
      `edit ${config}, line 2: servers.files.url: https://files.example.com/v2`,
    ])
  })

  it('finds keys that others can read', { skip: process.platform === 'win32' }, async (t) => {
    const { run, config } = world(t)
    chmodSync(config, 0o644)
    const { exit, wrong } = await run()
    assert.deepEqual(
      [exit, wrong],
      [
        'ok',
        [[config, 'it holds keys or secrets, and other users of this machine can read it', `chmod go= ${config}`]],
      ],
    )
  })

  it('tells a gateway from another program on the port', async (t) => {
    let health = '{"status":"ok"}'
    const server = createServer((_request, response) => response.end(health))
    t.after(() => server.closeAllConnections())
    t.after(() => server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const { run } = world(t, CONFIG.replace('port: 0', `port: ${port}`))
    assert.deepEqual((await run()).wrong, [])
    health = 'hello'
    const { exit, wrong } = await run()
    assert.equal(exit, 'no')
    assert.deepEqual(wrong[0]?.slice(0, 2), [`http://127.0.0.1:${port}`, 'another program has the port'])
    assert.match(wrong[0]?.[2] ?? '', /toolgate serve --port \d+ --config .*$/)
  })

  it('compares the clock with that of remote servers', async (t) => {
    const server = createServer((_request, response) => {
      response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString())
      response.end()
    })
    t.after(() => server.closeAllConnections())
    t.after(() => server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const text = CONFIG.replace(/ {2}files:.*/, `  remote: { url: "${url}/mcp" }`)
    const { wrong } = await world(t, text).run()
    assert.equal(wrong[0]?.[0], url)
    assert.match(wrong[0]?.[1] ?? '', /differ by 3[56]\d\d seconds/)
  })

  it('finds files of clients that name what is gone', async (t) => {
    const { run, write, config, home } = world(t)
    const entry = (args: readonly string[]) =>
      write('.cursor/mcp.json', JSON.stringify({ mcpServers: { toolgate: { command: process.execPath, args } } }))
    entry([config, 'stdio', '--config', path.join(home, 'gone.yaml'), '--as', 'reader'])
    assert.deepEqual((await run()).wrong, [
      [
        'Cursor: toolgate',
        `it names ${path.join(home, 'gone.yaml')}, which is gone`,
        'toolgate connect cursor --as reader',
      ],
    ])
    entry([config, 'stdio', '--config', config, '--as', 'reder'])
    assert.deepEqual((await run()).wrong, [
      [
        'Cursor: toolgate',
        'No agent is named "reder". Did you mean reader?',
        `toolgate connect cursor --as <user> --config ${config}`,
      ],
    ])
    entry([config, 'stdio', '--config', config, '--as', 'reader'])
    assert.deepEqual((await run()).wrong, [])
    write('.cursor/mcp.json', '{')
    assert.match((await run()).wrong[0]?.[1] ?? '', /it is not JSON/)
  })

  it('prints each finding with what mends it', async (t) => {
    const { out } = await world(t).run({ start: true, json: false })
    assert.match(out, /^ok {5}Node {2}v\d+/)
    assert.match(out, /error {2}server files {2}exited with code 1 .*\n {7}node server\.js 'a b'\n/)
    assert.match(out, /\n1 error, 1 warning\n$/)
  })
})
