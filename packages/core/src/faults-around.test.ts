import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from './audit/memory.ts'
import type { CallOutcome } from './call/outcome.ts'
import { createGate } from './gate/gate.ts'
import type { GateOptions } from './gate/options.ts'
import { Revision } from '@toolgate/values'
import { createHalts } from './state/halts.ts'
import { memoryApprovals } from './memory/approvals.ts'
import { memoryCounters } from './memory/counters.ts'
import { memoryState } from './memory/state.ts'
import type { MayApprove, MaybePromise, StateStore } from './ports/ports.ts'
import { redactor } from '@toolgate/values/redact'
import { late, openBrokenGate } from '../../testing/support/broken-gate.ts'
import { defineTool } from './tools/tool.ts'

const VERA = { user: 'vera', tenant: 'acme' }
const HOUR_MS = 60 * 60 * 1000
const YEAR_MS = 365 * 24 * HOUR_MS

function open(options: Omit<GateOptions, 'tools'> = {}) {
  const audit = memoryAudit()
  const faults: unknown[] = []
  const job = defineTool({ name: 'job', execute: () => 'ok' })
  const gate = createGate({ tools: [job], audit, onFault: (fault) => faults.push(fault), ...options })
  const call = async (): Promise<CallOutcome> => (await gate.view(VERA)).call({ tool: 'job' })
  return { gate, audit, faults, call }
}

function fail(): never {
  throw new Error('broken')
}

/** A store that fails in some methods for as long as it is broken. */
function breakable(breaks: Partial<Record<keyof StateStore, () => unknown>>) {
  const state = memoryState()
  const world = { isBroken: true, state: state as StateStore }
  const method = (name: keyof StateStore) => ({
    [name]: (...args: readonly unknown[]) => {
      const behave = world.isBroken ? breaks[name] : undefined
      return behave ? behave() : (state[name] as (...given: readonly unknown[]) => unknown)(...args)
    },
  })
  world.state = Object.assign(
    {},
    ...(['get', 'set', 'add', 'take', 'list', 'subscribe'] as const).map(method),
  ) as StateStore
  return world
}

const WAYS: Readonly<Record<string, () => unknown>> = {
  throws: fail,
  rejects: () => Promise.reject(new Error('broken')),
  hangs: () => new Promise(() => {}),
  'answers nonsense': () => 'nonsense',
  'answers nonsense later': () => Promise.resolve({ nonsense: true }),
}

describe('a state store', { concurrency: true }, () => {
  describe('whose list is not answered well', { concurrency: true }, () => {
    for (const [how, behave] of Object.entries(WAYS)) {
      it(`as it ${how}: holds everything back, and lets go when it works again`, async () => {
        const world = breakable({ list: behave })
        // Without pins, which write to the store and so have it read again.
        const { gate, call, audit } = open({ state: world.state, storeDeadlineMs: 20, pins: 'off' })
        const held = await call()
        assert.equal(held.text, 'job is unavailable: it is not known yet what is halted.')
        assert.equal(audit.records.filter(({ event }) => event === 'tool_blocked').length, 1)
        world.isBroken = false
        await eventually(async () => (await call()).status === 'done')
        await gate.close()
      })

      it(`as it ${how}: keeps back, in suspend mode, what is not known to be as it was`, async () => {
        const world = breakable({ list: behave })
        const halts = memoryState()
        const state: StateStore = {
          ...world.state,
          list: (prefix) => (prefix === 'halt:' ? halts.list(prefix) : world.state.list(prefix)),
        }
        const { gate, call } = open({ state, pins: 'suspend', storeDeadlineMs: 20 })
        const held = await call()
        assert.match(held.text, /^job is suspended: /)
        await gate.close()
      })
    }

    it('as it answers too late: says what was halted then, and not what an older answer said', async () => {
      const asked = Promise.withResolvers<[]>()
      const world = breakable({ list: () => asked.promise })
      const { gate, call } = open({ state: world.state, storeDeadlineMs: 20 })
      world.isBroken = false
      await gate.halt({ user: 'vera', reason: 'stolen phone' })
      asked.resolve([])
      await sleep(5)
      assert.match((await call()).text, /stolen phone/)
      await gate.close()
    })
  })

  for (const [how, behave] of Object.entries(WAYS)) {
    if (how.startsWith('answers')) continue
    it(`that ${how} when something is halted has it halted here, and says that it was not kept`, async () => {
      const { gate, call } = open({ state: breakable({ set: behave }).state, storeDeadlineMs: 20 })
      await assert.rejects(gate.halt({ user: 'vera', reason: 'stolen phone' }), { code: 'state_unavailable' })
      assert.match((await call()).text, /stolen phone/)
      await gate.close()
    })

    it(`that ${how} when something is released leaves it halted, and says so`, async () => {
      const { gate, call } = open({ state: breakable({ take: behave }).state, storeDeadlineMs: 20 })
      await gate.halt({ user: 'vera', reason: 'stolen phone' })
      await assert.rejects(gate.release({ user: 'vera' }), { code: 'state_unavailable' })
      assert.match((await call()).text, /stolen phone/)
      await gate.close()
    })
  }

  it('that takes a halt too late is asked no more to hold it back when it is released elsewhere', async () => {
    const state = memoryState()
    const writable = Promise.withResolvers<void>()
    const slow: StateStore = { ...state, set: (...args) => writable.promise.then(() => state.set(...args)) }
    const { gate, call } = open({ state: slow, storeDeadlineMs: 20 })
    await assert.rejects(gate.halt({ user: 'vera', reason: 'stolen phone' }), { code: 'state_unavailable' })
    writable.resolve()
    await eventually(async () => (await state.list('halt:')).length > 0)
    const other = open({ state })
    await other.gate.release({ user: 'vera' })
    await eventually(async () => (await call()).status === 'done')
    await Promise.all([gate.close(), other.gate.close()])
  })

  it('that cannot say when it changes is read again and again', async () => {
    const world = breakable({ subscribe: fail })
    const { gate, call, faults } = open({ state: world.state })
    assert.equal((await call()).status, 'done')
    assert.match(String(faults[0]), /broken/)
    await open({ state: world.state }).gate.halt({ user: 'vera', reason: 'stolen phone' })
    await eventually(async () => (await call()).text.includes('stolen phone'))
    await gate.close()
  })
})

