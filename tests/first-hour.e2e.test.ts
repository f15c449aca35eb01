import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { parseDocument } from 'yaml'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { tempFolder, until } from './support/gateway.ts'
import { type NoticeReceiver, startNoticeReceiver } from './support/notice-receiver.ts'
import { freePort } from './support/own-server.ts'

/**
 * What strangers want to do in their first hour. Each task begins at the README and follows links to the paste that the
 * test then runs. The clicks and the words that a stranger reads on the way are bounded.
 */

const ROOT = path.resolve(import.meta.dirname, '..')
const BIN = path.join(ROOT, 'packages/cli/bin/toolgate.js')
const MODULES = path.join(createRequire(import.meta.url).resolve('fast-check/package.json'), '../..')
const FILES = path.join(MODULES, '@modelcontextprotocol/server-filesystem/dist/index.js')
const MAX_CLICKS = 2
const MAX_WORDS = 800

/** The way to a task: the links that a stranger follows, by their targets. The last one names the section. */
const WAYS = {
  'own two servers and two roles': ['docs/guide/own-servers.md'],
  'use it in Claude Desktop': ['docs/guide/how-do-i.md#use-it-in-claude-desktop'],
  'use it in Claude Code': ['docs/guide/how-do-i.md#use-it-in-claude-code'],
  'use it in Cursor': ['docs/guide/how-do-i.md#use-it-in-cursor'],
  'use it in VS Code': ['docs/guide/how-do-i.md#use-it-in-vs-code'],
  'write only in a folder': ['docs/guide/how-do-i.md#allow-writing-in-one-folder-only'],
  '1,000 calls a day for a tenant': ['docs/guide/how-do-i.md#allow-a-tenant-1000-calls-a-day'],
  'approve above 100': ['docs/guide/how-do-i.md#ask-a-person-above-an-amount'],
  'a Slack message with a link': [
    'docs/guide/how-do-i.md#send-approvals-to-slack',
    'docs/guide/notifications.md#slack',
  ],
  'sign in with Keycloak': ['docs/guide/how-do-i.md#sign-in-with-keycloak', 'docs/guide/sign-in.md#keycloak'],
  'sign in with Entra': [
    'docs/guide/how-do-i.md#sign-in-with-microsoft-entra',
    'docs/guide/sign-in.md#microsoft-entra-id',
  ],
  'sign in with Okta': ['docs/guide/how-do-i.md#sign-in-with-okta', 'docs/guide/sign-in.md#okta'],
  'sign in with Google': ['docs/guide/how-do-i.md#sign-in-with-google', 'docs/guide/sign-in.md#google'],
  'what did X do yesterday': ['docs/guide/how-do-i.md#find-out-what-somebody-did-yesterday'],
  'a policy test in CI': ['docs/guide/how-do-i.md#test-a-policy-in-ci', 'docs/guide/policy-tests.md#in-ci'],
  'roll back a policy': ['docs/guide/how-do-i.md#roll-back-a-policy'],
  'halt a person who signed in': ['docs/guide/how-do-i.md#stop-a-runaway'],
} as const satisfies Readonly<Record<string, readonly string[]>>
type Task = keyof typeof WAYS

describe('a stranger finds', () => {
  for (const [task, way] of Object.entries(WAYS))
    it(`${task}, within ${MAX_CLICKS} clicks and ${MAX_WORDS} words`, (t) => {
      const words = wordsOnTheWay(way)
      t.diagnostic(`${task}: ${way.length} clicks, ${words} words`)
      assert.ok(way.length <= MAX_CLICKS)
      assert.ok(words <= MAX_WORDS, `${words} words`)
    })
})

const TENANTS = { vera: 'acme', udo: 'acme', ann: 'zeta' }

