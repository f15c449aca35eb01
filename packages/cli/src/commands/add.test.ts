import assert from 'node:assert/strict'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { ConfigFileError, loadConfig, type RunningGateway, type ServerRow } from '@toolgate/gateway'
import type { CliError } from '../exit.ts'
import { fakeIo } from '../testing/fake-io.ts'
import { addCommand, type AddOptions } from './add.ts'
import type { StartGateway } from './serve.ts'

const FILE = `# kept
servers: {} # mine
policy:
  - allow: [ '*' ] # as I like it
`

function world(t: TestContext, text: string = FILE, row: Partial<ServerRow> = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-add-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'toolgate.yaml')
  writeFileSync(file, text)
  const io = fakeIo({ TOKEN: 'secret-token' })
  const started: string[] = []
  const tool = (name: string, annotations = {}) => defineTool({ namespace: 'files', name, annotations })
  const tools = [
    tool('read', { readOnlyHint: true }),
    tool('append', { destructiveHint: false }),
    tool('wipe', { destructiveHint: true }),
    tool('silent'),
  ]
  const start: StartGateway = async ({ servers }) => {
    started.push(...servers.map(({ name }) => name))
    const rows = [{ name: 'files', status: 'ready', ...row }] as ServerRow[]
    const gateway: Partial<RunningGateway> = {
      gate: createGate({ tools }),
      ready: Promise.resolve(),
      servers: () => rows,
      close: async () => void started.push('closed'),
    }
    return gateway as RunningGateway
  }
  const add = (name: string, target: readonly string[], options: Partial<AddOptions> = {}) =>
    addCommand(name, target, { config: file, start: false, ...options }, { io, start })
  return { folder, file, io, started, add, text: () => readFileSync(file, 'utf8') }
}

