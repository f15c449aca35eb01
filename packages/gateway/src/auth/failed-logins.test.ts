import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { memoryAudit } from '@toolgate/core'
import { memoryState } from '@toolgate/core/stores'
import { createClientAddresses } from '../util/client-address.ts'
import { FleetFailures } from './fleet-failures.ts'
import { createFailedLogins, toNetwork } from './failed-logins.ts'

const addresses = createClientAddresses()
const from = (remoteAddress: string) => ({ headers: {}, socket: { remoteAddress } })

function setup(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const audit = memoryAudit()
  const delays: number[] = []
  let nowMs = 0
  const logins = createFailedLogins({
    audit,
    clock: { wallMs: () => nowMs, monotonicMs: () => nowMs },
    revisions: () => ({ policy_revision: 1, catalog_revision: 1 }),
    addresses,
    onFault: (error) => assert.ifError(error),
    wait: async (ms) => void delays.push(ms),
  })
  t.after(() => logins.close())
  return {
    logins,
    delays,
    records: () => audit.records.map(({ event, detail }) => [event, detail]),
    pass: (ms: number) => {
      nowMs += ms
      t.mock.timers.tick(ms)
    },
  }
}

describe('createFailedLogins', () => {
  it('answers the first five failures of an address at once, and each one after that later, up to five seconds', async (t) => {
    const { logins, delays } = setup(t)
    for (let i = 0; i < 13; i++) await logins.failed(from('192.0.2.1'), `k${i}`)
    assert.deepEqual(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000])
    await logins.failed(from('192.0.2.2'), 'k13')
    assert.equal(delays.length, 8)
  })

  it('counts what fails at other replicas, and goes on alone where it cannot know that', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let nowMs = 0
    let isDown = false
    const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs }
    const kept = memoryState({ clock })
    const faults: unknown[] = []
    const state = {
      set: kept.set,
      list: async (prefix: string) => {
        if (isDown) throw new Error('down')
        return kept.list(prefix)
      },
    }
    const replicas = ['a', 'b', 'c'].map((incarnation) => {
      const delays: number[] = []
      const onFault = (error: unknown) => void faults.push(error)
      const fleet = new FleetFailures({ incarnation, state, clock, onFault })
      const wait = async (ms: number) => void delays.push(ms)
      const revisions = () => ({ policy_revision: 1, catalog_revision: 1 })
      const logins = createFailedLogins({ audit: memoryAudit(), clock, revisions, addresses, onFault, fleet, wait })
      t.after(() => logins.close())
      return { delays, logins }
    })
    const pass = async (ms: number) => {
      nowMs += ms
      t.mock.timers.tick(ms)
      await new Promise((resolve) => setImmediate(resolve))
    }
    // Each fails three times: none would slow anybody alone.
    for (let round = 0; round < 3; round++)
      for (const { logins } of replicas) {
        await logins.failed(from('192.0.2.1'), undefined)
        await pass(500)
      }
    assert.deepEqual(
      replicas.map(({ delays }) => delays),
      [[200], [400], [100, 800]],
    )
    // A stranger is not slowed by that.
    await replicas[0]?.logins.failed(from('192.0.2.9'), undefined)
    assert.equal(replicas[0]?.delays.length, 1)
    isDown = true
    await pass(500)
    await replicas[0]?.logins.failed(from('192.0.2.1'), undefined)
    assert.deepEqual([replicas[0]?.delays, faults.length], [[200, 1600], 1])
    isDown = false
    await pass(10 * 60_000)
    await replicas[1]?.logins.failed(from('192.0.2.1'), undefined)
    assert.deepEqual(replicas[1]?.delays, [400])
  })

  it('asks the others at most twice a second, however many logins fail', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let nowMs = 0
    const clock = { wallMs: () => nowMs, monotonicMs: () => nowMs }
    const asked = { lists: 0, writes: 0, longest: 0 }
    const state = {
      list: async () => (asked.lists++, []),
      set: async (_key: string, value: unknown) => {
        asked.writes++
        asked.longest = Math.max(asked.longest, (value as unknown[]).length)
      },
    }
    const fleet = new FleetFailures({ incarnation: 'a', state, clock, onFault: (error) => assert.ifError(error) })
    t.after(() => fleet.close())
    for (let i = 0; i < 10_000; i++) {
      fleet.note(`address ${i}`, 1)
      await fleet.read()
      nowMs += 0.1
      t.mock.timers.tick(0.1)
    }
    assert.ok(asked.lists <= 3 && asked.writes <= 3, JSON.stringify(asked))
    assert.ok(asked.longest <= 500)
  })

  it('slows the failures of one key from many addresses alike', async (t) => {
    const { logins, delays } = setup(t)
    for (let i = 0; i < 7; i++) await logins.failed(from(`192.0.2.${i}`), 'same')
    assert.deepEqual(delays, [100, 200])
  })

  it('begins again after ten quiet minutes', async (t) => {
    const { logins, delays, pass } = setup(t)
    for (let i = 0; i < 6; i++) await logins.failed(from('192.0.2.1'), undefined)
    pass(10 * 60_000)
    await logins.failed(from('192.0.2.1'), undefined)
    assert.deepEqual(delays, [100])
  })

  it('records a minute of one address as one record with the count, and forgets no failure when it closes', async (t) => {
    const { logins, records, pass } = setup(t)
    for (let i = 0; i < 1000; i++) await logins.failed(from('192.0.2.1'), `k${i}`)
    await logins.failed(from('2001:db8::1'), undefined)
    assert.deepEqual(records(), [])
    pass(60_000)
    assert.deepEqual(records(), [
      ['login_failed', '192.0.2.1: 1000 failed logins, key ids k0 k1 k2 k3 k4 …'],
      ['login_failed', '2001:db8:0:0::/64: one failed login'],
    ])
    await logins.failed(from('192.0.2.1'), 'k1')
    logins.close()
    assert.deepEqual(records().at(-1), ['login_failed', '192.0.2.1: one failed login, key ids k1'])
    assert.equal(logins.count, 1002)
  })

  it('keeps a bounded number of addresses apart', async (t) => {
    const { logins, records, pass } = setup(t)
    for (let i = 0; i < 25_000; i++) await logins.failed(from(`10.0.${i >> 8}.${i & 255}`), undefined)
    pass(60_000)
    assert.equal(records().length, 101)
    assert.deepEqual(records().at(-1), ['login_failed', 'other addresses: 24900 failed logins'])
  })

  it('holds back a bounded number of answers, and lets them go when it closes', async (t) => {
    const audit = memoryAudit()
    const clock = { wallMs: () => 0, monotonicMs: () => 0 }
    const revisions = () => ({ policy_revision: 1, catalog_revision: 1 })
    const logins = createFailedLogins({ audit, clock, revisions, addresses, onFault: (error) => assert.ifError(error) })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const answers = Array.from({ length: 1100 }, () => logins.failed(from('192.0.2.1'), undefined))
    // Five are free, a thousand wait.
    await Promise.all([...answers.slice(0, 5), ...answers.slice(1005)])
    logins.close()
    await Promise.all(answers)
  })
})

describe('toNetwork', () => {
  it('returns an IPv4 address as it is, and the first half of an IPv6 address', () => {
    for (const [address, network] of [
      ['192.0.2.1', '192.0.2.1'],
      ['::ffff:192.0.2.1', '192.0.2.1'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ['2001:db8::6', '2001:db8:0:0::/64'],
      ['::1', '0:0:0:0::/64'],
      [undefined, 'unknown'],
    ] as const)
      assert.equal(toNetwork(address), network)
  })
})
