import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../caller.ts'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
import { type Environment, policyFromEnv } from './environment.ts'
import { combinePolicies } from './combine.ts'
import { sendersFromEnv } from './senders.ts'

const tools = ['notes', 'search'].map((name) => defineTool({ name, execute: () => 'ran' }))

function callerOf(user: string | undefined, type: string | undefined): Caller {
  return { ...(user === undefined ? {} : { user }), ...(type === undefined ? {} : { chat: { id: 'c', type } }) }
}

async function visible(env: Environment, user: string | undefined, type: string | undefined) {
  const policy = combinePolicies(sendersFromEnv(env), policyFromEnv(env))
  return (await createGate({ tools, policy }).view(callerOf(user, type))).ids
}

const ALL = ['notes', 'search']
const BOTH = { TOOL_ALLOWED_SENDERS_DM: 'tg:1,tg:2', TOOL_ALLOWED_SENDERS_GROUP: 'tg:2,tg:3' }
const BASE = { TOOL_ALLOWED_SENDERS: 'tg:1', TOOL_ALLOWED_SENDERS_DM: 'tg:1,tg:2' }

/** Each row: the environment, who writes (`-` for nobody), the type of the chat (`-` for no chat), who may. */
const rows: readonly (readonly [env: Environment, user: string, type: string, may: boolean])[] = [
  [{}, 'tg:9', 'dm', true],
  [{}, '-', '-', true],
  [{ TOOL_ALLOWED_SENDERS: ' ', TOOL_OWNERS: '' }, 'tg:9', 'dm', true],
  [{ TOOL_ALLOWED_SENDERS: 'tg:1, tg:2' }, 'tg:2', 'dm', true],
  [{ TOOL_ALLOWED_SENDERS: 'tg:1, tg:2' }, 'tg:2', '-', true],
  [{ TOOL_ALLOWED_SENDERS: 'tg:1, tg:2' }, 'tg:22', 'group', false],
  [{ TOOL_ALLOWED_SENDERS: 'tg:1, tg:2' }, 'TG:1', 'group', false],
  [{ TOOL_ALLOWED_SENDERS: 'tg:1, tg:2' }, '-', 'dm', false],
  // Variants are for their chats.
  [{ TOOL_ALLOWED_SENDERS_DM: 'tg:1' }, 'tg:1', 'private', true],
  [{ TOOL_ALLOWED_SENDERS_DM: 'tg:1' }, 'tg:9', 'private', false],
  [{ TOOL_ALLOWED_SENDERS_DM: 'tg:1' }, 'tg:9', 'dm', false],
  [{ TOOL_ALLOWED_SENDERS_DM: 'tg:1' }, 'tg:9', 'supergroup', true],
  [{ TOOL_ALLOWED_SENDERS_GROUP: 'tg:1' }, 'tg:9', 'channel', false],
  [{ TOOL_ALLOWED_SENDERS_GROUP: 'tg:1' }, 'tg:9', 'private', true],
  [{ TOOL_ALLOWED_SENDERS_GROUP: 'tg:1' }, '-', 'private', true],
  // Variants meet the base.
  [BASE, 'tg:1', 'dm', true],
  [BASE, 'tg:2', 'dm', false],
  [BASE, 'tg:1', 'group', true],
  [BASE, 'tg:2', 'group', false],
  // Unknown and absent types meet both.
  [BOTH, 'tg:2', 'forum', true],
  [BOTH, 'tg:1', 'forum', false],
  [BOTH, 'tg:2', '-', true],
  [BOTH, 'tg:3', '-', false],
  [BOTH, 'tg:1', 'DM', false],
  // Owners may by every list.
  [{ ...BOTH, TOOL_OWNERS: 'tg:7' }, 'tg:7', 'dm', true],
  [{ ...BOTH, TOOL_OWNERS: 'tg:7' }, 'tg:7', '-', true],
  [{ ...BASE, TOOL_OWNERS: 'tg:7' }, 'tg:7', 'dm', true],
  [{ ...BASE, TOOL_OWNERS: 'tg:7' }, 'tg:8', 'dm', false],
  [{ TOOL_OWNERS: 'tg:7' }, 'tg:9', 'dm', true],
]

