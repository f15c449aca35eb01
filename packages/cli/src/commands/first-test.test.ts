import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { parse } from 'yaml'
import { createGate, defineTool, type JsonSchema } from '@toolgate/core'
import type { RunningGateway, ServerRow } from '@toolgate/gateway'
import { formatSnapshot, toSnapshot } from '@toolgate/change'
import { fakeIo } from '../testing/fake-io.ts'
import { firstTestCommand } from './first-test.ts'
import { policyTestsCommand } from './policy-tests.ts'

const CONFIG = `
servers: { files: { command: node, tools: { "read*": { tags: [read] } } } }
callers:
  - { key: "a-key-of-the-reader", user: reader, roles: [reader] }
  - { key: "a-key-of-the-writer", user: "o'neil: a", tenant: acme, roles: [writer] }
  - { key: "a-key-of-the-owner", for: console, user: owner }
  - { key: "one-of-two-keys-of-both", id: first, user: both, roles: [reader] }
  - { key: "two-of-two-keys-of-both", id: second, user: both, roles: [writer] }
policy: [{ name: roles, allow: ["tag:read", { match: "*", when: "'writer' in caller.roles" }] }]
`

const BOUNDS = `
servers: { files: { command: node } }
callers: [{ key: "a-key-of-the-agent", user: agent, roles: [agent] }]
policy:
  - name: bounds
    allow: ["*"]
    deny:
      - { match: "files:send", input: "input.amount >= 1000" }
      - { id: folder, match: "files:write", input: "!within(input.path, '\${configDir}/docs')" }
      - { match: "files:write", input: "'untrusted' in run.labels" }
      - { match: "files:send", input: "input.to == '\${TOOLGATE_TEST_RULE}'" }
    ask:
      - { match: "files:send", input: "input.amount > 100", message: "more than 100" }
`

interface Written {
  readonly shows: string
  readonly input?: { readonly amount?: number; readonly path?: string }
  readonly history?: { readonly labels: readonly string[] }
  readonly expect: { readonly call?: Readonly<Record<string, string>> }
}

function setup(t: TestContext, { config = CONFIG, name = 'toolgate.yaml', tools = ['read_a', 'write_a'] } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-first-test-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const at = (file: string) => path.join(folder, file)
  writeFileSync(at(name), config)
  const snapshot = toSnapshot(tools.map((tool) => defineTool({ namespace: 'files', name: tool })))
  writeFileSync(at('catalog.json'), formatSnapshot(snapshot))
  const io = fakeIo({ TOOLGATE_TEST_RULE: 'a-secret-of-the-rule' })
  const deps = { io, start: () => assert.fail('nothing is started') }
  return {
    folder,
    at,
    io,
    writeCatalog: (given: readonly { readonly name: string; readonly inputSchema: JsonSchema }[]) =>
      writeFileSync(
        at('catalog.json'),
        formatSnapshot(toSnapshot(given.map((one) => defineTool({ namespace: 'files', ...one })))),
      ),
    names: () => readdirSync(folder).toSorted(),
    write: () => firstTestCommand({ config: at(name) }, deps),
    test: () => policyTestsCommand([], { config: at(name), since: 0 }, deps),
  }
}

