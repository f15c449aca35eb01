import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import type { ApprovalStatus } from '@toolgate/core/stores'
import { serveScripted } from '../testing/scripted-api.ts'

const BINDING = { tenant: 'acme', user: 'vera', definitionHash: 'd', inputHash: 'i', run: undefined }
const STATUS_AFTER: Readonly<Record<string, ApprovalStatus>> = {
  approve: 'approved',
  reject: 'rejected',
  revoke: 'revoked',
}

function approval(id: string, more: Partial<Approval> = {}): Approval {
  const expiresAt = Date.now() + 5 * 60_000 - 1000
  const input = { path: 'a.txt', text: 'x\u001b[2Jy' }
  return { ...BINDING, id, tool: 'files:write_file', status: 'pending', input, requestedAt: 0, expiresAt, ...more }
}

describe('toolgate approvals', () => {
  const asked: { method: string | undefined; url: string | undefined; body: unknown }[] = []
  let approvals: readonly Approval[] = []
  const run = serveScripted(({ method, url, body }) => {
    asked.push({ method, url, body })
    if (method === 'GET') return { body: { approvals } }
    if (url === '/api/approvals/gone')
      return { status: 404, body: { error: { code: 'approval_unknown', message: 'No approval has the id "gone".' } } }
    if (url === '/api/approvals/used')
      return { status: 409, body: { error: { code: 'approval_not_revocable', message: 'It is consumed.' } } }
    const { decision } = body as { decision: string }
    return { body: approval('a1', { status: STATUS_AFTER[decision] ?? 'pending' }) }
  })
  beforeEach(() => {
    asked.length = 0
    approvals = [approval('a1')]
  })

  it('says why a person is asked, what the run has read and where the call sends', async () => {
    const trail = {
      read: [{ label: 'untrusted', calls: [{ tool: 'web:fetch', atMs: 0 }] }],
      sends: [{ field: 'to', value: 'eve\u001b', origin: 'untrusted' }],
    } as const
    approvals = [approval('a1', { why: 'the addressee may come from untrusted output', trail })]
    const { out } = await run('approvals')
    assert.match(out, /^ {2}why the addressee/m)
    assert.match(out, /^ {2}read web:fetch at 1970-01-01T00:00:00.000Z: untrusted$/m)
    assert.match(out, /^ {2}sends to eve.* \(to\), which may come from untrusted output$/m)
    assert.ok(!out.includes('\u001b'))
  })

  it('lists pending approvals, with the whole input and escaped control characters', async () => {
    const { code, out, err } = await run('approvals')
    assert.deepEqual([code, err, asked[0]?.url], [0, '', '/api/approvals?status=pending'])
    assert.equal(
      out,
      `pending  files:write_file for vera of acme, expires in 5 minutes
  id a1
  {
    "path": "a.txt",
    "text": "x\\u001b[2Jy"
  }

"toolgate approvals approve <id>" approves one call with exactly this input; "reject <id>" rejects it.
`,
    )
    assert.equal((await run('approvals', 'list')).out, out)
  })

  it('lists by status, user and tool, and the history with who decided', async () => {
    approvals = [approval('a1', { status: 'revoked', decidedBy: 'ada', decidedAt: 0, reason: 'wrong one' })]
    const { out } = await run(
      'approvals',
      'list',
      '--all',
      '--user',
      'vera',
      '--tool',
      'files:write_file',
      '--limit',
      '5',
    )
    assert.equal(asked[0]?.url, '/api/approvals?user=vera&tool=files%3Awrite_file&limit=5')
    assert.match(out, /^revoked {2}files:write_file for vera of acme, asked for at 1970-/)
    assert.match(out, /\n {2}decided by ada at 1970-01-01T00:00:00\.000Z: wrong one\n/)
    await run('approvals', '--status', 'approved')
    assert.equal(asked[1]?.url, '/api/approvals?status=approved')
  })

  it('says who has approved of how many, what an earlier approver changed, and who may change the input', async () => {
    const needs = { count: 2, roles: { finance: 1, security: 1 }, approvedBy: [{ by: 'ada\u001b', atMs: 0 }] }
    const edit = { by: 'ada', atMs: 0, input: { path: 'b.txt' } }
    approvals = [{ ...approval('a1'), needs, edit } as Approval, { ...approval('a2'), mayEdit: true } as Approval]
    const { out } = await run('approvals')
    assert.match(
      out,
      /1 of 2 approved by ada\S*, needs 1 with the role finance and 1 with the role security, expires in/,
    )
    assert.match(out, /^ {2}changed by ada: \{"path":"b.txt"\}$/m)
    assert.match(out, /^ {2}you may change the input: --set <field>=<value>$/m)
    assert.ok(!out.includes('\u001b'))
  })

  it('approves with changed fields', async () => {
    await run('approvals', 'approve', 'a1', '--set', 'amount=100', '--set', 'to.name=Ann Lee', '--set', 'to.note="7"')
    assert.deepEqual(asked[0]?.body, {
      decision: 'approve',
      input: { amount: 100, to: { name: 'Ann Lee', note: '7' } },
    })
    for (const wrong of ['amount', '=1', 'to..x=1'])
      assert.equal((await run('approvals', 'approve', 'a1', '--set', wrong)).code, 2)
    assert.equal((await run('approvals', 'reject', 'a1', '--set', 'amount=1')).code, 2)
  })

  it('prints that there is nothing', async () => {
    approvals = []
    assert.equal((await run('approvals')).out, 'Nothing is pending.\n')
    assert.equal((await run('approvals', '--all')).out, 'No approvals.\n')
  })

  it('prints the bodies of the API for programs', async () => {
    const { out } = await run('approvals', '--json')
    assert.deepEqual(
      JSON.parse(out).approvals.map(({ id }: Approval) => id),
      ['a1'],
    )
    assert.equal(JSON.parse((await run('approvals', 'approve', 'a1', '--json')).out).status, 'approved')
  })

  for (const decision of ['approve', 'reject', 'revoke'])
    it(`can ${decision}`, async () => {
      const { code, out } = await run('approvals', decision, 'a1', '--reason', 'because')
      assert.deepEqual([code, out], [0, `${STATUS_AFTER[decision]}  files:write_file for vera of acme\n`])
      assert.deepEqual(asked, [{ method: 'POST', url: '/api/approvals/a1', body: { decision, reason: 'because' } }])
    })

  it('ends with 2 if the approval is unknown, or cannot be decided that way any longer', async () => {
    const unknown = await run('approvals', 'approve', 'gone')
    assert.deepEqual([unknown.code, unknown.err], [2, 'error  No approval has the id "gone".\n'])
    assert.equal((await run('approvals', 'revoke', 'used')).code, 2)
    assert.equal((await run('approvals', 'approve')).code, 2)
    assert.equal((await run('approvals', 'allow', 'a1')).code, 2)
  })
})
