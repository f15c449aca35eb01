import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { memoryAudit } from '../audit/memory.ts'
import type { Reason } from '../decide/decision.ts'
import { createGate } from '../gate/gate.ts'
import { memoryHistories } from '../memory/histories.ts'
import type { Policy } from '../policy/policy.ts'
import type { AuditRecord } from '../ports/ports.ts'
import type { HistoryStore } from '../ports/history.ts'
import type { WrittenPolicy } from '../../../testing/support/policies.ts'
import { runs } from '../../../testing/src/runs.ts'
import { idsIn, inputOf, openWorld, viewOptionsOf, type World, worldWithMore } from '../../../testing/support/worlds.ts'
import { defineTool } from '../tools/tool.ts'
import { ToolgateError } from '@toolgate/values'

describe('a shadow', () => {
  it('changes no list, no answer, no text and no record but for what it would do: whole policies', () =>
    fc.assert(
      fc.asyncProperty(worldWithMore, async ({ world, more }) => {
        const shadows = more.map((policy): WrittenPolicy => ({ ...policy, mode: 'shadow' }))
        await assertSame(world, { ...world, policies: [...world.policies, ...shadows] })
      }),
      runs(60),
    ))

  it('changes nothing of that: single clauses', () =>
    fc.assert(
      fc.asyncProperty(worldWithMore, async ({ world, more }) => {
        const shadow = <T extends object>(clauses: readonly T[] | undefined) =>
          (clauses ?? []).map((clause) => ({ ...clause, mode: 'shadow' as const }))
        const [{ deny, ask } = {}] = more
        const [first = {}, ...others] = world.policies
        if (first.decide) return
        const widened = {
          ...first,
          deny: [...(first.deny ?? []), ...shadow(deny)],
          ask: [...(first.ask ?? []), ...shadow(ask)],
        }
        await assertSame({ ...world, policies: [first, ...others] }, { ...world, policies: [widened, ...others] })
      }),
      runs(60),
    ))

  it('records what would be decided if it were enforced', () =>
    fc.assert(
      fc.asyncProperty(worldWithMore, async ({ world, more }) => {
        const shadows = more.map((policy): WrittenPolicy => ({ ...policy, mode: 'shadow' }))
        const shadowed = await askAll({ ...world, policies: [...world.policies, ...shadows] })
        const enforced = await askAll({ ...world, policies: [...world.policies, ...more] })
        for (const [id, { word, would }] of shadowed) {
          const expected = enforced.get(id)?.word ?? 'nothing'
          if (expected === word) assert.ok(would === undefined || word !== 'done', `${id}: ${word}, would ${would}`)
          else assert.equal(would, expected === 'waiting' ? 'ask' : 'deny', `${id} is ${word}, ${expected} if enforced`)
        }
      }),
      runs(60),
    ))

  it('takes no room in a history from what is enforced', () => {
    const enforced: Policy = { deny: [{ match: 'web', input: "run.began('web', { 'input.n': input.n })" }] }
    const shadow: Policy = {
      deny: ['mail', 'web'].flatMap((tool) => [
        { match: '*', input: `run.began('${tool}', { 'input.n': input.n })` },
        { match: '*', input: `!run.called('${tool}', { 'input.n': input.n, 'output.m': input.n })` },
      ]),
      mode: 'shadow',
    }
    const call = fc.record({ tool: fc.constantFrom('mail', 'web'), n: fc.nat(30) })
    const outcomesOf = async (calls: readonly { tool: string; n: number }[], ...policy: readonly Policy[]) => {
      const made = ['mail', 'web'].map((name) => defineTool({ name, execute: () => ({ m: 1 }) }))
      const view = await createGate({ tools: made, policy, history: { maxBytes: 2500 } }).view({ user: 'vera' })
      const said: string[] = []
      for (const { tool, n } of calls) said.push((await view.call({ tool, input: { n }, run: { id: 'r1' } })).status)
      return said
    }
    return fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 20, maxLength: 40 }), async (calls) => {
        assert.deepEqual(await outcomesOf(calls, enforced, shadow), await outcomesOf(calls, enforced))
      }),
      runs(40),
    )
  })

  const tools = ['mail', 'web'].map((name) => defineTool({ name, execute: () => `the text of ${name}` }))
  const tainted: Policy = {
    name: 'tainted',
    deny: [{ match: 'mail', input: "'untrusted' in run.labels", mode: 'shadow' }],
  }

  it('sees what the run has done', async () => {
    const audit = memoryAudit()
    const view = await createGate({ tools, audit, policy: [{ allow: ['*'] }, tainted] }).view({ user: 'vera' })
    const run = { id: 'r1' }
    for (const tool of ['mail', 'web', 'mail']) assert.equal((await view.call({ tool, run })).status, 'done')
    const ends = audit.records.filter(({ event }) => event === 'tool_result')
    assert.deepEqual(ends.map(wouldOf), [undefined, undefined, 'deny tainted#deny[0]'])
  })

  for (const [what, works] of [
    ['read', []],
    ['begun', ['read']],
    ['written', ['read', 'open']],
    ['ended', ['read', 'open', 'add']],
  ] as const)
    it(`stops no call whose history cannot be ${what}`, async () => {
      const audit = memoryAudit()
      let adds = 0
      const failing = new Proxy<HistoryStore>(memoryHistories(), {
        get: (store, key) => {
          const own: unknown = Reflect.get(store, key)
          // Each of the two calls begins, and its end is lost.
          const isWorking =
            key === 'add' ? works.length === 3 && ++adds % 2 === 1 : [...works, 'close'].some((name) => name === key)
          return isWorking && typeof own === 'function' ? own.bind(store) : () => Promise.reject(new Error('no disk'))
        },
      })
      const faults: unknown[] = []
      const gate = createGate({
        tools,
        audit,
        policy: [{ allow: ['*'] }, tainted, { mode: 'shadow', deny: [{ match: 'mail', input: "!run.called('web')" }] }],
        history: { store: failing },
        onFault: (fault) => faults.push(fault),
      })
      const view = await gate.view({ user: 'vera' })
      for (const tool of ['web', 'mail']) {
        const outcome = await view.call({ tool, run: { id: 'r1' } })
        assert.equal(outcome.text, `the text of ${tool}`)
      }
      if (what === 'read') assert.equal(wouldOf(audit.records.at(-1)), 'unknown tainted#deny[0]')
      assert.ok(faults.length > 0)
    })

  /** A gate, and a call through it that returns what the shadow would do. */
  function shadowGate(store: HistoryStore) {
    const audit = memoryAudit()
    const gate = createGate({
      tools,
      audit,
      policy: [{ allow: ['*'] }, tainted],
      history: { store },
      onFault: () => {},
    })
    return async (tool: string, id = 'r1') => {
      const view = await gate.view({ user: 'vera' })
      assert.equal((await view.call({ tool, run: { id } })).status, 'done')
      return wouldOf(audit.records.at(-1))
    }
  }

  it('does not know what a run has done of which something had no room, at each gate of the store', async () => {
    const store = memoryHistories()
    let isFull = false
    const add: HistoryStore['add'] = (id, addition) => {
      if (isFull && addition.items.some(({ kind }) => kind !== 'unkept'))
        throw new ToolgateError('history_full', 'full')
      return store.add(id, addition)
    }
    const [call, other] = [shadowGate({ ...store, add }), shadowGate({ ...store, add })]
    assert.equal(await call('mail'), undefined)
    isFull = true
    await call('web')
    isFull = false
    assert.equal(await call('mail'), 'unknown tainted#deny[0]')
    assert.equal(await other('mail'), 'unknown tainted#deny[0]')
    assert.equal(await other('mail', 'r2'), undefined, 'another run')
  })

  it('does not know it either of a run whose history had no room, once it has', async () => {
    const store = memoryHistories()
    let isFull = true
    const open: HistoryStore['open'] = (id, opening) => {
      if (isFull) throw new ToolgateError('history_full', 'full')
      return store.open(id, opening)
    }
    const [call, other] = [shadowGate({ ...store, open }), shadowGate({ ...store, open })]
    await call('web')
    isFull = false
    assert.equal(await call('mail'), 'unknown tainted#deny[0]')
    assert.equal(await other('mail'), 'unknown tainted#deny[0]')
    assert.equal(await call('mail', 'r2'), undefined, 'another run')
  })

  it('has work of its own: its conditions do not use up what the enforced ones may take', async () => {
    const input = { list: Array.from({ length: 25_000 }, (_, i) => i) }
    const heavy = (name: string, mode?: 'shadow'): Policy => ({
      name,
      deny: Array.from({ length: 3 }, () => ({ match: 'mail', input: 'input.list.exists(x, x < 0)' })),
      ...(mode && { mode }),
    })
    const rows = [
      [[heavy('a')], 'done'],
      [[heavy('a'), ...'bcdef'.split('').map((name) => heavy(name, 'shadow'))], 'done'],
      [[heavy('a'), heavy('b'), heavy('c')], 'refused'],
    ] as const
    for (const [policy, status] of rows) {
      const view = await createGate({ tools, policy }).view({ user: 'vera' })
      assert.equal((await view.call({ tool: 'mail', input })).status, status)
    }
  })

  it('asks nobody, and takes no limit', async () => {
    const gate = createGate({
      tools,
      limits: ['mail:1/60'],
      policy: [
        { allow: ['*'] },
        { name: 's', mode: 'shadow', ask: ['mail'], deny: [{ match: 'web', message: 'No.' }] },
      ],
    })
    const view = await gate.view({ user: 'vera' })
    assert.deepEqual(view.notices, [])
    assert.equal(await view.requestApproval({ tool: 'mail' }), undefined)
    assert.equal((await view.call({ tool: 'mail' })).status, 'done')
    assert.equal((await view.call({ tool: 'mail' })).status, 'refused')
    assert.deepEqual(await gate.approvals.list(), [])
  })

  it('decides nothing of a step, either', async () => {
    const view = await createGate({ tools }).view({ user: 'vera' })
    const step = view.narrow({
      policy: [{ allow: ['web'], mode: 'shadow' }, { deny: [{ match: 'web', mode: 'shadow' }] }],
    })
    assert.deepEqual(step.ids, view.ids)
  })

  it('leaves a gate without other policies as bare as it is', async () => {
    const gate = createGate({ tools, policy: { mode: 'shadow', allow: [] } })
    assert.equal((await gate.view({})).size, 2)
  })
})

