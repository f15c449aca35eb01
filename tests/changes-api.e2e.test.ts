import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CatalogSnapshot, formatSnapshot, takeSnapshot } from '@toolgate/change'
import {
  type CatalogBody,
  type CompareBody,
  loadConfig,
  type PolicyTestsBody,
  type SuggestBody,
} from '@toolgate/gateway'
import { announce, newIdentity } from '../packages/cli/src/project/running-file.ts'
import { runCommand, runCommandIn } from './support/command.ts'
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
  - { key: demo-reader, for: console, user: reader }
  - { key: demo-tenant, for: console, user: tom, tenant: acme, roles: [approver] }
labels: { trusted: ["slow:*"] }
policy: [{ name: base, allow: ["*"], deny: [{ match: "slow:pid", unless: "'admin' in caller.roles" }] }]
listen: { port: 0 }
audit: { store: memory }
state: { store: memory }
`
const looser = FILE.replace(', deny: [{ match: "slow:pid", unless: "\'admin\' in caller.roles" }]', '')
const tighter = FILE.replace(
  'deny: [',
  'deny: [{ id: no-echo, match: "slow:echo", when: "\'viewer\' in caller.roles" }, ',
)
const TESTS = `tests:
  - { shows: A viewer gets no pid, caller: viewer, expect: { call: { "slow:pid": deny, "slow:echo": allow } } }
