import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import type { Caller } from '../ports/caller.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import { createGate } from './gate.ts'
import type { GateOptions, GateRules } from './options.ts'

const VERA = { user: 'vera', roles: ['a'] }

function tool(name: string, execute: () => unknown = () => `ran ${name}`): Tool {
  return defineTool({ name, namespace: 'files', execute })
}

const TOOLS = ['read', 'write'].map((name) => tool(name))

function open(options: GateOptions = {}) {
  const audit = memoryAudit()
  const gate = createGate({ tools: TOOLS, audit, ...options })
  const call = async (name: string, caller: Caller = VERA, more: object = {}) =>
    (await gate.view(caller)).call({ tool: `files:${name}`, ...more })
  return { gate, audit, call, ids: async (caller: Caller = VERA) => (await gate.view(caller)).ids }
}

/** A call that waits in a hook until `go` is called. */
function heldCall(options: GateOptions = {}) {
  const waits = Promise.withResolvers<void>()
  const opened = open({ hooks: { beforeToolCall: () => waits.promise.then(() => undefined) }, ...options })
  return { ...opened, go: () => waits.resolve() }
}

const reasonOf = (outcome: Awaited<ReturnType<ReturnType<typeof open>['call']>>) =>
  outcome.status === 'refused' ? outcome.decision.reasons[0]?.code : outcome.status

