import assert from 'node:assert/strict'
import { chmodSync, existsSync, lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { CLIENTS, type ClientMachine } from '../clients/table.ts'
import { clientFolder } from '../testing/client-folder.ts'
import { fakeIo } from '../testing/fake-io.ts'
import { connectCommand, type ConnectCommandOptions } from './connect.ts'

const FILE = '.cursor/mcp.json'
const BACKUP = `${FILE}.toolgate-undo.json`
const TEXT = '{\n  // mine\n  "mcpServers": { "a": { "command": "x" } }\n}\n'

function world(t: TestContext) {
  const folder = clientFolder(t)
  const io = fakeIo({ HOME: folder.home })
  const connect = (client: string, options: Partial<ConnectCommandOptions> = {}) =>
    connectCommand(client, { config: folder.config, name: 'toolgate', as: 'reader', ...options }, io)
  const entry = (file: string, section = 'mcpServers') =>
    (JSON.parse(folder.read(file)) as Record<string, Record<string, unknown>>)[section]?.['toolgate']
  return { ...folder, io, connect, entry }
}

describe('toolgate connect', () => {
  it('makes the client start the command, and undoes it to the byte', async (t) => {
    const { connect, write, read, io, home, config } = world(t)
    write(FILE, TEXT)
    assert.equal(await connect('cursor'), 'ok')
    assert.match(read(FILE), /\/\/ mine\n {2}"mcpServers": \{ "a": \{ "command": "x" \},/)
    const bin = path.resolve(import.meta.dirname, '../../bin/toolgate.js')
    for (const text of [bin, '"stdio"', config, '"reader"']) assert.ok(read(FILE).includes(text), text)
    assert.doesNotMatch(read(FILE), /key-of-reader/)
    assert.match(io.out(), /^wrote {2}"toolgate" in .*: Cursor starts "toolgate stdio" for reader\.\n/)
    assert.equal(await connect('cursor', { undo: true }), 'ok')
    assert.equal(read(FILE), TEXT)
    assert.ok(!existsSync(path.join(home, BACKUP)), 'the backup is gone')
  })

  it('makes the client connect over HTTP with the key, and warns of that', async (t) => {
    const { connect, entry, io } = world(t)
    await connect('cursor', { http: true, app: 'desk' })
    assert.deepEqual(entry(FILE), {
      url: 'http://127.0.0.1:8787/mcp/desk',
      headers: { Authorization: 'Bearer key-of-reader-1' },
    })
    assert.match(io.out(), /The key is in that file in plain text/)
    await connect('windsurf', { url: 'https://tools.example.com', key: 'other-key' })
    assert.deepEqual(entry('.codeium/windsurf/mcp_config.json'), {
      serverUrl: 'https://tools.example.com/mcp',
      headers: { Authorization: 'Bearer other-key' },
    })
  })

  it('writes no key where the client reads variables, each in its own syntax', async (t) => {
    const { connect, entry, home, io } = world(t)
    const written = (header: string) => ({ url: 'http://127.0.0.1:8787/mcp', headers: { Authorization: header } })
    await connect('cursor', { http: true, keyEnv: 'MY_KEY' })
    assert.deepEqual(entry(FILE), written('Bearer ${env:MY_KEY}'))
    await connect('claude-code', {
      http: true,
      keyEnv: 'MY_KEY',
      file: path.join(home, '.mcp.json'),
      dryRun: true,
      json: true,
    })
    assert.match(io.out(), /"Authorization": "Bearer \$\{MY_KEY\}"/)
    assert.doesNotMatch(io.out(), /plain text|key-of-reader/)
    await assert.rejects(connect('zed', { http: true, keyEnv: 'MY_KEY' }), /Zed reads no variables in headers/)
    await assert.rejects(connect('cursor', { http: true, keyEnv: 'my key' }), /must name a variable/)
  })

  it('removes a file that it made, and can be undone step by step', async (t) => {
    const { connect, home, read } = world(t)
    await connect('cursor', { as: 'reader' })
    const first = read(FILE)
    await connect('cursor', { as: 'writer' })
    await connect('cursor', { undo: true })
    assert.equal(read(FILE), first)
    await connect('cursor', { undo: true })
    assert.ok(!existsSync(path.join(home, FILE)))
    await assert.rejects(connect('cursor', { undo: true }), /There is nothing to undo for/)
  })

  it('takes no backup that came with a project: it would say which files are overwritten', async (t) => {
    const { connect, write, home } = world(t)
    const target = path.join(home, '.planted')
    const step = { by: 'x', at: '', files: [{ file: target, before: 'evil', after: 'absent' }] }
    write(FILE, TEXT)
    chmodSync(write(BACKUP, JSON.stringify({ steps: [step] })), 0o644)
    await assert.rejects(connect('cursor', { undo: true }), /is not a backup of this command/)
    await assert.rejects(connect('cursor'), /is not a backup of this command/)
    assert.ok(!existsSync(target))
  })

  it('changes nothing in a file that it could not write back', async (t) => {
    const { connect, home, read, write } = world(t)
    write(FILE, '')
    const bytes = Buffer.from('{ "mcpServers": {}, "name": "\u00e9" }', 'latin1')
    writeFileSync(path.join(home, FILE), bytes)
    await assert.rejects(connect('cursor'), /is not UTF-8 text/)
    assert.deepEqual(readFileSync(path.join(home, FILE)), bytes)
    const marked = '{ "mcpServers": {}, "name": "a\ufeffb" }'
    write(FILE, marked)
    await connect('cursor')
    assert.ok(read(FILE).includes('a\ufeffb'))
  })

  it('leaves a file alone that somebody changed since', async (t) => {
    const { connect, write, read } = world(t)
    write(FILE, TEXT)
    await connect('cursor')
    const changed = write(FILE, `${read(FILE)}\n`)
    const before = read(changed)
    await assert.rejects(connect('cursor', { undo: true }), {
      code: 'changed_meanwhile',
      message: `${changed} was changed since. Nothing was undone.`,
    })
    assert.equal(read(FILE), before)
    assert.ok(read(BACKUP).includes('mine'), 'what was there is in the backup')
  })

  const bad: readonly [what: string, text: string, message: RegExp][] = [
    ['is not JSON', '{\n  "mcpServers": {,\n', /mcp\.json:2:18: it is not JSON \(.*\)\. It was not changed\.$/],
    ['is not an object', '[]', /is not a JSON object\. It was not changed\.$/],
    ['has a list of servers', '{"mcpServers":[]}', /"mcpServers" is not an object\. It was not changed\.$/],
  ]
  for (const [what, text, message] of bad)
    it(`leaves a file alone that ${what}`, async (t) => {
      const { connect, write, read, home } = world(t)
      write(FILE, text)
      await assert.rejects(connect('cursor'), (error: Error & { code: string }) => {
        assert.match(error.message, message)
        assert.equal(error.code, 'client_file_invalid')
        return true
      })
      assert.equal(read(FILE), text)
      assert.ok(!existsSync(path.join(home, BACKUP)))
    })

  it('shows it and writes nothing with --dry-run', async (t) => {
    const { connect, home, io } = world(t)
    await connect('cursor', { dryRun: true })
    assert.match(io.out(), /^would write {2}/)
    assert.ok(!existsSync(path.join(home, '.cursor')))
  })

  it('keeps the mode of a file, a link, and the backup to its owner', async (t) => {
    const { connect, write, home, read } = world(t)
    const real = write('dotfiles/mcp.json', TEXT)
    chmodSync(real, 0o640)
    write('.cursor/x', '')
    symlinkSync(real, path.join(home, FILE))
    await connect('cursor')
    assert.ok(lstatSync(path.join(home, FILE)).isSymbolicLink())
    assert.equal(statSync(real).mode & 0o777, 0o640)
    assert.equal(statSync(path.join(home, BACKUP)).mode & 0o777, 0o600)
    assert.match(read('dotfiles/mcp.json'), /toolgate/)
  })

  it('keeps a byte order mark', async (t) => {
    const { connect, write, read } = world(t)
    write(FILE, `\u{feff}${TEXT}`)
    await connect('cursor')
    assert.ok(read(FILE).startsWith('\u{feff}{'))
  })

  it('knows the nearest name of a client and of a caller', async (t) => {
    const { connect } = world(t)
    await assert.rejects(connect('cursr'), /No client is named "cursr"\. Did you mean cursor\?/)
    await assert.rejects(connect('cursor', { as: 'reder' }), /No agent is named "reder"\. Did you mean reader\?/)
    await assert.rejects(connect('claude-desktop', { http: true }), /Claude Desktop starts commands only/)
    await assert.rejects(connect('windsurf', { project: true }), /Windsurf has no file in a project/)
  })

  it('takes the path of any other file, with whatever key it has', async (t) => {
    const { connect, write, read } = world(t)
    const file = write('some/mcp.json', '{ "servers": {} }')
    await connect(file)
    assert.match(read(file), /"servers": \{\n +"toolgate"/)
  })

  it('tells programs what it wrote', async (t) => {
    const { connect, io, home } = world(t)
    await connect('zed', { json: true })
    const { client, file, written } = JSON.parse(io.out()) as Record<string, unknown>
    assert.deepEqual([client, file, written], ['zed', path.join(home, '.config/zed/settings.json'), true])
  })
})

describe('CLIENTS', () => {
  const on = (platform: NodeJS.Platform): ClientMachine => ({
    platform,
    home: '/home/v',
    cwd: '/work',
    env: { APPDATA: '/data' },
  })
  it('has a file for each client on each platform', () => {
    const files = (['linux', 'darwin', 'win32'] as const).map((platform) =>
      CLIENTS.map(({ id, user }) => `${id} ${user?.(on(platform)).replaceAll('\\', '/')}`),
    )
    assert.deepEqual(files, [
      [
        'claude-desktop /home/v/.config/Claude/claude_desktop_config.json',
        'claude-code /home/v/.claude.json',
        'cursor /home/v/.cursor/mcp.json',
        'vscode /home/v/.config/Code/User/mcp.json',
        'windsurf /home/v/.codeium/windsurf/mcp_config.json',
        'zed /home/v/.config/zed/settings.json',
      ],
      [
        'claude-desktop /home/v/Library/Application Support/Claude/claude_desktop_config.json',
        'claude-code /home/v/.claude.json',
        'cursor /home/v/.cursor/mcp.json',
        'vscode /home/v/Library/Application Support/Code/User/mcp.json',
        'windsurf /home/v/.codeium/windsurf/mcp_config.json',
        'zed /home/v/.config/zed/settings.json',
      ],
      [
        'claude-desktop /data/Claude/claude_desktop_config.json',
        'claude-code /home/v/.claude.json',
        'cursor /home/v/.cursor/mcp.json',
        'vscode /data/Code/User/mcp.json',
        'windsurf /home/v/.codeium/windsurf/mcp_config.json',
        'zed /data/Zed/settings.json',
      ],
    ])
  })
})