describe('toolgate add', () => {
  it('says how users sign in, where a remote server answers 401', async (t) => {
    const { add } = world(t, FILE, { status: 'down', reason: 'answered 401 Unauthorized' })
    await assert.rejects(add('files', ['https://files.example.com/mcp'], { start: true }), (error: CliError) => {
      assert.match(error.hint ?? '', /write servers\.files\.oauth: \{\} into the file/)
      return true
    })
    await assert.rejects(add('files', ['./bin/files'], { start: true }), (error: CliError) => {
      assert.doesNotMatch(error.hint ?? '', /oauth/)
      return true
    })
  })

  it('says what the first start downloads', async (t) => {
    const { add, io } = world(t)
    assert.equal(await add('files', ['npx', '-y', '@example/files@1.0.0'], { start: true }), 'ok')
    assert.match(io.err(), /^the first start of "files" downloads @example\/files@1\.0\.0, unless a cache has it$/m)
  })

  it('writes to the target of a link, which stays a link', async (t) => {
    const { add, folder, file } = world(t)
    const target = path.join(folder, 'shared.yaml')
    renameSync(file, target)
    symlinkSync('shared.yaml', file)
    assert.equal(await add('files', ['some-server']), 'ok')
    assert.ok(lstatSync(file).isSymbolicLink())
    assert.match(readFileSync(target, 'utf8'), /command: some-server/)
  })

  it('refuses a link whose target does not exist', async (t) => {
    const { add, folder, file } = world(t)
    rmSync(file)
    symlinkSync('gone.yaml', file)
    await assert.rejects(add('files', ['some-server']), /is a link to gone\.yaml, which does not exist/)
    assert.deepEqual(readdirSync(folder), ['toolgate.yaml'])
  })

  it('adds a command and a URL, and keeps every other byte', async (t) => {
    const { add, text, file } = world(t)
    assert.equal(await add('files', ['npx', '-y', 'some-server']), 'ok')
    assert.equal(await add('docs', ['https://example.com/mcp'], { header: ['Authorization: Bearer ${TOKEN}'] }), 'ok')
    assert.equal(
      text(),
      `# kept
servers: # mine
  files:
    command: npx
    args: [-y, some-server]

  docs:
    url: https://example.com/mcp
    headers: { Authorization: "Bearer \${TOKEN}" }
policy:
  - allow: [ '*' ] # as I like it
`,
    )
    assert.equal(loadConfig(file, { env: { TOKEN: 'x' } }).servers.length, 2)
  })

  it('keeps secrets in files, so that the configuration has none, and prints none', async (t) => {
    const { add, text, file, folder, io, started } = world(t)
    const [token, key] = ['ghp_abcdefghijklmnopqrstuvwxyz0123456789', 'sk-abcdefghijklmnop1234']
    const env = [`GITHUB_TOKEN=${token}`, 'LOG_LEVEL=debug', 'OTHER=${TOKEN}', 'TOKEN']
    assert.equal(await add('files', ['node', 'server.js', `--api-key=${key}`], { env, start: true }), 'ok')
    const header = [`Authorization: Bearer ${token}`, 'X-Mine: ${TOKEN}']
    assert.equal(await add('docs', [`https://vera:pw@example.com/mcp?token=${key}`], { header }), 'ok')
    assert.match(
      text(),
      /env: \{ GITHUB_TOKEN: "\$\{file:\.toolgate\/secrets\/files-GITHUB_TOKEN\}", LOG_LEVEL: debug, OTHER: "\$\{TOKEN\}", TOKEN: "\$\{TOKEN\}" \}/,
    )
    assert.ok(![token, key, 'vera:pw'].some((secret) => `${text()}${io.out()}${io.err()}`.includes(secret)))
    const { servers } = loadConfig(file, { env: { TOKEN: 'x' } })
    assert.deepEqual(servers[0]?.env, { GITHUB_TOKEN: token, LOG_LEVEL: 'debug', OTHER: 'x', TOKEN: 'x' })
    assert.equal(servers[0]?.args[1], `--api-key=${key}`)
    assert.equal(servers[1]?.url, `https://example.com/mcp?token=${key}`)
    assert.deepEqual(servers[1]?.headers, { Authorization: `Bearer ${token}`, 'X-Mine': 'x' })
    assert.deepEqual(started, ['files', 'closed'])
    assert.match(io.out(), / {2}env\.GITHUB_TOKEN is a secret, kept in \.toolgate\/secrets\/files-GITHUB_TOKEN\n/)
    const secret = path.join(folder, '.toolgate/secrets/files-GITHUB_TOKEN')
    if (process.platform !== 'win32') assert.equal(lstatSync(secret).mode & 0o777, 0o600)
  })

  it('writes no secret of a server that does not start', async (t) => {
    const { add, folder, text } = world(t, FILE, { status: 'down', reason: 'exited with code 1' })
    await assert.rejects(add('files', ['node'], { env: ['A_TOKEN=abc'], start: true }), /does not start/)
    assert.deepEqual([readdirSync(folder), text()], [['toolgate.yaml'], FILE])
  })

  it('adds a server whose variable is not set without a start, and says so', async (t) => {
    const { add, io } = world(t)
    assert.equal(await add('files', ['node'], { env: ['NOT_SET_HERE'] }), 'ok')
    assert.match(io.err(), /the environment variable NOT_SET_HERE is not set/)
  })

  it('starts the server once, and tags its tools by what it says of them', async (t) => {
    const { add, file, started, text, io } = world(t)
    await add('files', ['node', 'server.js'], { start: true })
    assert.deepEqual(started, ['files', 'closed'])
    const [server] = loadConfig(file, { env: {} }).servers
    assert.deepEqual(
      [...(server?.tools ?? [])].map(([name, { tags }]) => [name, tags]),
      [
        ['append', ['write']],
        ['read', ['read']],
        ['silent', ['ask']],
        ['wipe', ['ask']],
      ],
    )
    assert.match(text(), /# What the server says of its tools\. Review it/)
    assert.match(io.out(), /2 tools tagged ask \(they may destroy something, or say nothing about it\): silent, wipe\n/)
  })

  it('changes nothing if the server does not start', async (t) => {
    const { add, text, started, folder } = world(t, FILE, { status: 'down', reason: 'exited with code 1' })
    await assert.rejects(add('files', ['node', 'x'], { start: true }), {
      exit: 'no',
      message: 'The server does not start: exited with code 1.',
    })
    assert.deepEqual([text(), started.at(-1), readdirSync(folder)], [FILE, 'closed', ['toolgate.yaml']])
  })

  it('writes paths that hold wherever the server runs, and references instead of secrets', async (t) => {
    const { add, file, folder } = world(t)
    mkdirSync(path.join(folder, 'work'))
    const relative = path.relative('.', path.join(folder, 'work'))
    await add('files', ['./bin/server', `./${relative}`, '--name=a.b', 'plain', '${TOKEN}'], {
      env: ['TOKEN', 'MODE=fast'],
    })
    const yaml = readFileSync(file, 'utf8')
    assert.ok(yaml.includes('"${configDir}/work"'), yaml)
    const [server] = loadConfig(file, { env: { TOKEN: 'x' } }).servers
    assert.deepEqual(server?.env, { TOKEN: 'x', MODE: 'fast' })
    assert.deepEqual(server?.args, [path.join(folder, 'work'), '--name=a.b', 'plain', 'x'])
    assert.equal(server?.command, path.resolve('bin/server'))
    assert.ok(!yaml.includes('secret-token'))
  })

  it('takes a name once, unless the server is to be replaced', async (t) => {
    const { add, text } = world(t)
    await add('files', ['one'])
    const before = text()
    await assert.rejects(add('files', ['two']), /has a server "files" already/)
    assert.equal(text(), before)
    await add('files', ['two'], { replace: true, shared: true })
    assert.match(text(), /command: two/)
    assert.doesNotMatch(text(), /command: one/)
  })

  const cases: readonly [
    what: string,
    text: string,
    target: string[],
    options: Partial<AddOptions>,
    message: RegExp,
  ][] = [
    ['no target', FILE, [], {}, /Name the server: its command after "--", or its URL/],
    ['a URL with arguments', FILE, ['https://a.b/mcp', 'x'], {}, /A URL has no arguments: x/],
    ['--env for a URL', FILE, ['https://a.b/mcp'], { env: ['A'] }, /--env is for a command/],
    ['--header for a command', FILE, ['npx'], { header: ['A: b'] }, /--header is for a URL/],
    ['a header without a value', FILE, ['https://a.b/mcp'], { header: ['A'] }, /"A" cannot be used/],
    ['a file that is not YAML', 'servers: [', ['npx'], {}, /toolgate\.yaml: /],
    ['servers that are a list', 'servers: [a]', ['npx'], {}, /"servers" must be a mapping/],
  ]
  for (const [what, text, target, options, message] of cases)
    it(`refuses ${what}, and changes nothing`, async (t) => {
      const { add, text: now } = world(t, text)
      await assert.rejects(add('files', target, options), (error: Error) => {
        assert.match(error.message, message)
        return true
      })
      assert.equal(now(), text)
    })

  it('refuses what the configuration would refuse, with the place in the file', async (t) => {
    const { add, text, file } = world(t)
    await assert.rejects(add('BAD', ['npx']), (error: ConfigFileError) => {
      assert.deepEqual([error.problems[0]?.file, error.problems[0]?.path], [file, 'servers.BAD'])
      return true
    })
    assert.equal(text(), FILE)
  })

  it('says how to begin where there is no configuration', async (t) => {
    const { add } = world(t)
    await assert.rejects(add('files', ['npx'], { config: '/nowhere/toolgate.yaml' }), {
      hint: 'Make one with "toolgate init", or name it with --config.',
    })
  })

  it('adds to servers that are written on one line or not at all', async (t) => {
    for (const text of [
      'servers: { a: { command: x } }\npolicy: [{ allow: ["*"] }]\n',
      'policy: [{ allow: ["*"] }]\n',
    ]) {
      const { add, file } = world(t, text)
      await add('files', ['npx'])
      assert.ok(loadConfig(file, { env: {} }).servers.some(({ name }) => name === 'files'))
    }
  })
})
