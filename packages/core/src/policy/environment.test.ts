import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitsFromEnv } from '../call/limits.ts'
import type { Caller } from '../ports/caller.ts'
import { createGate } from '../gate/gate.ts'
import { lint } from '../gate/lint.ts'
import { defineTool } from '../tools/tool.ts'
import { policyFromEnv, sendersFromEnv } from './environment.ts'
import type { Environment } from './environment-names.ts'
import { combinePolicies, type Policy } from './policy.ts'

const tools = ['web:search', 'web:fetch', 'files:read', 'notes'].map((id) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ name, namespace, tags: name === 'fetch' ? ['net'] : [] })
})
const ALL = ['files:read', 'notes', 'web:fetch', 'web:search']
const groups = { web: { tools: ['web:*'] }, empty: { tools: [] } }

async function visible(env: Environment, caller: Caller, base: Policy = {}): Promise<readonly string[]> {
  const gate = createGate({ tools, groups, policy: combinePolicies(base, policyFromEnv(env, { groups })) })
  return (await gate.view(caller)).ids
}

const chat = (type?: string): Caller => ({ chat: { id: 'c', ...(type !== undefined && { type }) } })

/** Each row: the environment, the type of the chat (`-` for no chat), what is visible. */
const rows: readonly (readonly [env: Environment, type: string, ids: readonly string[]])[] = [
  [{}, '-', ALL],
  [{ TOOL_ALLOWLIST: '', TOOL_DENYLIST: '  ' }, '-', ALL],
  [{ TOOL_ALLOWLIST: undefined }, '-', ALL],
  [{ TOOL_ALLOWLIST: 'notes' }, '-', ['notes']],
  [{ TOOL_ALLOWLIST: ' notes , web:* ' }, '-', ['notes', 'web:fetch', 'web:search']],
  [{ TOOL_ALLOWLIST: 'group:web' }, 'dm', ['web:fetch', 'web:search']],
  [{ TOOL_DENYLIST: 'tag:net,notes' }, '-', ['files:read', 'web:search']],
  [{ TOOL_DENYLIST: 'group:empty' }, '-', ALL],
  [{ TOOL_ALLOWLIST: 'group:web', TOOL_DENYLIST: 'web:fetch' }, '-', ['web:search']],
  [{ TOOL_ALLOWLIST_DM: 'notes' }, 'dm', ['notes']],
  [{ TOOL_ALLOWLIST_DM: 'notes' }, 'private', ['notes']],
  [{ TOOL_ALLOWLIST_DM: 'notes' }, 'group', ALL],
  [{ TOOL_ALLOWLIST_DM: 'notes' }, 'supergroup', ALL],
  [{ TOOL_ALLOWLIST_DM: 'notes' }, 'channel', ALL],
  [{ TOOL_ALLOWLIST_GROUP: 'notes' }, 'dm', ALL],
  [{ TOOL_ALLOWLIST_GROUP: 'notes' }, 'private', ALL],
  [{ TOOL_ALLOWLIST_GROUP: 'notes' }, 'group', ['notes']],
  [{ TOOL_ALLOWLIST_GROUP: 'notes' }, 'supergroup', ['notes']],
  [{ TOOL_ALLOWLIST_GROUP: 'notes' }, 'channel', ['notes']],
  [{ TOOL_DENYLIST_GROUP: 'group:web' }, 'group', ['files:read', 'notes']],
  [{ TOOL_DENYLIST_GROUP: 'group:web' }, 'dm', ALL],
  [{ TOOL_DENYLIST_DM: 'group:web' }, 'private', ['files:read', 'notes']],
  [{ TOOL_DENYLIST_DM: 'group:web' }, 'channel', ALL],
  // Unknown and absent types meet both.
  [{ TOOL_ALLOWLIST_DM: 'notes,web:*', TOOL_ALLOWLIST_GROUP: 'web:*,files:*' }, 'forum', ['web:fetch', 'web:search']],
  [{ TOOL_ALLOWLIST_DM: 'notes,web:*', TOOL_ALLOWLIST_GROUP: 'web:*,files:*' }, '', ['web:fetch', 'web:search']],
  [{ TOOL_ALLOWLIST_DM: 'notes,web:*', TOOL_ALLOWLIST_GROUP: 'web:*,files:*' }, '-', ['web:fetch', 'web:search']],
  [{ TOOL_ALLOWLIST_DM: 'notes,web:*', TOOL_ALLOWLIST_GROUP: 'web:*' }, 'DM', ['web:fetch', 'web:search']],
  [{ TOOL_DENYLIST_DM: 'notes', TOOL_DENYLIST_GROUP: 'web:*' }, 'Group', ['files:read']],
  [{ TOOL_DENYLIST_DM: 'notes', TOOL_DENYLIST_GROUP: 'web:*' }, '-', ['files:read']],
  // Variants meet the base.
  [{ TOOL_ALLOWLIST: 'web:*', TOOL_ALLOWLIST_DM: 'notes,web:search' }, 'dm', ['web:search']],
  [{ TOOL_ALLOWLIST: 'web:*', TOOL_ALLOWLIST_DM: 'notes' }, 'group', ['web:fetch', 'web:search']],
  [{ TOOL_DENYLIST: 'notes', TOOL_ALLOWLIST_GROUP: 'notes' }, 'group', []],
  // Calls of tools that ask are listed.
  [{ TOOL_ASKLIST: 'notes,web:*' }, '-', ALL],
  // Nobody is listed.
  [{ TOOL_SENDERS: 'notes=tg:7' }, 'dm', ['files:read', 'web:fetch', 'web:search']],
  [{ TOOL_SENDERS_GROUP: 'notes=tg:7' }, 'dm', ALL],
]

