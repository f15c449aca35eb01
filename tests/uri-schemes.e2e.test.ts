import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { startRawServer } from './support/raw-server.ts'
import { type Era, MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** A URI keeps its case wherever its scheme has no hosts: reads, templates, completion and rules. */

const TEMPLATES = ['jira://{key}', 'jira://{project}/{issue}', 'urn:isbn:{id}', 'mailto:{who}', 'x-Own://{+rest}']
const READ = [
  'jira://PROJ-123',
  'jira://PROJ/Issue-7',
  'urn:isbn:0-X',
  'urn:ISBN:0-x',
  'mailto:Jo.Doe@Example.com',
  's3://Bucket/Key',
  'db://User@HOST:5432/T',
  'jira://PROJ-1:443',
  'file:///Docs/A.md',
  'https://example.com/Path?q=A',
] as const

let gateway: TestGateway
let server: Awaited<ReturnType<typeof startRawServer>>
const seen: { readonly method: string; readonly uri: unknown }[] = []

function resultOf(method: string, params: Readonly<Record<string, unknown>>): object | undefined {
  const { uri, ref } = params as { uri?: unknown; ref?: { uri?: unknown } }
  seen.push({ method, uri: uri ?? ref?.uri })
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: '2025-11-25',
        capabilities: { resources: {}, completions: {} },
        serverInfo: { name: 's', version: '1' },
      }
    case 'resources/list':
      return { resources: [{ uri: 'jira://LISTED', name: 'listed' }] }
    case 'resources/templates/list':
      return { resourceTemplates: TEMPLATES.map((uriTemplate) => ({ uriTemplate, name: 't' })) }
    case 'resources/read':
      return { contents: [{ uri, text: String(uri) }] }
    case 'completion/complete':
      return { completion: { values: ['PROJ-123', 'proj-123', 'SECRET-1'] } }
    default:
      return undefined
  }
}

before(async () => {
  server = await startRawServer((text) => {
    const { id, method, params = {} } = JSON.parse(text) as { id?: number; method: string; params?: object }
    if (id === undefined) return undefined
    const result = resultOf(method, params as Readonly<Record<string, unknown>>)
    const error = { code: -32_601, message: 'Method not found' }
    return JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) })
  })
  gateway = await startTestGateway({
    servers: [httpServer('s', server.url, { offers: ['resources'] })],
    policy: [
      {
        allow: ['resource:s:*'],
        deny: ['resource:s:jira://SECRET-*', { match: 'resource:s:*', input: "input.uri.startsWith('s3://Private/')" }],
      },
    ],
  })
})

after(async () => {
  await gateway?.close()
  await server?.close()
})

for (const era of ['2025-11-25', MODERN] as Era[])
  describe(`a URI in ${era}`, () => {
    const ask = async (method: string, params: Readonly<Record<string, unknown>>) =>
      (await gateway.ask('admin', era, method, params)).json() as RpcAnswer
    const read = async (uri: string) => {
      const { result } = await ask('resources/read', { uri })
      return (result?.['contents'] as { readonly text: string }[] | undefined)?.[0]?.text
    }

    it('reaches the server in its own case', async () => {
      for (const uri of [...READ, 'jira://LISTED']) assert.equal(await read(uri), uri)
    })

    it('without needless encoding, and in no other case', async () => {
      assert.equal(await read('jira://PROJ%2D123'), 'jira://PROJ-123')
      assert.equal(await read('jira://proj-123'), 'jira://proj-123')
    })

    it('has a host without case if its scheme has hosts', async () => {
      assert.equal(await read('HTTPS://Example.COM/Path'), 'https://example.com/Path')
    })

    it('is denied by a rule of the same case, and only by that', async () => {
      assert.equal(await read('jira://SECRET-1'), undefined)
      assert.equal(await read('jira://SECRET%2D1'), undefined)
      assert.equal(await read('jira://secret-1'), 'jira://secret-1')
      assert.equal(await read('s3://Private/a'), undefined)
      assert.equal(await read('s3://private/a'), 's3://private/a')
      assert.ok(!seen.some(({ uri }) => String(uri).startsWith('jira://SECRET')))
    })

    it('completes in the case of the server, without hidden ones', async () => {
      const ref = { type: 'ref/resource', uri: 'jira://{key}' }
      const { result } = await ask('completion/complete', { ref, argument: { name: 'key', value: '' } })
      assert.deepEqual((result?.['completion'] as { values: unknown } | undefined)?.values, ['PROJ-123', 'proj-123'])
    })
  })
