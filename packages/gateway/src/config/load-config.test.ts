import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from './load-config.ts'
import { ConfigFileError } from './problems.ts'

const CASES = path.join(import.meta.dirname, 'cases')
const ALLOW_ALL = 'policy: [{ allow: ["*"] }]'
const ENV = { SET: 'x', BLANK: '', SHORT: 'abc' }

/** Every `cases/x.yaml` is refused with exactly the lines of `cases/x.txt`: `line:column: path: message`. */
describe('loadConfig refuses, with the place of every problem', () => {
  for (const file of readdirSync(CASES).filter((name) => name.endsWith('.yaml'))) {
    it(`${path.basename(file, '.yaml').replaceAll('-', ' ')} (${file})`, () => {
      const full = path.join(CASES, file)
      const expected = readFileSync(full.replace(/\.yaml$/, '.txt'), 'utf8').trimEnd()
      assert.throws(
        () => loadConfig(full, { env: ENV }),
        (error: unknown) => {
          assert.ok(error instanceof ConfigFileError)
          assert.equal(error.message.replaceAll(`${full}:`, '').replaceAll(CASES, '<folder>'), expected)
          return true
        },
      )
    })
  }
})

const FILE = `
servers:
  files:
    command: ./bin/files
    args: [--root, "\${ROOT:-./workspace}", "$\${HOME}"]
    cwd: .
    env: { STATE: "\${configDir}/state" }
    tools: { read_*: { tags: [read], annotations: { readOnlyHint: true } } }
  everything:
    command: node
    args: [server.js]
    env: { PORT: "\${port}" }
    url: "http://127.0.0.1:\${port}/mcp"
    loopback: \${YES}
  remote: { url: "https://mcp.example/mcp", headers: { authorization: "Bearer \${TOKEN}" }, era: modern }
listen:
  port: \${PORT:-8787}
callers:
  - { key: "\${TOKEN}-vera", user: vera, roles: [viewer], attributes: { level: 3 } }
  - { keyHash: "sha256:${'ab'.repeat(32)}", user: vera, for: console, tenant: acme, scopes: [s] }
groups:
  web: { tools: ["files:*"], availableWhen: [{ tcp: "[::1]:4444" }, { tcp: 4445 }, { tcp: "db.internal:5432" }], suggestion: Open it., title: Web }
  site: { tools: ["remote:*"], visibility: conditional, dependsOn: [web] }
  all:
    tools: ["remote:*"]
    ttlMs: 2000
    availableWhen:
      - { env: TOKEN }
      - { env: MODE, equals: "\${QUOTED}" }
      - { tcp: 1, timeoutMs: 50 }
      - { http: "https://a.example/health", status: 204, headers: { authorization: "Bearer \${TOKEN}" }, timeoutMs: 60 }
      - { http: "http://a.example", status: [200, 401] }
      - { command: [./bin/check, --quiet, "; rm"], cwd: ., variables: { A: "1" }, timeoutMs: 70 }
      - { command: [docker, info] }
      - { server: files }
apps:
  research:
    import: [web, { group: site, visibility: hidden }]
    tools: ["files:read_*"]
    policy: [{ deny: [{ match: "files:*", unless: "caller.user == '\${QUOTED}'" }] }]
    title: Research
    instructions: Cite what you found.
policy:
  - name: baseline
    allow: []
    deny: [ "tag:x", { match: "group:web", unless: "caller.user == '\${QUOTED}'", message: No. } ]
    requireTags: [read]
limits: ["*:100/60", "files:write_file:5/60"]
audit: { store: jsonl, path: ./log/audit.jsonl, mode: required }
metrics: { public: true }
`

