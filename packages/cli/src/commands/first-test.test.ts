import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { defineTool } from '@toolgate/core'
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

function setup(t: TestContext, { config = CONFIG, name = 'toolgate.yaml', tools = ['read_a', 'write_a'] } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-first-test-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const at = (file: string) => path.join(folder, file)
  writeFileSync(at(name), config)
  const snapshot = toSnapshot(tools.map((tool) => defineTool({ namespace: 'files', name: tool })))
  writeFileSync(at('catalog.json'), formatSnapshot(snapshot))
  const io = fakeIo()
  const deps = { io, start: () => assert.fail('nothing is started') }
  return {
    at,
    io,
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
    assert.match(io.out(), /2 tests, all passed/)
  })

  it('has an example of the next test, which runs as it is', async (t) => {
    const { at, io, write, test } = setup(t)
    await write()
    const text = readFileSync(at('policy.test.yaml'), 'utf8')
    const [example = ''] = /^ {2}# - shows(?:.*\n)(?: {2}# {3}.*\n)+/m.exec(text) ?? []
    writeFileSync(at('policy.test.yaml'), text.replace(example, example.replaceAll(/^ {2}# /gm, '  ')))
    assert.equal(await test(), 'ok')
    assert.match(io.out(), /3 tests, all passed/)
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
