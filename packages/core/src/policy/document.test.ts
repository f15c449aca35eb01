import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import { sha256Hex } from '@toolgate/values'
import type { AuditEntry, AuditSink, PolicyDocument } from '../ports/ports.ts'
import { defineTool } from '../tools/tool.ts'
import type { Policies } from './policy.ts'

const TOOLS = [defineTool({ name: 'pay', execute: () => 'paid' }), defineTool({ name: 'look', execute: () => 'seen' })]
const GROUPS = { money: { tools: ['pay'] } }

/** What the entries of one call carry. */
async function documentOf(policy: Policies | undefined, groups: Record<string, { tools: string[] }> = GROUPS) {
  const entries: AuditEntry[] = []
  const audit: AuditSink = { ...memoryAudit(), write: (entry) => void entries.push(entry) }
  const gate = createGate({ tools: TOOLS, groups, audit, policy: policy ?? [] })
  const view = await gate.view({ user: 'vera' })
  await view.call({ tool: 'look', input: {} })
  const documents = entries.map(({ in_force: document }) => document as PolicyDocument)
  assert.ok(documents.length > 0 && documents.every((document) => document === documents[0]))
  return { gate, entries, document: documents[0] as PolicyDocument }
}

const hashOf = async (...args: Parameters<typeof documentOf>) => (await documentOf(...args)).document.hash

describe('the hash of the policy in an audit entry', () => {
  it('is the SHA-256 of what the policies and groups say, as JSON that can be read', async () => {
    const { document } = await documentOf({ name: 'baseline', deny: [{ match: 'pay', when: "caller.user == 'eve'" }] })
    assert.equal(document.hash, sha256Hex(document.text))
    assert.deepEqual(JSON.parse(document.text), {
      groups: { money: ['pay', 'group:money'] },
      policies: [
        {
          name: 'baseline',
          deny: [{ label: 'pay', match: ['pay'], when: "caller.user == 'eve'" }],
          ask: [],
          requireTags: [],
        },
      ],
    })
  })

  it('is the same after every start, however the policy is spelt', async () => {
    const hash = await hashOf({ name: 'a', deny: ['pay'] })
    assert.equal(await hashOf({ name: 'a', deny: ['pay'] }), hash)
    assert.equal(await hashOf([{ deny: [{ match: ['pay'] }], name: 'a' }]), hash)
  })

  const others: readonly (readonly [string, Policies | undefined])[] = [
    ['no policy', undefined],
    ['another name', { name: 'b', deny: ['pay'] }],
    ['another selector', { name: 'a', deny: ['look'] }],
    ['another kind', { name: 'a', ask: ['pay'] }],
    ['an empty allowlist', { name: 'a', deny: ['pay'], allow: [] }],
    ['a condition', { name: 'a', deny: [{ match: 'pay', when: 'true' }] }],
    ['its opposite', { name: 'a', deny: [{ match: 'pay', unless: 'true' }] }],
    ['a message', { name: 'a', deny: [{ match: 'pay', message: 'no' }] }],
    ['a required tag', { name: 'a', deny: ['pay'], requireTags: ['x'] }],
    ['a second policy', [{ name: 'a', deny: ['pay'] }, { name: 'b' }]],
    ['a function', { name: 'a', decide: () => 'allow' }],
  ]
  it('differs with anything that decides, and with the groups that policies name', async () => {
    const hashes = [
      await hashOf({ name: 'a', deny: ['pay'] }),
      await hashOf({ name: 'a', deny: ['pay'] }, { money: { tools: ['look'] } }),
      ...(await Promise.all(others.map(([, policy]) => hashOf(policy)))),
    ]
    assert.equal(new Set(hashes).size, hashes.length)
  })

  it('has the aliases that policies may name tools by', async () => {
    const entries: AuditEntry[] = []
    const audit: AuditSink = { ...memoryAudit(), write: (entry) => void entries.push(entry) }
    const gate = createGate({ tools: TOOLS, aliases: { send: 'pay' }, audit, policy: { deny: ['send'] } })
    await (await gate.view({})).call({ tool: 'look', input: {} })
    assert.deepEqual(JSON.parse(entries[0]?.in_force?.text ?? '{}').aliases, { send: 'pay' })
  })

  it('knows a function by its name alone', async () => {
    const { document } = await documentOf([
      { name: 'code', decide: () => 'allow' },
      {
        name: 'mixed',
        deny: [
          {
            match: 'pay',
            when: function isEve({ caller }) {
              return caller.user === 'eve'
            },
          },
        ],
      },
    ])
    const { policies } = JSON.parse(document.text)
    assert.deepEqual(policies[0], { name: 'code', decide: { $function: 'code' } })
    assert.deepEqual(policies[1].deny[0].when, { $function: 'isEve' })
  })

  it('follows the policy of the gate and of its forks', async () => {
    const { gate, entries, document } = await documentOf({ name: 'a', deny: ['pay'] })
    const fork = gate.fork({ policy: { name: 'of the fork', ask: ['look'] } })
    await (await fork.view({ user: 'vera' })).call({ tool: 'pay', input: {} })
    const ofFork = JSON.parse(entries.at(-1)?.in_force?.text ?? '{}')
    assert.deepEqual(
      ofFork.policies.map(({ name }: { name: string }) => name),
      ['a', 'of the fork'],
    )
    gate.setPolicy({ name: 'later', deny: ['look'] })
    assert.equal(entries.at(-1)?.event, 'policy_changed')
    assert.notEqual(entries.at(-1)?.in_force?.hash, document.hash)
    await (await gate.view({ user: 'vera' })).call({ tool: 'look', input: {} })
    assert.equal(entries.at(-1)?.in_force, entries.at(-2)?.in_force)
  })

  it('is that of today’s policy in a view that was opened before', async () => {
    const { gate, entries } = await documentOf({ name: 'a', deny: ['pay'] })
    const view = await gate.view({ user: 'vera' })
    gate.setPolicy({ name: 'later', deny: ['look'] })
    const later = entries.at(-1)?.in_force?.hash
    await view.call({ tool: 'look', input: {} })
    assert.deepEqual([entries.at(-1)?.reason, entries.at(-1)?.in_force?.hash], ['policy_denied', later])
  })
})
