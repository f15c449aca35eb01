import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type MemoryAudit, memoryAudit } from '../audit/memory.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { memoryAvailability } from '../memory/availability.ts'
import { memoryCounters } from '../memory/counters.ts'
import { type ApprovalStore, type AuditSink, type CounterStore, TERMINAL_EVENTS } from '../ports/ports.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { toPolicy } from '../../../testing/support/policies.ts'
import { wordOf } from '../call/outcome.ts'
import { isNoWider, openWorld, viewOptionsOf, worldWithMore, idsIn, inputOf } from '../../../testing/support/worlds.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool } from '../tools/tool.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('a change between the view and the call', () => {
  it('holds at once where it tightens, and not at all where it widens', async () => {
    await fc.assert(
      fc.asyncProperty(
        worldWithMore,
        fc.record({ policy: fc.boolean(), up: fc.subarray(['g1', 'g2', 'constructor']), gone: fc.nat(7) }),
        async ({ world, more }, change) => {
          const { gate, tools, availability, ran, offer } = openWorld(world)
          const old = await gate.view(world.caller, viewOptionsOf(world))
          const before = new Map(tools.map(({ id }) => [id, old.explain(id).outcome]))
          const listed = idsIn(old)

          gate.setPolicy(change.policy ? more.map(toPolicy) : world.policies.slice(1).map(toPolicy))
          for (const name of Object.keys(world.groups)) availability.set(name, { available: change.up.includes(name) })
          offer(tools.map(({ id }) => id).filter((_, i) => i !== change.gone))
          const today = await gate.view(world.caller, viewOptionsOf(world))

          assert.deepEqual(idsIn(old), listed, 'a view is a snapshot')
          for (const item of tools) {
            const { id } = item
            const outcome = await old.call({ tool: id, input: inputOf(world, item) })
            assert.ok(isNoWider(wordOf(outcome), today.explain(id).outcome), `${id}: not as strict as today`)
            assert.ok(isNoWider(wordOf(outcome), before.get(id) ?? 'deny'), `${id}: wider than the view`)
            assert.ok(isNoWider(old.narrow({}).explain(id).outcome, today.explain(id).outcome))
          }
          for (const id of ran.keys()) assert.ok(today.has(id) && listed.includes(id), `${id} ran`)
        },
      ),
      runs(300),
    )
  })

  it('shows a tool again in the next step once its group is back, and not in the view of before', async () => {
    const { gate, availability, search } = bench({ up: false })
    const view = await gate.view({})
    availability.set('web', { available: true })
    assert.deepEqual([view.ids, view.narrow({}).ids], [[], [search.id]])
    assert.equal((await view.call({ tool: search.id })).status, 'refused')
    assert.equal((await view.narrow({}).call({ tool: search.id })).status, 'done')
  })

  it('does not let a run have a tool that came after its view, nor one that its policy came to allow', async () => {
    const { gate, search } = bench({ policy: { deny: ['web:search'] } })
    const view = await gate.view({})
    gate.setPolicy([])
    assert.equal((await gate.view({})).has(search.id), true)
    assert.equal((await view.narrow({}).call({ tool: search.id })).status, 'refused')
  })

  it('names no tool, in a refusal, that has been hidden since', async () => {
    const { gate } = bench({})
    const view = await gate.view({})
    gate.setPolicy({ deny: ['web:*'] })
    const outcome = await view.call({ tool: 'web:search' })
    assert.equal(outcome.text, 'Tool "web:search" is not available. Available tools: (none).')
  })
})

describe('a change between two calls of a view', () => {
  const rows: readonly (readonly [what: string, change: (world: Changed) => unknown, code: string])[] = [
    ['the policy', ({ gate }) => gate.setPolicy({ deny: ['web:search'] }), 'policy_denied'],
    ['a policy above', ({ parent }) => parent.setPolicy({ deny: ['web:search'] }), 'policy_denied'],
    ['the catalog', ({ offer }) => offer([]), 'tool_not_found'],
    ['a pinned definition', ({ offer }) => offer([changedSearch]), 'tool_suspended'],
    ['the locks of a session', ({ gate }) => gate.locks.forget(CALLER), 'group_locked'],
    ['a group', ({ availability }) => availability.set('web', { available: false }), 'group_unavailable'],
    ['a halt', ({ gate }) => void gate.halt({ tool: 'web:search', reason: 'stop' }), 'halted'],
    [
      'what the user switched off',
      ({ gate }) => gate.preferences.set(CALLER, { groups: [], tools: ['web:search'] }),
      'switched_off',
    ],
  ]
  for (const [what, change, code] of rows) {
    it(`is seen by the second: ${what}`, async () => {
      const world = await openChanged()
      const { view } = world
      assert.equal((await view.call({ tool: 'web:search' })).status, 'done')
      const changing = change(world)
      if (changing instanceof Promise) await changing
      const outcome = await view.call({ tool: 'web:search' })
      assert.equal(outcome.status === 'refused' && outcome.decision.reasons[0]?.code, code)
      await world.parent.close()
    })
  }

  it('is seen by the next view, too: a definition that a person accepts', async () => {
    const { gate, offer, parent } = await openChanged()
    offer([changedSearch])
    assert.deepEqual((await gate.view(CALLER)).ids, [])
    const hash = gate.pins.list().find(({ tool }) => tool === 'web:search')?.hash ?? ''
    await gate.pins.accept('web:search', { hash, by: 'vera' })
    assert.deepEqual((await gate.view(CALLER)).ids, ['web:search'])
    await parent.close()
  })
})

