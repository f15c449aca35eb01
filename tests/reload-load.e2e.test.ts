import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { type GatewayConfig, startGateway } from '@toolgate/gateway'
import { tempFolder, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig, KEYS } from './support/keys.ts'
import { type Era, MODERN, type Params, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const LEGACY = '2025-11-25'
const RELOADS = 1000

/** Vera has one role at a time, and only who has it may call anything: a mixture of two revisions refuses her. */
function revisionOf(role: 'a' | 'b', more: Partial<GatewayConfig> = {}): GatewayConfig {
  return {
    file: '/test/toolgate.yaml',
    listen: { host: '127.0.0.1', port: 0 },
    servers: [nodeServer('own', [SERVER])],
    callers: [
      callerConfig('vera-vera-key', { user: 'vera', roles: [role] }),
      callerConfig('udo-udo-udo-key', { user: 'udo', roles: ['a', 'b'] }),
      callerConfig(KEYS.console, { user: 'owner', roles: ['approver'] }, 'console'),
    ],
    groups: [{ name: role, tools: ['own:*'], visibility: 'always', dependsOn: [], availableWhen: [] }],
    policy: [{ allow: [{ match: `group:${role}`, when: `'${role}' in caller.roles` }] }],
    limits: [`group:${role}:1000000/60`],
    audit: { store: 'memory', mode: 'batched' },
    drainMs: 250,
    ...more,
  }
}

async function start(config: GatewayConfig, read: () => GatewayConfig) {
  const gateway = await startGateway(config, { read })
  await gateway.ready
  const ask = (key: string, method: string, params: Params = {}, era: Era = MODERN, headers = {}) => {
    const message = toMessage(era, method, params)
    const sent = { ...message.headers, authorization: `Bearer ${key}`, ...headers }
    return send(`${gateway.url}/mcp`, { headers: sent, body: JSON.stringify(message.body) })
  }
  const call = async (key: string, name: string, args: object = {}, era: Era = MODERN) =>
    textOf((await ask(key, 'tools/call', { name, arguments: args }, era)).json() as RpcAnswer)
  return { gateway, ask, call }
}

describe('reloads under load', () => {
  it(`of ${RELOADS}: no call is decided by a mixture, no child restarts, and only narrowed keys lose their session`, async () => {
    let turn = 0
    const { gateway, ask, call } = await start(revisionOf('a'), () => revisionOf(turn++ % 2 === 0 ? 'b' : 'a'))
    try {
      const pid = await call('vera-vera-key', 'own__pid')
      const begin = async (key: string) => {
        const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 't', version: '1' } }
        return String((await ask(key, 'initialize', params, LEGACY)).headers['mcp-session-id'])
      }
      const [vera, udo] = [await begin('vera-vera-key'), await begin('udo-udo-udo-key')]
      const cookie = await login(gateway.url)
      const answers = new Map<string, number>()
      const over = new AbortController()
      const client = async (key: string, era: Era) => {
        while (!over.signal.aborted) {
          const text = await call(key, 'own__pid', {}, era)
          answers.set(text, (answers.get(text) ?? 0) + 1)
        }
      }
      const clients = ([MODERN, LEGACY, MODERN] as const).flatMap((era) => [
        client('vera-vera-key', era),
        client('udo-udo-udo-key', era),
      ])
      for (let i = 0; i < RELOADS; i++) {
        const slow = i % 20 === 0 ? beginCall(`${gateway.url}/mcp`, 'vera-vera-key', 'own__pid') : undefined
        await slow?.isSent
        assert.ok((await gateway.reload()).isApplied)
        // It was authenticated by the revision before, and is decided by this one.
        if (slow) assert.equal(await slow.end(), pid)
      }
      over.abort()
      await Promise.all(clients)
      assert.deepEqual([...answers.keys()], [pid], 'every call ran, in the process of the beginning')
      assert.ok((answers.get(pid) ?? 0) > 100)
      const statusOf = async (key: string, session: string) =>
        (await ask(key, 'ping', {}, LEGACY, { 'mcp-session-id': session })).status
      assert.deepEqual([await statusOf('vera-vera-key', vera), await statusOf('udo-udo-udo-key', udo)], [404, 200])
      assert.equal((await send(`${gateway.url}/api/session`, { method: 'GET', headers: { cookie } })).status, 200)
    } finally {
      await gateway.close()
    }
  })

  it('tighten calls that wait in a queue, and let those that run end', async () => {
    const folder = tempFolder()
    const file = join(folder.path, 'go')
    const calls = { concurrency: ['own:wait:1'] }
    const denied = revisionOf('a', {
      calls,
      policy: [{ allow: ['own:*'], deny: [{ match: 'own:wait', message: 'No longer.' }] }],
    })
    const { gateway, call } = await start(revisionOf('a', { calls }), () => denied)
    try {
      const audit = async () => {
        const headers = { authorization: `Bearer ${KEYS.console}` }
        const answer = await send(`${gateway.url}/api/audit?event=tool_call`, { method: 'GET', headers })
        return (answer.json() as { records: readonly object[] }).records.length
      }
      const running = call('vera-vera-key', 'own__wait', { file })
      await until(async () => (await audit()) === 1)
      const waiting = call('udo-udo-udo-key', 'own__wait', { file })
      await call('udo-udo-udo-key', 'own__echo')
      await gateway.reload()
      writeFileSync(file, '')
      assert.equal(await running, 'waited')
      assert.match(await waiting, /No longer/)
    } finally {
      await gateway.close()
      folder.remove()
    }
  })
})

/** Sends the head of a call, and its body later. */
function beginCall(url: string, key: string, name: string) {
  const { headers, body } = toMessage(MODERN, 'tools/call', { name, arguments: {} })
  const text = JSON.stringify(body)
  const sent = request(url, {
    method: 'POST',
    agent: false,
    headers: { ...headers, authorization: `Bearer ${key}`, 'content-length': Buffer.byteLength(text) },
  })
  sent.write(text.slice(0, 1))
  const isSent = new Promise((resolve) =>
    sent.on('socket', (socket) => socket.on('connect', () => setTimeout(resolve, 20))),
  )
  const end = async () => {
    sent.end(text.slice(1))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return textOf(JSON.parse(await readText(response)) as RpcAnswer)
  }
  return { isSent, end }
}

async function login(url: string): Promise<string> {
  const headers = { 'content-type': 'application/json', origin: url }
  const answer = await send(`${url}/api/login`, { headers, body: JSON.stringify({ key: KEYS.console }) })
  return String(answer.headers['set-cookie']).split(';')[0] ?? ''
}
