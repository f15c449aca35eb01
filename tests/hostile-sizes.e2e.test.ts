import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { AuditBody } from '@toolgate/gateway'
import { BLOB_CHARS, type BlobServer, startBlobServer } from './support/blob-server.ts'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import type { Who } from './support/keys.ts'
import { type Era, MODERN, type Params, type RpcAnswer, textOf } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

const BLOBS = join(import.meta.dirname, 'support/blob-server.ts')
const GIVEN = { offers: ['tools', 'resources'] as const, callTimeoutMs: 60_000 }
const TOO_LARGE = /answered more than 16 MiB in one message/

describe('an answer of 100 MB', () => {
  let gateway: TestGateway
  let blobs: BlobServer

  before(async () => {
    blobs = await startBlobServer()
    gateway = await startTestGateway({
      servers: [
        nodeServer('stdio', ['--conditions=toolgate-source', BLOBS, 'stdio'], GIVEN),
        httpServer('http', blobs.url, GIVEN),
      ],
      policy: [{ allow: ['*', 'resource:*:*'] }],
    })
  })

  after(async () => {
    await gateway?.close()
    await blobs?.close()
  })

  const ask = async (who: Who, era: Era, method: string, params: Params) =>
    (await gateway.ask(who, era, method, params)).json() as RpcAnswer

  async function restarts(name: string): Promise<number | undefined> {
    const { servers } = await gateway.tools('admin')
    return servers.find((row) => row.name === name)?.restarts
  }

  async function records(query: string): Promise<AuditBody['records']> {
    return ((await gateway.api(`/api/audit?limit=100&${query}`)).body as AuditBody).records
  }

  for (const era of ['2025-11-25', MODERN] as const)
    for (const [where, server, method, params] of [
      ['of a tool over stdio', 'stdio', 'tools/call', { name: 'stdio__blob', arguments: {} }],
      ['of a resource over stdio', 'stdio', 'resources/read', { uri: 'pipe:///blob' }],
      ['of a tool over HTTP', 'http', 'tools/call', { name: 'http__blob', arguments: {} }],
      ['of a resource over HTTP', 'http', 'resources/read', { uri: 'net:///blob' }],
      ['of a resource over HTTP, in an event', 'http', 'resources/read', { uri: 'net:///blob-event' }],
    ] as const)
      it(`${where} is one error and one record, and the calls of others go on, in ${era}`, async () => {
        // The server answers it when somebody calls `echo`: it runs before, while and after the blob comes.
        const begun = (await records('user=operator&event=tool_call')).length
        const waiting = gateway.call('operator', era, `${server}__wait`)
        await until(async () => (await records('user=operator&event=tool_call')).length > begun)
        const ended = (await records('user=viewer&event=tool_result')).length
        const answer = await ask('viewer', era, method, params)
        assert.match(answer.error?.message ?? textOf(answer), TOO_LARGE)
        assert.equal(textOf(await gateway.call('admin', era, `${server}__echo`)), 'echo ran')
        assert.equal(textOf(await waiting), 'wait ran')
        assert.equal(await restarts(server), 0)
        const written = await records('user=viewer&event=tool_result')
        assert.equal(written.length, ended + 1)
        assert.match(String(written[0]?.error), TOO_LARGE)
      })

  it('is not read to its end over HTTP', () => {
    assert.equal(blobs.sent.length, 6)
    for (const chars of blobs.sent) assert.ok(chars < BLOB_CHARS / 2, `${chars} characters`)
  })
})
