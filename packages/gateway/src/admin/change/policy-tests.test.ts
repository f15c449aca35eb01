import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { defineTool } from '@toolgate/core'
import { formatSnapshot, testPolicies, toSnapshot } from '@toolgate/change'
import { defineResource, defineTemplate } from '@toolgate/core/toolset'
import { loadConfig } from '../../config/load-config.ts'
import { ConfigFileError, formatProblem } from '../../config/problems.ts'
import { readPolicyTests } from './policy-tests.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'policy-tests-'))
after(() => rmSync(folder, { recursive: true }))

const CONFIG = `
servers:
  files:
    command: node
    offers: [tools, resources]
    tools:
      "read_*": { tags: [read] }
      write_file: { tags: [write], description: Ours }
      format_disk: { enabled: false }
    resources:
      "file:///secret/*": { tags: [secret] }
  web: { url: "http://127.0.0.1:1/mcp" }
callers:
  - { key: "a-key-of-the-viewer", user: viewer, roles: [viewer] }
  - { key: "a-key-of-the-writer", user: writer, tenant: acme, roles: [writer] }
  - { key: "one-of-two-keys-of-both", id: first, user: both, roles: [viewer] }
  - { key: "two-of-two-keys-of-both", id: second, user: both, roles: [writer] }
groups:
  net: { tools: ["web:*"], availableWhen: [{ tcp: "127.0.0.1:1" }] }
policy:
  - name: roles
    allow: ["tag:read", "resource:files:*", { match: "*", when: "'writer' in caller.roles" }]
    deny: [{ match: "resource:files:*", when: "'secret' in tool.tags" }]
`

const SNAPSHOT = toSnapshot([
  // As it was recorded, with the tags of then.
  defineTool({ namespace: 'files', name: 'read_file', tags: ['old'] }),
  defineTool({
    namespace: 'files',
    name: 'write_file',
    description: 'Theirs',
    original: { description: 'Own', annotations: {} },
  }),
  defineTool({ namespace: 'files', name: 'format_disk' }),
  defineTool({ namespace: 'web', name: 'fetch' }),
  defineTool({ namespace: 'gone', name: 'tool' }),
  defineResource({ namespace: 'files', uri: 'file:///a.md' }),
  defineTemplate({ namespace: 'files', uriTemplate: 'file:///{+path}' }),
  defineResource({ namespace: 'web', uri: 'web://x' }),
])

const at = (name: string) => path.join(folder, name)
writeFileSync(at('toolgate.yaml'), CONFIG)
writeFileSync(at('catalog.json'), formatSnapshot(SNAPSHOT))
writeFileSync(at('broken.json'), '{"version":1,"items":[{"id":"a","name":"a","tag":[]}]}')

let files = 0
async function read(text: string) {
  const file = at(`${++files}.test.yaml`)
  writeFileSync(file, text)
  return readPolicyTests(file, { config: (name) => loadConfig(name, { env: {} }) })
}

/** Returns the problems of a file, without its folder. */
async function problemsOf(text: string): Promise<readonly string[]> {
  try {
    await read(text)
  } catch (error) {
    assert.ok(error instanceof ConfigFileError, String(error))
    return error.problems.map((one) => formatProblem({ ...one, file: path.basename(one.file).replace(/^\d+/, 'x') }))
  }
  return []
}

async function missed(text: string): Promise<readonly unknown[]> {
  const { options } = await read(text)
  const { results } = await testPolicies(options)
  return results.flatMap(({ missed: all }) => all.map(({ path: where, found }) => [where.join('.'), found]))
}

