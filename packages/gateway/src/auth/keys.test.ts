import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Caller } from '@toolgate/core'
import { sha256Hex } from '@toolgate/values'
import { memoryState, type StateStore } from '@toolgate/core/stores'
import type { CallerConfig, GatewayConfig } from '../config/config.ts'
import { Revisions } from './revision.ts'
import { Keys } from './keys.ts'

const CALLERS = [
  { keyHash: Buffer.from(sha256Hex('of-the-file'), 'hex'), for: 'mcp', caller: { user: 'vera', roles: ['a'] } },
] as const
const OWNER = { user: 'owner' }
const RULES = { policy: [], callers: CALLERS, limits: [], groups: [], servers: [] }
const clock = { wallMs: () => 1_000, monotonicMs: () => 0 }

async function setup(t: TestContext, state: StateStore = memoryState({ clock }), rules: object = RULES) {
  const revisions = new Revisions(rules as unknown as GatewayConfig)
  const keys = new Keys({ revisions, clock, onFault: assert.ifError })
  await keys.open(state)
  t.after(() => keys.close())
  const use = (key: string) => keys.find({ token: key, digest: Buffer.from(sha256Hex(key), 'hex').toString('base64') })
  /** Replaces the callers of the file. */
  const reload = (callers: readonly CallerConfig[]) => {
    revisions.replace(revisions.next({ ...rules, callers } as unknown as GatewayConfig))
    keys.renew()
  }
  return { keys, state, use, reload }
}

function entry(id: string, key: string, caller: Caller): CallerConfig {
  return { id, keyHash: Buffer.from(sha256Hex(key), 'hex'), for: 'mcp', caller }
}

describe('Keys that were seen to have expired', () => {
  it('open nothing again where the clock is set back, unless they expire later now', async (t) => {
    let nowMs = 1_000
    const revisions = new Revisions(RULES as unknown as GatewayConfig)
    const keys = new Keys({ revisions, clock: { wallMs: () => nowMs }, onFault: assert.ifError })
    await keys.open(memoryState({ clock }))
    t.after(() => keys.close())
    const { key, row } = await keys.create({ for: 'mcp', user: 'vera', expiresAt: 2_000 }, OWNER)
    const use = () => keys.find({ token: key, digest: Buffer.from(sha256Hex(key), 'hex').toString('base64') })
    assert.ok(await use())
    nowMs = 2_000
    assert.equal(await use(), undefined)
    nowMs = 1_500
    assert.equal(await use(), undefined)
    assert.equal(keys.list().find(({ id }) => id === row.id)?.isExpired, true)
  })

  it('stay over in a process that has not seen it', async (t) => {
    const state = memoryState({ clock })
    const { keys, use } = await setup(t, state)
    const { key } = await keys.create({ for: 'mcp', user: 'vera', expiresAt: 2_000 }, OWNER)
    assert.ok(await use(key))
    await state.set(`key-over:${sha256Hex(key)}`, 2_000)
    assert.equal(await (await setup(t, state)).use(key), undefined)
    await state.set(`key-over:${sha256Hex(key)}`, 1_500)
    assert.ok(await (await setup(t, state)).use(key))
  })
})

