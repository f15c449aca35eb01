import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { readLine } from '../packages/gateway/src/stdio/messages.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { hostileBodies } from './support/hostile-bodies.ts'
import { send } from './support/http.ts'
import { CALLERS, callerConfig, KEYS } from './support/keys.ts'
import { ERAS, type RpcAnswer, toMessage } from './support/rpc.ts'

const HOST_KEY = 'key-of-a-host'
const NOTHING_KEY = 'key-that-may-do-nothing'

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, object>> }
  readonly security?: readonly Readonly<Record<string, unknown>>[]
}

const { paths } = JSON.parse(readFileSync(new URL('../packages/gateway/openapi.json', import.meta.url), 'utf8')) as {
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Every route with a body, with a key that opens it. */
const routes = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { requestBody }]) => requestBody?.content['application/json'])
    .map(([method, { security = [] }]) => ({
      method: method.toUpperCase(),
      path: path.replace('{id}', 'any'),
      key: security.some((one) => 'agent' in one)
        ? NOTHING_KEY
        : security.some((one) => 'host' in one)
          ? HOST_KEY
          : KEYS.console,
    })),
)

let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({
    callers: [
      ...CALLERS,
      callerConfig(HOST_KEY, { user: 'host', roles: [] }, 'host'),
      callerConfig(NOTHING_KEY, { user: 'nobody' }),
    ],
    policy: [{ allow: [{ match: '*', when: "caller.user == 'vera'" }] }],
  })
})

after(() => gateway?.close())

/** Sends a body and, at the same time, a small request of another caller, which must be answered. */
async function sendBeside(
  url: string,
  key: string,
  method: string,
  headers: Record<string, string>,
  body: string | Buffer,
) {
  const [answer, small] = await Promise.all([
    send(url, {
      method,
      headers: { ...headers, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    }),
    send(`${gateway.url}/api/list`, { method: 'GET', headers: { authorization: `Bearer ${KEYS.admin}` } }),
  ])
  assert.equal(small.status, 200)
  return answer
}

describe('the routes of openapi.json with a body', () => {
  it('are all asked', () => assert.ok(routes.length >= 17, String(routes.length)))

  for (const { method, path, key } of routes)
    for (const { name, body, problem } of hostileBodies((json) => `{"value":${json}}`))
      it(`${method} ${path} withstands ${name}`, async () => {
        const answer = await sendBeside(`${gateway.url}${path}`, key, method, {}, body)
        const { error } = answer.json() as { error: { code: string; message: string } }
        if (answer.status === 413 && body.length > 64 * 1024) return assert.equal(error.code, 'body_too_large')
        // A text that is read has a field that no route knows.
        assert.deepEqual([answer.status, error.code], [400, 'body_invalid'], answer.text)
        assert.match(error.message, problem ?? /The field "value" is unknown/)
      })
})

for (const era of ERAS)
  describe(`/mcp in ${era}`, () => {
    const { headers, body: call } = toMessage(era, 'tools/call', { name: 'unknown', arguments: 0 })
    const wrap = (json: string) => JSON.stringify(call).replace('"arguments":0', `"arguments":{"value":${json}}`)

    for (const { name, body, problem } of hostileBodies(wrap))
      it(`withstands ${name}`, async () => {
        const answer = await sendBeside(gateway.mcpUrl, NOTHING_KEY, 'POST', { ...headers }, body)
        const { error } = answer.json() as RpcAnswer
        if (!problem) return assert.doesNotMatch(error?.message ?? '', /The body/)
        assert.equal(answer.status, 400, answer.text)
        assert.match(error?.message ?? '', problem)
      })
  })

describe('stdio', () => {
  const wrap = (json: string) => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"value":${json}}}`
  for (const { name, body, problem } of hostileBodies(wrap))
    if (typeof body === 'string' && body !== '')
      it(`withstands ${name}`, () => {
        const line = readLine(body)
        assert.equal(line.kind, problem ? 'invalid' : 'request')
        if (line.kind === 'invalid' && name !== 'null' && name !== 'a list')
          assert.match(line.error.message, problem as RegExp)
      })
})