describe('a state store that is slow', () => {
  it('or fails, has a halt in force here before it has it', async () => {
    const { gate, call } = open({
      state: breakable({ set: () => new Promise(() => {}), list: () => new Promise(() => {}) }).state,
    })
    void gate.halt({ user: 'vera', reason: 'stolen phone' }).catch(() => {})
    assert.match((await call()).text, /stolen phone/)
    await gate.close()
  })

  it('lets go of a halt that it never took, when that is released', async () => {
    const world = breakable({ set: fail })
    const { gate, call } = open({ state: world.state, pins: 'off' })
    await assert.rejects(gate.halt({ user: 'vera', reason: 'stolen phone' }), { code: 'state_unavailable' })
    world.isBroken = false
    await gate.release({ user: 'vera' })
    assert.equal((await call()).status, 'done')
    await gate.close()
  })

  it('has what cannot be read of it told to the host', async () => {
    const state = memoryState()
    await state.set('halt:x', { target: { tool: 'group:elsewhere' }, reason: 'r', at: 1 })
    const { gate, faults } = open({ state })
    assert.match(String(faults[0]), /group:elsewhere/)
    await gate.close()
  })

  it('is listened to no more when the gate is closed', async () => {
    let listening = 0
    const state = memoryState()
    const subscribe: StateStore['subscribe'] = (listener) => {
      listening++
      const end = state.subscribe(listener)
      return () => {
        listening--
        end()
      }
    }
    const { gate } = open({ state: { ...state, subscribe } })
    assert.ok(listening > 0)
    await gate.close()
    assert.equal(listening, 0)
  })

  it('is asked once a second, however much of it fails', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let asked = 0
    const faults: unknown[] = []
    const halts = createHalts({
      changes: new Revision(),
      state: {
        ...memoryState(),
        subscribe: fail,
        list() {
          asked++
          return fail()
        },
      },
      groups: () => new Map(),
      clock: { wallMs: () => 0 },
      onHalted: () => {},
      onFault: (fault) => faults.push(fault),
      deadlineMs: 1000,
    })
    for (let second = 0; second < 5; second++) t.mock.timers.tick(1000)
    assert.equal(asked, 6)
    assert.equal(faults.length, 12)
    halts.close()
    t.mock.timers.tick(5000)
    assert.equal(asked, 6)
  })
})

