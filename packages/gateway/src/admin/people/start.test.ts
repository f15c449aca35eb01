import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineCaller } from '@toolgate/core'
import { manualClock } from '@toolgate/testing'
import { People } from '../../auth/people.ts'
import { heartOf } from '../../testing/heart.ts'
import { unseenRoles } from './start.ts'

describe('the warning about a role that nobody has', () => {
  const policy = [{ allow: [{ match: '*', when: `'writer' in caller.roles || "admni" in caller.roles` }] }]
  const oidc = { roles: new Map([['staff', ['approver']]]) }
  const stage = (own: object = { oidc }) => {
    const clock = manualClock()
    const people = new People({ clock, log: () => {} })
    const note = (roles: readonly string[], issuer = 'https://a.example') =>
      people.noteRequest({ id: 'i', for: 'mcp', caller: defineCaller({ user: 'a/vera', roles }), issuer })
    const warnings = () => unseenRoles(heartOf({ clock, config: { policy, ...own } as never, door: { people } }))
    return { note, warnings, since: new Date(clock.wallMs()).toISOString() }
  }

  it('is silent until somebody has signed in, and then says since when people are recorded', () => {
    const { note, warnings, since } = stage()
    note(['admin'], 'key')
    assert.deepEqual(warnings(), [])
    note(['writer'])
    const text = `the role "admni" is in no token, no caller of the file and no "oidc.roles"; people are recorded since ${since}`
    assert.deepEqual(warnings(), [{ code: 'role_unseen', path: 'policy[0].allow[0]', text }])
  })

  it('is silent if nobody can sign in', () => {
    const { note, warnings } = stage({})
    note([])
    assert.deepEqual(warnings(), [])
  })
})
