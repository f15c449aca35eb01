import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { GroupConfig } from '../config/config.ts'
import { createMonitor, type MonitorDeps } from './monitor.ts'
import type { ProbeAnswer, TcpTarget } from './tcp-probe.ts'

const REFUSED = 'nothing listens on 127.0.0.1:4444 (ECONNREFUSED)'

describe('createMonitor', () => {
  it('holds a group with probes unavailable until they were asked, and one without is available', () => {
    const { monitor } = watch([group('web', { port: 4444 }), group('files')])
    assert.deepEqual(monitor.get('web'), { available: false, reason: 'it has not been checked yet', since: 1000 })
    assert.deepEqual(monitor.get('files'), { available: true, since: 1000 })
    assert.equal(monitor.get('constructor'), undefined)
  })

  it('tells the reason, the suggestion and since when', async () => {
    const { monitor, world } = watch([group('web', { port: 4444, suggestion: 'Start the container.' })])
    world.answers.set(4444, REFUSED)
    world.nowMs = 5
    await monitor.check('now')
    assert.deepEqual(monitor.get('web'), {
      available: false,
      reason: REFUSED,
      suggestion: 'Start the container.',
      since: 1000,
    })
    world.answers.set(4444, undefined)
    await monitor.check('now')
    assert.deepEqual(monitor.get('web'), { available: true, since: 1005 })
  })

  it('grows its revision and calls its listeners only when an answer changed', async () => {
    const { monitor, world } = watch([group('web', { port: 4444 })])
    const heard: number[] = []
    const unsubscribe = monitor.subscribe(() => heard.push(monitor.revision))
    const start = monitor.revision
    await monitor.check('now')
    await monitor.check('now')
    await monitor.check('now')
    assert.deepEqual(heard, [start + 1])
    world.answers.set(4444, REFUSED)
    await monitor.check('now')
    await monitor.check('now')
    assert.deepEqual(heard, [start + 1, start + 2])
    unsubscribe()
    world.answers.set(4444, undefined)
    await monitor.check('now')
    assert.equal(heard.length, 2)
    assert.equal(monitor.revision, start + 3)
  })

  it('keeps an answer for exactly the time to live, also a bad one', async () => {
    const { monitor, world } = watch([group('web', { port: 4444 })], { ttlMs: 10_000 })
    world.answers.set(4444, REFUSED)
    await monitor.check()
    assert.equal(world.asked, 1)
    world.nowMs = 10_000
    await monitor.check()
    assert.equal(world.asked, 1)
    world.nowMs = 10_001
    await monitor.check()
    assert.equal(world.asked, 2)
  })

  it('asks an address once for all groups and all who ask at the same time', async () => {
    const { monitor, world } = watch([
      group('a', { port: 4444 }),
      group('b', { port: 4444 }),
      group('c', { port: 5555 }),
    ])
    await Promise.all([monitor.check('now'), monitor.check('now'), monitor.check()])
    assert.equal(world.asked, 2)
  })

  it('needs every probe of a group', async () => {
    const both = { ...group('web', { port: 4444 }), availableWhen: [tcp(4444), tcp(5555)] }
    const { monitor, world } = watch([both])
    world.answers.set(5555, 'nothing listens on 127.0.0.1:5555 (ECONNREFUSED)')
    await monitor.check('now')
    assert.equal(monitor.get('web')?.reason, 'nothing listens on 127.0.0.1:5555 (ECONNREFUSED)')
  })

  it('passes unavailability on through dependencies, whatever order they are written in', async () => {
    const { monitor, world } = watch([
      group('report', { dependsOn: ['research'] }),
      group('research', { dependsOn: ['files', 'web'] }),
      group('web', { port: 4444, suggestion: 'Start the container.' }),
      group('files'),
    ])
    world.answers.set(4444, REFUSED)
    await monitor.check('now')
    assert.equal(monitor.get('research')?.reason, `web is unavailable because ${REFUSED}`)
    assert.equal(monitor.get('report')?.reason, `research is unavailable because web is unavailable because ${REFUSED}`)
    assert.equal(monitor.get('report')?.suggestion, 'Start the container.')
    assert.equal(monitor.get('files')?.available, true)
    world.answers.set(4444, undefined)
    await monitor.check('now')
    assert.ok([...monitor.states().values()].every((state) => state.available))
  })

  it('refuses a cycle, an unknown dependency and a name twice, naming them', () => {
    const cycle = [
      group('top', { dependsOn: ['a'] }),
      group('a', { dependsOn: ['b'] }),
      group('b', { dependsOn: ['a'] }),
    ]
    assert.throws(() => watch(cycle), { code: 'config_invalid', message: /a cycle: a → b → a$/ })
    assert.throws(() => watch([group('a', { dependsOn: ['a'] })]), { message: /a cycle: a → a$/ })
    assert.throws(() => watch([group('a', { dependsOn: ['wbe'] })]), {
      message: 'groups.a.dependsOn[0]: no group is named "wbe"; known are a',
    })
    assert.throws(() => watch([group('a'), group('a')]), { message: /is there twice/ })
  })

  it('lets implicit groups be set, and others depend on them', () => {
    const { monitor } = watch([group('write', { dependsOn: ['server:files'] })], { implicit: ['server:files'] })
    assert.match(
      monitor.get('write')?.reason ?? '',
      /^server:files is unavailable because it has not been checked yet$/,
    )
    monitor.set('server:files', { available: true })
    assert.deepEqual(monitor.get('write'), { available: true, since: 1000 })
    const before = monitor.revision
    monitor.set('server:files', { available: true })
    assert.equal(monitor.revision, before)
    monitor.set('server:files', { available: false, reason: 'exited with code 1', since: 42 })
    assert.equal(monitor.get('write')?.reason, 'server:files is unavailable because exited with code 1')
    assert.equal(monitor.states().get('server:files')?.since, 42)
    assert.throws(() => monitor.set('write', { available: true }), /configured group/)
  })

  it('sees a port open and close in the background', async () => {
    const { monitor, world } = watch([group('web', { port: 4444 })], { refreshMs: 1, random: () => 0.5 })
    world.answers.set(4444, REFUSED)
    await monitor.start()
    assert.equal(monitor.get('web')?.available, false)
    world.answers.set(4444, undefined)
    await changed(monitor)
    assert.equal(monitor.get('web')?.available, true)
    world.answers.set(4444, REFUSED)
    await changed(monitor)
    assert.equal(monitor.get('web')?.available, false)
    monitor.close()
  })

  it('changes nothing after it was closed, also by a probe that was under way', async () => {
    const { monitor, world } = watch([group('web', { port: 4444 })])
    const before = monitor.get('web')
    const check = monitor.check('now')
    monitor.close()
    await check
    assert.equal(monitor.get('web'), before)
    assert.ok(world.signals.every((signal) => signal.aborted))
  })
})

