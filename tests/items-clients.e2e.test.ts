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
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), options(who)))
  closing.push(() => client.close())
  return { client, heard }
}

async function connectOld(who: Who): Promise<{ client: ClientV1; heard: string[] }> {
  const heard: string[] = []
  const client = new ClientV1(INFO)
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void heard.push('resources'))
  client.setNotificationHandler(PromptListChangedNotificationSchema, () => void heard.push('prompts'))
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
