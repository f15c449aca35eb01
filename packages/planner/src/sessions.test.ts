import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, ToolgateError } from '@toolgate/core'
import { memoryLock, memoryState, type SessionLock, type StateStore } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import fc from 'fast-check'
import type { PlannerEvent } from './events.ts'
import { identityOf, sessionKeyOf } from './pause/state.ts'
import { callOf, paused, setStage, VERA } from './testing/stage.ts'
import { runs as runsOf } from '../../testing/src/runs.ts'

/** Model answers that a test lets through one by one; each names what its run was asked. */
function createTaps() {
  const taps = new Map<string, PromiseWithResolvers<void>>()
  const tapOf = (name: string) => {
    let tap = taps.get(name)
    if (!tap) taps.set(name, (tap = Promise.withResolvers()))
    return tap
  }
  return { open: (name: string) => tapOf(name).resolve(), wait: (name: string) => tapOf(name).promise }
}

const turns = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A planner whose runs stop in `prepareStep` until they are let go, and that says in what order they begin. */
function stageOf(sessions: SessionLock = memoryLock()) {
  const taps = createTaps()
  const begun: string[] = []
  const stage = setStage({
    turns: ['Ok.'],
    planner: {
      sessions,
      async prepareStep({ context }) {
        begun.push(String(context))
        await taps.wait(String(context))
        return undefined
      },
    },
  })
  const run = (name: string, caller: Caller, options: object = {}) =>
    stage.planner.run({ prompt: name, context: name, caller, ...options })
  return { ...stage, taps, begun, run, sessions }
}