describe('policyFromEnv', () => {
  for (const [env, type, ids] of rows) {
    it(`reads ${JSON.stringify(env)} in a chat of type ${JSON.stringify(type)}`, async () => {
      assert.deepEqual(await visible(env, type === '-' ? {} : chat(type)), ids)
    })
  }

  it('meets both variants where the chat has no type', async () => {
    assert.deepEqual(await visible({ TOOL_DENYLIST_DM: 'notes', TOOL_DENYLIST_GROUP: 'web:*' }, chat()), ['files:read'])
  })

  it('cannot lift what another policy forbids', async () => {
    const rule: Policy = { deny: ['notes'], allow: ['notes', 'web:search'] }
    const lists = { TOOL_ALLOWLIST: '*', TOOL_ALLOWLIST_DM: 'notes,*:*', TOOL_ALLOWLIST_GROUP: 'notes' }
    for (const type of ['dm', 'group', 'forum']) {
      const ids = await visible(lists, chat(type), rule)
      assert.ok(ids.length <= 1 && !ids.includes('notes'), type)
    }
  })

  it('reads no other variable', () => {
    assert.deepEqual(policyFromEnv({ TOOLGATE_ALLOW: 'x', ALLOWLIST: 'x', TOOL_RATE_LIMITS: 'x' }), [])
  })

  it('names its policies by the variables, for explanations', async () => {
    const gate = createGate({ tools, policy: policyFromEnv({ TOOL_DENYLIST_GROUP: 'web:*' }) })
    const [reason] = (await gate.view(chat('group'))).explain('web:fetch').reasons
    assert.deepEqual(
      [reason?.code, reason?.policy, reason?.clause?.match],
      ['policy_denied', 'TOOL_DENYLIST_GROUP', 'web:*'],
    )
  })

  const refused: readonly (readonly [env: Environment, path: string, problem: RegExp])[] = [
    [{ TOOL_ALLOWLIST: 'a,,b' }, 'TOOL_ALLOWLIST[1]', /entry is empty/],
    [{ TOOL_DENYLIST: 'a,' }, 'TOOL_DENYLIST[1]', /entry is empty/],
    [{ TOOL_DENYLIST_DM: ',' }, 'TOOL_DENYLIST_DM[0]', /entry is empty/],
    [{ TOOL_DENYLIST: 'a,b c' }, 'TOOL_DENYLIST[1]', /"b c": must not hold spaces/],
    [{ TOOL_ALLOWLIST_GROUP: 'web:' }, 'TOOL_ALLOWLIST_GROUP[0]', /"web:": has nothing on one side/],
    [{ TOOL_DENYLIST: 'a:b:c' }, 'TOOL_DENYLIST[0]', /more than one ":"/],
    [{ TOOL_DENYLIST: 'a;b c' }, 'TOOL_DENYLIST[0]', /must not hold spaces/],
    [{ TOOL_DENYLIST: 'hint:dangerous' }, 'TOOL_DENYLIST[0]', /names no hint/],
    [{ TOOL_DENYLIST: 'a,group:wbe' }, 'TOOL_DENYLIST[1]', /"group:wbe": names no group; the groups are web, empty/],
    [{ TOOL_DENYLIST: 7 as unknown as string }, 'TOOL_DENYLIST', /must be a text/],
    [{ TOOL_DENYLIST_GROUPS: 'a' }, 'TOOL_DENYLIST_GROUPS', /unknown variable; did you mean "TOOL_DENYLIST_GROUP"\?/],
    [{ TOOL_ALLOWLIST_PRIVATE: 'a' }, 'TOOL_ALLOWLIST_PRIVATE', /unknown variable/],
    [{ TOOL_ALLOWLIST: 'group:empty' }, 'TOOL_ALLOWLIST[0]', /"group:empty": names a group without tools/],
    [{ TOOL_ALLOWLIST_DM: 'a,group:empty' }, 'TOOL_ALLOWLIST_DM[1]', /names a group without tools/],
  ]
  for (const [env, path, problem] of refused) {
    it(`refuses ${JSON.stringify(env)}, naming ${path}`, () => {
      assert.throws(() => policyFromEnv(env, { groups }), { name: 'ConfigError', path, problem })
    })
  }

  it('refuses a group where it was told of none', () => {
    assert.throws(() => policyFromEnv({ TOOL_DENYLIST: 'group:web' }), { code: 'selector_invalid' })
  })
})

