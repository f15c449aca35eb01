import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { isAlive } from './support/processes.ts'
import { type RecordedTool, type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { httpServer, serverConfig } from './support/servers.ts'

const BIN = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const ASKING = join(import.meta.dirname, 'support/asking-server.ts')
const CACHE = process.env['NODE_COMPILE_CACHE']
const INFO = { name: 'test', version: '1' }
const folder = tempFolder()
const asked = join(folder.path, 'asked.log')
let gateway: TestGateway
let witness: RecordingServer

/** A tool that runs until its call is cancelled, and one that wants an argument in a header. */
const TOOLS: readonly RecordedTool[] = [
  {
    name: 'hang',
    run: (_args, { signal }) =>
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  },
  {
    name: 'route',
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
  },
]

const asking = () =>
  serverConfig('asking', {
    command: process.execPath,
    args: ['--conditions=toolgate-source', ASKING, asked],
    may: { elicit: true, sample: false, roots: false, log: false, open: [] },
  })

before(async () => {
  witness = await startRecordingServer(TOOLS, { era: 'modern' })
  gateway = await startTestGateway({
    servers: [asking(), httpServer('witness', witness.url, { callTimeoutMs: 60_000 })],
  })
})
after(async () => {
  await gateway?.close()
  await witness?.close()
  folder.remove()
})

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const environment = { ...(CACHE && { NODE_COMPILE_CACHE: CACHE }), PATH: process.env['PATH'] ?? '', HOME: folder.path }
const command = (...args: string[]) => ({
  command: process.execPath,
  args: ['--conditions=toolgate-source', BIN, 'stdio', ...args],
  env: environment,
  stderr: 'pipe' as const,
})
const toGateway = (url = gateway.url) => command('--url', url, '--key', KEYS.admin)

interface CallOptions {
  readonly signal?: AbortSignal
  readonly onprogress?: (progress: { readonly progress: number }) => void
}
interface Result {
  readonly content?: readonly { readonly text?: string }[]
}
interface AnyClient {
  list(): Promise<readonly string[]>
  call(name: string, args: Record<string, unknown>, options?: CallOptions): Promise<string>
  readonly changes: () => number
  readonly pid: () => number
  close(): Promise<void>
}
const textOf = ({ content }: Result) => (content ?? []).map(({ text }) => text ?? '').join('\n')

async function connectV1(started = toGateway()): Promise<AnyClient> {
  const client = new ClientV1(INFO, { capabilities: { elicitation: {} } })
  let changes = 0
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ada' } }))
  client.fallbackNotificationHandler = async () => void changes++
  const transport = new StdioV1(started)
  await client.connect(transport)
  closing.push(() => client.close())
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, options = {}) =>
      textOf((await client.callTool({ name, arguments: args }, undefined, options)) as Result),
    changes: () => changes,
    pid: () => transport.pid ?? 0,
    close: () => client.close(),
  }
}

function connectV2(mode: 'auto' | 'legacy' | { pin: string }) {
  return async (started = toGateway()): Promise<AnyClient> => {
    const client = new ClientV2(INFO, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } })
    let changes = 0
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada' } }))
    client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
    const transport = new StdioV2(started)
    await client.connect(transport)
    closing.push(() => client.close())
    if (client.getProtocolEra() === 'modern') await client.listen({ toolsListChanged: true })
    return {
      list: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name, args, options = {}) =>
        textOf((await client.callTool({ name, arguments: args }, options)) as Result),
      changes: () => changes,
      pid: () => transport.pid ?? 0,
      close: () => client.close(),
    }
  }
}

const ALL = ['asking__greet', 'witness__hang', 'witness__route']

const CLIENTS: readonly [string, (started?: ReturnType<typeof command>) => Promise<AnyClient>][] = [
  ['the SDK 1.32 client', connectV1],
  ['the SDK 2.4 client, as one of before', connectV2('legacy')],
  ['the SDK 2.4 client, which asks for the revision', connectV2('auto')],
  ['the SDK 2.4 client, pinned to 2026-07-28', connectV2({ pin: '2026-07-28' })],
]

