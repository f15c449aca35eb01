import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { tempFolder } from './support/gateway.ts'

/** A stranger's first five minutes: an empty folder, two servers of their own, two roles. Every line is typed as printed. */

const BIN = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const FILES = join(createRequire(import.meta.url).resolve('fast-check/package.json'), '../..')
const folder = tempFolder()
const { TOOLGATE_URL: _url, TOOLGATE_KEY: _key, PORT: _port, ...inherited } = process.env
const env = { ...inherited, HOME: folder.path }
let modern: ModernServer
let serving: ChildProcess | undefined

before(async () => {
  modern = await startModernServer()
})
after(async () => {
  if (serving && serving.exitCode === null) {
    serving.kill('SIGTERM')
    await once(serving, 'close')
  }
  await modern?.close()
  folder.remove()
})

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

const start = (...args: string[]) => [process.execPath, ['--conditions=toolgate-source', BIN, ...args]] as const

function toolgate(...args: string[]): Promise<Ran> {
  const [node, given] = start(...args)
  return new Promise((resolve) => {
    execFile(node, given, { cwd: folder.path, env }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
    })
  })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

describe('from an empty folder to two servers and two roles', () => {
  it('init and add', async () => {
    assert.equal((await toolgate('init')).code, 0)
    mkdirSync(join(folder.path, 'docs'))
    writeFileSync(join(folder.path, 'docs/note.txt'), 'A note.')
    const server = join(FILES, '@modelcontextprotocol/server-filesystem/dist/index.js')
    const files = await toolgate('add', 'files', '--shared', '--', 'node', server, './docs')
    assert.deepEqual([files.code, files.err], [0, ''])
    assert.match(files.out, /10 tools tagged read .*\n.*1 tool tagged write .*\n.*3 tools tagged ask/)
    assert.equal((await toolgate('add', 'sums', modern.url)).code, 0)
    assert.deepEqual((await toolgate('check')).err, '')
  })

  it('a first test of the policy, which passes at once and is never replaced', async () => {
    const none = await toolgate('test')
    assert.deepEqual([none.code, /\nWrite a first one .*: toolgate test --init\n$/.test(none.err)], [2, true])
    const made = await toolgate('test', '--init')
    assert.deepEqual([made.code, made.err], [0, ''])
    const text = readFileSync(join(folder.path, 'policy.test.yaml'), 'utf8')
    assert.match(text, /caller: "reader"\n.*\n {6}sees: \["files:.*\n {6}hides: \[.*"files:/)
    const tested = await toolgate('test')
    assert.equal(tested.code, 0, tested.out)
    assert.match(tested.out, /\d+ tests, all passed\n$/, 'each clause is reached')
    assert.equal((await toolgate('test', '--init')).code, 2)
    assert.equal(readFileSync(join(folder.path, 'policy.test.yaml'), 'utf8'), text)
  })

  it('serve, and see what each role sees', async () => {
    const file = join(folder.path, 'toolgate.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replace('port: 8787', `port: ${await freePort()}`))
    const [node, args] = start('serve')
    serving = spawn(node, args, { cwd: folder.path, env })
    const said = await once(serving.stdout ?? assert.fail(), 'data')
    assert.match(String(said[0]), /^ready .* of 2 servers/)
    const reader = await toolgate('tools', '--as', 'reader')
    assert.match(reader.out, /files:read_text_file +allow/)
    assert.match(reader.out, /sums:add +allow/)
    assert.doesNotMatch(reader.out, /write_file/)
    const writer = await toolgate('tools', '--as', 'writer')
    assert.match(writer.out, /files:create_directory +allow/)
    assert.match(writer.out, /files:write_file +ask/)
    assert.equal((await toolgate('why', 'files:write_file', '--as', 'reader')).code, 1)
  })

  it('a client reads as the one, and writes as the other once a person has approved', async () => {
    const { keys } = JSON.parse(readFileSync(join(folder.path, '.toolgate/keys.json'), 'utf8')) as {
      keys: readonly { user: string; key: string }[]
    }
    const url = urlOf()
    const connect = async (user: string) => {
      const key = keys.find((one) => one.user === user)?.key ?? ''
      const [command, args] = start('stdio', '--url', url, '--key', key)
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(new StdioClientTransport({ command, args: [...args] }))
      return client
    }
    const read = { name: 'files__read_text_file', arguments: { path: join(folder.path, 'docs/note.txt') } }
    const write = { name: 'files__write_file', arguments: { path: join(folder.path, 'docs/new.txt'), content: 'New.' } }
    const reader = await connect('reader')
    assert.match(JSON.stringify(await reader.callTool(read)), /A note\./)
    assert.match(JSON.stringify(await reader.callTool(write)), /is not available/)
    await reader.close()
    const writer = await connect('writer')
    assert.match(JSON.stringify(await writer.callTool(write)), /approval/i)
    const { approvals } = JSON.parse((await toolgate('approvals', '--json')).out) as { approvals: { id: string }[] }
    assert.equal((await toolgate('approvals', 'approve', approvals[0]?.id ?? '')).code, 0)
    await writer.callTool(write)
    assert.equal(readFileSync(join(folder.path, 'docs/new.txt'), 'utf8'), 'New.')
    await writer.close()
  })

  it('a client starts what connect wrote, and is served by the gateway that runs', async () => {
    assert.equal((await toolgate('connect', 'cursor', '--as', 'reader')).code, 0)
    const { mcpServers } = JSON.parse(readFileSync(join(folder.path, '.cursor/mcp.json'), 'utf8')) as {
      mcpServers: { toolgate: { command: string; args: string[] } }
    }
    const { command, args } = mcpServers.toolgate
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StdioClientTransport({
      command,
      args: ['--conditions=toolgate-source', ...args],
      stderr: 'pipe',
    })
    let log = ''
    transport.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()))
    await client.connect(transport)
    const names = new Set((await client.listTools()).tools.map(({ name }) => name))
    assert.ok(names.has('files__read_text_file') && !names.has('files__write_file'))
    await client.close()
    assert.equal(log, '', 'no gateway of its own was started')
  })
})

function urlOf(): string {
  const port = /port: (\d+)/.exec(readFileSync(join(folder.path, 'toolgate.yaml'), 'utf8'))?.[1]
  return `http://127.0.0.1:${port}`
}