describe('TOOL_ASKLIST', () => {
  const outcomeIn = async (env: Environment, type: string) => {
    const gate = createGate({ tools, groups, policy: policyFromEnv(env, { groups }) })
    return (await gate.view(chat(type))).explain('web:search').outcome
  }

  it('lets a person approve the calls of its tools', async () => {
    assert.equal(await outcomeIn({ TOOL_ASKLIST: 'group:web' }, 'dm'), 'ask')
    assert.equal(await outcomeIn({ TOOL_ASKLIST: 'notes' }, 'dm'), 'allow')
  })

  it('has a variant for each type of chat', async () => {
    for (const [type, inDm, inGroup] of [
      ['private', 'ask', 'allow'],
      ['channel', 'allow', 'ask'],
      ['forum', 'ask', 'ask'],
    ] as const) {
      assert.equal(await outcomeIn({ TOOL_ASKLIST_DM: 'web:*' }, type), inDm)
      assert.equal(await outcomeIn({ TOOL_ASKLIST_GROUP: 'web:*' }, type), inGroup)
    }
  })
})

describe('TOOL_SENDERS', () => {
  const idsOf = async (env: Environment, user: string | undefined, type = 'dm') =>
    visible(env, { ...chat(type), ...(user !== undefined && { user }) })

  it('lets only the senders of an entry use its tools', async () => {
    const env = { TOOL_SENDERS: 'web:*=tg:7|tg:8, notes=tg:8', TOOL_OWNERS: 'tg:1' }
    assert.deepEqual(await idsOf(env, 'tg:7'), ['files:read', 'web:fetch', 'web:search'])
    assert.deepEqual(await idsOf(env, 'tg:8'), ALL)
    assert.deepEqual(await idsOf(env, 'tg:9'), ['files:read'])
    assert.deepEqual(await idsOf(env, undefined), ['files:read'])
    assert.deepEqual(await idsOf(env, 'tg:1'), ALL, 'an owner')
  })

  it('meets its variants, of which both apply where the type of the chat is unknown', async () => {
    const env = { TOOL_SENDERS: 'notes=tg:7|tg:8', TOOL_SENDERS_GROUP: 'notes=tg:8|tg:9' }
    const hasNotes = async (user: string, type: string) => (await idsOf(env, user, type)).includes('notes')
    assert.deepEqual([await hasNotes('tg:7', 'dm'), await hasNotes('tg:7', 'group')], [true, false])
    assert.deepEqual([await hasNotes('tg:8', 'group'), await hasNotes('tg:9', 'group')], [true, false])
    assert.equal(await hasNotes('tg:7', 'forum'), false)
  })

  for (const [text, at, problem] of [
    ['notes', 0, /"notes" must read selector=sender\|sender/],
    ['notes=', 0, /"" is not the name of one sender/],
    ['notes=tg:7|', 0, /"" is not the name of one sender/],
    ['web:*=tg:7,notes=tg 7', 1, /"tg 7" is not the name of one sender/],
    ['notes=*', 0, /"\*" is not the name/],
    ['=tg:7', 0, /must be a string that is not empty/],
    ['group:wbe=tg:7', 0, /names no group/],
    ['notes=tg:7,notes=tg:8', 1, /"notes" has an entry already; write all its senders there/],
    ["notes=x'] || true || caller.user in ['x", 0, /is not the name of one sender/],
    [`notes=${Array.from({ length: 300 }, (_, i) => `telegram:${i}`).join('|')}`, 0, /too many senders/],
  ] as const)
    it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () => {
      assert.throws(() => policyFromEnv({ TOOL_SENDERS: text }, { groups }), { path: `TOOL_SENDERS[${at}]`, problem })
    })
})

