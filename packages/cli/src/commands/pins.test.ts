import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { PinRow } from '@toolgate/gateway'
import { serveScripted } from '../testing/scripted-api.ts'

const HASH = `0123456789ab${'c'.repeat(52)}`
const PINS: readonly PinRow[] = [
  { tool: 'files:list', status: 'pinned', hash: 'd'.repeat(64), findings: [], quarantined: false },
  {
    tool: 'files:read',
    status: 'suspended',
    hash: HASH,
    pinnedHash: 'e'.repeat(64),
    diff: {
      changes: [
        { pointer: '/description', kind: 'changed', text: 'Reads{+ \u001b[2Jall+}' },
        { pointer: '/title', kind: 'added', text: '"Read"' },
      ],
      more: 3,
      text: '',
    },
    findings: [
      { code: 'invisible', pointer: '/description', text: '/description holds 1 invisible character: U+200B' },
    ],
    quarantined: true,
  },
]

const NEW: PinRow = {
  tool: 'files:send',
  status: 'suspended',
  isNew: true,
  hash: 'f'.repeat(64),
  findings: [],
  quarantined: false,
}

describe('toolgate pins', () => {
  const posted: unknown[] = []
  let shown = PINS
  const run = serveScripted(({ method, url, authorization, body }) => {
    if (method !== 'POST') return { body: { pins: shown } }
    posted.push([url, authorization, body])
    return { body: { ...PINS[1], status: 'pinned' } }
  })
  beforeEach(() => {
    posted.length = 0
    shown = PINS
  })

  it('lists the tools that need a review, and counts the others', async () => {
    const { code, out } = await run('pins')
    assert.equal(code, 0)
    assert.equal(
      out,
      `TOOL        STATE                   HASH          WHY
files:read  suspended, quarantined  0123456789ab  5 changes, invisible

"toolgate pins accept <tool>" shows the changes.
1 tool unchanged.
`,
    )
    assert.match((await run('pins', '--all')).out, /files:list {2}pinned/)
    assert.deepEqual(JSON.parse((await run('pins', '--json')).out), { pins: PINS })
  })

  it('marks new tools', async () => {
    shown = [NEW]
    const { out } = await run('pins')
    assert.match(out, /files:send {2}suspended {2}f{12} {2}new tool/)
  })

  it('shows the changes of a definition and accepts nothing, and escapes its texts', async () => {
    const { code, out } = await run('pins', 'accept', 'files:read')
    assert.equal(code, 1)
    assert.equal(
      out,
      `files:read  suspended, quarantined
  ~ /description: Reads{+ \\u001b[2Jall+}
  + /title: "Read"
  … and 3 more
  ! /description holds 1 invisible character: U+200B

Nothing is accepted yet. To accept this definition: toolgate pins accept files:read --hash 0123456789ab
`,
    )
    assert.deepEqual(posted, [])
  })

  it('accepts the definition with the hash that was shown', async () => {
    const { code, out } = await run('pins', 'accept', 'files:read', '--hash', HASH.slice(0, 12))
    assert.deepEqual([code, out], [0, 'files:read is accepted (0123456789ab).\n'])
    assert.deepEqual(posted, [['/api/pins/accept', 'Bearer demo-console', { tool: 'files:read', hash: HASH }]])
  })

  it('accepts no other hash, no shorter one, and no tool that is not there', async () => {
    for (const hash of ['f'.repeat(12), HASH.slice(0, 11), '']) {
      const { code, err } = await run('pins', 'accept', 'files:read', '--hash', hash)
      assert.equal(code, 2)
      assert.match(err, hash === '' ? /--hash is empty/ : /is not .* now/)
    }
    assert.equal((await run('pins', 'accept', 'files:gone')).code, 2)
    assert.deepEqual(posted, [])
  })

  it('shows for whom a definition is, and accepts one of several by its hash', async () => {
    const of = (digit: string, users: PinRow['users'], status: PinRow['status'] = 'differs'): PinRow => ({
      tool: 'mail:send',
      status,
      hash: digit.repeat(64),
      findings: [],
      quarantined: false,
      ...(users && { users }),
    })
    const many = ['a', 'b', 'c', 'd', 'e'].map((user) => ({ user, tenant: 'acme' }))
    shown = [PINS[1] as PinRow, of('1', [{ user: 'vera' }], 'pinned'), of('2', [{ user: 'otto' }]), of('3', many)]
    assert.match(
      (await run('pins')).out,
      /^TOOL        STATE                   HASH          FOR                                WHY\nfiles:read  suspended, quarantined  0123456789ab  all                                5 changes, invisible\nmail:send   differs                 222222222222  otto\nmail:send   differs                 333333333333  acme\/a, acme\/b, acme\/c and 2 more\n/,
    )
    const { out } = await run('pins', 'accept', 'mail:send')
    assert.match(out, /^mail:send  differs  for otto\n/)
    assert.match(out, /\nmail:send  differs  for acme\/a, acme\/b, acme\/c and 2 more\n/)
    assert.doesNotMatch(out, /vera/)
    posted.length = 0
    await run('pins', 'accept', 'mail:send', '--hash', '3'.repeat(12))
    assert.deepEqual((posted as [string, string, unknown][])[0]?.[2], { tool: 'mail:send', hash: '3'.repeat(64) })
    assert.equal((await run('pins', 'accept', 'mail:send', '--hash', '4'.repeat(12))).code, 2)
  })
})