const CALLER = { user: 'vera', session: 's1' }
const changedSearch = defineTool({ namespace: 'web', name: 'search', description: 'It sends, too.', execute: () => 1 })

type Changed = Awaited<ReturnType<typeof openChanged>>

/** A fork, and the view of a caller who may call the one tool. */
async function openChanged() {
  let offered = [defineTool({ namespace: 'web', name: 'search', execute: () => 1 })]
  let announce = () => {}
  const source: Source = {
    name: 'live',
    tools: () => offered,
    subscribe(listener) {
      announce = listener
      return () => {}
    },
  }
  const availability = memoryAvailability({ web: { available: true } })
  const parent = createGate({
    sources: [source],
    groups: { web: { tools: ['web:*'], visibility: 'conditional', unlock: 'request' } },
    availability,
    pins: 'suspend',
  })
  const gate = parent.fork({ policy: [] })
  gate.locks.request(CALLER, 'web')
  const view = await gate.view(CALLER)
  const offer = (tools: typeof offered) => {
    offered = tools
    announce()
  }
  return { parent, gate, view, availability, offer }
}

describe('a change between deciding and executing', () => {
  const stages = ['limit', 'approval request', 'approval', 'audit'] as const
  const changes: readonly (readonly [what: string, change: (world: Bench) => void, code: string])[] = [
    ['a policy that denies', ({ gate }) => gate.setPolicy({ deny: ['web:search'] }), 'policy_denied'],
    [
      'a policy that denies this input',
      ({ gate }) => gate.setPolicy({ deny: [{ match: '*', input: "input.q == 'x'" }] }),
      'input_denied',
    ],
    [
      'a policy that fails',
      ({ gate }) => gate.setPolicy({ deny: [{ match: '*', when: "caller.user == ''" }] }),
      'policy_error',
    ],
    ['a tool that is gone', ({ offer }) => offer([]), 'tool_not_found'],
    ['a session that is forgotten', ({ gate }) => gate.locks.forget(SESSION), 'group_locked'],
    ['a group that is down', ({ availability }) => availability.set('web', { available: false }), 'group_unavailable'],
  ]
  for (const stage of stages) {
    for (const [what, change, code] of changes) {
      it(`keeps the tool from running: ${what}, while the ${stage} is awaited`, async () => {
        const world = bench({ policy: { ask: ['web:search'] }, pauseAt: stage })
        const view = await world.gate.view(SESSION)
        await approve(world)
        const running = view.call({ tool: 'web:search', input: { q: 'x' } })
        await world.paused
        change(world)
        world.resume()
        const outcome = await running
        assert.equal(outcome.status, 'refused')
        assert.equal(outcome.decision.reasons[0]?.code, code)
        assert.equal(world.ran(), 0)
        await assertNothingTaken(world)
      })
    }
  }

  it('keeps a tool from running that has come to need an approval, and says to call again', async () => {
    const world = bench({ pauseAt: 'limit' })
    const view = await world.gate.view({})
    const running = view.call({ tool: 'web:search', input: { q: 'x' } })
    await world.paused
    world.gate.setPolicy({ ask: ['web:search'] })
    world.resume()
    const outcome = await running
    assert.equal(outcome.status, 'refused')
    assert.equal(outcome.text, 'TOOL_CALL_BLOCKED: it has come to need an approval; call again to ask for one')
    assert.equal(world.ran(), 0)
    assert.equal((await view.call({ tool: 'web:search', input: { q: 'x' } })).status, 'waiting')
  })

  it('keeps a tool from running whose definition has changed, and says so', async () => {
    const world = bench({ pauseAt: 'limit' })
    const view = await world.gate.view({})
    const running = view.call({ tool: 'web:search', input: { q: 'x' } })
    await world.paused
    world.offer([defineTool({ namespace: 'web', name: 'search', execute: () => assert.fail('ran') })])
    world.resume()
    const outcome = await running
    assert.equal(outcome.status === 'refused' && outcome.decision.reasons[0]?.code, 'tool_changed')
    assert.equal(world.ran(), 0)
    await assertNothingTaken(world)
  })

  for (const stage of stages) {
    it(`keeps the tool from running when its caller goes away while the ${stage} is awaited`, async () => {
      const world = bench({ policy: { ask: ['web:search'] }, pauseAt: stage })
      const view = await world.gate.view({})
      await approve(world)
      const controller = new AbortController()
      const running = view.call({ tool: 'web:search', input: { q: 'x' }, signal: controller.signal })
      await world.paused
      controller.abort()
      world.resume()
      const outcome = await running
      assert.equal(outcome.status === 'refused' && outcome.decision.reasons[0]?.code, 'caller_gone')
      assert.equal(world.ran(), 0)
      await assertNothingTaken(world, 'tool_abandoned')
    })
  }

  for (const stage of stages) {
    it(`lets a widening pass by: the call goes on after the ${stage} as it began`, async () => {
      const world = bench({ policy: { ask: ['web:search'] }, pauseAt: stage })
      const view = await world.gate.view({})
      await approve(world)
      const running = view.call({ tool: 'web:search', input: { q: 'x' } })
      await world.paused
      world.gate.setPolicy([])
      world.resume()
      assert.equal((await running).status, 'done')
      assert.equal(world.ran(), 1)
    })
  }
})