describe('what a host gives', { concurrency: true }, () => {
  const reject = () => Promise.reject(new Error('broken'))
  for (const [how, listener] of [
    ['throws', fail],
    ['rejects', reject],
  ] as const) {
    it(`may fail where it listens: a subscriber that ${how} stops nobody else, and changes no answer`, async () => {
      const { gate, call, faults } = open({ policy: { ask: ['job'] } })
      const heard: string[] = []
      gate.subscribe(listener as () => void)
      gate.subscribe(({ event }) => heard.push(event))
      assert.equal((await call()).status, 'waiting')
      await gate.halt({ user: 'omar', reason: 'r' })
      await sleep(1)
      assert.deepEqual(heard, ['approval-requested', 'halt-set'])
      assert.equal(faults.length, 2)
    })

    it(`may fail where it hears of faults: an onFault that ${how} ends nothing`, async () => {
      const { call, gate } = open({ hooks: { afterToolCall: fail }, onFault: listener as () => void })
      assert.equal((await call()).status, 'done')
      gate.subscribe(fail)
      await gate.halt({ user: 'omar', reason: 'r' })
      await sleep(1)
    })
  }

  for (const answer of [Promise.resolve(false), Promise.resolve(true), 'yes', 1, {}]) {
    it(`lets nobody approve with ${answer instanceof Promise ? 'a promise' : JSON.stringify(answer)} for a yes`, async () => {
      const mayApprove = (() => answer) as unknown as MayApprove
      const { gate, call } = open({ policy: { ask: ['job'] }, mayApprove })
      await call()
      const [pending] = await gate.approvals.list()
      const deciding = gate.approvals.decide(VERA, pending?.id ?? '', { decision: 'approve' })
      await assert.rejects(deciding, { code: 'approval_forbidden' })
      assert.equal((await call()).status, 'waiting')
    })
  }

  it('may fail where it redacts: the record is one all the same, and shows nothing of what it could not redact', async () => {
    const audit = memoryAudit({ redact: { redactText: fail, redactValue: fail } })
    const { call, gate, faults } = open({ audit, redactor: { redactText: fail, redactValue: fail } })
    const hooks = { beforeToolCall: fail }
    const view = await gate.view(VERA)
    assert.equal((await view.call({ tool: 'job', hooks })).status, 'refused')
    assert.equal((await view.call({ tool: 'nothing' })).status, 'refused')
    assert.equal((await call()).status, 'done')
    assert.equal(faults.length, 2)
    const notShown = '[not shown: it could not be redacted]'
    assert.deepEqual(
      audit.records.map(({ event, tool, detail, input_preview: preview }) => [event, tool, detail, preview]),
      [
        ['tool_blocked', 'job', notShown, undefined],
        ['tool_blocked', notShown, notShown, undefined],
        ['tool_call', 'job', undefined, undefined],
        ['tool_result', 'job', undefined, undefined],
      ],
    )
  })

  it('redacts the audit that a gate has when it is given none', async () => {
    const seen: string[] = []
    const watched = { ...redactor, redactValue: (value: unknown) => (seen.push(JSON.stringify(value)), '[kept]') }
    const { call, gate } = open({ audit: undefined as never, redactor: watched })
    void gate
    await call()
    await eventually(() => seen.length > 0)
    assert.deepEqual(seen, ['{}'])
  })

  it('may fail where it names tools: the refusal names none', async () => {
    const { gate, faults } = open()
    const outcome = await (await gate.view(VERA)).call({ tool: 'nothing', nameOf: fail })
    assert.equal(outcome.text, 'Tool "nothing" is not available. Available tools: (none).')
    assert.match(String(faults[0]), /broken/)
  })
})

describe('a visibility', () => {
  const failing: Readonly<Record<string, unknown>> = {
    throws: () => fail(),
    rejects: () => Promise.reject(new Error('broken')),
    hangs: () => new Promise(() => {}),
    'rejects late': () => sleep(30).then(fail),
    'answers a number': () => 7,
    'answers what throws when it is read': () => ({ [Symbol.iterator]: fail }),
    'is no list': { job: true },
  }
  for (const [how, visibility] of Object.entries(failing)) {
    it(`that ${how} leaves nothing to see, and says why`, async () => {
      const { gate, audit } = open({ visibilityDeadlineMs: 10 })
      const view = await gate.view(VERA, { visibility: visibility as readonly string[] })
      assert.deepEqual(view.ids, [])
      assert.equal(typeof view.failure, 'string')
      assert.equal((await view.call({ tool: 'job' })).status, 'refused')
      assert.equal(audit.records.length, 1)
      await sleep(how === 'rejects late' ? 40 : 0)
    })
  }
})

/** A clock of a host that somebody sets. */
function settableClock() {
  const clock = { wall: 2_000_000_000_000, monotonic: 1_000_000 }
  return {
    clock: { wallMs: () => clock.wall, monotonicMs: () => clock.monotonic },
    pass(ms: number) {
      clock.wall += ms
      clock.monotonic += ms
    },
    setWall: (byMs: number) => void (clock.wall += byMs),
    setMonotonic: (byMs: number) => void (clock.monotonic += byMs),
  }
}

