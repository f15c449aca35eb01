import assert from 'node:assert/strict'
import { afterEach, describe, it, type TestContext } from 'node:test'
import { type CallOutcome, createGate, defineTool, type Gate } from '@toolgate/core'
import { LEASE_MS } from './lease.ts'
import { GRACE_MS, Membership } from './membership.ts'
import { FakeDatabase } from '../testing/fake-database.ts'

const VERA = { user: 'vera' }
const STEP_MS = 10

/** Lets the clock of a database and the timers of the process go on together. */
function timeOf(t: TestContext, database: FakeDatabase) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return async function pass(ms: number) {
    for (let left = ms; left > 0; left -= STEP_MS) {
      database.clock.advance(STEP_MS)
      t.mock.timers.tick(STEP_MS)
      for (let turns = 0; turns < 6; turns++) await new Promise(setImmediate)
    }
  }
}

const opened: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

interface One {
  readonly membership: Membership
  readonly gate: Gate
  call(tool?: string): Promise<CallOutcome>
  readonly faults: unknown[]
}

async function open(
  database: FakeDatabase,
  id: string,
  { isTold = true, isCut = () => false }: { isTold?: boolean; isCut?: () => boolean } = {},
): Promise<One> {
  const faults: unknown[] = []
  const { state, replicas } = database.connect(isCut)
  const { clock } = database
  const onFault = (error: unknown) => void faults.push(error)
  const membership = new Membership({ id, version: '1', state, replicas, clock, onFault })
  if (isTold) database.changes.subscribe(() => membership.hint())
  assert.equal(await membership.join(), true)
  const slow = defineTool({ name: 'slow', execute: () => new Promise(() => {}) })
  const tools = [defineTool({ name: 'read', execute: () => 'read' }), slow]
  const gate = createGate({ tools, state: membership.state, lease: membership, clock })
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  opened.push({ close: () => Promise.all([gate.close(), membership.close()]) })
  return { membership, gate, faults, call: async (tool = 'read') => (await gate.view(VERA)).call({ tool }) }
}

const codeOf = (outcome: CallOutcome) =>
  outcome.status === 'refused' ? outcome.decision.reasons[0]?.code : outcome.status

