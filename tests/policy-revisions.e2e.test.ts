import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { loadConfig, type Reload } from '@toolgate/gateway'
import type { PolicyBody, PolicyRevisionBody, PolicyRevisionsBody, WarningsBody } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const OPEN = 'policy:\n  - allow: ["*"]'
const CLOSED = 'policy:\n  - { name: closed, allow: ["*"], deny: ["slow:*"] }'

const textOf = (policy: string, limits = '[]') => `servers:
  slow: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared }
callers:
  - { key: demo-viewer, user: viewer, roles: [viewer] }
  - { key: demo-console, for: console, user: owner, roles: [approver] }
  - { key: demo-boss, for: console, user: boss, tenant: acme, roles: [approver] }
${policy}
limits: ${limits}
listen: { port: 0 }
audit: { store: memory }
state: { store: sqlite, path: ./state.db }
`

describe('an earlier policy', () => {
  let folder: ReturnType<typeof tempFolder>
  let gateway: TestGateway
  let file: string
  const start = async () => {
    gateway = await startTestGateway(loadConfig(file))
  }
  beforeEach(async () => {
    folder = tempFolder()
    file = join(folder.path, 'toolgate.yaml')
    writeFileSync(file, textOf(CLOSED))
    await start()
    writeFileSync(file, textOf(OPEN))
    assert.equal((await post('/api/reload', {})).status, 200)
  })
  afterEach(async () => {
    await gateway.close()
    folder.remove()
  })

  const post = (path: string, body: object, key?: string) =>
    gateway.api(path, { method: 'POST', body, ...(key !== undefined && { key }) })
  const list = async () => (await gateway.api('/api/policy/revisions')).body as PolicyRevisionsBody
  const policyInForce = async () => ((await gateway.api('/api/policy')).body as PolicyBody).text
  const isClosed = async () => ((await policyInForce()) ?? '').includes('closed')
  const restore = async (revision: number, body: object = {}) => {
    const answer = await post(`/api/policy/revisions/${revision}`, body)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body as Reload
  }

  it('is listed with who and how, and its text can be read', async () => {
    const { revisions, mayRestore, restored } = await list()
    assert.deepEqual(
      revisions.map(({ at: _at, ...row }) => row),
      [
        { revision: 2, by: 'owner', through: 'api', isInForce: true },
        { revision: 1, through: 'start', isInForce: false },
      ],
    )
    assert.deepEqual([mayRestore, restored], [true, undefined])
    const { text } = (await gateway.api('/api/policy/revisions/1')).body as PolicyRevisionBody
    assert.equal(text, CLOSED)
  })

  it('applies again at once, with a record, and keeps the rest of the file', async () => {
    const planned = await restore(1, { dryRun: true })
    assert.equal(planned.isApplied, false)
    assert.match(planned.text.join('\n'), /^policy revision 1\nthis would change\n/)
    assert.deepEqual(await isClosed(), false)
    assert.equal((await restore(1, { preview: planned.preview })).isApplied, true)
    assert.ok(await isClosed())
    const { revisions, restored } = await list()
    assert.deepEqual([revisions[0]?.revision, revisions[0]?.restores, revisions[0]?.by], [3, 1, 'owner'])
    assert.deepEqual([restored?.revision, restored?.by], [1, 'owner'])
    const { body } = await gateway.api('/api/audit?event=config_changed&limit=1')
    const [record] = (body as { records: readonly { reason: string; detail: string; user_id: string }[] }).records
    assert.deepEqual([record?.reason, record?.user_id], ['restore', 'owner'])
    assert.match(record?.detail ?? '', /^policy revision 1\n/)
    const { warnings } = (await gateway.api('/api/warnings')).body as WarningsBody
    assert.ok(warnings.some(({ code }) => code === 'policy_restored'))
    const { body: why } = await gateway.api('/api/why?tool=slow:wait&as=viewer')
    assert.match(JSON.stringify(why), /toolgate\.yaml \(policy revision 1\)/)
  })

  it('that no longer applies at a start leaves no trace in the list', async () => {
    await restore(1)
    await gateway.close()
    writeFileSync(file, textOf(`${OPEN} # mended`))
    await start()
    const { revisions, restored } = await list()
    const { at: _at, ...latest } = revisions[0] ?? assert.fail('none')
    assert.deepEqual(latest, { revision: 4, through: 'start', isInForce: true })
    assert.equal(restored, undefined)
  })

  it('survives a restart and a reload of another section, and ends when the policy of the file changes', async () => {
    await restore(1)
    await gateway.close()
    await start()
    assert.ok(await isClosed(), 'after a restart')
    writeFileSync(file, textOf(OPEN, '["slow:*:9/60"]'))
    await post('/api/reload', {})
    assert.ok(await isClosed(), 'after a change of limits')
    writeFileSync(file, textOf(`${OPEN} # again`))
    await post('/api/reload', {})
    assert.ok(!(await isClosed()), 'after a change of the policy')
    assert.equal((await list()).restored, undefined)
    await gateway.close()
    await start()
    assert.ok(!(await isClosed()))
  })

  it('makes way for the policy of the file on request', async () => {
    await restore(1)
    assert.equal((await gateway.api('/api/policy/restored', { method: 'DELETE' })).status, 200)
    assert.ok(!(await isClosed()))
    assert.equal((await list()).restored, undefined)
  })

  it('cannot make way if none is restored, and the file is not read then', async () => {
    writeFileSync(file, textOf(CLOSED))
    const { status, body } = await gateway.api('/api/policy/restored', { method: 'DELETE' })
    assert.equal(status, 404)
    assert.match(JSON.stringify(body), /No earlier policy is restored, so nothing was reloaded\./)
    assert.ok(!(await isClosed()))
  })

  it('brings nothing else back, where a file has its policy in a line with other sections', async () => {
    const oneLine = (key: string, policy: string) =>
      `{ "servers": {}, "callers": [{ "key": "${key}", "for": "console", "user": "owner", "roles": ["approver"] }], "policy": ${policy}, "audit": { "store": "memory" }, "listen": { "port": 0 }, "state": { "store": "sqlite", "path": "./state.db" } }\n`
    await gateway.close()
    writeFileSync(file, oneLine('demo-console', '[{ "allow": ["*"] }]'))
    await start()
    assert.equal((await post('/api/reload', {})).status, 200)
    assert.equal(await policyInForce(), undefined)
    const texts = (await list()).revisions.map(({ revision }) => revision)
    assert.deepEqual(texts, [2, 1], 'those of the file before')
    const { status, body } = await post('/api/policy/revisions/1', {})
    assert.equal(status, 400)
    assert.match(JSON.stringify(body), /policy: does not have lines of its own in the file/)
  })

  it('is not for people of a tenant, and an unknown one is named', async () => {
    const own = (await gateway.api('/api/policy/revisions', { key: 'demo-boss' })).body as PolicyRevisionsBody
    assert.deepEqual([own.revisions, own.mayRestore], [[], false])
    assert.equal((await gateway.api('/api/policy/revisions/1', { key: 'demo-boss' })).status, 403)
    assert.equal((await post('/api/policy/revisions/1', {}, 'demo-boss')).status, 403)
    const { status, body } = await post('/api/policy/revisions/9', {})
    assert.equal(status, 404)
    assert.match(JSON.stringify(body), /There is no revision \\"9\\" of the policy; known are 1 to 2\./)
    assert.ok(!(await isClosed()))
  })

  it('that this file cannot have changes nothing, and says why', async () => {
    writeFileSync(
      file,
      textOf('policy:\n  - { allow: ["*"], deny: ["group:lab"] }').replace(
        'limits:',
        'groups: { lab: { tools: ["slow:*"] } }\nlimits:',
      ),
    )
    assert.equal((await post('/api/reload', {})).status, 200)
    writeFileSync(file, textOf(OPEN))
    assert.equal((await post('/api/reload', {})).status, 200)
    const { status, body } = await post('/api/policy/revisions/3', {})
    assert.deepEqual([status, /lab/.test(JSON.stringify(body))], [400, true])
    assert.equal((await list()).restored, undefined)
  })

  it('is restored by the command', async () => {
    const listed = await runCommand(gateway.url, 'policy', 'revisions')
    assert.match(listed.out, /^REVISION +SINCE +BY +HOW\n2 .* owner +reload +in force\n1 /m)
    const restored = await runCommand(gateway.url, 'policy', 'restore', '1')
    assert.match(restored.out, /^policy revision 1\nrevision 3\n/)
    assert.ok(await isClosed())
    const shown = await runCommand(gateway.url, 'policy', 'show', '1')
    assert.equal(shown.out, `${CLOSED}\n`)
    assert.equal((await runCommand(gateway.url, 'policy', 'release')).code, 0)
    assert.ok(!(await isClosed()))
  })
})
