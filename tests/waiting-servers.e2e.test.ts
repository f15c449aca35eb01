import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { readConfig } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { MODERN, textOf } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const entry = (name: string, env: string) =>
  `  ${name}: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared, env: ${env} }`

const FILE = [
  'servers:',
  entry('whole', '{ A: b }'),
  entry('github', '{ TOKEN: "${TOOLGATE_TEST_ABSENT}" }'),
  entry('notes', '{ TOKEN: "${file:.toolgate/secrets/notes-TOKEN}" }'),
  'callers:',
  '  - { key: demo-viewer, user: viewer }',
  '  - { key: demo-console, for: console, user: owner, roles: [approver, operator] }',
  'policy: [{ allow: ["*"] }]',
  'listen: { port: 0 }',
  'drainMs: 250',
  'audit: { store: memory }',
  'state: { store: memory }',
].join('\n')

describe('servers whose variable or secret file is absent', () => {
  let folder: ReturnType<typeof tempFolder>
  let gateway: TestGateway
  let secret: string
  beforeEach(async () => {
    folder = tempFolder()
    const file = join(folder.path, 'toolgate.yaml')
    secret = join(folder.path, '.toolgate/secrets/notes-TOKEN')
    writeFileSync(file, FILE)
    gateway = await startTestGateway(await readConfig(file, { env: {} }))
  })
  afterEach(async () => {
    await gateway.close()
    folder.remove()
  })
  const states = async () => {
    const { body } = await gateway.api('/readyz')
    const { servers } = body as { servers: readonly { name: string; status: string; waitsFor?: readonly string[] }[] }
    return servers.map(({ name, status, waitsFor }) => [name, status, ...(waitsFor ?? [])].join(' '))
  }
  const giveSecret = () => {
    mkdirSync(join(secret, '..'), { recursive: true })
    writeFileSync(secret, 'a-secret-of-notes\n')
  }
  const reload = () => gateway.api('/api/reload', { method: 'POST', body: {} })

  it('wait, and the others serve', async () => {
    assert.deepEqual(await states(), [
      'whole ready',
      'github down servers.github.env.TOKEN',
      'notes down servers.notes.env.TOKEN',
    ])
    assert.match(textOf(await gateway.call('viewer', MODERN, 'whole__pid')), /^\d+$/)
    const why = await runCommand(gateway.url, 'why', 'github:pid', '--as', 'viewer', '--key', 'demo-console')
    assert.match(why.out + why.err, /the environment variable TOOLGATE_TEST_ABSENT is not set/)
    const servers = await gateway.api('/api/servers')
    assert.match(JSON.stringify(servers.body), /notes-TOKEN cannot be read: there is no such file/)
  })

  it('go on when a reload finds the value, and a restart alone starts nothing', async () => {
    giveSecret()
    assert.equal((await gateway.api('/api/servers/notes/restart', { method: 'POST', body: {} })).status, 200)
    assert.equal((await states())[2], 'notes down servers.notes.env.TOKEN')
    const pid = textOf(await gateway.call('viewer', MODERN, 'whole__pid'))
    assert.equal((await reload()).status, 200)
    await until(async () => (await states())[2] === 'notes ready')
    assert.equal(textOf(await gateway.call('viewer', MODERN, 'whole__pid')), pid, 'the other server stays')
    assert.match(textOf(await gateway.call('viewer', MODERN, 'notes__pid')), /^\d+$/)
    const { body } = await gateway.api('/api/audit?event=server_changed')
    assert.doesNotMatch(JSON.stringify(body), /identity_changed/)
  })

  it('do not come from a reload: one that would stop a running server is refused, and names the line', async () => {
    giveSecret()
    await reload()
    await until(async () => (await states())[2] === 'notes ready')
    rmSync(secret)
    const { status, body } = await reload()
    assert.equal(status, 400)
    assert.match(JSON.stringify(body), /toolgate\.yaml:4:\d+: servers\.notes\.env\.TOKEN: .* secret file/)
    assert.equal((await states())[2], 'notes ready')
  })
})
