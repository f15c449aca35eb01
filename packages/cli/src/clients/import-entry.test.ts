import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { importEntry, toServerName } from './import-entry.ts'

const SECRET = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'

describe('importEntry', () => {
  const cases: readonly [what: string, given: object, entry: object, variables: readonly string[]][] = [
    ['a command', { command: 'npx', args: ['-y', 'server'] }, { command: 'npx', args: ['-y', 'server'] }, []],
    [
      'secrets in env, by name and by what they look like',
      {
        command: 'x',
        env: { GITHUB_TOKEN: SECRET, OPENAI_KEY: 'sk-1', X: 'aB3dE5gH7jK9mN1pQ3sT5vW7yZ9', MODE: 'fast' },
      },
      {
        command: 'x',
        env: { GITHUB_TOKEN: '${GITHUB_TOKEN}', OPENAI_KEY: '${OPENAI_KEY}', X: '${X}', MODE: 'fast' },
      },
      ['GITHUB_TOKEN', 'OPENAI_KEY', 'X'],
    ],
    [
      'secrets in args',
      { command: 'x', args: [`--api-key=${SECRET}`, '--token', SECRET, 'postgres://u:pass-word1@h/db', 'plain'] },
      { command: 'x', args: ['--api-key=${MY_ARG_1}', '--token', '${MY_ARG_3}', '${MY_ARG_4}', 'plain'] },
      ['MY_ARG_1', 'MY_ARG_3', 'MY_ARG_4'],
    ],
    [
      'headers, all of which are secrets',
      { type: 'http', url: 'https://a.b/mcp', headers: { Authorization: `Bearer ${SECRET}`, 'X-Team': 'a' } },
      {
        url: 'https://a.b/mcp',
        headers: { Authorization: 'Bearer ${MY_AUTHORIZATION}', 'X-Team': '${MY_X_TEAM}' },
      },
      ['MY_AUTHORIZATION', 'MY_X_TEAM'],
    ],
    ['a secret in a URL', { serverUrl: `https://a.b/mcp?api_key=${SECRET}` }, { url: '${MY_URL}' }, ['MY_URL']],
    [
      'references of clients',
      { command: '${userHome}/x', env: { A: '${env:B}', C: '${D}', E: '${input:my-key}', F: '${G:-none}' } },
      { command: '${HOME}/x', env: { A: '${B}', C: '${D}', E: '${MY_KEY}', F: '${G:-none}' } },
      ['B', 'D', 'MY_KEY'],
    ],
    [
      'what Zed wrote before',
      { command: { path: 'x', args: ['y'], env: { A: 'b' } } },
      { command: 'x', args: ['y'], env: { A: 'b' } },
      [],
    ],
  ]
  for (const [what, given, entry, names] of cases)
    it(`takes ${what}`, () => {
      const result = importEntry('my', given)
      assert.ok('entry' in result)
      assert.deepEqual(result.entry, entry)
      assert.deepEqual([...result.secrets.map(({ variable }) => variable), ...result.variables], names)
      assert.ok(!JSON.stringify(result).includes(SECRET))
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
  ]
  for (const [given, reason] of left)
    it(`leaves ${JSON.stringify(given)}`, () => {
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
