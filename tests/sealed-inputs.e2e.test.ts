import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { formatSnapshot, type Suggestion, takeSnapshot, type WhatIf } from '@toolgate/change'
import { loadConfig, type WhatIfBody } from '@toolgate/gateway'
import { runCommandIn } from './support/command.ts'
import { send } from './support/http.ts'
import { startTestGateway, tempFolder } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { MODERN } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const MARK = 'marker-5c11d0'
const key = randomBytes(32).toString('hex')
const env = { TOOLGATE_INPUT_KEY: key }
// A gateway reads the file again with the variables of its process.
process.env['TOOLGATE_INPUT_KEY'] = key

const fileWith = (audit: string, clause = '') => `
servers:
  slow: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared }
callers:
  - { key: demo-viewer, user: viewer, roles: [viewer] }
  - { key: demo-console, for: console, user: owner, roles: [approver] }
policy: [{ name: base, allow: ["*"]${clause} }]
listen: { port: 0 }
audit: ${audit}
state: { store: memory }
`
const NO_B = ', deny: [{ id: no-b, match: "slow:echo", input: "input.text.endsWith(\'b\')" }]'

/** Makes two calls through a gateway. Returns its folder and what it said meanwhile. */
async function callTwice(t: TestContext, store: 'sqlite' | 'jsonl') {
  const folder = tempFolder()
  t.after(() => folder.remove())
  const audit = join(folder.path, 'audit')
  const sealed = `{ keep: sealed, key: "\${TOOLGATE_INPUT_KEY}", keepFor: 7d }`
  const file = join(folder.path, 'toolgate.yaml')
  writeFileSync(
    file,
    fileWith(`{ store: ${store}, path: ${JSON.stringify(audit)}, preview: false, inputs: ${sealed} }`),
  )
  const gateway = await startTestGateway(loadConfig(file, { env }))
  t.after(() => gateway.close())
  const catalog = join(folder.path, 'catalog.json')
  writeFileSync(catalog, formatSnapshot(takeSnapshot(gateway.gate.catalog)))
  for (const sent of ['a', 'b']) await gateway.call('viewer', MODERN, 'slow__echo', { text: `${MARK} ${sent}` })
  const { records } = (await gateway.api('/api/audit?event=tool_call')).body as { records: readonly AuditRecord[] }
  return { folder: folder.path, file, audit, catalog, gateway, records }
}

const open = (variables: Readonly<Record<string, string>>, ...args: readonly string[]) =>
  runCommandIn(variables, 'audit', 'open', ...args)

