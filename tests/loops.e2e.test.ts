import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, describe, it } from 'node:test'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { sendRaw } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { startRecordingServer } from './support/recording-server.ts'
import { ERAS, MODERN, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

const open: { close(): Promise<unknown> }[] = []
after(async () => {
  for (const each of open.toReversed()) await each.close()
})

async function started(given: Parameters<typeof startTestGateway>[0]): Promise<TestGateway> {
  const gateway = await startTestGateway(given)
  open.push(gateway)
  return gateway
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

const recording = await startRecordingServer([{ name: 'read' }])
open.push(recording)
const keyed = { headers: { Authorization: `Bearer ${KEYS.admin}` } }

describe('a gateway behind itself', () => {
  it('refuses its own requests with a clear error, and lists no tool twice', async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/mcp`
    const gateway = await started({
      listen: { host: '127.0.0.1', port },
      servers: [httpServer('rec', recording.url), httpServer('self', url, keyed)],
    })
    const self = () => gateway.servers().find(({ name }) => name === 'self')
    await until(() => /configured as a server of itself/.test(self()?.reason ?? ''))
    assert.deepEqual(await gateway.list('admin', MODERN), ['rec__read'])
  })

  it('is served as a server of another gateway', async () => {
    const behind = await started({ servers: [httpServer('rec', recording.url)] })
    const front = await started({ servers: [httpServer('behind', behind.mcpUrl, keyed)] })
    const list = await front.list('admin', MODERN)
    assert.deepEqual([list.length, list[0]?.startsWith('behind_rec_read')], [1, true])
  })
})

describe('a client that asks to close its connection', () => {
  for (const era of ERAS)
    it(`gets it closed after the answer, in ${era}`, async () => {
      const gateway = await started({ servers: [httpServer('rec', recording.url)] })
      const { headers, body } = toMessage(era, 'tools/call', { name: 'rec__read', arguments: {} })
      const text = JSON.stringify(body)
      const lines = Object.entries({ ...headers, authorization: `Bearer ${KEYS.admin}` }).map(([k, v]) => `${k}: ${v}`)
      const head = ['POST /mcp HTTP/1.1', `Host: 127.0.0.1:${gateway.port}`, ...lines, 'Connection: close']
      const answer = await sendRaw(gateway.port, [...head, `Content-Length: ${text.length}`, '', text].join('\r\n'))
      assert.match(answer, /^connection: close\r$/im)
      assert.doesNotMatch(answer, /keep-alive/i)
      assert.match(answer, /read ran/)
    })
})
