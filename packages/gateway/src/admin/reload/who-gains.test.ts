import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Policy } from '@toolgate/core'
import { describeReload } from './describe.ts'
import { compareAccess } from './who-gains.ts'

const TOOLS = ['read', 'write'].map((name) =>
  defineTool({ namespace: 'files', name, inputSchema: { type: 'object' }, execute: () => 'done' }),
)
const AGENT = { keyHash: Buffer.alloc(0), for: 'mcp', caller: { user: 'bot', roles: ['bot'] } } as const

function rulesOf(policy: Policy) {
  return { policy: [policy], groups: [], servers: [{ name: 'files' }] as never, callers: [AGENT] }
}

async function whoGains(people: readonly Caller[], after: Policy, before: Policy = { allow: ['files:read'] }) {
  const gate = createGate({ tools: TOOLS })
  const found = await (await compareAccess(gate, rulesOf(before), rulesOf(after), people)).whoGains()
  await gate.close()
  return found
}

function textOf(found: Awaited<ReturnType<typeof whoGains>>): readonly string[] {
  const reload = { isApplied: true, revision: { id: 'r', number: 2 }, changes: [], restartNeeded: [], ...found }
  return describeReload(reload, { isDryRun: false }).slice(1)
}

const staff = (count: number) =>
  Array.from({ length: count }, (_, i): Caller => ({
    user: `acme/${i}`,
    tenant: i % 2 ? 'acme' : 'beta',
    roles: i < 12 ? ['editor', `own-${i}`] : ['viewer'],
    attributes: { mail: `${i}@acme` },
  }))
const writers = (when: string): Policy => ({ allow: ['files:read', { match: 'files:write', when }] })

describe('who gains and who loses', () => {
  it('counts people with equal rights together, beside the callers of the file', async () => {
    const found = await whoGains(staff(5000), writers("'editor' in caller.roles || caller.user == 'acme/77'"))
    assert.deepEqual(textOf(found), ['13 people such as acme/0 of beta, acme/1 of acme gain files:write'])
    const all = await whoGains(staff(5000), { allow: ['files:write'] })
    assert.deepEqual(textOf(all), [
      'bot gains files:write',
      'bot loses files:read',
      '5000 people such as acme/0 of beta, acme/1 of acme gain files:write',
      '5000 people such as acme/0 of beta, acme/1 of acme lose files:read',
    ])
  })

  it('names one person, and two', async () => {
    assert.deepEqual(textOf(await whoGains(staff(3), writers("caller.user == 'acme/1'"))), [
      'acme/1 of acme gains files:write',
    ])
    assert.deepEqual(textOf(await whoGains(staff(3), writers("caller.user in ['acme/1', 'acme/2']"))), [
      'acme/1 of acme and acme/2 of beta gain files:write',
    ])
  })

  it('says how many were not compared, if rules tell more people apart than can be compared', async () => {
    const found = await whoGains(staff(2500), writers("caller.user.endsWith('9')"))
    assert.equal(found.notCompared, 500)
    assert.match(textOf(found).at(-1) ?? '', /^500 other callers may gain or lose/)
    assert.equal(found.access.length, 1)
  })
})