for (const store of ['sqlite', 'jsonl'] as const)
  describe(`audit.inputs: sealed, in ${store}`, () => {
    it('opens by the call and by the record for who has the key, and the audit says who did', async (t) => {
      const { file, gateway, records } = await callTwice(t, store)
      await gateway.close()
      const [second, first] = records
      const one = await open(env, first?.tool_call_id ?? '', '--config', file)
      assert.deepEqual([one.code, one.out, one.err], [0, `{"text":"${MARK} a"}\n`, ''])
      const other = await open(env, String(second?.seq), '--config', file, '--json')
      assert.deepEqual(JSON.parse(other.out), { record: second, input: { text: `${MARK} b` } })
      const { out } = await runCommandIn(
        {},
        'audit',
        'query',
        '--file',
        join(file, '../audit'),
        '--event',
        'input_opened',
        '--json',
      )
      const opened = (JSON.parse(out) as { records: readonly AuditRecord[] }).records
      assert.deepEqual(
        opened.map(({ user_id: user, tool, detail }) => [user, tool, detail]),
        [second, first].map((record) => [
          userInfo().username,
          'slow:echo',
          `record ${record?.seq}, call ${record?.tool_call_id}`,
        ]),
      )
      const verified = await runCommandIn(env, 'audit', 'verify', '--config', file)
      assert.deepEqual([verified.code, verified.err], [0, ''])
      assert.match(verified.out, /^Sealed inputs: 2 present, 0 gone by retention\.$/m)
    })

    it('says by name why it does not open', async (t) => {
      const { folder, file, audit, gateway, records } = await callTwice(t, store)
      const { records: ends } = (await gateway.api('/api/audit?event=tool_result')).body as {
        records: readonly AuditRecord[]
      }
      await gateway.close()
      const [second, first] = records
      const why = async (which: string | number | undefined, variables: Readonly<Record<string, string>> = env) => {
        const { code, out, err } = await open(variables, String(which), '--config', file, '--json')
        assert.doesNotMatch(out + err, new RegExp(`${MARK}|${key}`))
        return [code, (JSON.parse(err || out) as { error: { code: string } }).error.code]
      }
      assert.deepEqual(await why('call-of-nobody'), [1, 'record_unknown'])
      assert.deepEqual(await why(999_999), [1, 'record_unknown'])
      assert.deepEqual(await why(ends[0]?.seq), [1, 'input_not_sealed'])
      assert.deepEqual(await why(first?.seq, { TOOLGATE_INPUT_KEY: 'f'.repeat(64) }), [5, 'input_wrong_key'])
      const db = new DatabaseSync(store === 'sqlite' ? audit : `${audit}.inputs`)
      db.exec(
        `UPDATE input_boxes SET box = (SELECT box FROM input_boxes WHERE seq = ${second?.seq}) WHERE seq = ${first?.seq}`,
      )
      assert.deepEqual(await why(first?.seq), [6, 'input_altered'])
      assert.equal((await runCommandIn(env, 'audit', 'verify', '--config', file)).code, 6)
      db.exec('DELETE FROM input_boxes')
      db.close()
      assert.deepEqual(await why(first?.seq), [8, 'input_missing'])
      const facts = join(folder, 'facts.yaml')
      writeFileSync(facts, fileWith(`{ store: ${store}, path: ${JSON.stringify(audit)}, inputs: facts }`))
      const none = await open({}, String(first?.seq), '--config', facts)
      assert.deepEqual([none.code, none.out], [2, ''])
      assert.match(none.err, /no key to open inputs with[^]*audit\.inputs\.key[^]*TOOLGATE_INPUT_KEY/)
    })

    it('opens in a copy, and says that the audit does not have it', async (t) => {
      const { folder, audit, gateway, records } = await callTwice(t, store)
      await gateway.close()
      const copy = join(folder, 'copy')
      copyFileSync(audit, copy)
      if (store === 'jsonl') copyFileSync(`${audit}.inputs`, `${copy}.inputs`)
      const { code, out, err } = await open(
        env,
        String(records[1]?.seq),
        '--config',
        join(folder, 'none.yaml'),
        '--file',
        copy,
      )
      assert.deepEqual([code, out], [0, `{"text":"${MARK} a"}\n`])
      assert.match(err, /The audit does not say that this was opened: it is a file that is only read/)
    })

    it('lets a what-if with the key judge what no rule has read, and one without say that it is unknown', async (t) => {
      const { folder, file, audit, catalog, gateway } = await callTwice(t, store)
      const text = readFileSync(file, 'utf8').replace('allow: ["*"]', `allow: ["*"]${NO_B}`)
      const { body } = await gateway.api('/api/what-if', { method: 'POST', body: { config: text } })
      assert.deepEqual([(body as WhatIfBody).unknown, (body as WhatIfBody).changed], [2, 0])
      const changed = join(folder, 'new.yaml')
      writeFileSync(changed, text)
      const args = ['--policy', changed, '--catalog', catalog, '--json']
      const live = await runCommandIn({ ...env, TOOLGATE_URL: gateway.url }, 'what-if', ...args, '--config', file)
      await gateway.close()
      const withKey = await runCommandIn(env, 'what-if', ...args, '--config', file, '--file', audit)
      for (const { out, err } of [live, withKey]) {
        const found = JSON.parse(out || err) as WhatIf
        assert.deepEqual([found.calls, found.changed, found.unknown, found.rows[0]?.rule], [2, 1, 0, 'base#no-b'])
      }
      const facts = join(folder, 'facts.yaml')
      writeFileSync(facts, fileWith('{ store: memory, inputs: facts }'))
      const factsAfter = join(folder, 'facts-after.yaml')
      writeFileSync(factsAfter, fileWith('{ store: memory, inputs: facts }', NO_B))
      const files = ['--policy', factsAfter, '--catalog', catalog, '--json', '--config', facts, '--file', audit]
      const without = await runCommandIn({}, 'what-if', ...files)
      assert.equal((JSON.parse(without.out) as WhatIf).unknown, 2)
      const ofEnvironment = await runCommandIn(env, 'what-if', ...files)
      assert.equal((JSON.parse(ofEnvironment.out) as WhatIf).unknown, 0)
      const other = { TOOLGATE_INPUT_KEY: 'f'.repeat(64) }
      const foreign = await runCommandIn(other, 'what-if', ...args, '--config', file, '--file', audit)
      assert.deepEqual((JSON.parse(foreign.out) as WhatIf).unknown, 2)
    })

    it('lets a suggestion with the key know the whole input, and one without count it', async (t) => {
      const { folder, file, audit, catalog, gateway } = await callTwice(t, store)
      await gateway.close()
      const keyless = join(folder, 'keyless.yaml')
      writeFileSync(keyless, fileWith('{ store: memory }'))
      const suggest = async (variables: object, config: string) => {
        const args = ['--config', config, '--catalog', catalog, '--file', audit, '--json']
        const { out, err } = await runCommandIn(variables as Record<string, string>, 'suggest', ...args)
        const { roles } = JSON.parse(out || err) as Suggestion
        return roles.flatMap(({ tools }) => tools.map(({ unknownInputs }) => unknownInputs))
      }
      assert.deepEqual(await suggest(env, file), [0])
      assert.deepEqual(await suggest(env, keyless), [0])
      assert.deepEqual(await suggest({}, keyless), [1])
    })

    it('shows nothing of an input: not in files, logs, metrics, records, calls and exports', async (t) => {
      const { folder, gateway, records } = await callTwice(t, store)
      const headers = { authorization: `Bearer ${KEYS.console}` }
      const said = [JSON.stringify(gateway.log), JSON.stringify(records)]
      for (const path of [
        '/metrics',
        '/api/audit',
        '/api/calls',
        '/api/calls/export?format=csv',
        '/api/audit/export',
        '/api/overview',
      ])
        said.push((await send(`${gateway.url}${path}`, { method: 'GET', headers })).text)
      await gateway.close()
      for (const name of readdirSync(folder, { recursive: true }) as string[])
        if (statSync(join(folder, name)).isFile()) said.push(readFileSync(join(folder, name), 'latin1'))
      for (const text of said) assert.doesNotMatch(text, new RegExp(`${MARK}|${key}`))
      assert.match(said.join(''), /"input_box":"[\da-f]{64}"/)
      assert.equal(existsSync(join(folder, 'audit.inputs')), store === 'jsonl')
    })
  })

