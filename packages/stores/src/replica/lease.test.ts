import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { RenewedLease, LEASE_MS, type Position, type Sent } from './lease.ts'

/** A machine with true time, which no program can read, and its two clocks. */
class Machine {
  trueMs = 0
  #monotonicMs = 5_000
  #wallMs = 1_700_000_000_000
  readonly clock = { monotonicMs: () => this.#monotonicMs, wallMs: () => this.#wallMs }

  pass(ms: number): void {
    this.trueMs += ms
    this.#monotonicMs += ms
    this.#wallMs += ms
  }

  suspend(ms: number): void {
    this.trueMs += ms
    this.#wallMs += ms
  }

  setWall(byMs: number): void {
    this.#wallMs += byMs
  }
}

const at = (revision: number, more: Partial<Position> = {}): Position => ({
  revision,
  timeline: 'a/1',
  isAccepted: true,
  ...more,
})

function setup() {
  const machine = new Machine()
  const lease = new RenewedLease(machine.clock)
  const renew = () => {
    const sent = lease.send()
    lease.confirm(sent)
    return sent
  }
  return { machine, lease, renew }
}

describe('Lease', () => {
  it('does not hold before the first answer', () => {
    const { lease } = setup()
    assert.deepEqual([lease.holds, lease.ageMs], [false, undefined])
    lease.send()
    assert.equal(lease.holds, false)
  })

  it('holds for less than 2 s from the sending, and not from the answer', () => {
    const { machine, lease } = setup()
    const sent = lease.send()
    machine.pass(1500)
    lease.confirm(sent)
    assert.equal(lease.holds, true)
    machine.pass(499)
    assert.equal(lease.holds, true)
    machine.pass(1)
    assert.equal(lease.holds, false)
  })

  it('is not renewed by an answer that comes 2 s after its query', () => {
    const { machine, lease } = setup()
    const sent = lease.send()
    machine.pass(LEASE_MS)
    lease.confirm(sent)
    assert.equal(lease.holds, false)
  })

  it('is not shortened by the late answer of an earlier query', () => {
    const { machine, lease } = setup()
    const first = lease.send()
    machine.pass(500)
    const second = lease.send()
    lease.confirm(second)
    lease.confirm(first)
    machine.pass(1600)
    assert.equal(lease.holds, true)
  })

  it('lapses in a machine that was suspended: its monotonic clock stood still', () => {
    const { machine, lease, renew } = setup()
    renew()
    machine.suspend(LEASE_MS)
    assert.equal(lease.holds, false)
    renew()
    assert.equal(lease.holds, true)
  })

  it('lapses when the wall clock is set back an hour or forward an hour, and holds again with the next answer', () => {
    const { machine, lease, renew } = setup()
    for (const hour of [-3_600_000, 3_600_000]) {
      renew()
      machine.setWall(hour)
      assert.equal(lease.holds, false)
      renew()
      assert.equal(lease.holds, true)
      machine.pass(1999)
      assert.equal(lease.holds, true)
    }
  })

  it('finds a revision older than the last one, and a timeline that nobody accepted', () => {
    const { lease } = setup()
    assert.equal(lease.look(at(7)), undefined)
    assert.equal(lease.look(at(7)), undefined)
    assert.deepEqual(lease.look(at(6)), { kind: 'older', revision: 6, seen: 7 })
    assert.deepEqual(lease.look(at(9, { timeline: 'a/2', isAccepted: false })), { kind: 'timeline', timeline: 'a/2' })
    assert.deepEqual([lease.doubt?.kind, lease.seen], ['timeline', 7])
    assert.deepEqual(lease.look(at(6)), { kind: 'older', revision: 6, seen: 7 })
    assert.equal(lease.look(at(8, { timeline: 'a/2' })), undefined)
    assert.deepEqual([lease.doubt, lease.seen], [undefined, 8])
  })

  it('ends at once when it is dropped', () => {
    const { lease, renew } = setup()
    renew()
    lease.drop()
    assert.equal(lease.holds, false)
  })
})

type Step =
  | { readonly do: 'pass' | 'suspend' | 'setWall'; readonly ms: number }
  | { readonly do: 'send' }
  | { readonly do: 'answer'; readonly which: number }

const steps = (disturbances: fc.Arbitrary<Step>): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 900 }) }) },
      { weight: 3, arbitrary: fc.constant<Step>({ do: 'send' }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(50) }) },
      { weight: 1, arbitrary: disturbances },
    ),
    { maxLength: 60 },
  )

/** Runs the steps, and calls `check` after each with the true time of the newest query that is confirmed. */
function play(
  all: readonly Step[],
  check: (lease: RenewedLease, machine: Machine, confirmedMs: number | undefined) => void,
) {
  const machine = new Machine()
  const lease = new RenewedLease(machine.clock)
  const queries: { readonly sent: Sent; readonly trueMs: number }[] = []
  let newest: (typeof queries)[number] | undefined
  for (const step of all) {
    if (step.do === 'send') queries.push({ sent: lease.send(), trueMs: machine.trueMs })
    else if (step.do === 'answer') {
      const query = queries[step.which % Math.max(1, queries.length)]
      if (!query) continue
      lease.confirm(query.sent)
      if (!newest || query.sent.count > newest.sent.count) newest = query
    } else machine[step.do](step.ms)
    check(lease, machine, newest?.trueMs)
  }
}

describe('a lease in any history', () => {
  const suspended = fc.record({ do: fc.constant('suspend' as const), ms: fc.integer({ min: 1, max: 10_000_000 }) })
  const clockSet = fc.record({
    do: fc.constant('setWall' as const),
    ms: fc.oneof(fc.integer({ min: -7_200_000, max: 7_200_000 }), fc.integer({ min: -900, max: 900 })),
  })

  for (const [name, disturbance] of [
    ['that is suspended at any time', suspended],
    ['whose wall clock is set to anything at any time', clockSet],
  ] as const)
    it(`never holds 2 s after the sending of the newest confirmed query, on a machine ${name}`, () => {
      fc.assert(
        fc.property(steps(disturbance), (all) => {
          play(all, (lease, machine, confirmedMs) => {
            if (lease.holds) assert.ok(confirmedMs !== undefined && machine.trueMs - confirmedMs < LEASE_MS)
          })
        }),
        { numRuns: 2000 },
      )
    })

  it('holds for as long as queries are confirmed in time, where the clocks are left alone', () => {
    fc.assert(
      fc.property(
        steps(fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 5000 }) })),
        (all) => {
          play(all, (lease, machine, confirmedMs) => {
            assert.equal(lease.holds, confirmedMs !== undefined && machine.trueMs - confirmedMs < LEASE_MS)
          })
        },
      ),
    )
  })

  it('confirms no revision below one that it has seen, and no timeline that nobody accepted', () => {
    const positions = fc.array(
      fc.record({ revision: fc.nat(30), timeline: fc.constant('a/1'), isAccepted: fc.boolean() }),
    )
    fc.assert(
      fc.property(positions, (all) => {
        const { lease } = setup()
        let greatest = -1
        for (const position of all) {
          const isFine = position.isAccepted && position.revision >= greatest
          assert.equal(lease.look(position) === undefined, isFine)
          if (isFine) greatest = position.revision
        }
      }),
    )
  })
})
