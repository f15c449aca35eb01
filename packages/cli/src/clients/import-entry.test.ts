import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { importEntry, toServerName } from './import-entry.ts'

const SECRET = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'
const OPAQUE = 'aB3dE5gH7jK9mN1pQ3sT5vW7yZ9'
const ref = (file: string) => `\${file:.toolgate/secrets/${file}}`

describe('importEntry', () => {
  const cases: readonly [what: string, given: object, entry: object, kept: Readonly<Record<string, string>>][] = [
    ['a command', { command: 'npx', args: ['-y', 'server'] }, { command: 'npx', args: ['-y', 'server'] }, {}],
    [
      'values of env as secrets, unless they are clearly harmless',
      {
        command: 'x',
        env: {
          GITHUB_TOKEN: SECRET,
          OPENAI_KEY: 'sk-1',
          TEAM: 'blue whale',
          LOG_LEVEL: 'debug',
          PORT: '80',
          ON: 'true',
        },
      },
      {
        command: 'x',
        env: {
          GITHUB_TOKEN: ref('my-GITHUB_TOKEN'),
          OPENAI_KEY: ref('my-OPENAI_KEY'),
          TEAM: ref('my-TEAM'),
          LOG_LEVEL: 'debug',
          PORT: '80',
          ON: 'true',
        },
      },
      { 'my-GITHUB_TOKEN': SECRET, 'my-OPENAI_KEY': 'sk-1', 'my-TEAM': 'blue whale' },
    ],
    [
      'paths and URLs of env, unless a part looks like a token',
      {
        command: 'x',
        env: {
          ROOT: '/home/vera/notes',
          API: 'https://a.b/v1',
          HOOK: `https://a.b/hook/${OPAQUE}`,
          PASSWORD: '/etc/x',
          E: '',
        },
      },
      {
        command: 'x',
        env: {
          ROOT: '/home/vera/notes',
          API: 'https://a.b/v1',
          HOOK: ref('my-HOOK'),
          PASSWORD: ref('my-PASSWORD'),
          E: '',
        },
      },
      { 'my-HOOK': `https://a.b/hook/${OPAQUE}`, 'my-PASSWORD': '/etc/x' },
    ],
    [
      'secrets in args',
      {
        command: 'x',
        args: [
          `--api-key=${SECRET}`,
          '--token',
          SECRET,
          'postgres://u:pass-word1@h/db',
          'plain',
          `-e=${OPAQUE}`,
          OPAQUE,
        ],
      },
      {
        command: 'x',
        args: [
          `--api-key=${ref('my-arg-1')}`,
          '--token',
          ref('my-arg-3'),
          ref('my-arg-4'),
          'plain',
          `-e=${ref('my-arg-6')}`,
          ref('my-arg-7'),
        ],
      },
      {
        'my-arg-1': SECRET,
        'my-arg-3': SECRET,
        'my-arg-4': 'postgres://u:pass-word1@h/db',
        'my-arg-6': OPAQUE,
        'my-arg-7': OPAQUE,
      },
    ],
    [
      'headers, which are secrets but for their scheme',
      {
        type: 'http',
        url: 'https://a.b/mcp',
        headers: { Authorization: `Bearer ${SECRET}`, 'X-Team': 'a', Accept: 'b' },
      },
      {
        url: 'https://a.b/mcp',
        headers: { Authorization: `Bearer ${ref('my-Authorization')}`, 'X-Team': ref('my-X-Team'), Accept: 'b' },
      },
      { 'my-Authorization': SECRET, 'my-X-Team': 'a' },
    ],
    [
      'secrets in a URL: its query, its path and its login',
      { serverUrl: `https://vera:pw%2F1@a.b/s/${OPAQUE}/mcp?api_key=${SECRET}&x=1` },
      {
        url: `https://a.b/s/${ref('my-path-2')}/mcp?api_key=${ref('my-api_key')}&x=1`,
        headers: { Authorization: `Basic ${ref('my-login')}` },
      },
      { 'my-path-2': OPAQUE, 'my-api_key': SECRET, 'my-login': Buffer.from('vera:pw/1').toString('base64') },
    ],
    [
      'names that files cannot have, and names that differ in their case only',
      { command: 'x', env: { '../../a b': 'secret-one', TOKEN: 'secret-two', token: 'secret-3' } },
      {
        command: 'x',
        env: { '../../a b': ref('my-.._.._a_b'), TOKEN: ref('my-TOKEN'), token: ref('my-token.2') },
      },
      { 'my-.._.._a_b': 'secret-one', 'my-TOKEN': 'secret-two', 'my-token.2': 'secret-3' },
    ],
    [
      'a text that only begins like a reference',
      { command: 'x', args: ['a${b'], env: { PASSWORD: 'p${w' } },
      { command: 'x', args: ['a$${b'], env: { PASSWORD: ref('my-PASSWORD') } },
      { 'my-PASSWORD': 'p${w' },
    ],
    [
      'what Zed wrote before',
      { command: { path: 'x', args: ['y'], env: { DEBUG: 'b' } } },
      { command: 'x', args: ['y'], env: { DEBUG: 'b' } },
      {},
    ],
  ]
  for (const [what, given, entry, kept] of cases)
    it(`takes ${what}`, () => {
      const result = importEntry('my', given)
      assert.ok('entry' in result)
      assert.deepEqual(result.entry, entry)
      const files = result.secrets.map(({ file, value }) => [file.replace('.toolgate/secrets/', ''), value])
      assert.deepEqual(Object.fromEntries(files), kept)
      assert.ok(![SECRET, OPAQUE].some((secret) => JSON.stringify(result.entry).includes(secret)))
    })

  it('takes references of clients', () => {
    const env = { A: '${env:B}', C: '${D}', E: '${input:my-key}', F: '${G:-none}', H: '${file:/run/h}' }
    const result = importEntry('my', { command: '${userHome}/x', env })
    assert.ok('entry' in result)
    const expected = { A: '${B}', C: '${D}', E: '${MY_KEY}', F: '${G:-none}', H: '${file:/run/h}' }
    assert.deepEqual(result.entry, { command: '${HOME}/x', env: expected })
    assert.deepEqual([result.variables, result.secrets], [['B', 'D', 'MY_KEY'], []])
  })

  it('takes the variables of an envFile, which those of env replace', (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-env-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const envFile = path.join(folder, '.env')
    writeFileSync(envFile, `# mine\nTOKEN="${SECRET}"\nMODE=slow\nDEBUG=1\n`)
    const result = importEntry('my', { command: 'x', envFile, env: { DEBUG: '0' } })
    assert.ok('entry' in result)
    assert.deepEqual(result.entry, { command: 'x', env: { TOKEN: ref('my-TOKEN'), MODE: ref('my-MODE'), DEBUG: '0' } })
  })

  const left: readonly [given: unknown, reason: RegExp][] = [
    ['text', /not an object/],
    [{}, /neither a command nor a URL/],
    [{ type: 'sse', url: 'https://a.b/sse' }, /HTTP\+SSE/],
    [{ command: 'x', disabled: true }, /switched off/],
    [{ command: 'x', enabled: false }, /switched off/],
    [{ command: 'x', args: ['${workspaceFolder}/y'] }, /\$\{workspaceFolder\}, which only its client knows/],
    [{ command: 'x', args: ['${command:pick}'] }, /only its client knows/],
    [{ command: 'x', cwd: 'here' }, /relative to its client/],
    [{ command: 'x', args: ['${file}'] }, /only its client knows/],
    [{ command: 'x', envFile: '${workspaceFolder}/.env' }, /only its client knows/],
    [{ command: 'x', envFile: '.env' }, /relative to its client/],
    [{ command: 'x', envFile: '/no/such/.env' }, /cannot be read/],
    [{ url: 'wss://a.b/mcp', type: 'ws' }, /speaks "ws"/],
    [{ url: 'https://a.b/mcp', headersHelper: './token.sh' }, /headersHelper/],
    [{ command: 'x', env: { DB: `postgres://u:${SECRET}@\${HOST}/db` } }, /a secret beside a reference/],
    [{ command: 'x', env: { BIG_TOKEN: 'x'.repeat(65_536) } }, /at most 64 KiB/],
  ]
  for (const [given, reason] of left)
    it(`leaves ${JSON.stringify(given).slice(0, 80)}`, () => {
      const result = importEntry('my', given)
      assert.match('left' in result ? result.left : '', reason)
    })
})

describe('toServerName', () => {
  it('makes a name that the configuration takes, and that is free', () => {
    assert.equal(toServerName('My Server__2', 'cursor', new Set()), 'my-server-2')
    assert.equal(toServerName('git', 'cursor', new Set(['git'])), 'git-cursor')
    assert.equal(toServerName('git', 'cursor', new Set(['git', 'git-cursor'])), 'git-2')
    assert.equal(toServerName('日本', 'cursor', new Set()), 'server')
  })
})