describe('sendersFromEnv', () => {
  for (const [env, user, type, may] of rows) {
    it(`lets ${user} in ${type} ${may ? 'use' : 'see no'} tools under ${JSON.stringify(env)}`, async () => {
      const given = [user, type].map((part) => (part === '-' ? undefined : part))
      assert.deepEqual(await visible(env, given[0], given[1]), may ? ALL : [])
    })
  }

  it('holds owners to every other policy', async () => {
    const env = { TOOL_OWNERS: 'tg:7', TOOL_ALLOWED_SENDERS: 'tg:1', TOOL_DENYLIST: 'search' }
    assert.deepEqual(await visible(env, 'tg:7', 'dm'), ['notes'])
  })

  it('refuses the call of a stranger too, and names the variable in the explanation', async () => {
    const env = { TOOL_ALLOWED_SENDERS: 'tg:1' }
    const view = await createGate({ tools, policy: sendersFromEnv(env) }).view(callerOf('tg:9', 'dm'))
    assert.equal((await view.call({ tool: 'notes' })).status, 'refused')
    assert.equal(view.explain('notes').reasons[0]?.policy, 'TOOL_ALLOWED_SENDERS')
  })

  it('keeps the names of thousands apart', async () => {
    const senders = Array.from({ length: 5000 }, (_, i) => `tg:${i}@chat.example`)
    const env = { TOOL_ALLOWED_SENDERS: senders.join(',') }
    assert.deepEqual(await visible(env, 'tg:4999@chat.example', 'dm'), ALL)
    assert.deepEqual(await visible(env, 'tg:5000@chat.example', 'dm'), [])
  })

  it('takes the names that messengers give', async () => {
    for (const name of ['+49151234567', '49151@s.whatsapp.net', '@vera:matrix.org', 'U02ABC#1', 'вера', 'a.b-c_d/e=f!'])
      assert.deepEqual(await visible({ TOOL_ALLOWED_SENDERS: name }, name, 'dm'), ALL, name)
  })

  const refused: readonly (readonly [env: Environment, path: string, problem: RegExp])[] = [
    [{ TOOL_ALLOWED_SENDERS: 'a,' }, 'TOOL_ALLOWED_SENDERS[1]', /entry is empty/],
    [{ TOOL_ALLOWED_SENDERS_DM: 'a b' }, 'TOOL_ALLOWED_SENDERS_DM[0]', /"a b" is not the name of one sender/],
    [{ TOOL_ALLOWED_SENDERS: 'a;b' }, 'TOOL_ALLOWED_SENDERS[0]', /"a;b" is not the name of one sender/],
    [{ TOOL_ALLOWED_SENDERS: '["a"]' }, 'TOOL_ALLOWED_SENDERS[0]', /is not the name of one sender/],
    [{ TOOL_ALLOWED_SENDERS: "x,'] || true || ['" }, 'TOOL_ALLOWED_SENDERS[1]', /is not the name of one sender/],
    [{ TOOL_ALLOWED_SENDERS: 'a\\' }, 'TOOL_ALLOWED_SENDERS[0]', /is not the name of one sender/],
    [{ TOOL_ALLOWED_SENDERS_GROUP: '*' }, 'TOOL_ALLOWED_SENDERS_GROUP[0]', /leave the variable unset/],
    [{ TOOL_OWNERS: 'a,b c' }, 'TOOL_OWNERS[1]', /is not the name of one sender/],
    [{ TOOL_OWNERS: 7 as unknown as string }, 'TOOL_OWNERS', /must be a text/],
    [
      { TOOL_ALLOWED_SENDERS_GROUPS: 'a' },
      'TOOL_ALLOWED_SENDERS_GROUPS',
      /did you mean "TOOL_ALLOWED_SENDERS_GROUP"\?/,
    ],
    [{ TOOL_OWNERS_DM: 'a' }, 'TOOL_OWNERS_DM', /unknown variable; did you mean "TOOL_OWNERS"\?/],
    [{ TOOL_ALLOWED_SENDERS_: '' }, 'TOOL_ALLOWED_SENDERS_', /unknown variable/],
  ]
  for (const [env, path, problem] of refused) {
    it(`refuses ${JSON.stringify(env)}, naming ${path}`, () => {
      assert.throws(() => sendersFromEnv(env), { name: 'ConfigError', path, problem })
    })
  }
})