function wouldOf(record: AuditRecord | undefined): string | undefined {
  return record?.would_outcome && `${record.would_outcome} ${record.would_clause}`
}

/** The place of a policy among the others is not part of an answer. */
function withoutOrder(reasons: readonly Reason[]): readonly object[] {
  return reasons.map(({ order: _, ...reason }) => reason)
}

interface Asked {
  readonly word: string
  readonly would: string | undefined
  readonly all: unknown
}

async function assertSame(without: World, shadowed: World): Promise<void> {
  const [before, after] = [await askAll(without), await askAll(shadowed)]
  for (const [id, { all }] of before) assert.deepEqual(after.get(id)?.all, all, id)
}

async function askAll(world: World): Promise<ReadonlyMap<string, Asked>> {
  const audit = memoryAudit()
  const { gate, tools } = openWorld(world, { audit })
  const view = await gate.view(world.caller, viewOptionsOf(world))
  const list = [idsIn(view), view.fingerprint, view.notices]
  const answers = new Map<string, Asked>()
  for (const item of tools) {
    const { outcome, reasons } = view.explain(item.id)
    const called = await view.call({ tool: item.id, input: inputOf(world, item), callId: item.id })
    const { would_outcome: would, would_clause: _, ...record } = audit.records.at(-1) as AuditRecord
    const { event, reason, detail, clause } = record
    const refused = 'decision' in called ? withoutOrder(called.decision.reasons) : []
    const all = [list, outcome, withoutOrder(reasons), called.text, refused, event, reason, detail, clause]
    answers.set(item.id, { word: called.status, would, all })
  }
  return answers
}