describe('readPolicyTests', () => {
  it('has the recorded tools under the tags that the configuration gives them now', async () => {
    const visible = ['files:read_file', 'resource:files:file:///a.md', 'resource:files:file:///{+path}']
    assert.deepEqual(
      await missed(
        `catalog: catalog.json\ntests:\n  - shows: it\n    caller: viewer\n    expect: { visible: ${JSON.stringify(visible)} }\n`,
      ),
      [],
    )
  })

  it('has no tool that the configuration switches off, and none of a server that it no longer has', async () => {
    const { options } = await read('catalog: catalog.json\ntests: []\n')
    const tools = options.catalog as readonly { id: string; description: string }[]
    assert.deepEqual(
      tools.map(({ id }) => id),
      [
        'files:read_file',
        'files:write_file',
        'resource:files:file:///a.md',
        'resource:files:file:///{+path}',
        'web:fetch',
      ],
    )
    assert.equal(tools[1]?.description, 'Ours')
  })

  it('decides about resources that no server lists, under their overlay', async () => {
    const text = `catalog: catalog.json
tests:
  - shows: it
    expect: { call: { "resource:files:file:///b.md": allow, "resource:files:file:///secret/b.md": deny } }
`
    assert.deepEqual(await missed(text), [])
  })

  it('takes tools that the file writes, and the state of servers and groups', async () => {
    const text = `
tools: [web:fetch, { id: "files:read_file", description: mine }, "resource:files:file:///x"]
callers:
  night: { user: night, roles: [writer] }
tests:
  - { shows: a, caller: night, expect: { visible: ["files:read_file", "web:fetch", "resource:files:file:///x"] } }
  - { shows: b, caller: night, availability: { net: false }, expect: { call: { "web:fetch": wait } } }
  - { shows: c, caller: night, availability: { "server:web": false }, expect: { call: { "web:fetch": wait } } }
  - { shows: d, caller: writer of acme, expect: { sees: ["web:fetch"] } }
`
    assert.deepEqual(await missed(text), [])
  })

  it('says where a part of a test is written', async () => {
    const { placeOf } = await read(`tools: [web:fetch]
tests:
  - shows: it
    expect:
      call:
        web:fetch: deny
`)
    const place = ({ line, column }: { line: number; column: number }) => [line, column]
    assert.deepEqual(place(placeOf([0, 'expect', 'call', 'web:fetch'])), [6, 9])
    assert.deepEqual(place(placeOf([0, 'expect', 'text', 'web:fetch'])), [4, 5])
  })

  const wrong: readonly (readonly [what: string, text: string, problems: readonly RegExp[]])[] = [
    [
      'an unknown key of the file',
      'tools: [web:fetch]\ntest: []\n',
      [/^x.test.yaml:1:1: tests: is missing/, /^x.test.yaml:2:1: test: unknown key.*did you mean "tests"/i],
    ],
    [
      'an unknown key, tool and caller of tests',
      `tools: [web:fetch]
tests:
  - shows: it
    caler: viewer
    expect: { call: { web:fetch: allow } }
  - shows: it
    caller: viewr
    expect:
      call: { "web:fetsch": deny, web:fetch: denied }
`,
      [
        /^x.test.yaml:4:5: tests\[0\].caler: unknown key; did you mean "caller"/,
        /^x.test.yaml:7:13: tests\[1\].caller: unknown caller "viewr"; did you mean "viewer"/,
        /^x.test.yaml:9:15: tests\[1\].expect.call\["web:fetsch"\]: unknown tool "web:fetsch"; did you mean "web:fetch"/,
        /^x.test.yaml:9:46: tests\[1\].expect.call\["web:fetch"\]: unknown outcome "denied"; known are allow, ask, wait, deny/,
      ],
    ],
    [
      'a name of several callers',
      'tools: [web:fetch]\ntests: [{ shows: it, caller: both, expect: { sees: [web:fetch] } }]\n',
      [/unknown caller "both"/],
    ],
    ['no catalog', 'tests: []\n', [/^x.test.yaml:1:1: has neither "catalog"/]],
    [
      'a catalog that there is not',
      'catalog: no.json\ntests: []\n',
      [/^x.test.yaml:1:10: catalog: no.json cannot be read: there is no such file/],
    ],
    [
      'a broken catalog',
      'catalog: broken.json\ntests: []\n',
      [/^x.test.yaml:1:10: catalog: .*items\[0\].tag: unknown field; did you mean "tags"/],
    ],
    [
      'a tool of an unknown server',
      'tools: [wbe:fetch]\ntests: []\n',
      [/^x.test.yaml:1:9: tools\[0\]: the configuration has no server "wbe"; did you mean "web"/],
    ],
    [
      'a tool with an unknown field',
      'tools: ["web:a", { id: "web:b", tag: [x] }]\ntests: []\n',
      [/^x.test.yaml:1:18: tools\[1\]: .*unknown field; did you mean "tags"/],
    ],
    [
      'a caller with an unknown field',
      'tools: [web:fetch]\ncallers: { x: { role: [y] } }\ntests: []\n',
      [/^x.test.yaml:2:17: callers.x.role: .*unknown field; did you mean "roles"/],
    ],
    ['text that is no YAML', 'tests: [\n', [/^x.test.yaml:\d+:\d+: not YAML/]],
    ['an empty file', '', [/^x.test.yaml:1:1: the file is empty/]],
  ]
  for (const [what, text, problems] of wrong)
    it(`refuses ${what}`, async () => {
      const found = await problemsOf(text)
      assert.equal(found.length, problems.length, found.join('\n'))
      for (const [i, problem] of problems.entries()) assert.match(found[i] ?? '', problem)
    })

  it('leaves ${…} in inputs as it is', async () => {
    const { options } = await read(
      'tools: [web:fetch]\ntests: [{ shows: it, input: { a: "${HOME}" }, expect: { hides: [web:fetch] } }]\n',
    )
    assert.deepEqual(options.tests[0]?.input, { a: '${HOME}' })
  })

  it('has the problems of the configuration where that is broken', async () => {
    writeFileSync(at('bad.yaml'), 'servers: {}\npolcy: []\n')
    assert.match(
      (await problemsOf('config: bad.yaml\ntools: []\ntests: []\n')).join('\n'),
      /^bad.yaml:.*polcy: unknown key/m,
    )
  })
})
