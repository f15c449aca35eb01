import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { FILES, Witness } from './support/items-witness.ts'
import { KEYS, type Who } from './support/keys.ts'
import { hostEarlier, hostModern, type HostedServer } from './support/mcp-host.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Resources and prompts with the clients that people use. */

let server: HostedServer
let earlier: HostedServer
let gateway: TestGateway
const witness = new Witness()
const old = new Witness()
const closing: (() => unknown)[] = []

before(async () => {
  old.resources = [{ uri: 'old:one', name: 'one' }]
  old.templates = []
  server = await hostModern(witness.answer)
  earlier = await hostEarlier(old.answer)
  gateway = await startTestGateway({
    servers: [
      httpServer('files', server.url, { offers: ['tools', 'resources', 'prompts'] }),
      httpServer('old', earlier.url, { per: 'shared', offers: ['resources', 'prompts'] }),
    ],
    policy: [
      {
        allow: ['*', 'resource:*:*', 'prompt:*:*'],
        deny: [
          { match: ['resource:files:file:///secret/*', 'resource:old:old:secret*'], unless: "'admin' in caller.roles" },
        ],
      },
    ],
  })
})
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})
after(async () => {
  await gateway?.close()
  await server?.close()
  await earlier?.close()
})

const INFO = { name: 'test', version: '1' }
const options = (who: Who) => ({ requestInit: { headers: { authorization: `Bearer ${KEYS[who]}` } } })

async function connectNew(who: Who): Promise<{ client: Client; heard: string[] }> {
  const heard: string[] = []
  const client = new Client(INFO, { versionNegotiation: { mode: { pin: MODERN } } })
  client.setNotificationHandler('notifications/resources/list_changed', () => void heard.push('resources'))
  client.setNotificationHandler('notifications/prompts/list_changed', () => void heard.push('prompts'))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), options(who)))
  closing.push(() => client.close())
  return { client, heard }
}

async function connectOld(who: Who): Promise<{ client: ClientV1; heard: string[] }> {
  const heard: string[] = []
  const client = new ClientV1(INFO)
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void heard.push('resources'))
  client.setNotificationHandler(PromptListChangedNotificationSchema, () => void heard.push('prompts'))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params.uri))
  await client.connect(new TransportV1(new URL(gateway.mcpUrl), options(who)) as Parameters<ClientV1['connect']>[0])
  closing.push(() => client.close())
  return { client, heard }
}

describe('resources and prompts', () => {
  for (const [name, connect] of [
    ['the SDK 2.4', connectNew],
    ['the SDK 1.x', connectOld],
  ] as const)
    it(`are listed, read and completed by ${name}`, async () => {
      const { client } = (await connect('viewer')) as Awaited<ReturnType<typeof connectNew>>
      const { resources } = await client.listResources()
      assert.deepEqual(
        resources.map(({ uri }) => uri),
        ['file:///work/a.txt', 'file:///work/b.txt', 'old:one'],
      )
      const { resourceTemplates } = await client.listResourceTemplates()
      assert.equal(resourceTemplates[0]?.uriTemplate, 'file:///work/{name}')
      const { contents } = await client.readResource({ uri: 'file:///work/c' })
      assert.deepEqual(contents, [{ uri: 'file:///work/c', mimeType: 'text/plain', text: 'content of file:///work/c' }])
      await assert.rejects(client.readResource({ uri: FILES[2] ?? '' }), /Resource not found/)
      const { prompts } = await client.listPrompts()
      assert.equal(prompts.length, 4)
      const { messages } = await client.getPrompt({ name: 'old__greet', arguments: { who: 'you' } })
      assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: 'Hello you' } }])
      const { completion } = await client.complete({
        ref: { type: 'ref/resource', uri: 'file:///work/{name}' },
        argument: { name: 'name', value: '' },
      })
      assert.deepEqual(completion.values, ['a.txt', 'b.txt'])
    })

  it('are read and listed by the CLI of the Inspector, in both eras', async () => {
    const folder = tempFolder()
    const program = join(import.meta.dirname, '../node_modules/.bin/mcp-inspector')
    const inspect = async (era: string, ...args: string[]) => {
      const target = ['--cli', gateway.mcpUrl, '--transport', 'http', '--protocol-era', era]
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [program, ...target, '--header', `Authorization: Bearer ${KEYS.viewer}`, ...args],
        { env: { PATH: process.env['PATH'], HOME: folder.path }, timeout: 30_000 },
      )
      return JSON.parse(stdout) as {
        resources?: { uri: string }[]
        contents?: { text: string }[]
        messages?: unknown[]
      }
    }
    try {
      for (const era of ['modern', 'legacy']) {
        assert.equal((await inspect(era, '--method', 'resources/list')).resources?.length, 3)
        const read = await inspect(era, '--method', 'resources/read', '--uri', 'file:///work/a.txt')
        assert.equal(read.contents?.[0]?.text, 'content of file:///work/a.txt')
        const prompt = ['--method', 'prompts/get', '--prompt-name', 'files__greet', '--prompt-args', 'who=you']
        assert.equal((await inspect(era, ...prompt)).messages?.length, 1)
      }
    } finally {
      folder.remove()
    }
  })
})