describe('toolgate test --init', () => {
  it('writes tests of what each agent sees, which pass at once', async (t) => {
    const { at, io, names, write, test } = setup(t)
    assert.equal(await write(), 'ok')
    assert.deepEqual(names(), ['catalog.json', 'policy.test.yaml', 'toolgate.yaml'])
    assert.match(io.out(), /made .*policy\.test\.yaml\n\nNext\n {2}toolgate test --config /)
    const text = readFileSync(at('policy.test.yaml'), 'utf8')
    assert.match(text, /caller: "reader"\n {4}expect:\n {6}sees: \["files:read_a"\]\n {6}hides: \["files:write_a"\]\n/)
    assert.match(text, /caller: "o'neil: a of acme"\n {4}expect:\n {6}sees: \["files:read_a", "files:write_a"\]\n/)
    assert.doesNotMatch(text, /owner|both/)
    assert.equal(await test(), 'ok')
    assert.match(io.out(), /5 tests, all passed/)
  })

  it('writes a test on each side of the bound of each clause, and all pass', async (t) => {
    const { at, io, write, test, writeCatalog } = setup(t, { config: BOUNDS })
    writeCatalog([
      {
        name: 'send',
        inputSchema: {
          type: 'object',
          properties: { to: { type: 'string' }, amount: { type: 'integer', minimum: 1 } },
          required: ['to', 'amount'],
        },
      },
      { name: 'write', inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } },
    ])
    await write()
    assert.equal(await test(), 'ok', io.out())
    const text = readFileSync(at('policy.test.yaml'), 'utf8')
    const calls = (parse(text) as { tests: readonly Written[] }).tests.slice(1)
    assert.deepEqual(
      calls.map(({ shows, input, history, expect }) => [
        shows.replace(/:.*/, ''),
        input?.amount ?? input?.path,
        ...(history?.labels ?? []),
        ...Object.values(expect.call ?? {}),
      ]),
      [
        ['bounds#deny[0] holds', 1000, 'deny'],
        ['bounds#deny[0] does not hold', 999, 'ask'],
        ['bounds#folder holds', '${configDir}/docsx', 'deny'],
        ['bounds#folder does not hold', '${configDir}/docs', 'allow'],
        ['bounds#deny[2] holds', '', 'untrusted', 'deny'],
        ['bounds#deny[2] does not hold', '', 'allow'],
        ['bounds#ask[0] holds', 101, 'ask'],
        ['bounds#ask[0] does not hold', 100, 'allow'],
        ['bounds#allow[0] holds', 1, 'allow'],
      ],
    )
    assert.match(text, /No call was found for these clauses\..*\n {2}# - bounds#deny\[3\] \(toolgate\.yaml:11\)\n/)
    assert.ok(!text.includes('a-secret-of-the-rule'), 'a filled-in variable is in no test')
  })

  it('leaves out servers that are down, and says so in the file', async (t) => {
    const { at, io, folder } = setup(t)
    rmSync(at('catalog.json'))
    const tools = [defineTool({ namespace: 'files', name: 'read_a', tags: ['read'] })]
    const gateway: Partial<RunningGateway> = {
      gate: createGate({ tools }),
      ready: Promise.resolve(),
      servers: () =>
        [
          { name: 'files', status: 'ready' },
          { name: 'web', status: 'down', reason: 'exited\nwith code 1' },
        ] as ServerRow[],
      close: async () => {},
    }
    const start = async () => gateway as RunningGateway
    await firstTestCommand({ config: path.join(folder, 'toolgate.yaml') }, { io, start })
    assert.match(
      readFileSync(at('policy.test.yaml'), 'utf8'),
      /# These servers were down, so their tools are not in it:\n# - web \(exited with code 1\)\ncatalog: /,
    )
    assert.match(io.err(), /^warn {2}web \(exited.*with code 1\); its tools have no test/)
  })

  it('names a configuration that has another name', async (t) => {
    const { at, write, test } = setup(t, { name: 'other.yaml' })
    await write()
    assert.match(readFileSync(at('policy.test.yaml'), 'utf8'), /^config: "other\.yaml"$/m)
    assert.equal(await test(), 'ok')
  })

  it('replaces nothing', async (t) => {
    const { at, write } = setup(t)
    const catalog = readFileSync(at('catalog.json'), 'utf8')
    writeFileSync(at('policy.test.yaml'), 'mine')
    await assert.rejects(write(), {
      exit: 'usage',
      message: `${at('policy.test.yaml')} exists already. Nothing was changed.`,
    })
    assert.equal(readFileSync(at('policy.test.yaml'), 'utf8'), 'mine')
    rmSync(at('policy.test.yaml'))
    await write()
    assert.equal(readFileSync(at('catalog.json'), 'utf8'), catalog)
  })

  it('says what is missing where there is nothing to test', async (t) => {
    const { names, write } = setup(t, { tools: [] })
    await assert.rejects(write(), { exit: 'usage', message: /has no tools and agents to test yet/ })
    assert.deepEqual(names(), ['catalog.json', 'toolgate.yaml'])
  })
})