/** Resolves to whether a promise is settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  return (await Promise.race([promise, new Promise((resolve) => setImmediate(resolve, pending))])) !== pending
}

describe('Membership', () => {
  it('lets one live replica have an id, and another once that one is gone', async (t) => {
    const database = new FakeDatabase()
    timeOf(t, database)
    const first = await open(database, 'a')
    const connection = database.connect()
    const second = () =>
      new Membership({
        id: 'a',
        version: '1',
        ...connection,
        clock: database.clock,
        onFault: () => {},
      })
    assert.equal(await second().join(), false)
    await first.membership.close()
    const joined = second()
    assert.equal(await joined.join(), true)
    await joined.close()
  })

  it('names itself after its host, each time another name', () => {
    const { state, replicas } = new FakeDatabase().connect()
    const options = {
      config: undefined,
      version: '1',
      state,
      replicas,
      clock: new FakeDatabase().clock,
      onFault: () => {},
    }
    const [a, b] = [new Membership(options).self.id, new Membership(options).self.id]
    assert.match(a, /^[A-Za-z0-9][\w.-]{0,62}$/)
    assert.notEqual(a, b)
  })

  it('refuses every call once the database is silent for 2 s, and calls run again after its next answer', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { call, membership, faults } = await open(database, 'a')
    await pass(1000)
    assert.equal(codeOf(await call()), 'done')
    database.fault = () => {
      throw new Error('gone')
    }
    await pass(1400)
    assert.equal(codeOf(await call()), 'done')
    await pass(LEASE_MS - 1400)
    const refused = await call()
    assert.equal(codeOf(refused), 'replica_unsure')
    assert.ok(refused.status === 'refused')
    assert.match(
      refused.decision.reasons[0]?.text ?? '',
      /the database does not answer \(gone\); it was last confirmed/,
    )
    assert.deepEqual([faults.length, membership.lease.problem?.kind], [1, 'silent'])
    database.fault = () => {}
    await pass(600)
    assert.equal(codeOf(await call()), 'done')
  })

  it('gives running calls 10 s after its lease has lapsed, and ends none if it is back before', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { call } = await open(database, 'a')
    const running = call('slow')
    database.fault = () => {
      throw new Error('gone')
    }
    await pass(LEASE_MS + GRACE_MS - 1000)
    assert.equal(await isSettled(running), false)
    database.fault = () => {}
    await pass(1000)
    database.fault = () => {
      throw new Error('gone')
    }
    await pass(LEASE_MS + GRACE_MS - 1000)
    assert.equal(await isSettled(running), false)
    await pass(2000)
    assert.equal((await running).text, 'slow failed: this replica lost touch with the others')
  })

  it('applies what another replica has halted before its lease is renewed', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const a = await open(database, 'a')
    const b = await open(database, 'b', { isTold: false })
    await pass(500)
    assert.equal(codeOf(await b.call()), 'done')
    const halting = a.gate.halt({ all: true, reason: 'leak' })
    assert.equal(codeOf(await a.call()), 'halted')
    await pass(1000)
    assert.equal(codeOf(await b.call()), 'halted')
    await halting
  })

  it('answers a halt once every live replica has applied it', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const a = await open(database, 'a')
    const b = await open(database, 'b', { isTold: false })
    await pass(100)
    const halting = a.gate.halt({ all: true, reason: 'leak' })
    const beganMs = database.clock.monotonicMs()
    while (!(await isSettled(halting))) await pass(STEP_MS)
    assert.ok(database.clock.monotonicMs() - beganMs < 1000)
    assert.equal(codeOf(await b.call()), 'halted')
    assert.ok(database.rows.get('b')?.applied === database.revision)
    await halting
  })

  it('answers a halt 2 s later where a replica is silent, which then starts no call', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const a = await open(database, 'a')
    let isCut = false
    const b = await open(database, 'b', { isTold: false, isCut: () => isCut })
    await pass(500)
    isCut = true
    const halting = a.gate.halt({ all: true, reason: 'leak' })
    await pass(1400)
    assert.equal(await isSettled(halting), false)
    while (!(await isSettled(halting))) await pass(STEP_MS)
    assert.equal(codeOf(await b.call()), 'replica_unsure')
    assert.ok((database.rows.get('b')?.applied ?? 0) < database.revision)
  })

  it('confirms nothing on a new timeline or an older revision until a person accepts it', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { call, membership } = await open(database, 'a')
    const other = await open(database, 'b')
    const halting = other.gate.halt({ user: 'ann', reason: 'leak' })
    await pass(1000)
    await halting
    database.timeline = 'a/2'
    await pass(LEASE_MS + 500)
    assert.equal(codeOf(await call()), 'replica_unsure')
    assert.match(membership.lapse()?.text ?? '', /new timeline, a\/2: .*"toolgate replicas accept"/)
    database.timeline = 'a/1'
    await pass(1000)
    assert.equal(codeOf(await call()), 'done')
    database.revision -= 1
    await pass(LEASE_MS + 500)
    assert.match(membership.lapse()?.text ?? '', /has revision \d+, and had \d+: it lost changes/)
    await membership.accept()
    await pass(1000)
    assert.deepEqual([codeOf(await call()), codeOf(await other.call())], ['done', 'done'])
  })

  it('confirms nothing that was read after the primary was replaced', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { call, membership } = await open(database, 'a')
    const other = await open(database, 'b')
    await pass(1000)
    const before = database.rows.get('a')?.applied
    // A standby is promoted between the answer that names a newer revision and the reading of the state.
    membership.state.subscribe(() => {
      database.timeline = 'a/2'
    })
    const halting = other.gate.halt({ user: 'ann', reason: 'leak' })
    await pass(LEASE_MS + 500)
    await halting
    assert.equal(database.rows.get('a')?.applied, before)
    assert.equal(codeOf(await call()), 'replica_unsure')
  })

  it('does not start a call that a machine which slept would start, before it has asked', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { call } = await open(database, 'a')
    await pass(500)
    // Its clocks go on and its timers did not run: as after SIGCONT.
    database.clock.advance(60_000)
    assert.equal(codeOf(await call()), 'replica_unsure')
    await pass(1000)
    assert.equal(codeOf(await call()), 'done')
  })

  it('holds no lease on a state that something here could not apply, and says what', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { call, membership } = await open(database, 'a')
    let isBroken = true
    membership.state.subscribe((change) =>
      change?.waitUntil(isBroken ? Promise.reject(new Error('no room')) : Promise.resolve()),
    )
    await pass(1000)
    assert.equal(codeOf(await call()), 'done')
    void database.state.set('halt:x', { target: { user: 'ann' }, reason: 'leak', at: 0 })
    await pass(LEASE_MS + 500)
    assert.equal(codeOf(await call()), 'replica_unsure')
    assert.match(membership.lapse()?.text ?? '', /cannot apply the shared state \(no room\)/)
    assert.ok((database.rows.get('a')?.applied ?? 0) < database.revision)
    isBroken = false
    await pass(1000)
    assert.equal(codeOf(await call()), 'done')
  })

  it('tells the others what it runs, why it starts no call, and that it is about to end', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { membership } = await open(database, 'a')
    const wordOf = () => database.rows.get('a')?.word
    membership.say(() => ({ configuration: { id: 'c1', since: 7 }, file: 'f1' }))
    await pass(1000)
    assert.deepEqual(wordOf(), { configuration: { id: 'c1', since: 7 }, file: 'f1', refuses: undefined })
    membership.state.subscribe((change) => change?.waitUntil(Promise.reject(new Error('x'.repeat(1000)))))
    void database.state.set('halt:x', { target: { user: 'ann' }, reason: 'leak', at: 0 })
    await pass(LEASE_MS + 1000)
    assert.match(wordOf()?.refuses ?? '', /^it cannot apply the shared state \(x+$/)
    assert.equal(wordOf()?.refuses?.length, 500)
    membership.announceEnd()
    await pass(STEP_MS)
    assert.equal(wordOf()?.isStopping, true)
  })

  it('keeps refusing once another process has its id', async (t) => {
    const database = new FakeDatabase()
    const pass = timeOf(t, database)
    const { call, membership } = await open(database, 'a')
    await pass(500)
    const row = database.rows.get('a')
    assert.ok(row)
    database.rows.set('a', { ...row, incarnation: 'another' })
    await pass(LEASE_MS + 500)
    assert.equal(codeOf(await call()), 'replica_unsure')
    assert.match(membership.lapse()?.text ?? '', /another process has its id/)
  })
})