describe('a change of a list', () => {
  it('is announced to those whose list changed, and for the kind that changed', async () => {
    const viewers = [await connectNew('viewer'), await connectOld('viewer')]
    const admins = [await connectNew('admin'), await connectOld('admin')]
    for (const { client } of [...viewers, ...admins])
      if (client instanceof Client) {
        const listening = await client.listen({ resourcesListChanged: true, promptsListChanged: true })
        closing.push(() => listening.close())
      }
    await sleep(300)
    witness.resources = [...witness.resources, { uri: 'file:///secret/new', name: 'new' }]
    server.change('resources')
    await until(() => admins.every(({ heard }) => heard.length > 0))
    await sleep(300)
    assert.deepEqual(
      admins.map(({ heard }) => heard),
      [['resources'], ['resources']],
    )
    assert.deepEqual(
      viewers.map(({ heard }) => heard),
      [[], []],
    )
    witness.prompts = [...witness.prompts, { name: 'another' }]
    server.change('prompts')
    await until(() => [...admins, ...viewers].every(({ heard }) => heard.at(-1) === 'prompts'))
  })
})

describe('a subscription to resources', () => {
  const MINE = ['file:///work/a.txt', 'old:one']
  const OTHERS = ['file:///secret/key', 'file:///work/../secret/key', 'FILE:///work/a.txt', 'nowhere:x', 'old:secret']
  const announce = (): void => {
    for (const uri of [...MINE, ...OTHERS]) {
      server.updated(uri)
      earlier.updated(uri)
    }
  }

  it('hears of what it may read, from servers of both eras, with clients of both', async () => {
    const newer = await connectNew('viewer')
    const listening = await newer.client.listen({ resourceSubscriptions: [...MINE, ...OTHERS] })
    assert.deepEqual(listening.honoredFilter, { resourceSubscriptions: MINE })
    const older = await connectOld('viewer')
    for (const uri of MINE) await older.client.subscribeResource({ uri })
    for (const uri of OTHERS) await assert.rejects(older.client.subscribeResource({ uri }), /Resource not found/, uri)
    await until(() => {
      announce()
      return [newer, older].every(({ heard }) => MINE.every((uri) => heard.includes(uri)))
    })
    assert.deepEqual(
      [newer, older].map(({ heard }) => heard.filter((uri) => !MINE.includes(uri))),
      [[], []],
    )
    await older.client.unsubscribeResource({ uri: 'old:one' })
    await older.client.unsubscribeResource({ uri: 'nowhere:x' })
    await listening.close()
    await sleep(200)
    for (const { heard } of [newer, older]) heard.length = 0
    announce()
    await until(() => older.heard.length > 0)
    await sleep(200)
    assert.deepEqual(newer.heard, [])
    assert.deepEqual(older.heard, ['file:///work/a.txt'])
  })

  it('hears nothing once the policy denies the resource', async () => {
    const { client, heard } = await connectOld('viewer')
    await client.subscribeResource({ uri: 'old:one' })
    await client.subscribeResource({ uri: 'file:///work/a.txt' })
    await until(() => {
      announce()
      return heard.length > 1
    })
    const open = { allow: ['*', 'resource:*:*', 'prompt:*:*'] }
    gateway.gate.setPolicy({ ...open, deny: ['resource:old:*'] })
    await sleep(200)
    heard.length = 0
    announce()
    await until(() => heard.length > 0)
    await sleep(200)
    assert.deepEqual(heard, ['file:///work/a.txt'])
    gateway.gate.setPolicy(open)
  })

  it('is one error beyond a thousand, and leaves room when a session ends', async () => {
    const { client } = await connectOld('operator')
    const subscribe = (i: number) =>
      client.subscribeResource({ uri: `file:///work/${i}` }).then(
        () => 'subscribed',
        (error: Error) => error.message,
      )
    const answers = new Set<string>()
    for (let i = 0; i < 1100; i += 50) {
      const some = await Promise.all(Array.from({ length: 50 }, (_, j) => subscribe(i + j)))
      for (const one of some) answers.add(one)
    }
    assert.equal(answers.size, 2)
    assert.match([...answers][1] ?? '', /Subscription limit reached/)
    const next = await connectNew('operator')
    await assert.rejects(next.client.listen({ resourceSubscriptions: ['old:one'] }), /Subscription limit reached/)
    const other = await connectNew('viewer')
    const unaffected = await other.client.listen({ resourceSubscriptions: ['old:one'] })
    assert.deepEqual(unaffected.honoredFilter, { resourceSubscriptions: ['old:one'] })
    await unaffected.close()
    await (client.transport as TransportV1).terminateSession()
    const listening = await next.client.listen({ resourceSubscriptions: ['old:one'] })
    assert.deepEqual(listening.honoredFilter, { resourceSubscriptions: ['old:one'] })
    await listening.close()
  })
})
