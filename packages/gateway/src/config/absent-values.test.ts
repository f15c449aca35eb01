import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { loadConfig, readConfig } from './load-config.ts'

const FILE = `servers:
  ready: { command: node }
  github: { command: github, args: ["--url", "\${GITHUB_URL}"], env: { TOKEN: "\${GITHUB_TOKEN}" }, per: shared }
  notes: { url: "https://\${NOTES_HOST}/mcp", headers: { Authorization: "Bearer \${file:secrets/notes}" }, callTimeoutMs: "\${NOTES_MS}" }
  vault: { command: vault, env: { TOKEN: "\${command:toolgate-no-such-program read}" } }
policy: [{ allow: ["*"] }]
`

function setup(t: TestContext, text = FILE) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-absent-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'toolgate.yaml')
  writeFileSync(file, text)
  return file
}

describe('a value that this machine lacks', () => {
  it('makes its server wait, with the line of each, and no other server', async (t) => {
    const { servers } = await readConfig(setup(t), { env: {} })
    const places = servers.map(({ name, absent }) => [
      name,
      absent?.map(({ line, column, path: at }) => `${line}:${column} ${at}`),
    ])
    assert.deepEqual(places, [
      ['ready', undefined],
      ['github', ['3:47 servers.github.args[1]', '3:79 servers.github.env.TOKEN']],
      [
        'notes',
        ['4:26 servers.notes.url', '4:80 servers.notes.headers.Authorization', '4:122 servers.notes.callTimeoutMs'],
      ],
      ['vault', ['5:43 servers.vault.env.TOKEN']],
    ])
    assert.match(servers[1]?.absent?.[1]?.message ?? '', /the environment variable GITHUB_TOKEN is not set/)
    assert.match(servers[3]?.absent?.[0]?.message ?? '', /the command toolgate-no-such-program/)
  })

  it('is never a part of an entry: a server that waits has nothing that could start', async (t) => {
    const { servers } = await readConfig(setup(t), { env: {} })
    for (const { absent, command, url, args, env, headers } of servers)
      if (absent) assert.deepEqual([command, url, args, env, headers], [undefined, undefined, [], {}, {}])
  })

  it('is filled in once it is there', (t) => {
    const file = setup(t, FILE.replace(/ {2}(?:notes|vault).*\n/g, ''))
    const { servers } = loadConfig(file, { env: { GITHUB_URL: 'https://github.test', GITHUB_TOKEN: 'x' } })
    assert.deepEqual(
      servers.map(({ absent }) => absent),
      [undefined, undefined],
    )
    assert.deepEqual(servers[1]?.args, ['--url', 'https://github.test'])
  })

  it('still stops the start anywhere else, and beside another problem of the server', (t) => {
    const refused = (more: string, servers = 'a: { command: node }') =>
      assert.throws(
        () => loadConfig(setup(t, `servers: { ${servers} }\npolicy: [{ allow: ["*"] }]\n${more}`), { env: {} }),
        { name: 'ConfigFileError' },
        more,
      )
    refused('callers: [{ key: "${KEY}", user: vera }]')
    refused('listen: { host: "${HOST_NAME}" }')
    refused('audit: { store: sqlite, path: "${AUDIT}" }')
    refused('audit: { store: sqlite, path: ./a.db, inputs: { keep: sealed, key: "${file:no-key}" } }')
    refused('limits: ["${LIMIT}"]')
    refused('groups: { g: { tools: ["${SELECTOR}"] } }')
    refused('instructions: "${TEXT}"')
    refused('', 'a: { command: "${PROGRAM}", unknown: 1 }')
    refused('', 'a: "${SERVER}"')
    refused('', 'a: { command: "${not a name}" }')
  })
})
