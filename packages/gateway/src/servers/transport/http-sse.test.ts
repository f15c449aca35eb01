import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { events, startScripted, status } from '../../../fixtures/scripted-http.ts'
import { serverConfig, testUpstream } from '../../../fixtures/servers.ts'

const BRIDGE =
  'speaks HTTP+SSE of MCP 2024-11-05, which is not supported; put a bridge to Streamable HTTP or stdio before it, such as "command: npx, args: [mcp-remote, <url>]"'
const never = { firstMs: 1_000_000, maxMs: 1_000_000 }

/** A server of MCP 2024-11-05 as the SDK of that time serves it: GET opens the stream, POST goes to another path. */
async function startSseServer(t: TestContext): Promise<string> {
  const http = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/sse') return void response.writeHead(404).end('Cannot POST /sse')
    const server = new Server({ name: 'old', version: '1' }, { capabilities: { tools: {} } })
    void server.connect(new SSEServerTransport('/messages', response))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    http.closeAllConnections()
    http.close()
  })
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/sse`
}

describe('a server that speaks HTTP+SSE', () => {
  for (const era of ['auto', 'legacy'] as const)
    it(`is refused with an error that names a bridge (era ${era})`, async (t) => {
      const upstream = testUpstream(t, serverConfig({ url: await startSseServer(t), era }), { backoff: never })
      await upstream.start()
      assert.deepEqual([upstream.state.status, upstream.state.reason], ['down', BRIDGE])
    })

  it('is no server whose stream has other events, ends, or never sends one', async (t) => {
    const answers = {
      other: { GET: ({ res }) => events(res)({ method: 'x' }) },
      none: { GET: status(405) },
      ends: { GET: status(200, '', { 'content-type': 'text/event-stream' }) },
      silent: { GET: ({ res }) => void events(res) },
    } satisfies Record<string, Parameters<typeof startScripted>[1]>
    await Promise.all(
      Object.values(answers).map(async (answer) => {
        const server = await startScripted(t, {
          initialize: status(404, 'no'),
          'server/discover': status(404),
          ...answer,
        })
        const upstream = testUpstream(t, serverConfig({ url: server.url }), { backoff: never })
        await upstream.start()
        assert.equal(upstream.state.reason, 'answered HTTP 404 (no)')
      }),
    )
  })
})
