import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { defineTool } from '@toolgate/core'
import { toSnapshot } from '@toolgate/change'
import { loadConfig } from '../../config/load-config.ts'
import { compareConfigs } from './compare-configs.ts'

const CATALOG = toSnapshot(['read_file', 'write_file'].map((name) => defineTool({ namespace: 'files', name })))
const SERVERS = 'servers: { files: { command: node } }'
const KEYS = 'callers: [{ key: k1-of-olga, user: olga, roles: [operator] }, { key: k2-of-vera, user: vera }]'
const OAUTH =
  'publicUrl: https://tools.example.com\noauth: { issuers: [{ issuer: "https://idp.example.com", name: idp, claims: { roles: groups } }] }'

const allow = (when: string) => `policy: [{ allow: [{ match: "*", when: "${when}" }] }]`
const OPERATORS = allow("'operator' in caller.roles")

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolgate-compare-'))
})
after(() => rmSync(folder, { recursive: true }))

async function compare(from: readonly string[], to: readonly string[]) {
  const load = (name: string, parts: readonly string[]) => {
    const file = join(folder, name)
    writeFileSync(file, [...(parts.some((part) => part.startsWith('servers:')) ? [] : [SERVERS]), ...parts].join('\n'))
    return loadConfig(file, { env: {} })
  }
  return compareConfigs(load('before.yaml', from), load('after.yaml', to), CATALOG)
}

describe('compareConfigs', () => {
  it('asks about the callers of keys where only keys are accepted', async () => {
    const found = await compare([KEYS, OPERATORS], [KEYS, allow("caller.user == 'olga'")])
    assert.deepEqual(found, { grantsNoMore: 'yes', counterexamples: [], notCompared: [], sections: [] })
  })

  it('asks about everybody whom an issuer may send', async () => {
    const wider = await compare(
      [KEYS, OAUTH, OPERATORS],
      [KEYS, OAUTH, allow("'operator' in caller.roles || 'auditor' in caller.roles")],
    )
    assert.equal(wider.grantsNoMore, 'no')
    assert.deepEqual(wider.counterexamples[0]?.supposed, { user: 'idp/anyone', roles: ['auditor'], scopes: [] })
    assert.match(wider.counterexamples[0]?.caller ?? '', /^a supposed caller: user idp\/anyone; roles auditor$/)
    const tighter = await compare(
      [KEYS, OAUTH, OPERATORS],
      [KEYS, OAUTH, allow("'operator' in caller.roles && 'auditor' in caller.roles")],
    )
    assert.equal(tighter.grantsNoMore, 'yes')
  })

  it('asks about clients and scopes, and about nothing that a token does not say', async () => {
    const client = await compare(
      [KEYS, OAUTH, allow("has(caller.client) && caller.client == 'a'")],
      [KEYS, OAUTH, allow('has(caller.client)')],
    )
    assert.equal(client.grantsNoMore, 'no')
    // No token says who the agent, the chat, or what an attribute is; and no name of another issuer is one of its users.
    for (const more of [
      'has(caller.chat)',
      'has(caller.attributes.team)',
      "caller.user == 'other/x'",
      'has(caller.tenant)',
    ]) {
      const { grantsNoMore } = await compare(
        [KEYS, OAUTH, OPERATORS],
        [KEYS, OAUTH, allow(`'operator' in caller.roles || ${more}`)],
      )
      assert.equal(grantsNoMore, 'yes', more)
    }
  })

  it('asks about callers in sessions, which clients of earlier revisions have', async () => {
    const outside = 'policy: [{ allow: ["*"], deny: [{ match: "*", when: "has(caller.session)" }] }]'
    for (const people of [[KEYS], [KEYS, OAUTH]]) {
      const { grantsNoMore, counterexamples } = await compare([...people, outside], [...people, allow('true')])
      assert.equal(grantsNoMore, 'no')
      assert.match(counterexamples[0]?.caller ?? '', /^olga in a session$/)
    }
    const issuer = await compare([OAUTH, outside], [OAUTH, allow('true')])
    assert.match(issuer.counterexamples[0]?.caller ?? '', /^a supposed caller: .*session/)
  })

  it('does not know where other sections may let more through', async () => {
    const locked = 'groups: { web: { tools: ["files:*"], hint: h, unlock: request } }'
    const pairs: readonly (readonly [section: string, from: readonly string[], to: readonly string[]])[] = [
      ['groups', [locked], ['groups: { web: { tools: ["files:*"], hint: h } }']],
      ['groups', [locked], ['groups: { web: { tools: ["files:read_file"], hint: h, unlock: request } }']],
      ['servers', [], ['servers: { files: { command: other } }']],
      ['servers', [], ['servers: { files: { command: node }, web: { command: node } }']],
      ['servers', [], ['servers: { files: { command: node, offers: [tools, resources] } }']],
      ['oauth', ['publicUrl: https://tools.example.com'], [OAUTH]],
      ['pins', ['pins: suspend'], ['pins: "off"']],
    ]
    for (const [section, from, to] of pairs) {
      const { grantsNoMore, sections } = await compare([KEYS, OPERATORS, ...from], [KEYS, OPERATORS, ...to])
      assert.equal(grantsNoMore, 'unknown', section)
      assert.deepEqual(sections, [section])
    }
    const same = await compare([KEYS, OPERATORS, locked], [KEYS, OPERATORS, locked])
    assert.equal(same.grantsNoMore, 'yes')
  })
})
