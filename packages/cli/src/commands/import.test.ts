import assert from 'node:assert/strict'
import { existsSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { loadConfig, type RunningGateway, type ServerRow } from '@toolgate/gateway'
import { clientFolder, CONFIG_TEXT } from '../testing/client-folder.ts'
import { fakeIo } from '../testing/fake-io.ts'
import { importCommand, type ImportCommandOptions } from './import.ts'

const FILE = '.cursor/mcp.json'
const SECRET = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'
const TEXT = `{
  // mine
  "mcpServers": {
    "GitHub": { "command": "npx", "args": ["-y", "github"], "env": { "GITHUB_TOKEN": "${SECRET}" } },
    "notes": { "command": "node", "args": ["/notes.js"] },
    "old": { "type": "sse", "url": "https://example.com/sse" }
  }
}
`

function world(t: TestContext) {
  const folder = clientFolder(t)
  folder.write(FILE, TEXT)
  const io = fakeIo({ HOME: folder.home })
  const started: string[] = []
  const start = async ({ servers }: Parameters<typeof import('@toolgate/gateway').startGateway>[0]) => {
    started.push(...servers.map(({ name }) => name))
    const tools = [defineTool({ namespace: 'notes', name: 'look', annotations: { readOnlyHint: true } })]
    const gateway: Partial<RunningGateway> = {
      gate: createGate({ tools }),
      ready: Promise.resolve(),
      servers: () => started.map((name) => ({ name, status: 'ready' })) as unknown as ServerRow[],
      close: async () => {},
    }
    return gateway as RunningGateway
  }
  const run = (options: Partial<ImportCommandOptions> = {}, client = 'cursor') => {
    const given = { config: folder.config, name: 'toolgate', as: 'reader', start: true, ...options }
    return importCommand(client, given, { io, start })
  }
  return { ...folder, io, started, run }
}

describe('toolgate import', () => {
  it('shows what would change, and changes nothing', async (t) => {
    const { run, read, io, started, home } = world(t)
    assert.equal(await run(), 'ok')
    assert.deepEqual([read(FILE), read('toolgate.yaml'), started], [TEXT, CONFIG_TEXT, []])
    assert.ok(!existsSync(path.join(home, `${FILE}.toolgate-undo.json`)))
    assert.match(io.out(), / {2}moves {2}GitHub → servers\.github: npx -y github\n/)
    assert.match(io.out(), /env\.GITHUB_TOKEN is a secret, kept in \.toolgate\/secrets\/github-GITHUB_TOKEN\n/)
    assert.ok(!existsSync(path.join(home, '.toolgate')))
    assert.match(io.out(), / {2}stays {2}old: it speaks HTTP\+SSE, which the gateway does not\n/)
    assert.match(io.out(), /would get 2 servers\.\nCursor would get "toolgate" in their place/)
    assert.match(io.out(), /Nothing was changed\. To write it: toolgate import cursor --as reader --apply\n$/)
    assert.ok(!io.out().includes(SECRET))
  })

  it('moves them with --apply, tags what it can start, and undoes it to the byte', async (t) => {
    const { run, read, io, started, config, home } = world(t)
    await run({ apply: true })
    const { servers } = loadConfig(config, { env: {} })
    assert.deepEqual(servers[0]?.env, { GITHUB_TOKEN: SECRET }, 'what was imported works at once')
    const secrets = path.join(home, '.toolgate/secrets')
    const modes = [secrets, path.join(secrets, 'github-GITHUB_TOKEN')].map((one) => statSync(one).mode & 0o777)
    if (process.platform !== 'win32') assert.deepEqual(modes, [0o700, 0o600])
    assert.equal(read('.toolgate/secrets/.gitignore'), '*\n')
    assert.deepEqual(
      servers.map(({ name, tools }) => [name, [...tools.keys()]]),
      [
        ['github', []],
        ['notes', ['look']],
      ],
    )
    assert.deepEqual(started, ['github', 'notes'])
    assert.ok(read('toolgate.yaml').startsWith('# mine\n'))
    const { mcpServers } = JSON.parse(read(FILE).replace('// mine', '')) as { mcpServers: object }
    assert.deepEqual(Object.keys(mcpServers), ['old', 'toolgate'])
    assert.ok(![read(FILE), read('toolgate.yaml'), io.out()].some((text) => text.includes(SECRET)))
    assert.doesNotMatch(io.out(), /Set where the gateway runs/)
    await run({ undo: true })
    assert.deepEqual([read(FILE), read('toolgate.yaml')], [TEXT, CONFIG_TEXT])
    assert.ok(!existsSync(path.join(secrets, 'github-GITHUB_TOKEN')), 'undo removes the copies of secrets')
    assert.match(io.out(), /removed {2}.*github-GITHUB_TOKEN\n(?:.*\n)*restored {2}.*mcp\.json\n/)
  })

  it('starts no server that lacks a variable, and says which', async (t) => {
    const { run, io, started, write, config } = world(t)
    write(FILE, TEXT.replace(SECRET, '${env:MY_TOKEN}'))
    await run({ apply: true })
    assert.deepEqual(started, ['notes'])
    assert.match(io.out(), /Set where the gateway runs: MY_TOKEN\. A server waits until its variables are set\.\n/)
    assert.match(loadConfig(config, { env: {} }).servers[0]?.absent?.[0]?.message ?? '', /MY_TOKEN is not set/)
  })

  it('never shows a secret to programs, and takes another secret for another server', async (t) => {
    const { run, io, read, write } = world(t)
    await run({ apply: true, start: false, json: true })
    assert.ok(!io.out().includes(SECRET))
    write(FILE, TEXT.replace(SECRET, `${SECRET}x`))
    await run({ apply: true, start: false })
    assert.equal(read('.toolgate/secrets/github-GITHUB_TOKEN'), `${SECRET}\n`)
    assert.equal(read('.toolgate/secrets/github-cursor-GITHUB_TOKEN'), `${SECRET}x\n`)
  })

  it('writes no secret through a link', async (t) => {
    const { run, home, read, write } = world(t)
    mkdirSync(path.join(home, '.toolgate'))
    mkdirSync(path.join(home, 'public'))
    symlinkSync(path.join(home, 'public'), path.join(home, '.toolgate/secrets'))
    await assert.rejects(run({ apply: true, start: false }), /secrets is a link/)
    rmSync(path.join(home, '.toolgate/secrets'))
    write('public/mine', 'x')
    mkdirSync(path.join(home, '.toolgate/secrets'))
    symlinkSync(path.join(home, 'public/mine'), path.join(home, '.toolgate/secrets/github-GITHUB_TOKEN'))
    await assert.rejects(run({ apply: true, start: false }), /github-GITHUB_TOKEN is a link/)
    assert.deepEqual([read('public/mine'), read('toolgate.yaml'), read(FILE)], ['x', CONFIG_TEXT, TEXT])
  })

  it('undoes nothing if either file was changed since', async (t) => {
    const { run, read, write } = world(t)
    await run({ apply: true, start: false })
    const client = read(FILE)
    const changed = write('toolgate.yaml', `${read('toolgate.yaml')}# a note\n`)
    await assert.rejects(run({ undo: true }), { message: `${changed} was changed since. Nothing was undone.` })
    assert.equal(read(FILE), client)
  })

  it('leaves the client as it is with --keep', async (t) => {
    const { run, read, io } = world(t)
    await run({ apply: true, keep: true, start: false })
    assert.equal(read(FILE), TEXT)
    assert.match(read('toolgate.yaml'), /github:/)
    assert.doesNotMatch(io.out(), /in their place/)
  })

  it('adds nothing twice', async (t) => {
    const { run, read, write, io } = world(t)
    await run({ apply: true, start: false })
    const once = read('toolgate.yaml')
    write(FILE, TEXT)
    await run({ apply: true, start: false })
    assert.equal(read('toolgate.yaml'), once)
    assert.match(io.out(), / {2}there {2}GitHub → servers\.github/)
  })

  it('leaves both files alone if one cannot be used', async (t) => {
    const { run, read, write } = world(t)
    write(FILE, '{ "mcpServers": ')
    await assert.rejects(run({ apply: true }), /:1:17: it is not JSON .* It was not changed\./)
    assert.equal(read('toolgate.yaml'), CONFIG_TEXT)
    write(FILE, TEXT)
    write('toolgate.yaml', 'servers: {}\npolcy: []\n')
    await assert.rejects(run({ apply: true, keep: true }), /polcy/)
    assert.equal(read(FILE), TEXT)
  })

  it('leaves no server in the client that goes past the gateway unseen', async (t) => {
    const { run, read, write } = world(t)
    const faults = [
      ['"__proto__": { "command": "x" }', /"mcpServers" has "__proto__", which cannot be the name of a server\./],
      ['"a": { "command": "x" }, "b": {}, "\\u0061": { "command": "y" }', /"mcpServers" has "a" twice\./],
    ] as const
    for (const [servers, problem] of faults) {
      const text = `{ "mcpServers": { ${servers}, "z": { "command": "z" } } }`
      write(FILE, text)
      for (const keep of [true, false]) await assert.rejects(run({ apply: true, keep }), problem)
      assert.deepEqual([read(FILE), read('toolgate.yaml')], [text, CONFIG_TEXT])
    }
  })

  it('says that there is nothing, and tells programs the plan', async (t) => {
    const { run, io, write, home } = world(t)
    await run({}, 'windsurf')
    assert.match(io.out(), /There is no such file\.\nThere is nothing to import\.\n$/)
    const plain = fakeIo({ HOME: home })
    write('a.json', '{ "mcpServers": { "x": { "command": "y" } } }')
    await importCommand(
      path.join(home, 'a.json'),
      { config: path.join(home, 'toolgate.yaml'), name: 'toolgate', as: 'reader', start: false, json: true },
      { io: plain, start: () => assert.fail('nothing is started') },
    )
    const { servers, written } = JSON.parse(plain.out()) as { servers: { name: string }[]; written: boolean }
    assert.deepEqual([servers.map(({ name }) => name), written], [['x'], false])
  })

  it('moves the servers that Claude Code has for this folder, and no others', async (t) => {
    const { run, read, write, io, home } = world(t)
    const notes = { command: 'node', args: ['/notes.js'] }
    const here = { mcpServers: { notes }, history: ['x'] }
    const others = { '/elsewhere': { mcpServers: { other: notes } } }
    const text = JSON.stringify({ numStartups: 3, projects: { [path.dirname(process.cwd())]: here, ...others } })
    write('.claude.json', text)
    await run({ file: path.join(home, '.claude.json') }, 'claude-code')
    assert.match(io.out(), /There is nothing to import\.\nIt has servers for this folder: .* claude-code --local\n/)
    await run({ local: true, apply: true, start: false }, 'claude-code')
    const after = JSON.parse(read('.claude.json')) as { projects: Record<string, typeof here> }
    const mine = after.projects[path.dirname(process.cwd())]
    assert.deepEqual([Object.keys(mine?.mcpServers ?? {}), mine?.history], [['toolgate'], ['x']])
    assert.deepEqual(after.projects['/elsewhere'], others['/elsewhere'])
    assert.match(read('toolgate.yaml'), /notes:\n/)
    await run({ local: true, undo: true }, 'claude-code')
    assert.equal(read('.claude.json'), text)
    await assert.rejects(run({ local: true }, 'cursor'), { message: /Cursor keeps no servers of single folders/ })
  })
})
