import assert from 'node:assert/strict'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { readConfig } from '@toolgate/gateway'
import { checkCommand } from '../packages/cli/src/commands/check.ts'
import { fakeIo } from '../packages/cli/src/testing/fake-io.ts'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { MODERN, type Params, toMessage } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')

/** A gateway with a key and a server's variable from a command: it prints the file `word`, once `go` is there. */
async function setup(t: TestContext) {
  const folder = tempFolder()
  t.after(folder.remove)
  const at = (name: string) => join(folder.path, name)
  writeFileSync(
    at('vault.cjs'),
    `const { existsSync, readFileSync, writeFileSync } = require('fs')
     writeFileSync('asked', '')
     const look = () => {
       if (!existsSync('go')) return setTimeout(look, 10)
       const word = readFileSync('word', 'utf8')
       console.log(word)
       console.error('a note about ' + word)
       if (word.startsWith('broken')) process.exitCode = 4
     }
     look()`,
  )
  const file = at('toolgate.yaml')
  const command = `\${command:${process.execPath} vault.cjs}`
  writeFileSync(
    file,
    `listen: { port: 0 }
servers: { own: { command: ${process.execPath}, args: [${SERVER}], env: { TOKEN: "${command}" }, per: shared } }
callers:
  - { key: "key-${command}", user: vera }
  - { key: demo-console, for: console, user: owner, roles: [operator] }
policy: [{ allow: ["*"] }]
audit: { store: memory }
drainMs: 250
state: { store: memory }
secretCommands: { timeoutMs: 600000 }
`,
  )
  const says = (word: string) => writeFileSync(at('word'), word)
  const go = () => writeFileSync(at('go'), '')
  return { at, file, says, go }
}

const ask = (url: string, key: string, params: Params) => {
  const { headers, body } = toMessage(MODERN, 'tools/call', params)
  return send(url, { headers: { ...headers, authorization: `Bearer ${key}` }, body: JSON.stringify(body) })
}

describe('secrets from a command', () => {
  it('are there at the start, rotate with a reload that stops nobody meanwhile, and are redacted', async (t) => {
    const { at, file, says, go } = await setup(t)
    says('first-secret-word')
    go()
    const gateway = await startTestGateway(await readConfig(file))
    t.after(() => gateway.close())
    assert.equal((await ask(gateway.mcpUrl, 'key-first-secret-word', { name: 'own__echo' })).status, 200)

    // The command of the reload waits, and calls go on.
    for (const name of ['go', 'asked']) rmSync(at(name))
    says('second-secret-word')
    const reloading = gateway.api('/api/reload', { method: 'POST', body: {} })
    await until(() => existsSync(at('asked')))
    for (let i = 0; i < 20; i++)
      assert.equal((await ask(gateway.mcpUrl, 'key-first-secret-word', { name: 'own__echo' })).status, 200)
    go()
    const { status, body } = await reloading
    assert.equal(status, 200)
    assert.deepEqual((body as { restartNeeded: readonly string[] }).restartNeeded, [])
    assert.equal((await ask(gateway.mcpUrl, 'key-first-secret-word', { name: 'own__echo' })).status, 401)
    const fails = { name: 'own__fail', arguments: { word: 'second-secret-word and first-secret-word' } }
    await until(async () => (await ask(gateway.mcpUrl, 'key-second-secret-word', fails)).text.includes('failed with'))
    await until(async () => JSON.stringify(await gateway.api('/api/logs?server=own')).includes('failed with'))
    const seen = JSON.stringify([
      body,
      gateway.log,
      (await gateway.api('/api/audit')).body,
      (await gateway.api('/api/logs?server=own')).body,
    ])
    assert.doesNotMatch(seen, /(?:first|second)-secret-word/)
  })

  it('that cannot be had change nothing at a reload: the place is named, and nothing that the command wrote', async (t) => {
    const { file, says, go } = await setup(t)
    says('first-secret-word')
    go()
    const gateway = await startTestGateway(await readConfig(file))
    t.after(() => gateway.close())
    says('broken-secret-word')
    const { code, err, out } = await runCommand(gateway.url, 'reload')
    assert.equal(code, 2)
    assert.match(err, /toolgate\.yaml:4:\d+: callers\[0\]\.key: the command node exits with code 4/)
    assert.equal((await ask(gateway.mcpUrl, 'key-first-secret-word', { name: 'own__echo' })).status, 200)
    assert.doesNotMatch(`${err}${out}${JSON.stringify(gateway.log)}`, /secret-word|a note/)
  })

  it('are not run by toolgate check, which says so', async (t) => {
    const { at, file } = await setup(t)
    const io = fakeIo({})
    const start = () => assert.fail('nothing is started')
    assert.equal(await checkCommand(file, {}, { io, start }), 'ok')
    assert.match(io.err(), /1 command of secrets not run \(node\)/)
    assert.equal(existsSync(at('asked')), false)
    const json = fakeIo({})
    assert.equal(await checkCommand(file, { json: true }, { io: json, start }), 'ok')
    assert.deepEqual((JSON.parse(json.out()) as { notRun: unknown }).notRun, ['node'])
  })
})