describe('audit open beside a gateway', () => {
  it('records who opened it in SQLite, and says that it cannot in JSON lines', async (t) => {
    for (const store of ['sqlite', 'jsonl'] as const) {
      const { file, gateway, records } = await callTwice(t, store)
      const { code, out, err } = await open(env, String(records[0]?.seq), '--config', file)
      assert.deepEqual([code, out], [0, `{"text":"${MARK} b"}\n`])
      const { records: traces } = (await gateway.api('/api/audit?event=input_opened')).body as {
        records: readonly AuditRecord[]
      }
      assert.equal(traces.length, store === 'sqlite' ? 1 : 0)
      if (store === 'jsonl') assert.match(err, /The audit does not say that this was opened: /)
      else assert.equal(err, '')
      await gateway.close()
      assert.equal((await runCommandIn(env, 'audit', 'verify', '--config', file)).code, 0)
    }
  })
})

describe('toolgate audit open', () => {
  it('takes a number that is a record and a call for neither, and each by its option', async (t) => {
    const { folder, audit, gateway, records } = await callTwice(t, 'jsonl')
    await gateway.close()
    const [second, first] = records
    // The id is bound to the input: the record that another call names is still opened by its number.
    const same = join(folder, 'same')
    const id = String(first?.seq)
    const text = readFileSync(audit, 'utf8').replaceAll(second?.tool_call_id ?? '', id)
    writeFileSync(same, text)
    copyFileSync(`${audit}.inputs`, `${same}.inputs`)
    const ask = (...which: readonly string[]) =>
      open(env, ...which, '--config', join(folder, 'none.yaml'), '--file', same)
    const both = await ask(id)
    assert.deepEqual([both.code, both.out], [2, ''])
    assert.match(
      both.err,
      new RegExp(`${id} is the number of a record and the id of a call\\.\\s+.*--record ${id}\\b.*--call ${id}\\b`),
    )
    const byRecord = await ask('--record', id)
    assert.deepEqual([byRecord.code, byRecord.out], [0, `{"text":"${MARK} a"}\n`])
    const byCall = await ask('--call', id, '--json')
    assert.match(byCall.out + byCall.err, new RegExp(`record ${second?.seq}\\b|"seq": ?${second?.seq}\\b`))
    for (const which of [[], [id, '--record', id], ['--call', id, '--record', id]]) {
      const { code, err } = await ask(...which)
      assert.equal(code, 2)
      assert.match(err, /Name one call or one record: <call>, --call <id> or --record <seq>/)
    }
  })
})

describe('audit.inputs in the configuration', () => {
  it('refuses what cannot be used, with its place, and never repeats a key', (t) => {
    const folder = tempFolder()
    t.after(() => folder.remove())
    const file = join(folder.path, 'toolgate.yaml')
    for (const [inputs, expected] of [
      ['sealed', /audit\.inputs: found "sealed", expected one of redacted, facts/],
      ['{ keep: sealed }', /audit\.inputs\.key: /],
      [
        '{ keep: sealed, key: hunter2-hunter2 }',
        /audit\.inputs\.key: found text of 15 characters, expected 32 bytes in hex or base64/,
      ],
      [
        `{ keep: sealed, key: "${key}", olderKeys: [hunter2] }`,
        /audit\.inputs\.olderKeys\[0\]: found text of 7 characters, expected 32 bytes/,
      ],
      [`{ keep: sealed, key: "${key}", keepFor: 7 }`, /audit\.inputs\.keepFor: /],
      [`{ keep: sealed, key: "${key}", keepfor: 7d }`, /audit\.inputs\.keepfor: unknown key.*did you mean "keepFor"/],
      ['{ keep: sealed, key: "${TOOLGATE_INPUT_KEY}" }', /TOOLGATE_INPUT_KEY is not set/],
    ] as const) {
      writeFileSync(file, fileWith(`{ store: memory, inputs: ${inputs} }`))
      assert.throws(
        () => loadConfig(file, { env: {} }),
        (error: Error) => expected.test(error.message) && !/hunter2|[\da-f]{64}/.test(error.message),
        inputs,
      )
    }
  })
})