describe('Keys', () => {
  it('remember the makers of the credential behind them, over restarts', async (t) => {
    const { keys, state, use } = await setup(t)
    const { row, key } = await keys.create(
      { for: 'mcp', user: 'vera' },
      { ...OWNER, keyMadeBy: 'ann', makerChain: ['ann', 'root'] },
    )
    assert.deepEqual([row.createdBy, 'makers' in row], ['owner', false])
    const chain = ['owner', 'ann', 'root']
    const again = await setup(t, state)
    for (const caller of [(await use(key))?.caller, (await again.use(key))?.caller])
      assert.deepEqual([caller?.user, caller?.keyMadeBy, caller?.makerChain], ['vera', 'owner', chain])
  })

  it('name the makers of the credential behind them, even if their own user made them', async (t) => {
    const { keys, use } = await setup(t)
    const { key } = await keys.create({ for: 'mcp', user: 'vera' }, { user: 'vera', keyMadeBy: 'ann' })
    assert.deepEqual([(await use(key))?.caller.keyMadeBy, (await use(key))?.caller.makerChain], ['ann', undefined])
  })

  it('never brings a revoked key back, whenever the answers of its store come', async (t) => {
    const kept = memoryState({ clock })
    const late: (() => void)[] = []
    let isSlow = false
    const changed = new Set<() => void>()
    const slow: StateStore = {
      get: (key) => kept.get(key),
      set: (key, value, options) => kept.set(key, value, options),
      add: (key, value, options) => kept.add(key, value, options),
      take: (key) => kept.take(key),
      subscribe: (listener) => {
        changed.add(listener)
        return () => void changed.delete(listener)
      },
      async list(prefix) {
        const entries = await kept.list(prefix)
        if (!isSlow) return entries
        isSlow = false
        await new Promise<void>((resolve) => late.push(resolve))
        return entries
      },
    }
    const { keys, use } = await setup(t, slow)
    const { key, row } = await keys.create({ for: 'mcp', user: 'vera' }, OWNER)
    await kept.set('key:other', { id: 'other', hash: sha256Hex('x'), for: 'mcp', user: 'vera', createdAt: 0 })
    isSlow = true
    for (const listener of changed) listener()
    while (late.length === 0) await new Promise(setImmediate)
    const revoking = keys.revoke(row.id)
    // Time enough for a read that does not wait for the one before.
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    for (const answer of late) answer()
    await revoking
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    assert.equal(await use(key), undefined)
    assert.deepEqual(
      keys.list().map(({ id, from }) => [id, from]),
      [
        [sha256Hex('of-the-file').slice(0, 8), 'file'],
        ['other', 'made'],
      ],
    )
  })

  it('makes no key that opens more apps than the keys of its user in the file', async (t) => {
    const callers = CALLERS.map((one) => ({ ...one, apps: ['desk', 'shop'] }))
    const apps = ['desk', 'shop', 'lab'].map((name) => ({ name }))
    const { keys, use } = await setup(t, undefined, { ...RULES, callers, apps })
    const appsOf = async (asked?: readonly string[]) => {
      const { key, row } = await keys.create({ for: 'mcp', user: 'vera', apps: asked }, OWNER)
      assert.deepEqual(row.apps, (await use(key))?.apps)
      return row.apps
    }
    assert.deepEqual(await appsOf(), ['desk', 'shop'])
    assert.deepEqual(await appsOf(['shop', 'lab']), ['shop'])
    assert.deepEqual(await appsOf(['lab']), [])
  })

  const wide = entry('wide', 'wide-key', { user: 'vera', roles: ['admin', 'viewer'] })
  const narrow = entry('narrow', 'narrow-key', { user: 'vera', roles: ['viewer'] })

  it('makes no key that does not say which, where the keys of its user have different rights', async (t) => {
    const { keys, use, reload } = await setup(t, undefined, { ...RULES, callers: [wide, narrow] })
    const choices = '"wide" (roles: admin, viewer), "narrow" (roles: viewer)'
    await assert.rejects(keys.create({ for: 'mcp', user: 'vera' }, OWNER), {
      path: 'like',
      problem: `is needed, as "vera" has keys with different rights: ${choices}`,
    })
    await assert.rejects(keys.create({ for: 'mcp', user: 'vera', like: 'wid' }, OWNER), {
      problem: `"wid" is no key of "vera" in the file; there are ${choices}`,
    })
    const { key, row } = await keys.create({ for: 'mcp', user: 'vera', like: 'narrow' }, OWNER)
    assert.deepEqual([(await use(key))?.caller.roles, row.roles, row.like], [['viewer'], ['viewer'], 'narrow'])

    // It never becomes what another entry of its user is.
    reload([wide])
    assert.equal(await use(key), undefined)
    assert.equal(keys.list().find(({ id }) => id === row.id)?.isOrphan, true)
    reload([narrow, wide])
    assert.deepEqual((await use(key))?.caller.roles, ['viewer'])
  })

  it('ends a key that does not say which, once the keys of its user differ', async (t) => {
    const { keys, use, reload } = await setup(t, undefined, { ...RULES, callers: [narrow] })
    const { key } = await keys.create({ for: 'mcp', user: 'vera' }, OWNER)
    assert.deepEqual((await use(key))?.caller.roles, ['viewer'])
    reload([narrow, wide])
    assert.equal(await use(key), undefined)
  })

  it('makes no console key that may do more than the one it is made with', async (t) => {
    const callers = [
      { ...entry('both', 'both-key', { user: 'ada', roles: ['approver', 'operator'] }), for: 'console' as const },
      { ...entry('one', 'one-key', { user: 'ada', roles: ['operator'] }), for: 'console' as const },
    ]
    const { keys, use } = await setup(t, undefined, { ...RULES, callers })
    const asked = { for: 'console', user: 'ada', like: 'both' } as const
    await assert.rejects(keys.create(asked, { user: 'ada', roles: ['operator'] }), {
      path: 'like',
      problem: /may do more/,
    })
    const { key } = await keys.create({ ...asked, like: 'one' }, { user: 'ada', roles: ['approver', 'operator'] })
    assert.deepEqual((await use(key))?.caller.roles, ['operator'])
  })

  it('keeps the last use of keys that there are, and forgets that of others', async (t) => {
    const { keys, state, use } = await setup(t)
    const { key, row } = await keys.create({ for: 'mcp', user: 'vera' }, OWNER)
    assert.ok((await use(key)) && (await use('of-the-file')))
    await keys.close()
    assert.equal((await state.list('key-used:')).length, 2)
    await keys.revoke(row.id)
    await keys.close()
    assert.deepEqual(
      (await state.list('key-used:')).map((one) => one.key),
      [`key-used:${sha256Hex('of-the-file')}`],
    )
  })
})
