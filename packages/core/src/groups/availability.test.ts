import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { runs } from '../../../testing/src/runs.ts'
import { manualTime } from '../../../testing/support/manual-time.ts'
import type { Group, Probe, ProbeAnswer, ProbeAsking } from '../tools/groups.ts'
import { type AvailabilityOptions, createAvailability } from './availability.ts'
import type { GroupChange } from './changes.ts'

const REFUSED = { available: false, reason: 'nothing listens on port 4444' }

/** A thing that works or not, and counts how often it is asked. */
class Thing {
  readonly key: string
  answer: ProbeAnswer
  asked = 0
  readonly signals: AbortSignal[] = []

  constructor(key: string, answer: ProbeAnswer) {
    this.key = key
    this.answer = answer
  }

  readonly ask = async ({ signal }: ProbeAsking): Promise<ProbeAnswer> => {
    this.asked++
    this.signals.push(signal)
    await Promise.resolve()
    return this.answer
  }
}

function thing(key: string, answer: ProbeAnswer = true): Thing {
  return new Thing(key, answer)
}

function watch(
  test: TestContext,
  groups: Readonly<Record<string, Partial<Group>>>,
  options: Partial<AvailabilityOptions> = {},
) {
  const time = manualTime(test)
  const full = new Map(Object.entries(groups).map(([name, group]): [string, Group] => [name, { tools: [], ...group }]))
  const availability = createAvailability(full, { clock: time.clock, random: () => 0.5, ...options })
  const heard: (readonly GroupChange[])[] = []
  availability.subscribe((changes) => heard.push(changes))
  test.after(() => availability.close())
  return { availability, heard, ...time, startMs: time.clock.wallMs() }
}

/** Hangs until it is told to stop. */
function untilStopped({ signal }: ProbeAsking): Promise<boolean> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
}

function words(heard: readonly (readonly GroupChange[])[]): readonly string[] {
  return heard.flat().map(({ group, state }) => `${group} ${badge(state)}`)
}

function badge({ available, unknown }: { available: boolean; unknown?: boolean }): string {
  return unknown ? 'unknown' : available ? 'available' : 'unavailable'
}

describe('createAvailability', () => {
  it('knows nothing of a group with probes until they were asked, and one without is available', (test) => {
    const { availability, startMs } = watch(test, { web: { availableWhen: [thing('web')] }, files: {} })
    assert.deepEqual(availability.get('web'), {
      available: false,
      unknown: true,
      reason: 'it has not been checked yet',
      since: startMs,
    })
    assert.deepEqual(availability.get('files'), { available: true, since: startMs })
    assert.equal(availability.get('constructor'), undefined)
  })

  it('tells the reason, the suggestion, the detail for people, and since when', async (test) => {
    const web = thing('web', { ...REFUSED, detail: 'ECONNREFUSED', suggestion: 'Wait.' })
    const groups = { web: { availableWhen: [web], suggestion: 'Start the container.' } }
    const { availability, clock, startMs } = watch(test, groups)
    clock.advance(5)
    await availability.check()
    const down = { ...REFUSED, detail: 'ECONNREFUSED', suggestion: 'Start the container.', since: startMs + 5 }
    assert.deepEqual(availability.get('web'), down)
    web.answer = true
    clock.advance(10_001)
    await availability.check()
    assert.deepEqual(availability.get('web'), { available: true, since: startMs + 10_006 })
  })

  it('keeps since where only the words change', async (test) => {
    const web = thing('web', REFUSED)
    const { availability, clock, startMs } = watch(test, { web: { availableWhen: [web] } })
    await availability.check()
    web.answer = { available: false, reason: 'it answers 500' }
    clock.advance(10_001)
    await availability.check()
    assert.deepEqual(availability.get('web'), { available: false, reason: 'it answers 500', since: startMs })
  })

  it('answers at once where a probe does', async (test) => {
    const { availability } = watch(test, {
      env: { availableWhen: [() => true] },
      off: { availableWhen: [() => false] },
    })
    void availability.check()
    assert.equal(availability.get('env')?.available, true)
    assert.equal(availability.get('off')?.reason, 'its probe says no')
  })

  it('needs every probe of a group', async (test) => {
    const { availability } = watch(test, { web: { availableWhen: [thing('a'), thing('b', REFUSED)] } })
    await availability.check()
    assert.equal(availability.get('web')?.reason, REFUSED.reason)
  })

  it('says what is known not to work rather than what is not known', async (test) => {
    const forever = { key: 'slow', timeoutMs: 5000, ask: () => new Promise<boolean>(() => {}) }
    const { availability, pass } = watch(test, {
      web: { availableWhen: [forever, thing('b', REFUSED)] },
      slow: { availableWhen: [forever, thing('c')] },
    })
    void availability.check()
    await pass(10)
    assert.equal(badge(availability.get('web') as never), 'unavailable')
    assert.equal(badge(availability.get('slow') as never), 'unknown')
  })

  it('grows its revision, and tells, only when something is another than it was', async (test) => {
    const { availability, heard, pass } = watch(test, { web: { availableWhen: [thing('web')] } })
    const before = availability.revision
    await availability.start()
    assert.equal(availability.revision, before + 1)
    await pass(60_000)
    assert.equal(availability.revision, before + 1)
    assert.deepEqual(words(heard), ['web available'])
  })
})

