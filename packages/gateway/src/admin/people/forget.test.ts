import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, defineCaller, memoryAudit } from '@toolgate/core'
import { memoryPeople, type PersonStore } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import { People } from '../../auth/people.ts'
import { heartOf } from '../../testing/heart.ts'
import { forgetRoute } from './forget.ts'

const OWNER: Caller = { user: 'owner', roles: ['operator'] }
const OF_ACME: Caller = { user: 'boss', tenant: 'acme', roles: ['approver'] }

async function setStage(store: PersonStore = memoryPeople()) {
  const clock = manualClock()
  const people = new People({ clock, log: () => {} })
  await people.open(store)
  for (const caller of [{ user: 'a/nora', tenant: 'acme' }, { user: 'a/otto', tenant: 'other' }, { user: 'vera' }])
    people.noteRequest({ id: 'i', for: 'mcp', caller: defineCaller(caller), issuer: 'https://a.example' })
  const audit = memoryAudit()
  const callers = [{ keyHash: Buffer.alloc(32), for: 'mcp' as const, caller: { user: 'vera' } }]
  const route = forgetRoute(heartOf({ clock, audit, callers, door: { people } }))
  const forget = async (query: string, person: Caller = OWNER) => {
    const request = new Request('http://gateway/api/people')
    return route({ request, query: new URLSearchParams(query), person, loginAt: 0, id: '' })
  }
  return { people, audit, forget }
}

describe('DELETE /api/people', () => {
  it('removes the record of a person, and records who did it', async () => {
    const { people, audit, forget } = await setStage()
    assert.deepEqual(await forget('user=a/nora&tenant=acme'), { user: 'a/nora', tenant: 'acme', removed: 1 })
    assert.deepEqual(people.of('a/nora'), [])
    const [{ event, reason, detail, user_id: by } = {} as never] = audit.query({})
    assert.deepEqual([event, reason, detail, by], ['config_changed', 'person_forgotten', '"a/nora" of "acme"', 'owner'])
    await people.close()
  })

  it('lets a person of a tenant forget only people of this tenant, and name no other', async () => {
    const { people, forget } = await setStage()
    await assert.rejects(forget('user=a/otto&tenant=other', OF_ACME), { code: 'person_unknown' })
    await assert.rejects(forget('user=a/otto', OF_ACME), (error: Error) => !error.message.includes('"other"'))
    assert.equal(people.of('a/otto').length, 1)
    assert.deepEqual(await forget('user=a/nora', OF_ACME), { user: 'a/nora', tenant: 'acme', removed: 1 })
    await people.close()
  })

  it('refuses callers of the file, unknown people, and people without a role', async () => {
    const { people, forget } = await setStage()
    await assert.rejects(forget('user=vera'), { code: 'person_in_file' })
    await assert.rejects(forget('user=a/norra&tenant=acme'), { code: 'person_unknown', message: /a\/nora/ })
    await assert.rejects(forget('user=a/nora'), { message: /known are "a\/nora" of "acme"/ })
    await assert.rejects(forget('user=a/nora&tenant=acme', { user: 'zoe' }), { code: 'person_forbidden' })
    await people.close()
  })

  it('says that the person is still recorded if the store fails, and keeps them', async () => {
    const fails = () => Promise.reject(new Error('disk I/O error'))
    const { people, forget, audit } = await setStage({ ...memoryPeople(), forget: fails })
    await assert.rejects(forget('user=a/nora&tenant=acme'), { code: 'state_unavailable', message: /still recorded/ })
    assert.equal(people.of('a/nora').length, 1)
    assert.deepEqual(audit.query({}), [])
    await people.close()
  })
})
