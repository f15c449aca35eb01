import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { serveScripted } from '../testing/scripted-api.ts'

/** A shell would read more than one word in these. */
const HOSTILE = [
  'files:$(id)',
  'files:`id`',
  'files:a;id',
  'files:a id',
  'files:a\nid',
  'files:a>x',
  '-files',
  "files:'",
]

describe('toolgate completion', () => {
  let isBroken = false
  const run = serveScripted(({ url = '' }) => {
    if (isBroken) return { status: 500, body: {} }
    if (url.startsWith('/api/callers'))
      return { body: { callers: [{ user: 'viewer' }, { user: 'vera' }, { user: 'vera;id' }] } }
    if (url.startsWith('/api/approvals')) return { body: { approvals: [{ id: 'a-1' }] } }
    if (url.startsWith('/api/tools'))
      return {
        body: { tools: ['files:read', 'files:write', ...HOSTILE].map((id) => ({ id })), servers: [{ name: 'files' }] },
      }
    return { status: 500, body: {} }
  })
  const complete = async (...words: string[]) =>
    (await run('completion', '--words', '--', ...words)).out.split('\n').filter((line) => line !== '')

  const cases: readonly [words: string[], found: readonly string[]][] = [
    [['approv'], ['approvals']],
    [
      ['audit', ''],
      ['tail', 'query', 'export', 'policy', 'verify', 'open', 'rotate', 'prove', 'check-proof'],
    ],
    [
      ['approvals', 're'],
      ['reject', 'revoke'],
    ],
    [['why', 'files:w'], ['files:write']],
    [['why', '--as', 've'], ['vera']],
    [['why', '--as', 'vera', 'files:r'], ['files:read']],
    [['why', 'files:read', ''], []],
    [
      ['call', ''],
      ['files:read', 'files:write'],
    ],
    [['logs', 'f'], ['files']],
    [['approvals', 'approve', ''], ['a-1']],
    [
      ['tools', '--k'],
      ['--kind', '--key'],
    ],
    [['tools', '--kind', 're'], ['resource']],
    [['connect', 'cu'], ['cursor']],
    [['nonsense', ''], []],
  ]
  for (const [words, found] of cases)
    it(`completes ${words.map((word) => word || '…').join(' ')}`, async () => {
      assert.deepEqual((await complete(...words)).toSorted(), found.toSorted())
    })

  it('completes commands without a gateway, and says nothing of errors', async () => {
    isBroken = true
    const { code, out, err } = await run('completion', '--words', '--', 'why', 'f')
    assert.deepEqual([code, out, err], [0, '', ''])
    assert.deepEqual(await complete('approv'), ['approvals'])
    isBroken = false
  })

  it('refuses a shell that it does not know', async () => {
    const { code, err } = await run('completion', 'tcsh')
    assert.deepEqual([code, err], [2, 'error  No shell is named "tcsh". They are: bash, zsh, fish.\n'])
    assert.equal((await run('completion')).code, 2)
  })

  it('gives bash a script that works, with ids that hold a colon', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-completion-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const { out: script } = await run('completion', 'bash')
    const fake = path.join(folder, 'toolgate')
    writeFileSync(fake, '#!/bin/sh\nprintf "%s\\n" files:read files:write\necho "$*" >"$ASKED"\n')
    chmodSync(fake, 0o755)
    const asked = path.join(folder, 'asked')
    const program = `${script}
COMP_LINE='toolgate why --as vera files:r' COMP_POINT=30
_toolgate
echo "\${COMPREPLY[*]}"; cat "$ASKED"`
    const env = { PATH: `${folder}:${process.env['PATH']}`, ASKED: asked }
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', program], { encoding: 'utf8', env })
    assert.deepEqual([stderr, stdout], ['', 'read write\ncompletion --words -- why --as vera files:r\n'])
  })
})