function withFile<T>(text: string, use: (file: string) => T): T {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-config-'))
  try {
    const file = path.join(folder, 'toolgate.yaml')
    writeFileSync(file, text)
    return use(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('loadConfig', () => {
  const env = { TOKEN: 'very-secret', YES: 'true', QUOTED: `o'ne \\ "x"`, HOME: '/nowhere' }
  const load = () => withFile(FILE, (file) => ({ config: loadConfig(file, { env }), folder: path.dirname(file) }))

  it('resolves paths against the folder of the file, and fills in the environment', () => {
    const { config, folder } = load()
    assert.deepEqual(config.servers[0], {
      name: 'files',
      command: path.join(folder, 'bin/files'),
      args: ['--root', './workspace', '${HOME}'],
      cwd: folder,
      env: { STATE: `${folder}/state` },
      headers: {},
      era: 'auto',
      per: 'user',
      loopback: false,
      trustHints: false,
      offers: ['tools'],
      offersByDefault: true,
      startTimeoutMs: 30_000,
      callTimeoutMs: 60_000,
      tools: new Map([['read_*', { tags: ['read'], annotations: { readOnlyHint: true } }]]),
    })
    assert.equal(config.file, path.join(folder, 'toolgate.yaml'))
    assert.deepEqual(config.audit, { store: 'jsonl', path: path.join(folder, 'log/audit.jsonl'), mode: 'required' })
    assert.deepEqual(config.state, { store: 'sqlite', path: path.join(folder, '.toolgate/state.db') })
    assert.deepEqual(config.metrics, { public: true })
    assert.deepEqual(config.instances, { path: path.join(folder, '.toolgate/instances') })
    assert.ok(!('cwd' in (config.servers[1] ?? {})), 'each instance has a folder of its own')
  })

  it('leaves ${port} for each start of the server, and reads a filled-in flag or number as one', () => {
    const { config } = load()
    const { env: childEnv, url, loopback } = config.servers[1] ?? {}
    assert.deepEqual(
      { childEnv, url, loopback },
      { childEnv: { PORT: '${port}' }, url: 'http://127.0.0.1:${port}/mcp', loopback: true },
    )
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 8787 })
  })

  it('keeps the hash of a key, and the key itself only if the file has it', () => {
    const [vera, person] = load().config.callers
    assert.deepEqual(vera, {
      keyHash: Uint8Array.from(createHash('sha256').update('very-secret-vera').digest()),
      demoKey: 'very-secret-vera',
      for: 'mcp',
      caller: { user: 'vera', roles: ['viewer'], attributes: { level: 3 } },
    })
    assert.deepEqual(person, {
      keyHash: new Uint8Array(32).fill(0xab),
      for: 'console',
      caller: { user: 'vera', tenant: 'acme', scopes: ['s'] },
    })
  })

  it('reads the limits of calls, and how long approvals are valid', () => {
    const caps = `["group:web:2", { match: "files:*", max: 1, per: [user], waitMs: 0, maxWaiting: 0 }]`
    const text = `${FILE}calls: { deadlineMs: 5000, maxOutputChars: 20000, concurrency: ${caps} }\napprovals: { ttlMs: 60000 }\n`
    const config = withFile(text, (file) => loadConfig(file, { env }))
    assert.deepEqual(config.calls, {
      deadlineMs: 5000,
      maxOutputChars: 20_000,
      concurrency: ['group:web:2', { match: 'files:*', max: 1, per: ['user'], waitMs: 0, maxWaiting: 0 }],
    })
    assert.deepEqual(config.approvals, { ttlMs: 60_000 })
    assert.deepEqual([load().config.calls, load().config.approvals], [{ concurrency: [] }, {}])
  })

  it('reads limits as text and as objects, as the library does', () => {
    const limits = `limits: ["*:100/60", { match: "*:write_*", max: 5, windowMs: 1500, per: [tenant] }]`
    withFile(`servers: {}\n${ALLOW_ALL}\n${limits}`, (file) =>
      assert.deepEqual(loadConfig(file, { env: {} }).limits, [
        '*:100/60',
        { match: '*:write_*', max: 5, windowMs: 1500, per: ['tenant'] },
      ]),
    )
  })

  it('takes a group with probes as conditional', () => {
    const { config, folder } = load()
    assert.deepEqual(config.groups, [
      {
        name: 'web',
        tools: ['files:*'],
        visibility: 'conditional',
        title: 'Web',
        suggestion: 'Open it.',
        dependsOn: [],
        availableWhen: [
          { tcp: { host: '::1', port: 4444 } },
          { tcp: { host: '127.0.0.1', port: 4445 } },
          { tcp: { host: 'db.internal', port: 5432 } },
        ],
      },
      { name: 'site', tools: ['remote:*'], visibility: 'conditional', dependsOn: ['web'], availableWhen: [] },
      {
        name: 'all',
        tools: ['remote:*'],
        visibility: 'conditional',
        dependsOn: [],
        ttlMs: 2000,
        availableWhen: [
          { env: 'TOKEN' },
          { env: 'MODE', equals: env.QUOTED },
          { tcp: { host: '127.0.0.1', port: 1 }, timeoutMs: 50 },
          {
            http: 'https://a.example/health',
            status: [204],
            headers: { authorization: 'Bearer very-secret' },
            timeoutMs: 60,
          },
          { http: 'http://a.example', status: [200, 401] },
          {
            command: [path.join(folder, 'bin/check'), '--quiet', '; rm'],
            cwd: folder,
            variables: { A: '1' },
            timeoutMs: 70,
          },
          { command: ['docker', 'info'], cwd: folder },
          { server: 'files' },
        ],
      },
    ])
  })

  it('reads apps, and keeps filled-in values inside the strings of their conditions', () => {
    assert.deepEqual(load().config.apps, [
      {
        name: 'research',
        import: [{ group: 'web' }, { group: 'site', visibility: 'hidden' }],
        tools: ['files:read_*'],
        policy: [{ deny: [{ match: 'files:*', unless: `caller.user == 'o\\'ne \\\\ \\"x\\"'` }] }],
        title: 'Research',
        instructions: 'Cite what you found.',
      },
    ])
  })

  it('keeps values that are filled into a condition inside its string', () => {
    assert.deepEqual(load().config.policy, [
      {
        name: 'baseline',
        allow: [],
        deny: ['tag:x', { match: 'group:web', unless: `caller.user == 'o\\'ne \\\\ \\"x\\"'`, message: 'No.' }],
        requireTags: ['read'],
      },
    ])
  })

  it('keeps the audit in SQLite beside the file by default', () => {
    withFile(`servers: {}\n${ALLOW_ALL}`, (file) => {
      const config = loadConfig(file, { env: {} })
      assert.deepEqual(config.audit, {
        store: 'sqlite',
        path: path.join(path.dirname(file), '.toolgate/audit.db'),
        mode: 'batched',
      })
      assert.deepEqual(config.listen, { host: '127.0.0.1', port: 8787 })
    })
  })

  it('reads pins as a word, or as rules for changed and for new tools', () => {
    for (const [pins, expected] of [
      ['suspend', 'suspend'],
      ['{ new: suspend }', { new: 'suspend' }],
      ['{ changed: off, new: pin }', { changed: 'off', new: 'pin' }],
    ] as const) {
      withFile(`servers: {}\n${ALLOW_ALL}\npins: ${pins}`, (file) =>
        assert.deepEqual(loadConfig(file, { env: {} }).pins, expected),
      )
    }
  })

  it('listens beyond loopback when the callers have keys of their own', () => {
    withFile(
      `servers: {}\n${ALLOW_ALL}\nlisten: { host: 0.0.0.0 }\ncallers: [{ key: a-real-secret, user: vera }]`,
      (file) => {
        assert.equal(loadConfig(file, { env: {} }).listen.host, '0.0.0.0')
      },
    )
  })

  it('takes origins of pages one by one: neither all of them, nor one with a path', () => {
    const read = (origin: string) =>
      withFile(
        `servers: {}\n${ALLOW_ALL}\nlisten: { corsOrigins: ["${origin}"] }`,
        (file) => loadConfig(file, { env: {} }).listen.corsOrigins,
      )
    for (const origin of ['https://inspector.example.com', 'http://localhost:6274/', 'vscode-webview://1ab2'])
      assert.deepEqual(read(origin), [origin])
    for (const origin of [
      '*',
      'https://*.example.com',
      'null',
      'https://x.example/app',
      'x.example',
      'https://a@x.example',
    ])
      assert.throws(() => read(origin), /listen\.corsOrigins[^]*one origin, such as/, origin)
  })

  it('follows an alias to its anchor', () => {
    withFile(`servers:\n  a: &base { url: "http://127.0.0.1:1/mcp" }\n  b: *base\n${ALLOW_ALL}`, (file) => {
      assert.deepEqual(
        loadConfig(file, { env: {} }).servers.map(({ name, url }) => [name, url]),
        [
          ['a', 'http://127.0.0.1:1/mcp'],
          ['b', 'http://127.0.0.1:1/mcp'],
        ],
      )
    })
  })

  it('takes policies to the given check, each clause by itself and then the whole', () => {
    withFile('servers: {}\npolicy: [{ deny: ["a", "b"] }]', (file) => {
      const asked: unknown[] = []
      loadConfig(file, { env: {}, checkPolicy: (policies) => (asked.push(policies), []) })
      assert.deepEqual(asked, [[{ deny: ['a'] }], [{ deny: ['b'] }], [{ deny: ['a', 'b'] }]])
    })
  })

  for (const [what, name, expected] of [
    ['that is not there', 'missing.yaml', /missing\.yaml:1:1: cannot be read: there is no such file$/],
    ['that is a folder', '.', /:1:1: cannot be read: it is a folder$/],
  ] as const) {
    it(`names a file ${what}`, () => {
      withFile('', (file) =>
        assert.throws(() => loadConfig(path.join(path.dirname(file), name)), {
          code: 'config_invalid',
          message: expected,
        }),
      )
    })
  }

  it('never waits for a pipe, which would stop a gateway that reads its file again', () => {
    withFile('', (file) => {
      const pipe = path.join(path.dirname(file), 'pipe.yaml')
      execFileSync('mkfifo', [pipe])
      assert.throws(() => loadConfig(pipe), /cannot be read: it is not a file/)
    })
  })

  it('survives a file that is nested without end or too long', () => {
    for (const text of [
      `servers: ${'['.repeat(100_000)}`,
      `servers: ${'{a: '.repeat(60)}1${'}'.repeat(60)}`,
      `# ${'x'.repeat(1024 * 1024)}`,
    ])
      withFile(text, (file) => assert.throws(() => loadConfig(file, { env: {} }), { code: 'config_invalid' }))
  })

  it('passes the named variables to a server, below its own, as secrets, and warns of those that are not set', () => {
    const text = `servers: { mail: { command: node, pass: [TOKEN, LEVEL, GONE, constructor], env: { LEVEL: warn } } }\n${ALLOW_ALL}`
    withFile(text, (file) => {
      const config = loadConfig(file, { env: { TOKEN: 'very-secret', LEVEL: 'debug', OTHER: 'x' } })
      assert.deepEqual(config.servers[0]?.env, { TOKEN: 'very-secret', LEVEL: 'warn' })
      assert.ok(config.secrets?.includes('very-secret'))
      assert.deepEqual(
        config.warnings?.map(({ code, path: at }) => [code, at]),
        [
          ['variable_unset', 'servers.mail.pass[2]'],
          ['variable_unset', 'servers.mail.pass[3]'],
        ],
      )
    })
  })
})