describe('a problem of a rule in a variable', () => {
  it('names the variable, and the entry', () => {
    const open = (env: Environment) => () =>
      createGate({ tools, policy: combinePolicies({}, policyFromEnv(env)), limits: limitsFromEnv(env) })
    assert.throws(open({ TOOL_DENYLIST: 'notes,web:serch' }), { path: 'TOOL_DENYLIST[1]' })
    assert.throws(open({ TOOL_ALLOWLIST_DM: 'note' }), { path: 'TOOL_ALLOWLIST_DM[0]' })
    assert.throws(open({ TOOL_ASKLIST: 'note' }), { path: 'TOOL_ASKLIST[0]' })
    assert.throws(open({ TOOL_SENDERS: 'notes=a,note=b' }), { path: 'TOOL_SENDERS[1]' })
    assert.throws(open({ TOOL_RATE_LIMITS: 'notes:1/60,note:1/60' }), { path: 'TOOL_RATE_LIMITS[1]' })
  })

  it('is warned of with the same path, and so is an entry that changes nothing', async () => {
    const env = { TOOL_ALLOWLIST: 'notes', TOOL_DENYLIST: 'notes,tag:x', TOOL_RATE_LIMITS: '*:1/60,notes:2/60' }
    const limits = limitsFromEnv(env)
    const policy = policyFromEnv(env)
    const seen: string[] = []
    const gate = createGate({ tools, policy, limits, onWarning: ({ code, path }) => void seen.push(`${code} ${path}`) })
    assert.deepEqual(seen, ['selector_unmatched TOOL_DENYLIST[1]', 'limit_covered TOOL_RATE_LIMITS[1]'])
    for (const found of [gate.lint(), lint({ tools, policy, limits })]) {
      const paths = new Set(found.map(({ code, path }) => `${code} ${path}`))
      for (const one of [...seen, 'tool_unreachable TOOL_ALLOWLIST']) assert.ok(paths.has(one), one)
    }
  })
})

