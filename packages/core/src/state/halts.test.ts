import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import type { GateNotice } from '../audit/gate-events.ts'
import { memoryState } from '../memory/state.ts'
import type { CallOutcome } from '../call/outcome.ts'
import type { StateStore } from '../ports/ports.ts'
import { type CallContext, defineTool } from '../tools/tool.ts'
import { ConfigError } from '@toolgate/values'
import type { HaltRequest } from './halts.ts'

const VERA = { user: 'vera', tenant: 'acme', session: 's1' }
const OMAR = { user: 'omar', tenant: 'acme', session: 's2' }

const opened: Gate[] = []
// Some of the tools never answer.
after(() => Promise.all(opened.map((gate) => gate.close())))

function setup(
  options: Omit<GateOptions, 'tools'> = {},
  execute: (input: unknown, call: CallContext) => unknown = () => 'ok',
) {
  const audit = memoryAudit()
  const tools = ['files:read', 'files:write', 'web:search'].map((id) => {
    const [namespace, name] = id.split(':') as [string, string]
    return defineTool({ namespace, name, execute })
  })
  const gate = createGate({ tools, audit, ...options })
  opened.push(gate)
  const call = async (caller: object, tool: string): Promise<CallOutcome> => (await gate.view(caller)).call({ tool })
  const seen = async (caller: object) => (await gate.view(caller)).ids
  return { gate, audit, call, seen }
}