for (const [name, connect] of CLIENTS) {
  describe(`toolgate stdio and ${name}`, () => {
    it('lists, calls with questions to the client and progress, and hears of changes', async () => {
      const client = await connect()
      assert.deepEqual(await client.list(), ALL)
      const progress: number[] = []
      const text = await client.call(
        'asking__greet',
        { times: 2 },
        { onprogress: (one) => progress.push(one.progress) },
      )
      assert.equal(text, 'Hello Ada and Ada.')
      assert.ok(progress.length > 0, 'progress')
      gateway.gate.setPolicy({ deny: ['asking:greet'] })
      await until(() => client.changes() > 0)
      assert.deepEqual(await client.list(), ALL.slice(1))
      gateway.gate.setPolicy({ allow: ['*'] })
    })

    it('passes a cancellation on', async () => {
      const client = await connect()
      const cancelled = witness.cancelled
      const stop = new AbortController()
      const call = client.call('witness__hang', {}, { signal: stop.signal })
      await until(() => witness.calls('hang').length > 0)
      stop.abort(new Error('enough'))
      await assert.rejects(call)
      await until(() => witness.cancelled === cancelled + 1)
      witness.forget()
    })

    it('ends with its client', async () => {
      const client = await connect()
      const pid = client.pid()
      assert.ok(isAlive(pid))
      await client.close()
      await until(() => !isAlive(pid))
    })
  })
}

interface Message {
  readonly id?: unknown
  readonly result?: { readonly protocolVersion?: string; readonly tools?: readonly { readonly name: string }[] }
  readonly error?: { readonly code: number; readonly message: string }
  readonly method?: string
}

/** Starts the command and speaks to it by hand. Each line on its stdout must be a message. */
function startByHand(...args: string[]) {
  const { command: program, args: given, env } = command(...args)
  const child = spawn(program, given, { env })
  const messages: Message[] = []
  let rest = ''
  let log = ''
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    messages.push(...lines.map((line) => JSON.parse(line) as Message))
  })
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const ended = once(child, 'close').then(([code]) => code as number)
  closing.push(async () => child.kill('SIGKILL'))
  return {
    pid: child.pid ?? 0,
    messages,
    log: () => log,
    ended,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    end: () => child.stdin.end(),
    sendText: (text: string) => void child.stdin.write(text),
    send: (message: object) => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    answer: async (id: unknown): Promise<Message> => {
      const find = () => messages.find((one) => one.id === id && one.method === undefined)
      return (await until(find, 20_000)) ?? assert.fail()
    },
  }
}

const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: INFO }

