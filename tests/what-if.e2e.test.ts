import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { loadConfig, type WhatIfBody } from '@toolgate/gateway'
import { type Answer, send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { MODERN } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const FILE = `
servers:
  slow: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared }
callers:
  - { key: demo-viewer, user: viewer, roles: [viewer] }
  - { key: demo-admin, user: admin, roles: [admin] }
  - { key: demo-console, for: console, user: owner, roles: [approver] }
  - { key: demo-tenant, for: console, user: tom, tenant: acme, roles: [approver] }
policy: [{ name: base, allow: ["*"], deny: [{ match: "slow:pid", unless: "'admin' in caller.roles" }] }]
listen: { port: 0 }
audit: { store: memory }
state: { store: memory }
`
const tighter = FILE.replace(
  'deny: [',
  'deny: [{ id: no-echo, match: "slow:echo", when: "\'viewer\' in caller.roles" }, ',
)

describe('POST /api/what-if', () => {
  let folder: ReturnType<typeof tempFolder>
  let gateway: TestGateway
  beforeEach(async () => {
    folder = tempFolder()
    const file = join(folder.path, 'toolgate.yaml')
    writeFileSync(file, FILE)
    gateway = await startTestGateway(loadConfig(file))
    for (const who of ['viewer', 'viewer', 'admin'] as const)
      await gateway.call(who, MODERN, 'slow__echo', { text: 'a' })
  })
  afterEach(async () => {
    await gateway.close()
    folder.remove()
  })

  const ask = (body: object, key?: string) => gateway.api('/api/what-if', { method: 'POST', body, ...(key && { key }) })

  it('says who loses what and which calls would have ended otherwise, and changes nothing', async () => {
    const { status, body } = await ask({ config: tighter })
    assert.equal(status, 200, JSON.stringify(body))
    const { access, rows, calls, same, changed, unknown, isWhole } = body as WhatIfBody
    assert.deepEqual(access, [
      { caller: 'viewer', gains: [], loses: ['slow:echo'], unknown: [], counts: { gains: 0, loses: 1, unknown: 0 } },
    ])
    assert.deepEqual(
      rows.map(({ caller, tool, from, to, rule, count }) => [caller, tool, from, to, rule, count]),
      [['viewer', 'slow:echo', 'allow', 'deny', 'base#no-echo', 2]],
    )
    assert.deepEqual(
      { calls, same, changed, unknown, isWhole },
      { calls: 3, same: 1, changed: 2, unknown: 0, isWhole: true },
    )
    assert.equal(readFileSync(join(folder.path, 'toolgate.yaml'), 'utf8'), FILE)
    assert.ok((await gateway.list('viewer', MODERN)).includes('slow__echo'))
  })

  it('refuses a broken configuration as "check" does, with each place', async () => {
    const { status, body } = await ask({
      config: FILE.replace('deny: [', 'deny: [{ match: "slow:echo", wen: "true" }, '),
    })
    const { error } = body as { error: { code: string; message: string } }
    assert.deepEqual([status, error.code], [400, 'config_invalid'])
    assert.match(error.message, /toolgate\.yaml:9:\d+: policy\[0\]\.deny\[0\]\.wen: .*"when"/)
  })

  it('reads no variable and no file that the running file does not', async () => {
    for (const taken of ['${HOME}', '${file:/etc/hostname}', '${command:id}']) {
      const { status, body } = await ask({ config: tighter.replace('no-echo', taken) })
      assert.equal(status, 400)
      assert.match((body as { error: { message: string } }).error.message, /which the running file does not have/)
    }
  })

  it('refuses who may not reload, and a body that is something else', async () => {
    assert.deepEqual((await ask({ config: tighter }, 'demo-tenant')).status, 403)
    for (const body of [{}, { config: 1 }, { config: tighter, since: 'soon' }, { config: tighter, more: 1 }])
      assert.deepEqual((await ask(body)).status, 400, JSON.stringify(body))
  })

  it('runs once at a time, and stops when its client goes', async () => {
    const url = `${gateway.url}/api/what-if`
    const headers = { authorization: `Bearer ${KEYS.console}`, 'content-type': 'application/json' }
    const gone = new AbortController()
    const asking = (signal?: AbortSignal): Promise<Answer> =>
      send(url, { method: 'POST', headers, body: JSON.stringify({ config: tighter }), ...(signal && { signal }) })
    const both = await Promise.all([asking(), asking()])
    assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 429])
    const left = asking(gone.signal)
    gone.abort()
    await assert.rejects(left)
    // The next one is answered as soon as that one has ended.
    for (let status = 429; status === 429;) status = (await asking()).status
  })
})