describe('gate.halt', () => {
  const reach: [HaltRequest, { vera: string[]; omar: string[] }][] = [
    [
      { user: 'vera', reason: 'r' },
      { vera: [], omar: ['files:read', 'files:write', 'web:search'] },
    ],
    [
      { session: 's1', reason: 'r' },
      { vera: [], omar: ['files:read', 'files:write', 'web:search'] },
    ],
    [
      { tenant: 'acme', reason: 'r' },
      { vera: [], omar: [] },
    ],
    [
      { tenant: 'other', user: 'vera', reason: 'r' },
      { vera: ['files:read', 'files:write', 'web:search'], omar: ['files:read', 'files:write', 'web:search'] },
    ],
    [
      { tool: 'files:*', reason: 'r' },
      { vera: ['web:search'], omar: ['web:search'] },
    ],
    [
      { tool: 'files:read', user: 'vera', reason: 'r' },
      { vera: ['files:write', 'web:search'], omar: ['files:read', 'files:write', 'web:search'] },
    ],
    [
      { tool: 'group:disk', reason: 'r' },
      { vera: ['web:search'], omar: ['web:search'] },
    ],
    [
      { all: true, reason: 'r' },
      { vera: [], omar: [] },
    ],
  ]
  for (const [request, { vera, omar }] of reach) {
    it(`${JSON.stringify(request)} stops that and nothing else, and its release gives it back`, async () => {
      const { gate, seen } = setup({ groups: { disk: { tools: ['files:*'] } } })
      const halt = await gate.halt(request)
      assert.deepEqual([await seen(VERA), await seen(OMAR)], [vera, omar])
      await gate.release({ id: halt.id })
      assert.deepEqual([(await seen(VERA)).length, (await seen(OMAR)).length], [3, 3])
    })
  }

  it('is in force for the very next call, of a view made before, and says why', async () => {
    const { gate } = setup()
    const view = await gate.view(VERA)
    void gate.halt({ tool: 'web:search', reason: 'its key has leaked' })
    const outcome = await view.call({ tool: 'web:search' })
    assert.deepEqual([outcome.status, outcome.text], ['refused', 'web:search is unavailable: its key has leaked.'])
    assert.equal(view.explain('web:search').reasons[0]?.code, 'halted')
  })

  it('tells nothing of a tool that the caller may not see anyway', async () => {
    const { gate, call } = setup({ policy: { deny: ['web:search'] } })
    const told = await call(VERA, 'web:search')
    await gate.halt({ all: true, reason: 'maintenance' })
    const toldNow = await call(VERA, 'web:search')
    assert.match(told.text, /^Tool "web:search" is not available/)
    assert.match(toldNow.text, /^Tool "web:search" is not available/)
  })

  it('aborts what runs, and leaves what it does not name', async () => {
    const gone = Promise.withResolvers<string>()
    const { gate, audit, call } = setup({}, (_, { tool }) =>
      tool.id === 'files:read' ? gone.promise : new Promise(() => {}),
    )
    const running = call(VERA, 'web:search')
    const other = call(VERA, 'files:read')
    await new Promise(setImmediate)
    assert.deepEqual(
      [{ tool: 'web:*' }, { user: 'vera' }, { all: true } as const, { user: 'vera', tool: 'mail:*' }].map(
        gate.underWay,
      ),
      [1, 2, 2, 0],
    )
    assert.throws(() => gate.underWay({}), ConfigError)
    await gate.halt({ tool: 'web:*', reason: 'its key has leaked' })
    const outcome = await running
    assert.deepEqual([outcome.status, outcome.text], ['failed', 'web:search is unavailable: its key has leaked.'])
    gone.resolve('read')
    assert.equal((await other).status, 'done')
    const abandoned = audit.records.filter(({ event }) => event === 'tool_abandoned')
    assert.deepEqual(
      abandoned.map(({ tool, reason }) => [tool, reason]),
      [['web:search', 'halted']],
    )
  })

  it('aborts the signal of what runs', async () => {
    const signalled = Promise.withResolvers<unknown>()
    const { gate, call } = setup({}, (_, { signal }) => {
      signal.addEventListener('abort', () => signalled.resolve(signal.reason))
      return new Promise(() => {})
    })
    void call(VERA, 'web:search')
    await new Promise(setImmediate)
    await gate.halt({ user: 'vera', reason: 'stolen phone' })
    assert.match(String(await signalled.promise), /stolen phone/)
  })

  it('stops a call that waits for a slot, and one whose approval comes after it', async () => {
    const { gate, call } = setup(
      { concurrency: ['files:read:1'], policy: { ask: ['files:write'] } },
      () => new Promise(() => {}),
    )
    void call(OMAR, 'files:read')
    const waiting = call(VERA, 'files:read')
    assert.equal((await call(VERA, 'files:write')).status, 'waiting')
    const [approval] = await gate.approvals.list()
    await gate.halt({ user: 'vera', reason: 'stolen phone' })
    await gate.approvals.decide({ user: 'omar', tenant: 'acme', roles: ['approver'] }, approval?.id ?? '', {
      decision: 'approve',
    })
    for (const outcome of [await waiting, await call(VERA, 'files:write')]) {
      assert.equal(outcome.status, 'refused')
      assert.match(outcome.text, /is unavailable: stolen phone\./)
    }
    assert.equal((await gate.approvals.get(approval?.id ?? ''))?.status, 'approved')
  })

  it('reaches forks, and every gate over the same state', async () => {
    const state = memoryState()
    const one = setup({ state })
    const other = setup({ state })
    const fork = await one.gate.fork({}).view(VERA)
    await one.gate.halt({ user: 'vera', reason: 'r' })
    await new Promise(setImmediate)
    assert.deepEqual((await fork.call({ tool: 'files:read' })).status, 'refused')
    assert.deepEqual(await other.seen(VERA), [])
    assert.equal(other.gate.halts.length, 1)
    await other.gate.release({ user: 'vera' })
    await new Promise(setImmediate)
    assert.equal((await one.seen(VERA)).length, 3)
  })

  it('outlives its gate, in the state store', async () => {
    const state = memoryState()
    await setup({ state }).gate.halt({ tool: 'web:*', reason: 'r' })
    assert.deepEqual(await setup({ state }).seen(VERA), ['files:read', 'files:write'])
  })

  it('is recorded and told, as its release is', async () => {
    const { gate, audit } = setup()
    const notices: GateNotice[] = []
    gate.subscribe((notice) => notices.push(notice))
    await gate.halt({ user: 'vera', reason: 'stolen phone', by: 'olga' })
    await gate.release({ user: 'vera', by: 'olga' })
    assert.deepEqual(
      audit.records.map(({ event, user_id, detail }) => [event, user_id, detail]),
      [
        ['halt_set', 'olga', 'user vera: stolen phone'],
        ['halt_released', 'olga', 'user vera: stolen phone'],
      ],
    )
    assert.deepEqual(
      notices.map(({ event }) => event),
      ['halt-set', 'halt-released'],
    )
  })

  it('remembers who halted, and for whom he speaks, in the state store', async () => {
    const state = memoryState()
    const by = { by: 'olga', byTenant: 'acme' }
    await setup({ state }).gate.halt({ tenant: 'acme', tool: 'web:*', reason: 'r', ...by })
    const [halt] = setup({ state }).gate.halts
    assert.deepEqual([halt?.by, halt?.byTenant, halt?.target], ['olga', 'acme', { tenant: 'acme', tool: 'web:*' }])
  })

  it('said twice of the same is one halt, with the newer reason', async () => {
    const { gate } = setup()
    await gate.halt({ user: 'vera', reason: 'one' })
    await gate.halt({ reason: 'two', user: 'vera' })
    assert.deepEqual(
      gate.halts.map(({ reason }) => reason),
      ['two'],
    )
  })

  it('needs no reason, and shortens a long one', async () => {
    const { gate } = setup()
    for (const reason of [undefined, '', ' ']) await gate.halt({ user: 'vera', reason })
    await gate.halt({ user: 'omar', reason: 'x'.repeat(501) })
    assert.deepEqual(
      gate.halts.map(({ reason }) => reason),
      ['a person has halted it', `${'x'.repeat(499)}…`],
    )
  })

  it('halts a tool that the fixed list does not have', async () => {
    const { gate } = setup()
    await gate.halt({ tool: 'files:raed', reason: 'r' })
    assert.deepEqual(
      gate.halts.map(({ target }) => target),
      [{ tool: 'files:raed' }],
    )
  })

  const wrong: [object, RegExp][] = [
    [{ reason: 'r' }, /must name what to halt: all, session, tenant, tool, user/],
    [{ user: 'vera', reason: 5 }, /halt\.reason: must be a text/],
    [{ user: '', reason: 'r' }, /halt\.user: must be a text that is not empty/],
    [{ all: true, user: 'vera', reason: 'r' }, /halt\.all: cannot be combined with other fields/],
    [{ all: false, reason: 'r' }, /halt\.all: must be true/],
    [{ usr: 'vera', reason: 'r' }, /halt\.usr: unknown field/],
    [{ tool: 'group:none', reason: 'r' }, /group:none/],
  ]
  for (const [request, message] of wrong) {
    it(`refuses ${JSON.stringify(request)}`, async () => {
      const { gate } = setup()
      await assert.rejects(gate.halt(request as HaltRequest), message)
      assert.deepEqual(gate.halts, [])
    })
  }

  it('says that a release names nothing', async () => {
    await assert.rejects(setup().gate.release({ user: 'vera' }), { code: 'halt_unknown' })
  })

  describe('over a store that fails', () => {
    const failing = (parts: Partial<StateStore>): StateStore => ({ ...memoryState(), ...parts })

    it('is in force here, and says that the store did not take it', async () => {
      const { gate, seen } = setup({
        state: failing({
          set() {
            throw new Error('disk full')
          },
        }),
      })
      await assert.rejects(gate.halt({ user: 'vera', reason: 'r' }), { code: 'state_unavailable' })
      assert.deepEqual(await seen(VERA), [])
      await new Promise(setImmediate)
      assert.deepEqual(await seen(VERA), [])
    })

    it('is released where only the answer of the store was lost, and that is on record', async () => {
      const kept = memoryState()
      const { gate, audit, seen } = setup({
        state: {
          ...kept,
          take(key) {
            void kept.take(key)
            throw new Error('the connection was lost')
          },
        },
      })
      await gate.halt({ user: 'vera', reason: 'r' })
      await gate.release({ user: 'vera', by: 'olga' })
      assert.equal((await seen(VERA)).length, 3)
      assert.deepEqual(
        audit.records.map(({ event, user_id: by }) => [event, by]),
        [
          ['halt_set', undefined],
          ['halt_released', 'olga'],
        ],
      )
    })

    it('is over when it is released before a slow store had it', async () => {
      const kept = memoryState()
      const { gate, seen } = setup({
        state: {
          ...kept,
          async set(...args) {
            await new Promise(setImmediate)
            return kept.set(...args)
          },
        },
      })
      const halting = gate.halt({ user: 'vera', reason: 'r' })
      await gate.release({ user: 'vera' })
      await halting
      await new Promise(setImmediate)
      assert.deepEqual([gate.halts, await kept.list('halt:'), (await seen(VERA)).length], [[], [], 3])
    })

    it('does not wait for a store that hangs in what was asked of it before', async () => {
      let isFirst = true
      const kept = memoryState()
      const { gate } = setup({
        storeDeadlineMs: 5,
        state: {
          ...kept,
          set(...args) {
            const hangs = isFirst
            isFirst = false
            return hangs ? new Promise<never>(() => {}) : kept.set(...args)
          },
        },
      })
      const first = gate.halt({ user: 'vera', reason: 'r' })
      const second = gate.halt({ user: 'omar', reason: 'r' })
      await assert.rejects(first, { code: 'state_unavailable' })
      await second
      assert.equal((await kept.list('halt:')).length, 1)
    })

    it('holds everything back until the store has said what is halted', async () => {
      const answer = Promise.withResolvers<[]>()
      const { seen, call } = setup({ state: failing({ list: () => answer.promise }), pins: 'off' })
      assert.deepEqual(await seen(VERA), [])
      assert.match((await call(VERA, 'files:read')).text, /is unavailable: it is not known yet what is halted/)
      answer.resolve([])
      await new Promise(setImmediate)
      assert.equal((await seen(VERA)).length, 3)
    })

    it('goes on holding everything back when somebody halts before the store has said', async () => {
      const answer = Promise.withResolvers<[]>()
      const { gate, seen } = setup({ state: failing({ list: () => answer.promise }), pins: 'off' })
      void gate.halt({ user: 'vera', reason: 'r' })
      assert.deepEqual([await seen(VERA), await seen(OMAR)], [[], []])
    })

    it('halts all tools of whom a halt names that cannot be read', async () => {
      const state = memoryState()
      await state.set('halt:x', { target: { user: 'vera', tool: 'group:elsewhere' }, reason: 'r', at: 1 })
      const { seen } = setup({ state })
      assert.deepEqual([await seen(VERA), (await seen(OMAR)).length], [[], 3])
    })
  })
})