describe('toolgate stdio', () => {
  it('answers an error and names the remedy if no gateway is there', async () => {
    const child = startByHand('--url', 'http://127.0.0.1:9', '--key', 'k')
    child.send({ id: 1, method: 'initialize', params: INITIALIZE })
    const { error } = await child.answer(1)
    assert.equal(error?.code, -32_000)
    assert.match(error.message, /^The gateway at http:\/\/127\.0\.0\.1:9 refused the connection: .*"toolgate serve"/)
    child.send({ id: 2, method: 'tools/list' })
    await child.answer(2)
    child.end()
    assert.equal(await child.ended, 3)
    assert.equal(child.log().match(/refused the connection/g)?.length, 1, 'it is logged once')
  })

  it('answers an error and names the remedy if the key is refused', async () => {
    const child = startByHand('--url', gateway.url, '--key', 'a-wrong-key')
    child.send({ id: 1, method: 'initialize', params: INITIALIZE })
    assert.match((await child.answer(1)).error?.message ?? '', /The key is not known\. .*--key or TOOLGATE_KEY/)
    child.end()
    assert.equal(await child.ended, 5)
  })

  it('answers lines that are no messages, and goes on', async () => {
    const child = startByHand('--url', gateway.url, '--key', KEYS.admin)
    child.sendText('{ nonsense\n[]\n"text"\n{"jsonrpc":"2.0","id":{},"method":"ping"}\n\n')
    await until(() => child.messages.length === 4)
    assert.deepEqual(
      child.messages.map(({ id, error }) => [id, error?.code]),
      [
        [null, -32_700],
        [null, -32_600],
        [null, -32_600],
        [null, -32_600],
      ],
    )
    child.send({ id: 'a', method: 'initialize', params: INITIALIZE })
    assert.equal((await child.answer('a')).result?.protocolVersion, '2025-11-25')
  })

  it('sends the headers that a tool wants, which clients on stdio cannot', async () => {
    const child = startByHand('--url', gateway.url, '--key', KEYS.admin)
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const call = (id: number, region: string) =>
      child.send({
        id,
        method: 'tools/call',
        params: { name: 'witness__route', arguments: { region }, _meta },
      })
    call(1, 'eu')
    assert.equal((await child.answer(1)).error, undefined)
    call(2, 'größe')
    assert.equal((await child.answer(2)).error, undefined)
    assert.deepEqual(
      witness.calls('route').map(({ params }) => params['arguments']),
      [{ region: 'eu' }, { region: 'größe' }],
    )
    witness.forget()
  })

  it('answers what was asked before its input ended, and cancels what does not end', async () => {
    const child = startByHand('--url', gateway.url, '--key', KEYS.admin)
    const cancelled = witness.cancelled
    child.send({ id: 1, method: 'initialize', params: INITIALIZE })
    await child.answer(1)
    child.send({ id: 2, method: 'tools/call', params: { name: 'witness__hang', arguments: {} } })
    await until(() => witness.calls('hang').length > 0)
    child.send({ id: 3, method: 'tools/list' })
    child.end()
    assert.equal(await child.ended, 0)
    assert.equal(child.messages.find(({ id }) => id === 3)?.result?.tools?.length, 3)
    await until(() => witness.cancelled === cancelled + 1)
    witness.forget()
  })

  it('ends when it is told to stop', async () => {
    const child = startByHand('--url', gateway.url, '--key', KEYS.admin)
    child.send({ id: 1, method: 'initialize', params: INITIALIZE })
    await child.answer(1)
    child.kill('SIGTERM')
    assert.equal(await child.ended, 0)
  })

  it('goes on with a gateway that was started again', async () => {
    const { port } = gateway
    const child = startByHand('--url', gateway.url, '--key', KEYS.admin)
    child.send({ id: 1, method: 'initialize', params: INITIALIZE })
    await child.answer(1)
    child.send({ method: 'notifications/initialized' })
    child.send({ id: 2, method: 'tools/list' })
    assert.equal((await child.answer(2)).result?.tools?.length, 3)
    await gateway.close()
    child.send({ id: 3, method: 'tools/list' })
    assert.match((await child.answer(3)).error?.message ?? '', /refused the connection/)
    gateway = await startTestGateway({
      listen: { host: '127.0.0.1', port },
      servers: [httpServer('witness', witness.url)],
    })
    child.send({ id: 4, method: 'tools/list' })
    assert.equal((await child.answer(4)).result?.tools?.length, 2)
    await until(() => child.messages.some(({ method }) => method === 'notifications/tools/list_changed'))
    // Its stream of changes is that of the new session.
    const received = child.messages.length
    gateway.gate.setPolicy({ deny: ['witness:hang'] })
    await until(() => child.messages.length > received)
  })

  describe('with a gateway of its own', () => {
    const file = join(folder.path, 'toolgate.yaml')
    const write = (callers: string) =>
      writeFileSync(
        file,
        `servers: { witness: { url: "${witness.url}", tools: { hang: { tags: [admin] } } } }
callers: [${callers}]
policy: [{ deny: [{ match: 'tag:admin', unless: "'admin' in caller.roles" }] }]
`,
      )
    const callers = '{ key: key-of-vera, user: vera, roles: [viewer] }, { key: key-of-ada, user: ada, roles: [admin] }'

    it('serves the named caller, and no other', async () => {
      write(callers)
      const [vera, ada] = [startByHand('--config', file, '--as', 'vera'), startByHand('--config', file, '--as', 'ada')]
      for (const child of [vera, ada]) child.send({ id: 1, method: 'initialize', params: INITIALIZE })
      const lists = [vera, ada].map(async (child) => {
        await child.answer(1)
        child.send({ id: 2, method: 'tools/list' })
        return (await child.answer(2)).result?.tools?.map(({ name }) => name)
      })
      assert.deepEqual(await Promise.all(lists), [['witness__route'], ['witness__hang', 'witness__route']])
      for (const child of [vera, ada]) child.end()
      assert.deepEqual(await Promise.all([vera.ended, ada.ended]), [0, 0])
    })

    async function serve(port: number) {
      const child = spawn(
        process.execPath,
        ['--conditions=toolgate-source', BIN, 'serve', '--config', file, '--port', String(port)],
        { env: environment, stdio: ['ignore', 'pipe', 'inherit'] },
      )
      closing.push(async () => {
        if (child.exitCode === null && child.signalCode === null) await end('SIGKILL')
      })
      const end = async (signal: NodeJS.Signals) => {
        const ended = once(child, 'exit')
        child.kill(signal)
        await ended
      }
      let out = ''
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
      // Not read with for await, whose end closes the pipe: the gateway would end at its next line.
      await until(() => out.includes('ready'))
      return { url: /http:\S+?:\d+/.exec(out)?.[0] ?? '', end }
    }
    async function listed() {
      const child = startByHand('--config', file, '--as', 'vera')
      child.send({ id: 1, method: 'initialize', params: INITIALIZE })
      await child.answer(1)
      child.send({ id: 2, method: 'tools/list' })
      const tools = (await child.answer(2)).result?.tools?.map(({ name }) => name)
      child.end()
      assert.equal(await child.ended, 0)
      assert.deepEqual(tools, ['witness__route'])
      return child.log().includes('a gateway of') ? 'its own' : 'the running one'
    }

    it('goes to the gateway that serves this configuration, at whichever port', async () => {
      write(callers)
      const running = await serve(0)
      assert.equal(await listed(), 'the running one')
      await running.end('SIGTERM')
      assert.equal(await listed(), 'its own')
    })

    it('sends its key to no program that has the port of a gateway that was killed', async (t) => {
      write(callers)
      const running = await serve(0)
      await running.end('SIGKILL')
      const paths: (string | undefined)[] = []
      const impostor = createServer(({ url, headers }, response) => {
        paths.push(url)
        assert.equal(headers.authorization, undefined)
        response.end('{"jsonrpc":"2.0","id":1,"result":{}}')
      }).listen(Number(new URL(running.url).port), '127.0.0.1')
      await once(impostor, 'listening')
      t.after(() => impostor.close())
      assert.equal(await listed(), 'its own')
      assert.deepEqual(paths, ['/healthz'])
    })

    it('asks whom it serves if there are several', async () => {
      write(callers)
      const child = startByHand('--config', file)
      assert.equal(await child.ended, 2)
      assert.match(child.log(), /Name the caller with --as <user>\.\n.* has: vera, ada\./)
      const wrong = startByHand('--config', file, '--as', 'otto')
      assert.equal(await wrong.ended, 2)
      assert.match(wrong.log(), /No caller is named "otto"/)
    })
  })
})

describe("the Inspector's CLI and toolgate stdio", () => {
  const program = join(import.meta.dirname, '../node_modules/.bin/mcp-inspector')
  for (const era of ['modern', 'auto', 'legacy'])
    it(`lists, era ${era}`, async () => {
      const { command: node, args } = toGateway()
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [program, '--cli', '--protocol-era', era, '--method', 'tools/list', node, ...args],
        { env: { ...environment }, timeout: 30_000 },
      )
      const { tools } = JSON.parse(stdout) as { tools: readonly { name: string }[] }
      assert.ok(tools.some(({ name }) => name === 'witness__route'))
    })
})