describe('runs of one session', () => {
  it('go one after the other, in the order of asking; those of others and of none at once', async () => {
    const { run, begun, taps } = stageOf()
    const runs = [
      run('a1', VERA),
      run('a2', VERA),
      run('b1', { ...VERA, session: 's2' }),
      run('c1', { ...VERA, tenant: 'beta' }),
      run('n1', { user: 'vera' }),
      run('n2', { user: 'vera' }),
    ]
    await turns()
    assert.deepEqual(begun.toSorted(), ['a1', 'b1', 'c1', 'n1', 'n2'])
    taps.open('a1')
    await runs[0]
    await turns()
    assert.deepEqual(begun.at(-1), 'a2')
    for (const name of ['a2', 'b1', 'c1', 'n1', 'n2']) taps.open(name)
    for (const result of await Promise.all(runs)) assert.equal(result.status, 'done')
  })

  it('keep the order of asking also where some have more to check than others', async () => {
    const { run, begun, taps, planner } = stageOf()
    const runs = [
      run('1', VERA, { activeTools: ['search'], visibility: async () => ['search'] }),
      run('2', VERA),
      run('3', VERA, { app: undefined, activeTools: [] }),
      planner.stream({ prompt: '4', context: '4', caller: VERA }).then(({ result }) => result),
    ]
    for (const name of ['1', '2', '3', '4']) taps.open(name)
    await Promise.all(runs)
    assert.deepEqual(begun, ['1', '2', '3', '4'])
  })

  it('leave no place in the queue behind when they are misuse', async () => {
    const { run, taps, sessions, events } = stageOf()
    const first = run('1', VERA)
    await assert.rejects(run('2', VERA, { activeTools: ['serach'] }), { code: 'tool_unknown' })
    const third = run('3', VERA)
    for (const name of ['1', '3']) taps.open(name)
    await Promise.all([first, third])
    assert.equal((sessions as ReturnType<typeof memoryLock>).size, 0)
    assert.equal(new Set(events.map(({ runId }) => runId)).size, 2)
  })

  it('are one session for all users of a tenant, by its id', async () => {
    const { run, begun, taps } = stageOf()
    const runs = [run('vera', VERA), run('ada', { ...VERA, user: 'ada' })]
    await turns()
    assert.deepEqual(begun, ['vera'])
    taps.open('vera')
    taps.open('ada')
    await Promise.all(runs)
  })

  it('leave the queue when they abort or wait too long, and say so, and no other loses its turn', async () => {
    const { run, begun, taps, events, sessions } = stageOf()
    const controller = new AbortController()
    const first = run('1', VERA)
    const second = run('2', VERA, { signal: controller.signal })
    const third = run('3', VERA, { queueDeadlineMs: 1 })
    const fourth = run('4', VERA)
    await turns()
    controller.abort('changed my mind')
    const aborted = await second
    const late = await third
    assert.ok(aborted.status === 'failed' && late.status === 'failed')
    assert.deepEqual([aborted.reason, aborted.error], ['aborted', 'changed my mind'])
    assert.equal(late.reason, 'queue_timeout')
    assert.deepEqual(begun, ['1'])
    const of = (runId: string) => events.filter((event: PlannerEvent) => event.runId === runId).map(({ type }) => type)
    assert.deepEqual(
      [of(aborted.runId), of(late.runId)],
      [
        ['run-queued', 'run-ended'],
        ['run-queued', 'run-ended'],
      ],
    )
    for (const name of ['1', '4']) taps.open(name)
    assert.deepEqual([(await first).status, (await fourth).status], ['done', 'done'])
    assert.equal((sessions as ReturnType<typeof memoryLock>).size, 0)
  })

  it('give their turn back however they end: failed, aborted, refused or paused', async () => {
    const sessions = memoryLock()
    const { planner, gate } = setStage({
      turns: (_, index) => {
        if (index === 0) throw new Error('down')
        return callOf('pay')
      },
      planner: { sessions },
    })
    const run = () => planner.run({ prompt: 'x', caller: VERA })
    assert.equal((await run()).status, 'failed')
    assert.equal(sessions.size, 0)
    const { resumeToken } = paused(await run())
    assert.equal(sessions.size, 0)
    const others = planner.fork({ policy: { deny: ['*'] } })
    await assert.rejects(others.fork({}).resume('no token', { caller: VERA }))
    await assert.rejects(planner.resume(resumeToken, { caller: VERA, approve: true, by: { user: 'eve' } }))
    assert.equal(sessions.size, 0)
    await gate.close()
    await run()
    assert.equal(sessions.size, 0)
  })

  it('are values also where the lock cannot be had, or cannot be given back', async () => {
    const broken = setStage({
      turns: ['Ok.'],
      planner: { sessions: { acquire: () => Promise.reject(new Error('down')) } },
    })
    const result = await broken.planner.run({ prompt: 'x', caller: VERA })
    assert.equal(result.status === 'failed' && result.reason, 'session_unavailable')
    assert.equal((await broken.planner.run({ prompt: 'x', caller: { user: 'vera' } })).status, 'done')

    const faults: unknown[] = []
    const release = () => Promise.reject(new Error('gone'))
    const stuck = setStage({
      turns: ['Ok.'],
      planner: {
        sessions: { acquire: () => Promise.resolve({ fencingToken: 1, release }) },
        onFault: (error) => faults.push(error),
      },
    })
    assert.equal((await stuck.planner.run({ prompt: 'x', caller: VERA })).status, 'done')
    assert.equal(faults.length, 1)
  })

  it('end when their turn is lost, as another may have it, and call nothing more', async () => {
    const losing = new AbortController()
    let released = 0
    const lease = { fencingToken: 1, lost: losing.signal, release: () => void released++ }
    const { planner, witness } = setStage({
      turns: (_, index) => {
        if (index === 1) losing.abort(new Error('another has it'))
        return callOf('search')
      },
      planner: { sessions: { acquire: () => Promise.resolve(lease) } },
    })
    for (const calls of [1, 1]) {
      const result = await planner.run({ prompt: 'x', caller: VERA })
      assert.ok(result.status === 'failed')
      assert.deepEqual([result.reason, (result.error as Error).message], ['aborted', 'another has it'])
      assert.equal(witness.ran.length, calls)
    }
    assert.equal(released, 2)
  })

  it('save no pause of a turn that was lost unseen: each write names its turn', async () => {
    const lease = { fencingToken: 7, lost: new AbortController().signal, release: () => {} }
    let isTaken = false
    const memory = memoryState({ clock: manualClock() })
    const fences: unknown[] = []
    const state: StateStore = {
      ...memory,
      set(key, value, options) {
        fences.push(options?.fence)
        if (isTaken) throw new ToolgateError('lock_lost', 'another has it')
        return memory.set(key, value, options)
      },
    }
    const keys = [{ id: 'k', secret: 'a secret of at least thirty-two bytes' }]
    const sessions = { acquire: () => Promise.resolve(lease) }
    const { planner } = setStage({ turns: () => callOf('pay'), planner: { sessions, state, keys } })
    paused(await planner.run({ prompt: 'x', caller: VERA }))
    assert.deepEqual(fences, [{ session: sessionKeyOf(VERA), fencingToken: 7 }])
    isTaken = true
    const late = await planner.run({ prompt: 'x', caller: VERA })
    assert.ok(late.status === 'failed')
    assert.equal(late.reason, 'pause_failed')
    assert.equal((late.error as ToolgateError).code, 'lock_lost')
  })

  it('keep their order within, and go independently between, whatever comes when', async () => {
    const action = fc.oneof(
      fc.record({ kind: fc.constant('run' as const), session: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ kind: fc.constant('go' as const), which: fc.nat(20) }),
      fc.record({ kind: fc.constant('abort' as const), which: fc.nat(20) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 25 }), async (actions) => {
        const { run, begun, taps, sessions } = stageOf()
        const over: string[] = []
        const runs: { name: string; session: string; controller: AbortController; result: ReturnType<typeof run> }[] =
          []
        for (const step of actions) {
          if (step.kind === 'run') {
            const [name, controller] = [`${step.session}${runs.length}`, new AbortController()]
            const result = run(name, { ...VERA, session: step.session }, { signal: controller.signal })
            void result.then(() => over.push(name))
            runs.push({ name, session: step.session, controller, result })
          } else {
            const chosen = runs[step.which % Math.max(1, runs.length)]
            if (step.kind === 'go' && chosen) taps.open(chosen.name)
            else chosen?.controller.abort()
          }
          await turns()
          for (const session of ['a', 'b', 'c']) {
            const isOf = (name: string) => name.startsWith(session)
            assert.ok(begun.filter(isOf).length - over.filter(isOf).length <= 1, 'one of a session is at work')
            const waiting = runs.filter((one) => one.session === session && !over.includes(one.name))
            if (waiting.length > 0)
              assert.ok(
                begun.filter(isOf).length > over.filter((name) => isOf(name) && begun.includes(name)).length,
                'and one is, whatever the others do',
              )
          }
        }
        for (const { name } of runs) taps.open(name)
        const results = await Promise.all(runs.map(({ result }) => result))
        for (const session of ['a', 'b', 'c']) {
          const asked = runs.filter((one) => one.session === session).map(({ name }) => name)
          const order = begun.filter((name) => name.startsWith(session))
          assert.deepEqual(
            order,
            asked.filter((name) => order.includes(name)),
            'in the order of asking',
          )
        }
        for (const [i, { status }] of results.entries())
          assert.ok(status === 'done' || runs[i]?.controller.signal.aborted)
        assert.equal((sessions as ReturnType<typeof memoryLock>).size, 0)
      }),
      runsOf(60, 60),
    )
  })
})