interface World {
  nowMs: number
  asked: number
  readonly answers: Map<number, ProbeAnswer>
  readonly signals: AbortSignal[]
}

function watch(groups: GroupConfig[], options: Partial<MonitorDeps> = {}) {
  const world: World = { nowMs: 0, asked: 0, answers: new Map(), signals: [] }
  const monitor = createMonitor(groups, {
    clock: { monotonicMs: () => world.nowMs, wallMs: () => 1000 + world.nowMs },
    connect: async ({ port }: TcpTarget, { signal }) => {
      world.asked++
      world.signals.push(signal)
      await Promise.resolve()
      return world.answers.get(port)
    },
    ...options,
  })
  return { monitor, world }
}

function changed(monitor: { subscribe(listener: () => void): () => void }): Promise<void> {
  return new Promise((resolve) => {
    // The monitor's own timer does not keep the process alive.
    const keepAlive = setInterval(() => {}, 1000)
    const unsubscribe = monitor.subscribe(() => {
      unsubscribe()
      clearInterval(keepAlive)
      resolve()
    })
  })
}

function tcp(port: number) {
  return { tcp: { host: '127.0.0.1', port } }
}

function group(name: string, more: { port?: number; suggestion?: string; dependsOn?: string[] } = {}): GroupConfig {
  return {
    name,
    tools: [`${name}:*`],
    visibility: 'conditional',
    dependsOn: more.dependsOn ?? [],
    availableWhen: more.port === undefined ? [] : [tcp(more.port)],
    ...(more.suggestion === undefined ? {} : { suggestion: more.suggestion }),
  }
}