/** Has opened the group of the tool. */
const SESSION = { session: 's1' }

type Stage = 'limit' | 'approval request' | 'approval' | 'audit'

interface Bench {
  readonly gate: Gate
  readonly availability: ReturnType<typeof memoryAvailability>
  readonly search: ReturnType<typeof defineTool>
  readonly audit: MemoryAudit
  readonly counters: CounterStore
  readonly approvals: ApprovalStore
  readonly paused: Promise<void>
  resume(): void
  offer(tools: readonly ReturnType<typeof defineTool>[]): void
  ran(): number
}

/** One tool behind a limit of one call, whose stores answer when they are told to. */
function bench({
  policy = [],
  up = true,
  pauseAt,
}: {
  policy?: Parameters<Gate['setPolicy']>[0]
  up?: boolean
  pauseAt?: Stage
}): Bench {
  let count = 0
  const search = defineTool({ namespace: 'web', name: 'search', execute: () => ++count })
  let offered: readonly (typeof search)[] = [search]
  const listeners = new Set<() => void>()
  const source: Source = {
    name: 'live',
    tools: () => offered,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const clock = manualClock()
  const pausing = Promise.withResolvers<void>()
  const resuming = Promise.withResolvers<void>()
  const pause = async (stage: Stage): Promise<void> => {
    if (stage !== pauseAt) return
    pausing.resolve()
    await resuming.promise
  }
  const counters = memoryCounters({ clock })
  const approvals = memoryApprovals()
  const audit = memoryAudit()
  const slowCounters: CounterStore = {
    peek: (uses) => counters.peek(uses),
    async take(uses) {
      const answer = counters.take(uses)
      await pause('limit')
      return answer
    },
    giveBack: (uses, taken) => counters.giveBack(uses, taken),
    settle: counters.settle,
  }
  const slowApprovals: ApprovalStore = {
    ...approvals,
    async request(...asked) {
      const approval = await approvals.request(...asked)
      await pause('approval request')
      return approval
    },
    async consume(...asked) {
      const consumed = await approvals.consume(...asked)
      await pause('approval')
      return consumed
    },
  }
  const slowAudit: AuditSink = {
    ...audit,
    async write(entry) {
      audit.write(entry)
      if (entry.event === 'tool_call') await pause('audit')
    },
  }
  const availability = memoryAvailability({ web: { available: up } })
  const gate = createGate({
    sources: [source],
    groups: { web: { tools: ['web:*'], visibility: 'conditional', unlock: 'request' } },
    policy,
    availability,
    limits: 'web:search:1/60',
    clock,
    counters: slowCounters,
    approvals: slowApprovals,
    // A sink that answers at once has no second look after it.
    audit: pauseAt === 'audit' ? slowAudit : audit,
  })
  gate.locks.request(SESSION, 'web')
  return {
    gate,
    availability,
    search,
    audit,
    counters,
    approvals,
    paused: pausing.promise,
    resume: () => resuming.resolve(),
    offer(tools) {
      offered = tools
      for (const listener of listeners) listener()
    },
    ran: () => count,
  }
}

/** A person has approved the call already, through a gate of the same store. */
async function approve({ approvals, search, gate: { approvals: people } }: Bench): Promise<void> {
  const gate = createGate({
    tools: [search],
    policy: { ask: ['web:search'] },
    approvals,
    clock: manualClock(),
  })
  const outcome = await (await gate.view({})).call({ tool: 'web:search', input: { q: 'x' } })
  assert.equal(outcome.status, 'waiting')
  await people.decide({ roles: ['approver'] }, outcome.approval.id, { decision: 'approve' })
}

/** The limit and the approval are there for the next call, and the attempt has one terminal record. */
async function assertNothingTaken({ counters, approvals, audit }: Bench, event = 'tool_blocked'): Promise<void> {
  const uses = { max: 1, windowMs: 60_000 }
  const key = '10:web:search/60000|-|10:web:search|-|-'
  assert.equal((await counters.take([{ key, ...uses }])).allowed, true)
  assert.equal((await counters.take([{ key, ...uses }])).allowed, false, 'this is the key of the limit')
  const statuses = (await approvals.list({}, 1_000_000)).map(({ status }) => status)
  assert.ok(statuses.every((status) => status === 'approved'))
  const terminal = audit.records.filter((record) => TERMINAL_EVENTS.has(record.event))
  assert.deepEqual(
    terminal.map((record) => record.event),
    [event],
  )
}