describe('a variable that means a rule', () => {
  const meant: readonly (readonly [variable: string, meant: string])[] = [
    ['TOOL_ALLOWLIST_PRIVATE', 'TOOL_ALLOWLIST_DM'],
    ['TOOL_DENYLIST_DIRECT', 'TOOL_DENYLIST_DM'],
    ['TOOL_ALLOWLIST_SUPERGROUP', 'TOOL_ALLOWLIST_GROUP'],
    ['TOOL_BLOCKLIST_CHANNEL', 'TOOL_DENYLIST_GROUP'],
    ['TOOL_ALLOW', 'TOOL_ALLOWLIST'],
    ['TOOL_WHITELIST', 'TOOL_ALLOWLIST'],
    ['TOOL_WHITE_LIST', 'TOOL_ALLOWLIST'],
    ['tool_whitelist', 'TOOL_ALLOWLIST'],
    ['TOOLS_ALLOWED', 'TOOL_ALLOWLIST'],
    ['TOOLS_ENABLED', 'TOOL_ALLOWLIST'],
    ['ALLOWED_TOOLS', 'TOOL_ALLOWLIST'],
    ['TOOL_DENY', 'TOOL_DENYLIST'],
    ['TOOL_DENY_SHELL', 'TOOL_DENYLIST'],
    ['TOOL_BLACKLIST', 'TOOL_DENYLIST'],
    ['TOOL_BLOCKLIST', 'TOOL_DENYLIST'],
    ['TOOL_BLOCKED_DM', 'TOOL_DENYLIST_DM'],
    ['TOOLS_DISABLED', 'TOOL_DENYLIST'],
    ['DISABLED_TOOLS', 'TOOL_DENYLIST'],
    ['TOOL_APPROVAL', 'TOOL_ASKLIST'],
    ['TOOLS_REQUIRE_APPROVAL', 'TOOL_ASKLIST'],
    ['TOOL_CONFIRM_GROUP', 'TOOL_ASKLIST_GROUP'],
    ['TOOL_LIMIT', 'TOOL_RATE_LIMITS'],
    ['TOOL_RATES', 'TOOL_RATE_LIMITS'],
    ['TOOL_MAX_CALLS_PER_MINUTE_LIMIT', 'TOOL_RATE_LIMITS'],
    ['TOOL_RATE_LIMIT_SEARCH', 'TOOL_RATE_LIMITS'],
    ['TOOL_ALLOWED_USERS', 'TOOL_ALLOWED_SENDERS'],
    ['TOOL_ALLOW_USERS_PRIVATE', 'TOOL_ALLOWED_SENDERS_DM'],
  ]
  for (const [variable, name] of meant)
    it(`is an error that names ${name}: ${variable}`, () => {
      for (const read of [policyFromEnv, limitsFromEnv, sendersFromEnv])
        assert.throws(() => read({ [variable]: 'search' }), {
          path: variable,
          problem: `unknown variable; did you mean "${name}"?`,
        })
    })

  it('is an error without a hint where no variable does what it asks for', () => {
    for (const variable of ['TOOL_AUTO_APPROVE', 'TOOL_BLOCKED_USERS'])
      assert.throws(() => policyFromEnv({ [variable]: 'x' }), { path: variable, problem: /^unknown variable/ })
    assert.throws(
      () => policyFromEnv({ TOOL_AUTO_APPROVE: 'x' }),
      (error: Error) => !error.message.includes('ASKLIST"?'),
    )
  })

  it('does not mean one that sets something else', () => {
    const others = { TOOL_BLOCK_SIZE: '4', TOOL_OUTPUT_LIMIT: '1', TOOL_APPROVAL_TIMEOUT: '9', MY_ALLOWED_TOOLS: 'x' }
    for (const read of [policyFromEnv, limitsFromEnv, sendersFromEnv]) assert.deepEqual(read(others), [])
  })
})

describe('a variable that is misspelt', () => {
  const read = { policyFromEnv, limitsFromEnv, sendersFromEnv }
  const misspelt: readonly (readonly [reads: keyof typeof read, variable: string, meant: string])[] = [
    ['policyFromEnv', 'TOOL_DENY_LIST', 'TOOL_DENYLIST'],
    ['policyFromEnv', 'TOOL_DENYLST', 'TOOL_DENYLIST'],
    ['policyFromEnv', 'TOOLS_DENYLIST', 'TOOL_DENYLIST'],
    ['policyFromEnv', 'tool_denylist', 'TOOL_DENYLIST'],
    ['policyFromEnv', 'TOOL_ALLOW_LIST_DM', 'TOOL_ALLOWLIST_DM'],
    ['limitsFromEnv', 'TOOL_RATE_LIMIT', 'TOOL_RATE_LIMITS'],
    ['limitsFromEnv', 'TOOL_RATELIMITS', 'TOOL_RATE_LIMITS'],
    ['sendersFromEnv', 'TOOL_ALLOWED_SENDER', 'TOOL_ALLOWED_SENDERS'],
    ['sendersFromEnv', 'TOOL_OWNER', 'TOOL_OWNERS'],
  ]
  for (const [reads, variable, meant] of misspelt)
    it(`is an error of ${reads}: ${variable}`, () =>
      assert.throws(() => read[reads]({ [variable]: 'search' }), {
        path: variable,
        problem: `unknown variable; did you mean "${meant}"?`,
      }))

  it('is one that differs in a single letter: variables of other programs are none', () => {
    const others = { TOOL_USERS: '1', TOOL_WORKERS: '4', TOOLCHAIN: 'gcc', TOOL_HOME: '/opt' }
    for (const one of Object.values(read)) assert.deepEqual(one(others), [])
  })

  it('is none where the system reads the known one for it, as Windows does in any letter case', () => {
    assert.equal(policyFromEnv({ Tool_Denylist: 'search', TOOL_DENYLIST: 'search' }).length, 1)
  })
})