`

type Fault = { readonly error: { readonly code: string; readonly message: string } }

describe('what an operator may ask the gateway of a change', () => {
  let folder: ReturnType<typeof tempFolder>
  let gateway: TestGateway
  beforeEach(async () => {
    folder = tempFolder()
    writeFileSync(join(folder.path, 'toolgate.yaml'), FILE)
    gateway = await startTestGateway(loadConfig(join(folder.path, 'toolgate.yaml')))
  })
  afterEach(async () => {
    await gateway.close()
    folder.remove()
  })

  const ask = (what: string, body: object, key?: string) =>
    gateway.api(`/api/${what}`, { method: 'POST', body, ...(key && { key }) })
  const toolgate = async (...args: readonly string[]) => {
    writeFileSync(join(folder.path, 'catalog.json'), formatSnapshot(takeSnapshot(gateway.gate.catalog)))
    const { out, err } = await runCommand(
      gateway.url,
      ...args,
      '--catalog',
      join(folder.path, 'catalog.json'),
      '--json',
    )
    return JSON.parse(out || err) as unknown
  }

  it('gives the catalog to those who may test, and test --init takes it from the gateway that runs', async () => {
    const { body } = await gateway.api('/api/catalog')
    const { catalog, down } = body as CatalogBody
    assert.deepEqual(down, [])
    for (const key of ['demo-reader', 'demo-tenant', 'demo-viewer']) {
      const { status } = await gateway.api('/api/catalog', { key })
      assert.equal(status, 403, key)
    }
    assert.equal(
      formatSnapshot(catalog as unknown as CatalogSnapshot),
      formatSnapshot(takeSnapshot(gateway.gate.catalog)),
    )
    const config = join(folder.path, 'toolgate.yaml')
    announce(config, { url: gateway.url, secret: newIdentity() })
    // It starts nothing: the command of this test would fail at a start.
    const made = await runCommandIn({}, 'test', '--init', '--config', config)
    assert.equal(made.code, 0, made.err)
    const written = readFileSync(join(folder.path, 'catalog.json'), 'utf8')
    assert.equal(written, formatSnapshot(takeSnapshot(gateway.gate.catalog)))
    assert.equal((await runCommandIn({}, 'test', '--config', config)).code, 0)
  })

  it('compares as the command does: whether a text grants no more', async () => {
    for (const [text, answer] of [
      [tighter, 'yes'],
      [looser, 'no'],
      [
        FILE.replace('labels: { trusted: ["slow:*"] }', 'labels: { trusted: ["slow:*"] }\nlimits: ["slow:*:5/60"]'),
        'yes',
      ],
    ] as const) {
      const { status, body } = await ask('compare', { config: text })
      assert.equal(status, 200, JSON.stringify(body))
      assert.equal((body as CompareBody).grantsNoMore, answer)
      writeFileSync(join(folder.path, 'other.yaml'), text)
      const files = ['toolgate.yaml', 'other.yaml'].map((name) => join(folder.path, name))
      assert.deepEqual(body, await toolgate('compare', ...files))
    }
    const section = looser.split('\n').find((line) => line.startsWith('policy:'))
    const { body } = await ask('compare', { policy: section })
    assert.deepEqual(
      (body as CompareBody).counterexamples.map(({ caller, tool }) => [caller, tool]),
      [['viewer', 'slow:pid']],
    )
  })

  it('tests as the command does: what is in force, or another text', async () => {
    const { status, body } = await ask('test', { tests: TESTS })
    assert.equal(status, 200, JSON.stringify(body))
    const { files, clauses } = body as PolicyTestsBody
    assert.deepEqual(files, [{ file: 'tests', tests: [{ shows: 'A viewer gets no pid', ok: true, missed: [] }] }])
    assert.deepEqual(
      clauses.map(({ clause, hits }) => [clause, hits]),
      [
        ['base#allow[0]', 2],
        ['base#deny[0]', 1],
      ],
    )
    writeFileSync(join(folder.path, 'a.test.yaml'), `catalog: catalog.json\n${TESTS}`)
    const { out } = await (async () => {
      writeFileSync(join(folder.path, 'catalog.json'), formatSnapshot(takeSnapshot(gateway.gate.catalog)))
      return runCommand(gateway.url, 'test', join(folder.path, 'a.test.yaml'), '--json')
    })()
    const { files: ofCommand, ...rest } = JSON.parse(out)
    const { files: _, ...ofRoute } = body as PolicyTestsBody
    assert.deepEqual([ofRoute, files[0]?.tests], [rest, ofCommand[0].tests])
    const other = await ask('test', { tests: TESTS, config: tighter })
    const [missed] = (other.body as PolicyTestsBody).files[0]?.tests[0]?.missed ?? []
    assert.deepEqual(
      [missed?.line, missed?.what, missed?.expected, missed?.found],
      [2, 'expect.call slow:echo', 'allow', 'deny'],
    )
  })

  it('suggests as the command does: the least that its calls show to be needed', async () => {
    for (let i = 0; i < 3; i++) await gateway.call('viewer', MODERN, 'slow__echo', { text: 'a' })
    const { status, body } = await ask('suggest', { since: 0 })
    assert.equal(status, 200, JSON.stringify(body))
    const { policy, whatIf } = body as SuggestBody
    assert.match(JSON.stringify(policy), /slow:echo/)
    assert.deepEqual([whatIf.calls, whatIf.changed, whatIf.isWhole], [3, 0, true])
    const { whatIf: _, ...own } = body as SuggestBody
    const { whatIf: __, ...ofCommand } = (await toolgate(
      'suggest',
      '--config',
      join(folder.path, 'toolgate.yaml'),
      '--since',
      '1d',
    )) as SuggestBody
    assert.deepEqual(own, ofCommand)
  })

  const BODIES = { compare: { config: tighter }, test: { tests: TESTS }, suggest: {}, 'what-if': { config: tighter } }

  it('is for operators without a tenant, who see the whole policy', async () => {
    for (const [what, body] of Object.entries(BODIES))
      for (const key of ['demo-tenant', 'demo-reader', 'demo-viewer', 'none-of-them']) {
        const { status } = await ask(what, body, key)
        assert.ok(status === 401 || status === 403, `${what} by ${key}: ${status}`)
      }
  })

  it('takes no variable, file or command, in no spelling', async () => {
    const spelt = ['${HOME}', '${file:/etc/hostname}', '${command:id}', '"\\u0024{HOME}"', '"\\x24{file:/etc/passwd}"']
    for (const what of ['compare', 'test'] as const)
      for (const taken of spelt) {
        const text = tighter.replace('no-echo', taken.startsWith('"') ? taken : JSON.stringify(taken))
        const { status, body } = await ask(what, { ...BODIES[what], config: text })
        assert.equal(status, 400, `${what} with ${taken}`)
        assert.match((body as Fault).error.message, /which the running file does not have/)
      }
    writeFileSync(join(folder.path, 'secret.yaml'), 'secret: 4711')
    for (const key of ['config', 'catalog', '"\\u0063onfig"']) {
      const { status, body } = await ask('test', { tests: `${key}: ${join(folder.path, 'secret.yaml')}\n${TESTS}` })
      assert.deepEqual([status, (body as Fault).error.code], [400, 'config_invalid'])
      assert.match((body as Fault).error.message, /tests:1:1: (?:config|catalog): names a file/)
      assert.ok(!(body as Fault).error.message.includes('4711'))
    }
    // In tests, nothing is filled in but the folder of the configuration.
    const { body } = await ask('test', {
      tests: TESTS.replace('A viewer gets no pid', '"${HOME} ${file:/etc/hostname}"'),
    })
    assert.equal((body as PolicyTestsBody).files[0]?.tests[0]?.shows, '${HOME} ${file:/etc/hostname}')
  })

  it('refuses what is too large, what is something else, and what names nothing, with its place', async () => {
    const large = `${TESTS}${'# more\n'.repeat(400_000)}`
    assert.equal((await ask('test', { tests: large })).status, 413)
    assert.equal((await ask('test', { tests: large.slice(0, 300_000) })).status, 400)
    const wrong = [
      ['compare', {}],
      ['compare', { config: FILE, policy: 'policy: []' }],
      ['compare', { config: FILE, since: 1 }],
      ['test', { config: FILE }],
      ['test', { tests: 1 }],
      ['suggest', { role: '' }],
      ['suggest', { since: 'soon' }],
      ['suggest', { config: FILE }],
    ] as const
    for (const [what, body] of wrong)
      assert.equal((await ask(what, body)).status, 400, `${what} ${JSON.stringify(body)}`)
    const misspelt = await ask('test', { tests: TESTS.replace('slow:pid', 'slow:pif') })
    assert.match((misspelt.body as Fault).error.message, /tests:2:\d+: .*slow:pif.*slow:pid/)
    const bomb = `a: &a [x, x]\n${Array.from({ length: 30 }, (_, i) => `${'b'.repeat(i + 1)}: &b${i} [*${i === 0 ? 'a' : `b${i - 1}`}, *${i === 0 ? 'a' : `b${i - 1}`}]`).join('\n')}\ntests: []`
    assert.equal((await ask('test', { tests: bomb })).status, 400)
  })

  it('is no reason for a call to wait, whatever the text: the event loop turns, and calls end', async () => {
    const clauses = Array.from(
      { length: 5000 },
      (_, i) => `  - { match: "slow:*", when: "caller.user == 'user${i}'", input: "input.a == 'text ${i}'" }`,
    )
    const policy = `policy:\n- deny:\n${clauses.join('\n')}`
    await ask('test', { tests: 'tests: []' })
    const state = { isOpen: true, turns: 0, calls: 0 }
    const asked = ask('test', { tests: 'tests: []', policy }).finally(() => {
      state.isOpen = false
    })
    const turning = (async () => {
      for (; state.isOpen; state.turns++) await nextTurn()
    })()
    for (; state.isOpen; state.calls++) {
      const { result } = await gateway.call('viewer', MODERN, 'slow__echo', { text: 'a' })
      assert.notEqual(result?.isError, true)
    }
    await turning
    const { status, body } = await asked
    assert.equal(status, 200, JSON.stringify(body))
    // On the thread that serves calls it would be one piece of two seconds, and each turn one call at most.
    assert.ok(state.turns > 2000 && state.calls > 20, JSON.stringify(state))
  })

  it('answers one at a time, and agents meanwhile', async () => {
    const many = Array.from(
      { length: 400 },
      (_, i) => `  - { shows: "${i}", caller: viewer, expect: { call: { "slow:echo": allow } } }`,
    )
    const [first, second, call] = await Promise.all([
      ask('test', { tests: `tests:\n${many.join('\n')}` }),
      ask('test', { tests: TESTS }).then(async (answer) =>
        answer.status === 429 ? answer : ask('test', { tests: TESTS }),
      ),
      gateway.call('viewer', MODERN, 'slow__echo', { text: 'a' }),
    ])
    assert.equal((first.body as PolicyTestsBody).files?.[0]?.tests.length ?? 0, first.status === 200 ? 400 : 0)
    assert.ok([first.status, second.status].includes(200))
    assert.ok(call)
  })
})
