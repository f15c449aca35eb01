import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { formatSnapshot, takeSnapshot, type WhatIf } from '@toolgate/change'
import { loadConfig, type PolicyBody, type WhatIfBody } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
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

  const sectionOf = (text: string) => text.split('\n').find((line) => line.startsWith('policy:')) ?? ''

  it('takes the section "policy" in the place of that of the file, with the lines of the file', async () => {
    const { body } = await ask({ policy: sectionOf(tighter) })
    assert.deepEqual(
      (body as WhatIfBody).access.map(({ caller, loses }) => [caller, loses]),
      [['viewer', ['slow:echo']]],
    )
    const broken = await ask({ policy: `policy:\n  - name: base\n    alow: []` })
    assert.match(
      (broken.body as { error: { message: string } }).error.message,
      /toolgate\.yaml:11:5: policy\[0\]\.alow/,
    )
    const other = await ask({ policy: `${sectionOf(FILE)}\nservers: {}` })
    assert.match((other.body as { error: { message: string } }).error.message, /servers/)
  })

  it('refuses the section where the file no longer has the one that is in force', async () => {
    writeFileSync(join(folder.path, 'toolgate.yaml'), tighter)
    const { status, body } = await ask({ policy: sectionOf(FILE) })
    assert.equal(status, 400)
    assert.match((body as { error: { message: string } }).error.message, /as it is in force; reload the file first/)
    rmSync(join(folder.path, 'toolgate.yaml'))
    assert.equal((await ask({ policy: sectionOf(FILE) })).status, 400)
  })

  it('refuses the section where something in it is redacted', async () => {
    const key = 'sk-live-0123456789abcdefghijklmnop'
    const file = join(folder.path, 'redacted.yaml')
    writeFileSync(file, FILE.replace('match: "slow:pid"', `match: "slow:pid", message: "api_key=${key}"`))
    await gateway.close()
    gateway = await startTestGateway(loadConfig(file))
    const { text = '', isRedacted } = (await gateway.api('/api/policy')).body as PolicyBody
    assert.equal(isRedacted, true)
    assert.ok(!text.includes(key))
    const { status, body } = await ask({ policy: text })
    assert.deepEqual([status, (body as { error: { code: string } }).error.code], [409, 'reload_refused'])
  })

  it('reads no variable and no file that the running file does not', async () => {
    for (const taken of ['${HOME}', '${file:/etc/hostname}', '${command:id}']) {
      const { status, body } = await ask({ config: tighter.replace('no-echo', JSON.stringify(taken)) })
      assert.equal(status, 400)
      assert.match((body as { error: { message: string } }).error.message, /which the running file does not have/)
    }
  })

  it('refuses who may not reload, and a body that is something else', async () => {
    assert.deepEqual((await ask({ config: tighter }, 'demo-tenant')).status, 403)
    for (const body of [
      {},
      { config: 1 },
      { policy: 1 },
      { config: tighter, policy: 'policy: []' },
      { config: tighter, since: 'soon' },
      { config: tighter, more: 1 },
    ])
      assert.deepEqual((await ask(body)).status, 400, JSON.stringify(body))
  })

  const toolgate = (...args: readonly string[]) => {
    const files = ['--config', join(folder.path, 'toolgate.yaml'), '--catalog', join(folder.path, 'catalog.json')]
    writeFileSync(join(folder.path, 'catalog.json'), formatSnapshot(takeSnapshot(gateway.gate.catalog)))
    return runCommand(gateway.url, 'what-if', ...files, ...args)
  }
  const fileOf = (text: string) => {
    const file = join(folder.path, 'new.yaml')
    writeFileSync(file, text)
    return file
  }

  it('is a command, for people and programs', async () => {
    const { code, out, err } = await toolgate('--policy', fileOf(tighter))
    assert.deepEqual([code, err], [0, 'as owner (key in TOOLGATE_KEY)\n'])
    assert.match(out, /Who gains and who loses\n {2}viewer {2}loses slow:echo\n\n3 recorded calls, /)
    assert.match(out, /2 would have ended otherwise, 0 cannot be judged/)
    assert.match(out, /^2 +viewer +slow:echo +allow → deny +base#no-echo +\d+$/m)
    const json = await toolgate('--policy', fileOf(tighter), '--json', '--since', '1h')
    const { changed, rows } = JSON.parse(json.out) as WhatIf
    assert.deepEqual([changed, rows[0]?.rule], [2, 'base#no-echo'])
    const none = await toolgate('--policy', fileOf(FILE))
    assert.match(none.out, /nobody\n[^]*0 would have ended otherwise, 0 cannot be judged/)
  })

  it('says which rule cannot judge what was not recorded', async () => {
    const reading = tighter.replace('when: "\'viewer\' in caller.roles"', 'input: "input.text == \'a\'"')
    const { out } = await toolgate('--policy', fileOf(reading))
    assert.match(out, /0 would have ended otherwise, 3 cannot be judged/)
    assert.match(out, /^3 +base#no-echo$/m)
  })

  it('prints the problems of a broken configuration as "check" does, and replays nothing', async () => {
    const { code, out, err } = await toolgate(
      '--policy',
      fileOf(FILE.replace('deny: [', 'dny: [')),
      '--url',
      'http://127.0.0.1:9',
    )
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, /new\.yaml:9:\d+: policy\[0\]\.dny: .*"deny"[^]*1 problem/)
  })

  it('keeps what it has counted, and refuses to go on with that of another', async () => {
    const resume = join(folder.path, 'counted.json')
    const whole = await toolgate('--policy', fileOf(tighter), '--json', '--resume', resume, '--since', '2026-01-01')
    assert.deepEqual([whole.code, existsSync(resume)], [0, false])
    writeFileSync(resume, JSON.stringify({ hash: 'another', state: {} }))
    const refused = await toolgate('--policy', fileOf(tighter), '--resume', resume)
    assert.deepEqual([refused.code, refused.out], [2, ''])
    assert.match(refused.err, /counted\.json is of another what-if/)
    writeFileSync(resume, 'mine')
    const mine = await toolgate('--policy', fileOf(tighter), '--resume', resume)
    assert.deepEqual([mine.code, mine.out, readFileSync(resume, 'utf8')], [2, '', 'mine'])
    assert.match(mine.err, /counted\.json is not the state of a what-if/)
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

const READING = FILE.replace('deny: [', 'deny: [{ id: no-b, match: "slow:echo", input: "input.text == \'b\'" }, ')

describe('audit.inputs: facts', () => {
  for (const store of ['sqlite', 'jsonl'] as const)
    it(`lets a change of a rule about inputs be judged, in ${store}`, async (t) => {
      const folder = tempFolder()
      t.after(() => folder.remove())
      const file = join(folder.path, 'toolgate.yaml')
      const audit = join(folder.path, 'audit')
      const text = READING.replace('store: memory', `store: ${store}, inputs: facts, path: ${JSON.stringify(audit)}`)
      writeFileSync(file, text)
      const gateway = await startTestGateway(loadConfig(file))
      const catalog = join(folder.path, 'catalog.json')
      try {
        writeFileSync(catalog, formatSnapshot(takeSnapshot(gateway.gate.catalog)))
        for (const sent of ['a', 'b', 'c']) await gateway.call('viewer', MODERN, 'slow__echo', { text: sent })
        const asked = await gateway.api('/api/what-if', {
          method: 'POST',
          body: { config: text.replace("== 'b'", "== 'c'") },
        })
        const { rows, unknown } = asked.body as WhatIfBody
        assert.deepEqual(
          [rows.map(({ from, to, count }) => [from, to, count]).toSorted(), unknown],
          [
            [
              ['allow', 'deny', 1],
              ['deny', 'allow', 1],
            ],
            0,
          ],
        )
        const draft = join(folder.path, 'draft.yaml')
        writeFileSync(draft, text.replace("== 'b'", "== 'a'"))
        const asking = ['--policy', draft, '--config', file, '--catalog', catalog]
        const keyless = await runCommand(gateway.url, 'what-if', ...asking)
        assert.match(keyless.out, /3 cannot be judged[^]*Texts that rules compare are hashed with the gateway's key: /)
      } finally {
        await gateway.close()
      }
      assert.doesNotMatch(readFileSync(audit, 'latin1'), /"facts":"[^\n]*\[\\"[abc]\\"\]/)
      const changed = join(folder.path, 'new.yaml')
      writeFileSync(changed, text.replace("== 'b'", "== 'a'"))
      const args = ['--policy', changed, '--config', file, '--catalog', catalog, '--file', audit, '--json']
      const { code, out, err } = await runCommand('http://127.0.0.1:9', 'what-if', ...args)
      assert.equal(code, 0, err)
      const found = JSON.parse(out) as WhatIf
      assert.deepEqual([found.calls, found.changed, found.unknown], [3, 2, 0])
    })

  it('refuses another word, with the near one', () => {
    const folder = tempFolder()
    const file = join(folder.path, 'toolgate.yaml')
    writeFileSync(file, FILE.replace('store: memory', 'store: memory, inputs: fact'))
    assert.throws(() => loadConfig(file), /audit\.inputs: .*facts/)
    folder.remove()
  })
})
