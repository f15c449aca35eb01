import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { type Era, MODERN, toMessage } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

const SERVER = join(import.meta.dirname, 'support/digits-server.js')
const ID = '1915883588174806058'
const LEGACY = '2025-11-25'
const HOLE = '__digits__'

let gateway: TestGateway
let server: Server

before(async () => {
  const { answerTo } = (await import(SERVER)) as { answerTo: (text: string) => string | undefined }
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return response.writeHead(405).end()
    const answer = answerTo(Buffer.concat((await request.toArray()) as Buffer[]).toString())
    if (answer === undefined) return response.writeHead(202).end()
    return response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
  }
  server = createServer((request, response) => void respond(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  gateway = await startTestGateway({
    servers: [
      httpServer('web', `http://127.0.0.1:${port}/mcp`),
      nodeServer('pipe', [SERVER], { may: { elicit: true, sample: false, roots: false, log: false, open: [] } }),
    ],
    policy: [{ allow: ['*'], ask: ['web:pay'] }],
  })
})

after(async () => {
  await gateway?.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** Sends a call whose argument has exactly these digits. Returns the text of the answer. */
async function call(era: Era, name: string, digits: string): Promise<string> {
  const { headers, body } = toMessage(era, 'tools/call', { name, arguments: { n: HOLE } })
  const answer = await send(gateway.mcpUrl, {
    headers: { ...headers, authorization: `Bearer ${KEYS.admin}` },
    body: JSON.stringify(body).replace(`"${HOLE}"`, digits),
  })
  return answer.text
}

async function post(path: string, text: string, key: string = KEYS.admin): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return (await send(`${gateway.url}${path}`, { headers, body: text })).text
}

async function get(path: string): Promise<string> {
  const answer = await send(`${gateway.url}${path}`, {
    method: 'GET',
    headers: { authorization: `Bearer ${KEYS.console}` },
  })
  return answer.text
}

describe('an integer beyond 2^53', () => {
  for (const era of [LEGACY, MODERN] as const)
    for (const tool of ['web__echo', 'pipe__echo'])
      it(`reaches ${tool} and comes back with the same digits in ${era}`, async () => {
        const text = await call(era, tool, ID)
        assert.match(text, new RegExp(`got ${ID}"`))
        assert.match(text, new RegExp(`"structuredContent":\\{"n":${ID}\\}`))
        const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
        await fc.assert(
          fc.asyncProperty(int64, async (n) => {
            const answer = await call(era, tool, String(n))
            assert.match(answer, new RegExp(`got ${n}".*"n":${n}\\}`))
          }),
          { numRuns: 20 },
        )
      })

  it('is compared with the bound of a schema exactly, and the bound is listed with its digits', async () => {
    assert.match(await call(MODERN, 'web__echo', '9223372036854775807'), /got 9223372036854775807"/)
    assert.match(await call(MODERN, 'web__echo', '9223372036854775808'), /must be <= 9223372036854775807/)
    const { headers, body } = toMessage(MODERN, 'tools/list')
    const listed = await send(gateway.mcpUrl, {
      headers: { ...headers, authorization: `Bearer ${KEYS.admin}` },
      body: JSON.stringify(body),
    })
    assert.match(listed.text, /"maximum":9223372036854775807[,}]/)
  })

  it('is refused for an integer if its digits may be lost, with advice to send it as text', async () => {
    assert.match(await call(MODERN, 'web__echo', '1.915883588174806058e18'), /send it as text/)
  })

  it('is approved, recorded and run as the same number', async () => {
    const waiting = await call(MODERN, 'web__pay', ID)
    assert.match(waiting, /dev\.toolgate\/approval/)
    const shown = await get('/api/approvals')
    assert.match(shown, new RegExp(`"input":\\{"n":${ID}\\}`))
    const id = /"id":"([^"]+)"/.exec(shown)?.[1]
    assert.match(await post(`/api/approvals/${id}`, '{"decision":"approve"}', KEYS.console), new RegExp(`"n":${ID}`))
    assert.match(await call(MODERN, 'web__pay', '1915883588174806000'), /dev\.toolgate\/approval/)
    assert.match(await call(MODERN, 'web__pay', ID), new RegExp(`got ${ID}"`))
    assert.match(await get('/api/audit?event=tool_call'), new RegExp(`\\{\\\\"n\\\\":${ID}\\}`))
  })

  it('is given back as the id of a request', async () => {
    for (const era of [LEGACY, MODERN] as const) {
      const { headers, body } = toMessage(era, 'tools/list', {}, HOLE)
      const answer = await send(gateway.mcpUrl, {
        headers: { ...headers, authorization: `Bearer ${KEYS.admin}` },
        body: JSON.stringify(body).replace(`"${HOLE}"`, ID),
      })
      assert.match(answer.text, new RegExp(`"id":${ID},"result"`))
    }
  })

  it('keeps its digits as the answer to a question of a server', async () => {
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
    const ask = async (more: object) => {
      const { headers, body } = toMessage(MODERN, 'tools/call', {
        name: 'pipe__ask',
        arguments: {},
        _meta: meta,
        ...more,
      })
      const text = JSON.stringify(body).replace(`"${HOLE}"`, ID)
      return send(gateway.mcpUrl, { headers: { ...headers, authorization: `Bearer ${KEYS.admin}` }, body: text })
    }
    const asked = (await ask({})).json() as { result: { inputRequests: object; requestState: string } }
    const [key = ''] = Object.keys(asked.result.inputRequests)
    const inputResponses = { [key]: { action: 'accept', content: { n: HOLE } } }
    const { text } = await ask({ inputResponses, requestState: asked.result.requestState })
    assert.match(text, new RegExp(`got ${ID}".*"n":${ID}\\}`))
  })

  for (const era of [LEGACY, MODERN] as const)
    it(`keeps its digits in a task, for a client of ${era}`, async () => {
      const extensions = { 'io.modelcontextprotocol/tasks': {} }
      const _meta = { 'io.modelcontextprotocol/clientCapabilities': { extensions } }
      const own = era === MODERN ? { _meta } : { task: {} }
      const ask = async (method: string, params: object) => {
        const { headers, body } = toMessage(era, method, { ...params, ...own })
        const text = JSON.stringify(body).replace(`"${HOLE}"`, ID)
        return (
          await send(gateway.mcpUrl, { headers: { ...headers, authorization: `Bearer ${KEYS.admin}` }, body: text })
        ).text
      }
      const begun = await ask('tools/call', { name: 'pipe__long', arguments: { n: HOLE } })
      const taskId = /"taskId":"([^"]+)"/.exec(begun)?.[1] ?? assert.fail(begun)
      const method = era === MODERN ? 'tasks/get' : 'tasks/result'
      let text = await ask(method, { taskId })
      while (text.includes('"status":"working"')) text = await ask(method, { taskId })
      assert.match(text, new RegExp(`got ${ID}".*"n":${ID}\\}`))
    })

  it('keeps its digits on the HTTP API', async () => {
    const ran = await post('/api/call', `{"tool":"web:echo","input":{"n":${ID}}}`)
    assert.match(ran, new RegExp(`got ${ID}".*"n":${ID}\\}`))
    const decided = await post('/api/decide', `{"tool":"web:echo","input":{"n":${ID}}}`)
    assert.match(decided, /"allow"/)
  })
})
