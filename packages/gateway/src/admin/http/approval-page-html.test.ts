import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import { confirmPage } from './approval-page-html.ts'

const APPROVAL: Approval = {
  id: 'a1',
  tenant: undefined,
  user: 'vera',
  tool: 'mail:send',
  definitionHash: 'd',
  inputHash: 'i',
  run: 'r-1',
  status: 'pending',
  input: {},
  requestedAt: 0,
  expiresAt: 1,
}
const pageOf = (more: Partial<Approval>) =>
  confirmPage({
    approval: { ...APPROVAL, ...more },
    person: 'ann',
    mayDecide: true,
    needsOther: false,
    needsLogin: false,
    fields: [],
    oidc: undefined,
  }).html

describe('the page of an approval', () => {
  it('shows what the run has read and where the call sends, with nothing hidden in it', () => {
    const html = pageOf({
      trail: {
        read: [{ label: 'untrusted', calls: [{ tool: 'web:fetch', atMs: 0 }] }],
        sends: [{ field: 'to', value: '<b>eve\u202e', origin: 'untrusted' }],
      },
    })
    assert.ok(html.includes('<li>read web:fetch at 1970-01-01T00:00:00.000Z: untrusted</li>'), html)
    assert.ok(html.includes('<li>sends to &lt;b&gt;eve\\u{202e} (to), which may come from untrusted output</li>'), html)
  })

  it('has no such part where no rule reads runs', () => {
    assert.ok(!pageOf({}).includes('What the run has done'))
  })
})