describe('gate.setRules', () => {
  it('replaces tools, groups, apps, limits and the policy as one', async () => {
    const { gate, ids, call } = open({ policy: { deny: ['files:write'] } })
    const rules: GateRules = {
      tools: [...TOOLS, tool('move')],
      groups: { changes: { tools: ['files:write', 'files:move'] } },
      apps: { readers: { tools: ['files:read'] } },
      policy: { allow: ['files:read', 'group:changes'], deny: ['files:move'] },
      limits: ['group:changes:1/60'],
    }
    gate.setRules(rules)
    assert.deepEqual(await ids(), ['files:read', 'files:write'])
    assert.deepEqual((await gate.view(VERA, { app: 'readers' })).ids, ['files:read'])
    assert.deepEqual(gate.membersOf('changes'), ['files:move', 'files:write'])
    assert.equal(reasonOf(await call('write')), 'done')
    assert.equal(reasonOf(await call('write')), 'rate_limited')
    gate.setRules({ tools: TOOLS })
    assert.deepEqual(gate.apps.list, [])
    assert.throws(() => gate.membersOf('changes'), { code: 'config_invalid' })
    await assert.rejects(async () => gate.view(VERA, { app: 'readers' }), { code: 'app_unknown' })
    assert.equal(reasonOf(await call('write')), 'done')
  })

  it('changes nothing where a part cannot be used, and runs `alongside` only where all can', async () => {
    const { gate, ids, audit } = open({ policy: { deny: ['files:write'] } })
    const before = gate.policyRevision
    const broken: readonly GateRules[] = [
      { tools: TOOLS, policy: { deny: ['files:raed'] } },
      { tools: TOOLS, policy: { allow: ['group:nobody'] } },
      { tools: TOOLS, limits: ['files:read:x/60'] },
      { tools: TOOLS, groups: { a: { tools: [], dependsOn: ['b'] } } },
      { tools: TOOLS, apps: { 'a b': { tools: ['*'] } } },
      { tools: TOOLS, aliases: { 'files:read': 'files:write' } },
      { tools: TOOLS, groups: { late: { tools: ['late:*'], load: () => [] } } },
      { tools: TOOLS, polices: {} } as GateRules,
    ]
    for (const rules of broken) assert.throws(() => gate.setRules(rules, () => assert.fail('it ran')))
    assert.throws(() => gate.fork({}).setRules({ tools: TOOLS }), { code: 'config_invalid', path: 'setRules' })
    assert.throws(() => gate.setRules({ tools: [] }, () => assert.fail('alongside fails')), /alongside fails/)
    assert.deepEqual(await ids(), ['files:read'])
    assert.equal(gate.policyRevision, before)
    assert.equal(audit.records.length, 0)
  })

  it('decides a call that waits by the new rules: tightening holds until it runs', async () => {
    const { gate, call, go } = heldCall()
    const waiting = call('write')
    gate.setRules({ tools: TOOLS, policy: { deny: [{ match: 'files:write', message: 'Not today.' }] } })
    go()
    const outcome = await waiting
    assert.match(outcome.text, /Not today/)
  })

  it('lets a call that waits take from the new limits, and keeps what was counted', async () => {
    const { gate, call, go } = heldCall({ limits: ['files:write:5/60'] })
    const waiting = call('write')
    gate.setRules({ tools: TOOLS, limits: ['files:write:1/60'] })
    go()
    assert.equal(reasonOf(await waiting), 'done')
    assert.equal(reasonOf(await call('write')), 'rate_limited')
    gate.setRules({ tools: TOOLS, limits: ['files:write:2/60'] })
    assert.equal(reasonOf(await call('write')), 'done')
    assert.equal(reasonOf(await call('write')), 'rate_limited')
  })

  it('gives back what a call took from limits that are replaced before it runs', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const write = (entry: { event: string }) => (entry.event === 'tool_call' ? promise : undefined)
    const audit = { write, flush: async () => {}, close: async () => {} }
    const { gate, call } = open({ limits: ['files:write:1/60'], audit })
    const waiting = call('write')
    await new Promise(setImmediate)
    gate.setRules({ tools: TOOLS, limits: ['files:*:1/60'] })
    resolve()
    assert.equal(reasonOf(await waiting), 'done')
    assert.equal(reasonOf(await call('write')), 'rate_limited', 'the call counts in the new limit')
    gate.setRules({ tools: TOOLS, limits: ['files:write:1/60'] })
    assert.equal(reasonOf(await call('write')), 'done', 'and no longer in the old one')
  })

  it('keeps views of an app by its new rules, and shows nothing where the app is gone', async () => {
    const { gate } = open({ apps: { desk: { tools: ['files:read', 'files:write'] } } })
    const view = await gate.view(VERA, { app: 'desk' })
    gate.setRules({ tools: TOOLS, apps: { desk: { tools: ['files:read'] } } })
    assert.equal(reasonOf(await view.call({ tool: 'files:write' })), 'app_hidden')
    assert.equal(reasonOf(await view.call({ tool: 'files:read' })), 'done')
    gate.setRules({ tools: TOOLS })
    assert.equal(reasonOf(await view.call({ tool: 'files:read' })), 'app_hidden')
  })

  it('reads halts, preferences and the policies of forks for the new groups', async () => {
    const { gate, call, ids } = open({ groups: { risky: { tools: ['files:write'] } } })
    const fork = gate.fork({ policy: { deny: ['group:risky'] } })
    await gate.preferences.set({ user: 'udo' }, { groups: ['risky'], tools: [] })
    gate.setRules({ tools: TOOLS, groups: { risky: { tools: ['files:read'] } } })
    assert.deepEqual((await fork.view(VERA)).ids, ['files:write'])
    assert.deepEqual(await ids({ user: 'udo' }), ['files:write'])
    await gate.halt({ tool: 'group:risky', reason: 'it leaks' })
    assert.equal(reasonOf(await call('read')), 'halted')
    gate.setRules({ tools: TOOLS, groups: { risky: { tools: ['files:write'] } } })
    assert.deepEqual([reasonOf(await call('read')), reasonOf(await call('write'))], ['done', 'halted'])
    gate.setRules({ tools: TOOLS })
    assert.deepEqual(
      [reasonOf(await call('read')), reasonOf(await call('write'))],
      ['halted', 'halted'],
      'its group is gone',
    )
    assert.deepEqual((await fork.view(VERA)).ids, [])
  })

  it('reads sources that stay no second time, and follows those that come', async () => {
    let reads = 0
    const source = (name: string, of: readonly Tool[]): Source & { tell(): void } => {
      const listeners = new Set<() => void>()
      return {
        name,
        tools: () => (reads++, of),
        subscribe: (listener) => (listeners.add(listener), () => void listeners.delete(listener)),
        tell: () => listeners.forEach((listener) => listener()),
      }
    }
    const [one, two] = [source('one', [tool('a')]), source('two', [tool('b')])]
    const { gate, ids } = open({ tools: [], sources: [one] })
    const [kept] = gate.catalog.snapshot()
    gate.setRules({ sources: [one, two] })
    assert.deepEqual([await ids(), reads], [['files:a', 'files:b'], 2])
    assert.equal(gate.catalog.get('files:a'), kept)
    two.tell()
    assert.equal(reads, 3)
    gate.setRules({ sources: [two] })
    one.tell()
    assert.deepEqual([await ids(), reads], [['files:b'], 3])
  })

  it('keeps the state of probes that stay', async () => {
    let isUp = true
    const probe = { key: 'up', ask: () => isUp }
    const groups = { web: { tools: ['files:*'], availableWhen: [probe] } }
    const { gate, ids } = open({ groups })
    await new Promise(setImmediate)
    assert.deepEqual(await ids(), ['files:read', 'files:write'])
    gate.setRules({ tools: TOOLS, groups: { web: { tools: ['files:read'], availableWhen: [probe] } } })
    assert.deepEqual(await ids(), ['files:read', 'files:write'])
    isUp = false
    const down = { key: 'other', ask: () => isUp }
    gate.setRules({ tools: TOOLS, groups: { web: { tools: ['files:read'], availableWhen: [down] } } })
    await new Promise(setImmediate)
    assert.deepEqual(await ids(), ['files:write'])
    await gate.close()
  })

  it('tells subscribers of the policy after the new rules hold', async () => {
    const { gate } = open({ policy: { deny: ['files:write'] } })
    const seen: unknown[] = []
    gate.subscribe(({ event }) => seen.push([event, gate.catalog.snapshot().size]))
    gate.setRules({ tools: [...TOOLS, tool('move')] })
    assert.deepEqual(seen, [['policy-changed', 3]])
  })
})