const senderTools = ['notes', 'search'].map((name) => defineTool({ name, execute: () => 'ran' }))

function callerOf(user: string | undefined, type: string | undefined): Caller {
  return { ...(user === undefined ? {} : { user }), ...(type === undefined ? {} : { chat: { id: 'c', type } }) }
}

async function visibleTo(env: Environment, user: string | undefined, type: string | undefined) {
  const policy = combinePolicies(sendersFromEnv(env), policyFromEnv(env))
  return (await createGate({ tools: senderTools, policy }).view(callerOf(user, type))).ids
}

const NOTES_AND_SEARCH = ['notes', 'search']
const BOTH = { TOOL_ALLOWED_SENDERS_DM: 'tg:1,tg:2', TOOL_ALLOWED_SENDERS_GROUP: 'tg:2,tg:3' }
const BASE = { TOOL_ALLOWED_SENDERS: 'tg:1', TOOL_ALLOWED_SENDERS_DM: 'tg:1,tg:2' }

/** Each row: the environment, who writes (`-` for nobody), the type of the chat (`-` for no chat), who may. */
const senderRows: readonly (readonly [env: Environment, user: string, type: string, may: boolean])[] = [
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
  for (const [env, user, type, may] of senderRows) {
    it(`lets ${user} in ${type} ${may ? 'use' : 'see no'} tools under ${JSON.stringify(env)}`, async () => {
      const given = [user, type].map((part) => (part === '-' ? undefined : part))
      assert.deepEqual(await visibleTo(env, given[0], given[1]), may ? NOTES_AND_SEARCH : [])
    })
  }

  it('holds owners to every other policy', async () => {
    const env = { TOOL_OWNERS: 'tg:7', TOOL_ALLOWED_SENDERS: 'tg:1', TOOL_DENYLIST: 'search' }
    assert.deepEqual(await visibleTo(env, 'tg:7', 'dm'), ['notes'])
  })

  it('refuses the call of a stranger too, and names the variable in the explanation', async () => {
    const env = { TOOL_ALLOWED_SENDERS: 'tg:1' }
    const view = await createGate({ tools: senderTools, policy: sendersFromEnv(env) }).view(callerOf('tg:9', 'dm'))
    assert.equal((await view.call({ tool: 'notes' })).status, 'refused')
    assert.equal(view.explain('notes').reasons[0]?.policy, 'TOOL_ALLOWED_SENDERS')
  })

  it('keeps the names of thousands apart', async () => {
    const senders = Array.from({ length: 5000 }, (_, i) => `tg:${i}@chat.example`)
    const env = { TOOL_ALLOWED_SENDERS: senders.join(',') }
    assert.deepEqual(await visibleTo(env, 'tg:4999@chat.example', 'dm'), NOTES_AND_SEARCH)
    assert.deepEqual(await visibleTo(env, 'tg:5000@chat.example', 'dm'), [])
  })

  it('takes the names that messengers give', async () => {
    for (const name of ['+49151234567', '49151@s.whatsapp.net', '@vera:matrix.org', 'U02ABC#1', 'вера', 'a.b-c_d/e=f!'])
      assert.deepEqual(await visibleTo({ TOOL_ALLOWED_SENDERS: name }, name, 'dm'), NOTES_AND_SEARCH, name)
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