describe('the time to live of an answer', () => {
  it('is kept to the millisecond, also that of a failure', async (test) => {
    for (const answer of [true, REFUSED]) {
      const web = thing('web', answer)
      const availability = createAvailability({ web: { tools: [], availableWhen: [web] } }, { clock: fixed })
      await availability.check()
      nowMs += 10_000
      await availability.check()
      assert.equal(web.asked, 1)
      nowMs += 1
      await availability.check()
      assert.equal(web.asked, 2)
      availability.close()
    }
    assert.ok(test.name)
  })

  it('is a group’s own, and of several the shortest', async (test) => {
    const web = thing('web')
    const { pass, availability } = watch(test, {
      a: { availableWhen: [web] },
      b: { availableWhen: [web], ttlMs: 2000 },
    })
    await availability.start()
    await pass(20_000)
    assert.equal(web.asked, 1 + 9)
  })

  it('lets each probe be asked once in it, for however many groups, whoever asks', async (test) => {
    const web = thing('web')
    const names = Array.from({ length: 300 }, (_, i) => `g${i}`)
    // Equal keys are one probe, not only the same object.
    const groups = Object.fromEntries(names.map((name) => [name, { availableWhen: [{ key: web.key, ask: web.ask }] }]))
    const { availability, pass } = watch(test, groups)
    await Promise.all([availability.start(), availability.check(), availability.check()])
    assert.equal(web.asked, 1)
    for (let second = 0; second < 100; second++) {
      for (const name of names) availability.get(name)
      await Promise.all([availability.check(), availability.check()])
      await pass(1000)
    }
    assert.ok(web.asked <= 11 && web.asked >= 9, `${web.asked}`)
    assert.ok(names.every((name) => availability.get(name)?.available))
  })

  it('is spread in the background, so that probes do not meet for ever', async (test) => {
    const [a, b] = [thing('a'), thing('b')]
    const draws = [0, 0.99]
    const random = () => draws.shift() ?? 0
    const { availability, pass } = watch(test, { a: { availableWhen: [a] }, b: { availableWhen: [b] } }, { random })
    await availability.start()
    await pass(10_010)
    assert.deepEqual([a.asked, b.asked].toSorted(), [1, 2])
  })

  it('sees things come and go in the background', async (test) => {
    const web = thing('web', REFUSED)
    const { availability, pass, heard } = watch(test, { web: { availableWhen: [web] } })
    await availability.start()
    web.answer = true
    await pass(11_010)
    web.answer = REFUSED
    await pass(11_010)
    assert.deepEqual(words(heard), ['web unavailable', 'web available', 'web unavailable'])
  })
})