describe('sessionKeyOf', () => {
  it('is the same only for the same tenant and session', () => {
    const part = fc.option(fc.string({ unit: fc.constantFrom('a', ':', ',', '-', '1', '2') }), { nil: undefined })
    fc.assert(
      fc.property(part, part, part, part, (tenant, session, otherTenant, otherSession) => {
        fc.pre(!!session && !!otherSession)
        const same = tenant === otherTenant && session === otherSession
        assert.equal(
          sessionKeyOf({ tenant, session }) === sessionKeyOf({ tenant: otherTenant, session: otherSession }),
          same,
        )
      }),
      runsOf(1000, 1000),
    )
  })

  it('is none without a session', () => {
    assert.equal(sessionKeyOf({ tenant: 'acme', user: 'vera' }), undefined)
    assert.notEqual(sessionKeyOf({ session: '' }), undefined)
  })
})

describe('identityOf', () => {
  it('distinguishes callers by tenant, user, agent and session', () => {
    const texts = [
      VERA,
      { ...VERA, agent: 'x' },
      { ...VERA, user: 'v,4:era' },
      { ...VERA, tenant: undefined },
      { ...VERA, tenant: '' },
      { user: 'acme', tenant: 'vera', session: 's1' },
    ].map(identityOf)
    assert.equal(new Set(texts).size, texts.length)
    assert.equal(identityOf({ ...VERA, roles: ['a'], chat: { id: 'c' } }), identityOf(VERA))
  })
})
