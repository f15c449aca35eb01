import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { type KeysBody, loadConfig } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { type Era, MODERN, type Params, type RpcAnswer, toMessage } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const LEGACY = '2025-11-25'
const PAGE = readFileSync(resolve(import.meta.dirname, '../docs/guide/reload.md'), 'utf8')
const [, EXAMPLE = ''] = /^### Rotating a key$[^]*?```sh\n([^]*?)```/m.exec(PAGE) ?? []
/** The commands of the page, without their comments. */
const COMMANDS = EXAMPLE.trim()
  .split('\n')
  .map((line) => line.replace(/#.*/, '').trim().split(/ +/).slice(1))

describe('rotating a key, as docs/guide/reload.md says', () => {
  it('refuses no call: in a session, without one, and to a call that runs meanwhile', async (t) => {
    const folder = tempFolder()
    t.after(folder.remove)
    const file = join(folder.path, 'toolgate.yaml')
    const servers = { own: { command: process.execPath, args: [SERVER], per: 'shared' } }
    writeFileSync(
      file,
      `listen: { port: 0 }
servers: ${JSON.stringify(servers)}
callers:
  - { key: vera-of-the-file, user: vera }
  - { key: demo-console, for: console, user: owner, roles: [operator] }
policy: [{ allow: ["*"] }]
audit: { store: memory }
state: { store: memory }
`,
    )
    const gateway = await startTestGateway(loadConfig(file))
    t.after(() => gateway.close())
    const toolgate = async (args: readonly string[]) => {
      const { code, out, err } = await runCommand(gateway.url, ...args)
      assert.equal(code, 0, err)
      return out.trim()
    }
    const rows = async () => ((await gateway.api('/api/keys')).body as KeysBody).keys
    const ask = async (key: string, era: Era, method: string, params: Params, headers = {}) => {
      const message = toMessage(era, method, params)
      return send(gateway.mcpUrl, {
        headers: { ...message.headers, authorization: `Bearer ${key}`, ...headers },
        body: JSON.stringify(message.body),
      })
    }

    const first = await toolgate(['keys', 'create', '--user', 'vera', '--id', 'vera-1'])
    let key = first
    const clientInfo = { name: 'test', version: '1' }
    const begun = await ask(key, LEGACY, 'initialize', { protocolVersion: LEGACY, capabilities: {}, clientInfo })
    const session = { 'mcp-session-id': String(begun.headers['mcp-session-id']) }
    const go = join(folder.path, 'go')
    const running = ask(first, MODERN, 'tools/call', { name: 'own__wait', arguments: { file: go } })
    await until(async () => (await rows()).some(({ id, lastUsedAt }) => id === 'vera-1' && lastUsedAt !== undefined))

    // A client that calls all the time, in both eras.
    const counts = { calls: 0, refused: 0, isOver: false }
    const calls = (async () => {
      while (!counts.isOver)
        for (const [era, headers] of [
          [MODERN, {}],
          [LEGACY, session],
        ] as const) {
          const answer = await ask(key, era, 'tools/call', { name: 'own__echo', arguments: {} }, headers)
          counts.calls++
          if (answer.status !== 200 || (answer.json() as RpcAnswer).result?.isError !== undefined) counts.refused++
        }
    })()
    const someCalls = async () => {
      const enough = counts.calls + 6
      await until(() => counts.calls >= enough)
    }
    await someCalls()
    const [create = [], list = [], revoke = []] = COMMANDS
    const second = await toolgate(create)
    await someCalls()
    key = second
    await someCalls()
    assert.match(await toolgate(list), /^vera-2 .*20\d\d-.* 20\d\d-/m)
    await toolgate(revoke)
    await someCalls()
    counts.isOver = true
    await calls
    assert.equal(counts.refused, 0, `of ${counts.calls} calls`)
    assert.equal((await ask(first, MODERN, 'tools/list', {})).status, 401)
    writeFileSync(go, '')
    assert.match((await running).text, /waited/)
  })
})