describe('a probe', () => {
  it('that does not answer in time says so, is told to stop, and does not end the background', async (test) => {
    const signals: AbortSignal[] = []
    const ask = ({ signal }: ProbeAsking) => {
      signals.push(signal)
      return new Promise<ProbeAnswer>((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      )
    }
    const hang: Probe = { key: 'hang', what: 'the old printer', timeoutMs: 200, ask }
    const { availability, pass } = watch(test, { old: { availableWhen: [hang] } })
    const started = availability.start()
    await pass(200)
    await started
    assert.equal(availability.get('old')?.reason, 'the old printer did not answer within 0.2 s')
    assert.ok(signals[0]?.aborted)
    await pass(11_000)
    assert.equal(signals.length, 2)
  })

  it('that never ends is asked three times, and then no more until one of them is over', async (test) => {
    const ends: ((answer: boolean) => void)[] = []
    const hang = { key: 'hang', ask: () => new Promise<boolean>((resolve) => ends.push(resolve)) }
    const { availability, pass } = watch(test, { old: { availableWhen: [hang], ttlMs: 1000 } })
    void availability.start()
    await pass(60_000)
    assert.equal(ends.length, 3)
    assert.equal(availability.get('old')?.reason, 'its probe did not answer within 1 s')
    ends[0]?.(true)
    while (ends.length < 4) await pass(100)
    ends[3]?.(true)
    await pass(10)
    assert.equal(availability.get('old')?.available, true)
  })

  it('that throws, rejects or answers nonsense does not work, and what it threw is for people', async (test) => {
    const wrong: Record<string, () => unknown> = {
      throws: () => assert.fail('password=hunter2'),
      rejects: () => Promise.reject(new Error('password=hunter2')),
      nothing: () => undefined,
      text: () => 'ok',
      half: () => ({ available: 'yes' }),
      long: () => ({ available: false, reason: 'x'.repeat(5000) }),
    }
    const groups = Object.entries(wrong).map(([name, probe]) => [name, { availableWhen: [probe] }])
    const { availability } = watch(test, Object.fromEntries(groups) as Record<string, Partial<Group>>)
    await availability.check()
    const said = Object.keys(wrong).map((name) => availability.get(name))
    assert.ok(said.every((state) => state?.available === false && !state.unknown))
    assert.ok(said.every((state) => !state?.reason?.includes('hunter2') && (state?.reason?.length ?? 0) < 600))
    assert.equal(said[0]?.reason, 'its probe failed')
    assert.equal(said[1]?.detail, 'password=hunter2')
    assert.equal(said[3]?.reason, 'its probe returned an invalid result')
  })

  it('that says itself when it changed is asked then, and at no other time', async (test) => {
    const told = new Set<() => void>()
    const server = thing('server', false)
    const subscribe = (listener: () => void) => {
      told.add(listener)
      return () => told.delete(listener)
    }
    const { availability, pass } = watch(test, {
      files: { availableWhen: [{ key: 'server', ask: () => server.ask({} as never), subscribe }] },
    })
    await availability.start()
    await pass(60_000)
    assert.equal(server.asked, 1)
    server.answer = true
    for (const tell of told) tell()
    await pass(10)
    assert.equal(availability.get('files')?.available, true)
    availability.close()
    assert.equal(told.size, 0)
  })

  it('that says it changed whenever it is asked holds nothing up', async (test) => {
    let tell = () => {}
    let asked = 0
    const probe = {
      key: 'p',
      ask: () => {
        asked++
        tell()
        return true
      },
      subscribe: (listener: () => void) => {
        tell = listener
        return () => {}
      },
    }
    const { availability } = watch(test, { a: { availableWhen: [probe] } })
    await availability.start()
    assert.ok(asked < 5)
  })

  it('is one of at most fifty under way, and of four where each costs much', async (test) => {
    for (const [isHeavy, most] of [
      [false, 50],
      [true, 4],
    ] as const) {
      const ends: (() => void)[] = []
      const probe = (i: number) => ({
        key: `p${i}`,
        isHeavy,
        ask: () => new Promise<boolean>((resolve) => ends.push(() => resolve(true))),
      })
      const groups = Array.from({ length: 120 }, (_, i): [string, Group] => [
        `g${i}`,
        { tools: [], availableWhen: [probe(i)] },
      ])
      const availability = createAvailability(new Map(groups))
      const started = availability.start()
      assert.equal(ends.length, most)
      for (let i = 0; i < 120; i++) {
        ends[i]?.()
        await new Promise(setImmediate)
      }
      await started
      assert.ok(groups.every(([name]) => availability.get(name)?.available))
      availability.close()
    }
    assert.ok(test.name)
  })

  it('is asked in its time also beside very many that hang', async (test) => {
    for (const isHeavy of [false, true]) {
      const hung = Array.from({ length: 100 }, (_, i): [string, Partial<Group>] => [
        `hung${i}`,
        { ttlMs: 1000, availableWhen: [{ key: `hung${i}`, isHeavy, timeoutMs: 10_000, ask: untilStopped }] },
      ])
      const web = thing('web')
      const groups = {
        ...Object.fromEntries(hung),
        web: { ttlMs: 1000, availableWhen: [{ key: 'web', ask: web.ask, isHeavy }] },
      }
      const { availability, pass } = watch(test, groups)
      void availability.start()
      await pass(400_000)
      const before = web.signals.length
      await pass(100_000)
      assert.ok(web.signals.length - before > 90, `${web.signals.length - before} in 100 s`)
      availability.close()
      test.mock.timers.reset()
    }
  })

  it('may be one of very many that answer at once, behind some that take long', async () => {
    const ends: (() => void)[] = []
    const slow = Array.from({ length: 50 }, (_, i) => ({
      key: `${i}`,
      ask: () => new Promise<boolean>((resolve) => ends.push(() => resolve(true))),
    }))
    const { numRuns: length } = runs(20_000, 20_000)
    const quick = Array.from({ length }, (_, i): [string, Group] => [
      `quick${i}`,
      { tools: [], availableWhen: [{ key: `quick${i}`, ask: () => true }] },
    ])
    const availability = createAvailability(new Map([['slow', { tools: [], availableWhen: slow }], ...quick]))
    const checked = availability.check()
    for (const end of ends) end()
    await checked
    assert.ok([...availability.states().values()].every(({ available }) => available))
    availability.close()
  })

  it('changes nothing after the end, also where it was under way', async (test) => {
    const web = thing('web')
    const { availability, pass, heard } = watch(test, { web: { availableWhen: [web] } })
    const before = availability.get('web')
    const started = availability.start()
    availability.close()
    await started
    await pass(30_000)
    assert.equal(availability.get('web'), before)
    assert.ok(web.signals.every((signal) => signal.aborted))
    assert.equal(web.asked, 1)
    assert.deepEqual(heard, [])
  })
})

describe('dependsOn', () => {
  it('passes unavailability on, with the whole chain as the reason, whatever order it is written in', async (test) => {
    const docker = thing('docker', { available: false, reason: 'docker does not run', detail: 'exit 1' })
    const { availability, pass } = watch(test, {
      notebooks: { dependsOn: ['python'] },
      python: { dependsOn: ['files', 'containers'] },
      containers: { availableWhen: [docker], suggestion: 'Start docker.' },
      files: {},
    })
    assert.equal(badge(availability.get('notebooks') as never), 'unknown')
    await availability.start()
    const notebooks = availability.get('notebooks')
    assert.equal(
      notebooks?.reason,
      'python is unavailable because containers is unavailable because docker does not run',
    )
    assert.equal(notebooks?.suggestion, 'Start docker.')
    assert.equal(notebooks?.detail, 'exit 1')
    assert.equal(availability.get('files')?.available, true)
    docker.answer = true
    await pass(11_010)
    assert.ok([...availability.states().values()].every(({ available }) => available))
  })

  it('refuses a cycle, which it names, and a group that there is not', () => {
    const cycle = {
      top: { tools: [], dependsOn: ['a'] },
      a: { tools: [], dependsOn: ['b'] },
      b: { tools: [], dependsOn: ['a'] },
    }
    assert.throws(() => createAvailability(cycle), { path: 'groups.a.dependsOn', problem: 'a cycle: a → b → a' })
    assert.throws(() => createAvailability({ a: { tools: [], dependsOn: ['wbe'] } }), {
      problem: 'no group is named "wbe"; the groups are a',
    })
  })
})

describe('subscribe', () => {
  it('tells of the first change at once, and then once a second of what it has come to', async (test) => {
    const server = flapping()
    const { availability, pass, heard, startMs } = watch(test, { files: { availableWhen: [server] } })
    await availability.start()
    assert.deepEqual(words(heard), ['files available'])
    await pass(5000)
    for (let i = 0; i < 1000; i++) {
      server.flip()
      await pass(10)
    }
    // Ten seconds: the first, and one for each second.
    assert.ok(heard.length <= 1 + 1 + 10, `${heard.length}`)
    server.set(false)
    await pass(10)
    server.set(true)
    server.set(false)
    const settled = startMs + 5000 + 10_000 + 10
    await pass(2000)
    assert.deepEqual(heard.at(-1)?.[0]?.state, { available: false, reason: 'its probe says no', since: settled })
    const count = heard.length
    await pass(20_000)
    assert.equal(heard.length, count)
  })

  it('says the latest state at every moment, however seldom it tells of it', async (test) => {
    const server = flapping()
    const { availability } = watch(test, { files: { availableWhen: [server] } })
    await availability.start()
    for (const works of [false, true, false]) {
      const { revision } = availability
      server.set(works)
      assert.equal(availability.get('files')?.available, works)
      assert.ok(availability.revision > revision)
    }
  })

  it('gathers what changes together, and keeps no group waiting for another that flaps', async (test) => {
    const servers = Array.from({ length: 100 }, (_, i) => new Flapping(`${i}`))
    const groups = servers.map((server, i): [string, Partial<Group>] => [`g${i}`, { availableWhen: [server] }])
    const { availability, pass, heard } = watch(test, Object.fromEntries(groups))
    await availability.start()
    await pass(30)
    assert.equal(words(heard).length, 100)
    assert.ok(heard.length <= 2, `${heard.length}`)
    await pass(2000)
    const [first, second] = servers
    for (let i = 0; i < 20; i++) {
      first?.flip()
      await pass(10)
    }
    const before = heard.length
    second?.set(false)
    assert.ok(
      heard
        .slice(before)
        .flat()
        .some(({ group }) => group === 'g1'),
    )
  })

  it('tells of those that stand on a group together with it', async (test) => {
    const server = flapping()
    const { availability, pass, heard } = watch(test, {
      top: { dependsOn: ['files'] },
      files: { availableWhen: [server] },
    })
    await availability.start()
    await pass(2000)
    server.set(false)
    assert.deepEqual(
      heard.at(-1)?.map(({ group, state }) => [group, badge(state)]),
      [
        ['files', 'unavailable'],
        ['top', 'unavailable'],
      ],
    )
    assert.equal(heard.at(-1)?.[0]?.before.available, true)
  })

  it('goes on after a listener that throws, and leaves with the function it gave', async (test) => {
    const faults: unknown[] = []
    const server = flapping()
    const { availability, pass, heard } = watch(
      test,
      { a: { availableWhen: [server] } },
      { onFault: (fault) => faults.push(fault) },
    )
    availability.subscribe(() => assert.fail('broken'))
    availability.subscribe((async () => assert.fail('broken later')) as () => void)
    const unsubscribe = availability.subscribe(() => heard.push([]))
    unsubscribe()
    await availability.start()
    await pass(10)
    assert.equal(heard.length, 1)
    assert.equal(faults.length, 2)
  })
})

describe('a thousand groups with slow probes', () => {
  it('are read without waiting: the last answer is there at once, and few groups are worked out anew', async (test) => {
    const groups = Array.from({ length: 1000 }, (_, i): [string, Partial<Group>] => [
      `g${i}`,
      {
        availableWhen: [{ key: `${i}`, ask: () => new Promise<boolean>(() => {}) }],
        dependsOn: i % 10 === 0 ? [] : [`g${i - 1}`],
      },
    ])
    const { availability, pass } = watch(test, Object.fromEntries(groups))
    void availability.start()
    for (const [name] of groups) assert.equal(availability.get(name)?.unknown, true)
    await pass(30_000)
    for (const [name] of groups) assert.equal(availability.get(name)?.available, false)
    assert.match(availability.get('g999')?.reason ?? '', /^its probe did not answer within 1 s$/)
  })
})

let nowMs = 0
const fixed = { monotonicMs: () => nowMs, wallMs: () => nowMs }

/** Something that says by itself when it changed, as a server does. */
class Flapping {
  readonly key: string
  #works = true
  readonly #listeners = new Set<() => void>()

  constructor(key = 'server') {
    this.key = key
  }

  ask(): boolean {
    return this.#works
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  set(next: boolean): void {
    this.#works = next
    for (const listener of this.#listeners) listener()
  }

  flip(): void {
    this.set(!this.#works)
  }
}

function flapping(): Flapping {
  return new Flapping()
}