describe('call.callerNow', () => {
  const policy = { allow: [{ match: '*', when: "'a' in caller.roles" }] }

  it('decides by the caller of today where the rules are of today', async () => {
    let now: Caller | undefined = VERA
    const { gate, call, go } = heldCall({ policy })
    const waiting = [0, 1].map(() => call('read', VERA, { callerNow: () => now }))
    now = { user: 'vera', roles: ['b'] }
    gate.setRules({ tools: TOOLS, policy: { allow: [{ match: '*', when: "'b' in caller.roles" }] } })
    go()
    assert.deepEqual((await Promise.all(waiting)).map(reasonOf), ['done', 'done'])
  })

  it('refuses a call whose caller lost what it needs, or whose credential ended, while it waited', async () => {
    for (const [now, reason] of [
      [{ user: 'vera', roles: [] }, 'policy_not_allowed'],
      [undefined, 'credential_ended'],
      [{ user: 'udo', roles: ['a'] }, 'credential_ended'],
      [{ user: 'vera', tenant: 'x', roles: ['a'] }, 'credential_ended'],
    ] as const) {
      let caller: Caller | undefined = VERA
      const { call, go } = heldCall({ policy })
      const waiting = call('read', VERA, { callerNow: () => caller })
      await new Promise(setImmediate)
      caller = now
      go()
      assert.equal(reasonOf(await waiting), reason)
    }
  })

  it('refuses a call at once where the credential has ended before it, and tells nothing of hidden tools', async () => {
    const { call } = open({ policy: { deny: ['files:write'] } })
    const gone = { callerNow: () => undefined, calledAs: 'x' }
    assert.equal(reasonOf(await call('read', VERA, gone)), 'credential_ended')
    assert.equal((await call('write', VERA, gone)).text, (await call('nothing', VERA, gone)).text)
  })
})
