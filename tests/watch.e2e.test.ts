import assert from 'node:assert/strict'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { type RunningGateway, readConfig, startGateway, type WarningsBody } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { tempFolder, until } from './support/gateway.ts'
import { send } from './support/http.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')

async function setup(t: TestContext) {
  const folder = tempFolder()
  const file = join(folder.path, 'toolgate.yaml')
  const write = (policy: string, watch = 'watch: true') => {
    writeFileSync(
      `${file}.new`,
      `listen: { port: 0 }
drainMs: 250
servers: { own: { command: ${process.execPath}, args: [${SERVER}], per: shared } }
callers:
  - { key: demo-viewer, user: viewer }
  - { key: demo-console, for: console, user: owner, roles: [operator] }
policy: ${policy}
audit: { store: memory }
state: { store: memory }
${watch}
`,
    )
    renameSync(`${file}.new`, file)
  }
  write('[{ allow: ["*"] }]')
  const log: string[] = []
  const gateway: RunningGateway = await startGateway(await readConfig(file), {
    watchEveryMs: 10,
    log: ({ message }) => log.push(message),
  })
  t.after(async () => {
    await gateway.close()
    folder.remove()
  })
  await gateway.ready
  const get = async (path: string, key = 'demo-console') =>
    (await send(`${gateway.url}${path}`, { method: 'GET', headers: { authorization: `Bearer ${key}` } })).json()
  const seen = async () =>
    ((await get('/api/list', 'demo-viewer')) as { items: readonly { id: string }[] }).items.map(({ id }) => id)
  const waiting = async () => ((await get('/readyz')) as { reload?: string }).reload
  return { folder: folder.path, file, write, gateway, log, get, seen, waiting }
}

describe('watch: true', () => {
  it('applies a change of the file that only tightens, and records how', async (t) => {
    const { write, seen, get } = await setup(t)
    assert.equal((await seen()).length, 4)
    write('[{ allow: ["*"], deny: ["own:pid"] }]')
    await until(async () => !(await seen()).includes('own:pid'))
    const { records } = (await get('/api/audit?event=config_changed')) as { records: readonly AuditRecord[] }
    assert.deepEqual(
      records.map(({ reason }) => reason),
      ['watch'],
    )
    assert.match(records[0]?.detail ?? '', /viewer loses own:pid/)
  })

  it('leaves a change that may grant more to toolgate reload, and says so in the log, at /readyz and in the console', async (t) => {
    const { write, seen, get, waiting, log, gateway } = await setup(t)
    write('[{ allow: ["*"] }, { allow: ["own:echo"] }]')
    await until(async () => (await seen()).length === 1)
    // One list is longer and one shorter: nothing of it is applied.
    write('[{ allow: ["*"] }, { allow: ["own:pid"] }]')
    await until(async () => (await waiting()) !== undefined)
    assert.match(String(await waiting()), /waits for "toolgate reload": it may grant more \(policy, access\)/)
    assert.deepEqual(await seen(), ['own:echo'])
    assert.equal(log.filter((line) => line.includes('waits for "toolgate reload"')).length, 1)
    const { warnings } = (await get('/api/warnings')) as WarningsBody
    assert.ok(warnings.some(({ code, path }) => code === 'reload_waiting' && path === 'toolgate.yaml'))
    assert.equal(((await get('/readyz', 'nobody')) as { reload?: string }).reload, undefined)
    assert.equal((await runCommand(gateway.url, 'reload')).code, 0)
    assert.deepEqual(await seen(), ['own:pid'])
    assert.equal(await waiting(), undefined)
  })

  it('leaves a new receiver of notifications to toolgate reload, as it learns of calls', async (t) => {
    const { write, waiting, gateway, get } = await setup(t)
    write('[{ allow: ["*"] }]', 'watch: true\napprovals: { notify: [{ url: "http://127.0.0.1:9/", format: json }] }')
    await until(async () => (await waiting()) !== undefined)
    assert.match(String(await waiting()), /it may grant more \(approvals\)/)
    assert.deepEqual(await get('/api/notifications'), { receivers: [] })
    assert.equal((await runCommand(gateway.url, 'reload')).code, 0)
    await until(async () => ((await get('/api/notifications')) as { receivers: object[] }).receivers.length === 1)
  })

  it('runs no command that nobody has had run', async (t) => {
    const { folder, write, seen, get, waiting, gateway } = await setup(t)
    const runs = join(folder, 'runs')
    writeFileSync(join(folder, 'secret.cjs'), `require('fs').appendFileSync('runs', 'x'); console.log('own:pid')`)
    const policy = (...denied: readonly string[]) => `[{ allow: ["*"], deny: ${JSON.stringify(denied)} }]`
    const command = `\${command:${process.execPath} secret.cjs}`
    write(policy(command))
    await until(async () => (await waiting()) !== undefined)
    assert.match(String(await waiting()), /it may grant more \(secretCommands\)/)
    assert.deepEqual([existsSync(runs), (await seen()).length], [false, 4])
    assert.equal((await runCommand(gateway.url, 'reload')).code, 0)
    assert.deepEqual([readFileSync(runs, 'utf8'), (await seen()).length], ['x', 3])
    // The same command in another way is another one.
    write(policy(command, 'own:echo'), 'watch: true\nsecretCommands: { env: { NODE_OPTIONS: "--require=./evil.cjs" } }')
    await until(async () => (await waiting()) !== undefined)
    write(policy(command, 'own:echo'))
    await until(async () => (await seen()).length === 2)
    const { records } = (await get('/api/audit?event=config_changed')) as { records: readonly AuditRecord[] }
    assert.deepEqual(
      records.map(({ reason }) => reason),
      ['watch', 'api'],
    )
    assert.equal(readFileSync(runs, 'utf8'), 'xx')
  })

  it('says that the file has a mistake, changes nothing, and goes on when it is mended', async (t) => {
    const { write, seen, waiting, log } = await setup(t)
    write('[{ alow: ["*"] }]')
    await until(async () => (await waiting()) !== undefined)
    assert.match(String(await waiting()), /the file has a mistake/)
    assert.ok(log.includes('nothing was reloaded'))
    assert.equal((await seen()).length, 4)
    write('[{ allow: ["*"], deny: ["own:pid"] }]')
    await until(async () => (await waiting()) === undefined && (await seen()).length === 3)
  })
})