describe('a stranger does', () => {
  const folder = tempFolder()
  const config = path.join(folder.path, 'toolgate.yaml')
  const env = { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '', TOOLGATE_URL: '', TOOLGATE_KEY: '', PORT: '' }
  let modern: ModernServer
  let receiver: NoticeReceiver
  let serving: ChildProcess | undefined

  before(async () => {
    modern = await startModernServer()
    receiver = await startNoticeReceiver()
    mkdirSync(path.join(folder.path, 'docs'))
  })
  after(async () => {
    if (serving && serving.exitCode === null) {
      serving.kill('SIGTERM')
      await once(serving, 'close')
    }
    await modern?.close()
    await receiver?.close()
    folder.remove()
  })

  const toolgate = (...args: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const given = ['--conditions=toolgate-source', BIN, ...args]
      execFile(process.execPath, given, { cwd: folder.path, env }, (error, out, err) => {
        if (error) reject(new Error(`toolgate ${args.join(' ')}: ${out}${err}`, { cause: error }))
        else resolve(out)
      })
    })

  /** Runs the commands of a task's paste, with other words in place of those of the example. */
  const paste = async (task: Task, change: (command: string) => string = (command) => command) => {
    const said: string[] = []
    for (const command of commandsOf(task)) {
      const [program, ...args] = wordsOf(change(command))
      assert.equal(program, 'toolgate', command)
      said.push(await toolgate(...args))
    }
    return said
  }

  /** Puts the YAML of a task into the file, below the sections that are there, and reloads. */
  const pasteYaml = async (task: Task, change: (yaml: string) => string = (yaml) => yaml) => {
    const document = parseDocument(readFileSync(config, 'utf8'))
    const part = parseDocument(change(yamlOf(task))).toJS() as Readonly<Record<string, unknown>>
    for (const [key, value] of Object.entries(part)) {
      const own = document.get(key)
      if (Array.isArray(value) && own !== undefined) for (const item of value) document.addIn([key], item)
      else document.set(key, value)
    }
    writeFileSync(config, String(document))
    await toolgate('reload')
  }

  const keyOf = (user: string) => {
    const { keys } = JSON.parse(readFileSync(path.join(folder.path, '.toolgate/keys.json'), 'utf8')) as {
      keys: readonly { user: string; key: string }[]
    }
    return keys.find((one) => one.user === user)?.key ?? user
  }
  const urlOf = () => `http://127.0.0.1:${/port: (\d+)/.exec(readFileSync(config, 'utf8'))?.[1]}`
  const withClient = async <Result>(user: string, use: (client: Client) => Promise<Result>): Promise<Result> => {
    const client = new Client({ name: 'stranger', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${keyOf(user)}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${urlOf()}/mcp`), { requestInit }) as never)
    try {
      return await use(client)
    } finally {
      await client.close()
    }
  }
  const call = (user: string, name: string, args: Record<string, unknown>) =>
    withClient(user, async (client) => JSON.stringify(await client.callTool({ name, arguments: args })))
  const seenBy = async (user: string) =>
    withClient(user, async (client) => (await client.listTools()).tools.map(({ name }) => name))

  it('own two servers and two roles', async () => {
    const [init = '', addFiles = '', addSums = ''] = commandsOf('own two servers and two roles')
    await toolgate(...wordsOf(init).slice(1))
    // The servers of the page are downloaded, or are on the internet.
    await toolgate(...wordsOf(addFiles.replace(/-- npx -y \S+/, `--shared -- node ${FILES}`)).slice(1))
    await toolgate('add', wordsOf(addSums)[2] ?? '', modern.url)
    writeFileSync(config, readFileSync(config, 'utf8').replace('port: 8787', `port: ${await freePort()}`))
    serving = spawn(process.execPath, ['--conditions=toolgate-source', BIN, 'serve'], { cwd: folder.path, env })
    await once(serving.stdout ?? assert.fail(), 'data')
    const [reader, writer] = [await seenBy('reader'), await seenBy('writer')]
    assert.ok(reader.includes('files__read_text_file') && reader.includes('sums__add'), reader.join(' '))
    assert.ok(writer.includes('files__write_file') && !reader.includes('files__write_file'))
  })

  for (const [task, file] of [
    ['use it in Claude Desktop', '.config/Claude/claude_desktop_config.json'],
    ['use it in Claude Code', '.mcp.json'],
    ['use it in Cursor', '.cursor/mcp.json'],
    ['use it in VS Code', '.config/Code/User/mcp.json'],
  ] as const)
    it(task, { skip: process.platform !== 'linux' && 'the place is that of Linux' }, async () => {
      await paste(task)
      const written = JSON.parse(readFileSync(path.join(folder.path, file), 'utf8')) as Readonly<
        Record<string, Readonly<Record<string, { command: string; args: string[] }>> | undefined>
      >
      const { command, args } = (written['mcpServers'] ?? written['servers'])?.['toolgate'] ?? assert.fail('no entry')
      const client = new Client({ name: 'test', version: '1' })
      const options = { command, args: ['--conditions=toolgate-source', ...args], stderr: 'ignore' as const }
      await client.connect(new StdioClientTransport(options))
      const names = (await client.listTools()).tools.map(({ name }) => name)
      await client.close()
      assert.ok(names.includes('files__read_text_file') && !names.includes('files__write_file'), names.join(' '))
    })

  it('write only in a folder', async () => {
    const docs = path.join(folder.path, 'docs')
    await pasteYaml('write only in a folder', (yaml) => yaml.replaceAll('/workspace/out', `${docs}/out`))
    mkdirSync(path.join(docs, 'out'))
    const write = (to: string) => call('writer', 'files__create_directory', { path: to })
    assert.doesNotMatch(await write(path.join(docs, 'out/new')), /BLOCKED/)
    assert.match(await write(path.join(docs, 'else')), /Files are written below .* only/)
    assert.match(await write(path.join(docs, 'out/../else')), /Files are written below .* only/)
  })

  it('approve above 100, with a Slack message and a link', async () => {
    await pasteYaml('approve above 100', (yaml) => yaml.replace('pay:*', 'sums:add').replace('input.amount', 'input.a'))
    await pasteYaml('a Slack message with a link', (yaml) =>
      yaml
        .replace('https://hooks.slack.example/services/T0/B0/x', receiver.url)
        .replace(/publicUrl: .*/, `publicUrl: ${urlOf()}`),
    )
    assert.match(await call('writer', 'sums__add', { a: 100, b: 1 }), /101/)
    const waiting = await call('writer', 'sums__add', { a: 150, b: 1 })
    assert.match(
      waiting,
      /Waiting for approval of sums__add\. .*owner or somebody with the role approver can decide at http/,
    )
    await until(() => receiver.got.length > 0)
    const text = receiver.got[0]?.text ?? ''
    assert.match(text, /A payment of more than 100 needs a person/)
    assert.doesNotMatch(text, /150/, 'a message has no input')
    const [link = ''] = /http[^"|>\\]*\/approvals\/[\w-]+/.exec(text) ?? []
    assert.match(await (await fetch(link)).text(), /[Ll]og in/)
    const id = link.split('/').at(-1) ?? ''
    await toolgate('approvals', 'approve', id)
    assert.match(await call('writer', 'sums__add', { a: 150, b: 1 }), /151/)
  })

  it('what did X do yesterday', async () => {
    const [said = ''] = await paste('what did X do yesterday', (command) => command.replace('reader', 'writer'))
    assert.match(said, /sums:add/)
    assert.match(said, /files:create_directory/)
    assert.doesNotMatch(said, /\breader\b/)
  })

  it('a policy test in CI', async () => {
    const said = await paste('a policy test in CI')
    assert.match(said.at(-1) ?? '', /all passed/)
  })

  it('roll back a policy', async () => {
    const listed = await toolgate('policy', 'revisions')
    const first = /^(\d+) .*start/m.exec(listed)?.[1] ?? assert.fail(listed)
    await paste('roll back a policy', (command) => command.replace('restore 1', `restore ${first}`))
    assert.match(await call('writer', 'sums__add', { a: 151, b: 1 }), /152/)
    await toolgate('policy', 'release')
    assert.match(await call('writer', 'sums__add', { a: 152, b: 1 }), /Waiting/)
  })

  it('stop somebody', async () => {
    const [halt = '', release = ''] = commandsOf('halt a person who signed in')
    await toolgate(...wordsOf(halt).slice(1))
    assert.match(await call('reader', 'sums__add', { a: 1, b: 1 }), /looks odd/)
    await toolgate(...wordsOf(release).slice(1))
    assert.match(await call('reader', 'sums__add', { a: 1, b: 1 }), /"2"|: ?2|sum.*2/)
  })

  it('1,000 calls a day for a tenant', async () => {
    // Below the limit for a minute that `init` has written, a thousand calls would take four minutes.
    writeFileSync(config, readFileSync(config, 'utf8').replace('"*:300/60"', '"*:3000/60"'))
    const callers = Object.entries(TENANTS).map(
      ([user, tenant]) => `  - { user: ${user}, tenant: ${tenant}, roles: [reader], key: key-of-${user} }`,
    )
    await pasteYaml('1,000 calls a day for a tenant', (yaml) => `${yaml}\ncallers:\n${callers.join('\n')}`)
    const add = (client: Client) => client.callTool({ name: 'sums__add', arguments: { a: 1, b: 1 } })
    await withClient('key-of-vera', async (client) => {
      for (let i = 0; i < 20; i++) {
        const answers = await Promise.all(Array.from({ length: 50 }, () => add(client)))
        assert.ok(
          answers.every(({ isError }) => isError !== true),
          JSON.stringify(answers.find(({ isError }) => isError)),
        )
      }
    })
    assert.match(await call('key-of-udo', 'sums__add', { a: 1, b: 1 }), /rate limited/)
    assert.doesNotMatch(await call('key-of-ann', 'sums__add', { a: 1, b: 1 }), /rate limited/)
  })
})

/** The words before the first link, and those of each section on the way. A stranger skims headings to find a section. */
function wordsOnTheWay(way: readonly string[]): number {
  const readme = readFileSync(path.join(ROOT, 'README.md'), 'utf8')
  const [first = ''] = way
  const at = readme.indexOf(`](${first.replace(/#.*/, '')}`)
  assert.ok(at > 0, `README does not lead to ${first}`)
  return way.reduce(
    (sum, target, i) => {
      const next = way[i + 1]
      const section = sectionOf(target)
      if (next !== undefined)
        assert.ok(section.includes(`(${path.basename(next)}`), `${target} does not lead to ${next}`)
      return sum + countWords(section)
    },
    countWords(readme.slice(0, at)),
  )
}

/** Returns a section of a page; without an anchor the page up to its second heading. */
function sectionOf(target: string): string {
  const [file = '', anchor] = target.split('#')
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  const parts = text.split(/^(?=#{1,4} )/m)
  const found = anchor === undefined ? parts[0] : parts.find((part) => anchorOf(part) === anchor)
  return found ?? assert.fail(`${target} does not exist`)
}

function anchorOf(part: string): string {
  const [title = ''] = part.split('\n')
  return title
    .replace(/^#+ /, '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

function countWords(text: string): number {
  return text
    .replaceAll(/<!--[\s\S]*?-->|```[\s\S]*?```|!\[[^\]]*\]\([^)]*\)/g, '')
    .split(/\s+/)
    .filter(Boolean).length
}

function lastSectionOf(task: Task): string {
  const way: readonly string[] = WAYS[task]
  return sectionOf(way[0] ?? '')
}

function commandsOf(task: Task): readonly string[] {
  const [, block = ''] = /```sh\n([\s\S]*?)\n```/.exec(lastSectionOf(task)) ?? []
  return block.split('\n').flatMap((line) => line.replace(/\s+#.*/, '') || [])
}

function yamlOf(task: Task): string {
  const [, block] = /```yaml\n([\s\S]*?)\n```/.exec(lastSectionOf(task)) ?? []
  return block ?? assert.fail(`${task} has no YAML`)
}

/** Splits a command as a shell does, as far as the pages need it. */
function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}