describe('a clock that is set', () => {
  for (const [what, byMs] of [
    ['back an hour', -HOUR_MS],
    ['on a year', YEAR_MS],
  ] as const) {
    it(`${what}, as people read it, gives no limit more and takes none away`, async () => {
      const { clock, pass, setWall } = settableClock()
      const { call } = open({ clock, limits: 'job:1/60' })
      assert.equal((await call()).status, 'done')
      setWall(byMs)
      assert.equal((await call()).text, 'TOOL_CALL_BLOCKED: rate limited (1/60). Try again in 60 s.')
      pass(60_000)
      assert.equal((await call()).status, 'done')
    })

    it(`${what}, as people read it, ends no execution, and records the time as it is read`, async () => {
      const { clock, setWall } = settableClock()
      const { gate, audit } = open({ clock, hooks: { beforeToolCall: () => setWall(byMs) } })
      const before = clock.wallMs()
      const outcome = await (await gate.view(VERA)).call({ tool: 'job' })
      assert.ok(outcome.status === 'done')
      assert.equal(outcome.durationMs, 0)
      assert.deepEqual(
        audit.records.map(({ ts, event }) => [event, ts]),
        [
          ['tool_call', new Date(before + byMs).toISOString()],
          ['tool_result', new Date(before + byMs).toISOString()],
        ],
      )
    })

    it(`${what}, as people read it, releases no halt`, async () => {
      const { clock, setWall } = settableClock()
      const { gate, call } = open({ clock, state: memoryState({ clock }) })
      await gate.halt({ user: 'vera', reason: 'stolen phone' })
      setWall(byMs)
      assert.match((await call()).text, /stolen phone/)
      await gate.release({ user: 'vera' })
      assert.equal((await call()).status, 'done')
    })
  }

  it('on a year expires approvals, and back an hour ends those that would live longer by it', async () => {
    const { clock, setWall } = settableClock()
    const { gate, call } = open({ clock, policy: { ask: ['job'] } })
    const approve = async () => {
      for (const { id } of await gate.approvals.list({ status: 'pending' }))
        await gate.approvals.decide(VERA, id, { decision: 'approve' })
    }
    await call()
    await approve()
    setWall(YEAR_MS)
    assert.equal((await call()).status, 'waiting')
    await approve()
    setWall(-HOUR_MS)
    assert.equal((await call()).status, 'waiting')
    await approve()
    assert.equal((await call()).status, 'done')
    assert.equal((await call()).status, 'waiting')
  })

  it('back an hour, where it should never go back, gives no limit more and holds none up for an hour', async () => {
    const { clock, pass, setMonotonic } = settableClock()
    const { call, audit } = open({ clock, limits: 'job:1/60' })
    assert.equal((await call()).status, 'done')
    setMonotonic(-HOUR_MS)
    assert.match((await call()).text, /Try again in 60 s/)
    pass(60_000)
    assert.equal((await call()).status, 'done')
    for (const { duration_ms } of audit.records) assert.ok(duration_ms === undefined || duration_ms >= 0)
  })

  it('back an hour, where it should never go back, leaves every execution and every wait its deadline', async () => {
    let backMs = 0
    const clock = { wallMs: () => Date.now(), monotonicMs: () => performance.now() - backMs }
    const { gate } = open({ clock, hooks: { beforeToolCall: () => void (backMs += HOUR_MS) } })
    const slow = defineTool({ name: 'slow', execute: () => new Promise(() => {}) })
    const other = createGate({ tools: [slow], clock, deadlineMs: 20, hooks: { beforeToolCall: () => {} } })
    const view = await other.view(VERA)
    const first = view.call({ tool: 'slow' })
    await (await gate.view(VERA)).call({ tool: 'job' })
    const second = view.call({ tool: 'slow' })
    for (const outcome of [await first, await second]) assert.equal(outcome.text, 'slow failed: no answer in 0.02 s')
  })

  it('on a year, where it should never jump, ends what runs and lets the next call run', async () => {
    let onMs = 0
    const clock = { wallMs: () => Date.now(), monotonicMs: () => performance.now() + onMs }
    const world = await openBrokenGate({
      clock,
      counters: memoryCounters({ clock }),
      approvals: memoryApprovals(),
      breaks: {
        tool: late(() => {
          onMs += YEAR_MS
          return new Promise(() => {})
        }),
      },
    })
    assert.equal((await world.callBroken()).status, 'failed')
    assert.equal((await world.callWell('next')).status, 'done')
  })
})

async function eventually(holds: () => MaybePromise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
