import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryAvailability } from '../memory/availability.ts'
import { manualTime } from '../../../testing/support/manual-time.ts'
import type { Group } from '../tools/groups.ts'
import { defineTool } from '../tools/tool.ts'

const OPEN = defineTool({ namespace: 'web', name: 'open', execute: () => 'opened' })
const NOTES = defineTool({ name: 'notes' })

/** A loader that counts, and does what it is told. */
function loader(load: (signal: AbortSignal) => unknown = () => [OPEN]) {
  const one = {
    count: 0,
    work: load,
    load: async ({ signal }: { signal: AbortSignal }) => {
      one.count++
      await Promise.resolve()
      return one.work(signal) as Iterable<typeof OPEN>
    },
  }
  return one
}

type Counted = Partial<Group> & Partial<Pick<ReturnType<typeof loader>, 'count' | 'work'>>

function open(test: TestContext, web: Counted, options: Partial<GateOptions> = {}) {
  const time = manualTime(test)
  const gate = createGate({
    tools: [NOTES],
    groups: { web: { tools: ['web:*'], ...groupOf(web) } },
    clock: time.clock,
    ...options,
  })
  test.after(() => gate.close())
  return { gate, ...time }
}

/** The loader without what only its test counts. */
function groupOf({ count: _, work: __, ...group }: Counted): Partial<Group> {
  return group
}

const vera = { user: 'vera' }

describe('a group with a load', () => {
  it('is loaded by a function that works without gate.loads', async (test) => {
    const web = loader()
    const { gate } = open(test, web)
    const { load, get, subscribe } = gate.loads
    subscribe(() => {})()
    await load('web')
    assert.equal(get('web')?.status, 'loaded')
  })

  it('is loaded at the first view of somebody who could use it, which does not wait for it', async (test) => {
    const web = loader()
    const { gate, pass } = open(test, web)
    assert.equal(gate.loads.get('web')?.status, 'idle')
    assert.equal(web.count, 0)
    assert.deepEqual((await gate.view(vera)).ids, ['notes'])
    await gate.view(vera)
    await pass(10)
    assert.equal(web.count, 1)
    assert.deepEqual((await gate.view(vera)).ids, ['notes', 'web:open'])
    assert.equal((await (await gate.view(vera)).call({ tool: 'web:open' })).text, 'opened')
    assert.deepEqual(gate.membersOf('web'), ['web:open'])
    await pass(100_000)
    assert.equal(web.count, 1)
  })

  it('is not loaded for one who may have no view', async (test) => {
    const web = loader()
    const { gate, pass } = open(test, web)
    await assert.rejects(gate.view(7 as never))
    await pass(100)
    assert.equal(web.count, 0)
  })

  it('that is locked is loaded when it is opened, or used by somebody for whom a lock decides nothing', async (test) => {
    const web = loader()
    const { gate, pass } = open(test, { ...web, unlock: 'request' })
    const session = { user: 'vera', session: 's1' }
    await gate.view(session)
    await pass(100)
    assert.equal(web.count, 0)
    gate.locks.request(session, 'web')
    await pass(100)
    assert.equal(web.count, 1)
    assert.deepEqual((await gate.view(session)).ids, ['notes', 'web:open'])
    const other = loader()
    const second = createGate({ groups: { web: { tools: ['web:*'], unlock: 'request', load: other.load } } })
    await second.view(vera)
    await pass(100)
    assert.equal(other.count, 1)
    await second.close()
  })

  it('that is unavailable is loaded when it is there', async (test) => {
    const web = loader()
    const availability = memoryAvailability({ web: { available: false } })
    const { gate, pass } = open(test, { ...web, visibility: 'conditional' }, { availability })
    await gate.view(vera)
    await pass(100)
    assert.equal(web.count, 0)
    availability.set('web', { available: true })
    await pass(100)
    assert.equal(web.count, 1)
  })

  it('is loaded for an app that imports it, and not for one that does not, or hides it', async (test) => {
    const web = loader()
    const apps = {
      desk: { tools: ['notes'] },
      quiet: { import: [{ group: 'web', visibility: 'hidden' }], tools: ['notes'] },
      research: { import: ['web'] },
    } as const
    const { gate, pass } = open(test, web, { apps })
    await gate.view(vera, { app: 'desk' })
    await gate.view(vera, { app: 'quiet' })
    await pass(100)
    assert.equal(web.count, 0)
    await gate.view(vera, { app: 'research' })
    await pass(100)
    assert.equal(web.count, 1)
    assert.deepEqual((await gate.view(vera, { app: 'research' })).ids, ['web:open'])
  })

  it('can be loaded by the host, once for all who ask', async (test) => {
    const web = loader()
    const { gate } = open(test, web)
    const [state] = await Promise.all([gate.loads.load('web'), gate.loads.load('web')])
    assert.equal(state.status, 'loaded')
    assert.equal(web.count, 1)
    assert.deepEqual((await gate.view(vera)).ids, ['notes', 'web:open'])
    await assert.rejects(gate.loads.load('constructor'), {
      message: 'groups.constructor: is not a group with a "load"',
    })
    assert.equal(gate.loads.get('constructor'), undefined)
  })

  it('shows why a load fails, keeps everything else, and tries again, less and less often', async (test) => {
    const web = loader(() => assert.fail('no route'))
    const { gate, pass } = open(test, web)
    const heard: string[] = []
    gate.loads.subscribe((name) => heard.push(`${name} ${gate.loads.get(name)?.status}`))
    await gate.view(vera)
    await pass(10)
    assert.equal(gate.loads.get('web')?.status, 'failed')
    assert.equal(gate.loads.get('web')?.failure, 'no route')
    assert.deepEqual((await gate.view(vera)).ids, ['notes'])
    await pass(120_000)
    assert.ok(web.count >= 6 && web.count <= 9, `${web.count}`)
    web.work = () => [OPEN]
    await pass(60_010)
    assert.deepEqual(gate.loads.get('web')?.status, 'loaded')
    assert.equal('failure' in (gate.loads.get('web') ?? {}), false)
    assert.deepEqual((await gate.view(vera)).ids, ['notes', 'web:open'])
    assert.deepEqual(heard.slice(0, 2), ['web loading', 'web failed'])
    assert.equal(heard.at(-1), 'web loaded')
  })

  it('goes on after a listener that throws, and tells the host', async (test) => {
    const faults: unknown[] = []
    const { gate } = open(test, loader(), { onFault: (fault) => faults.push(fault) })
    gate.loads.subscribe(() => assert.fail('broken'))
    gate.loads.subscribe((async () => assert.fail('broken later')) as () => void)
    assert.equal((await gate.loads.load('web')).status, 'loaded')
    assert.equal(faults.length, 4)
  })

  it('has a deadline, and what ignores it does not pile up', async (test) => {
    const signals: AbortSignal[] = []
    const web = loader((signal) => (signals.push(signal), new Promise(() => {})))
    const { gate, pass } = open(test, { ...web, loadTimeoutMs: 500 })
    await gate.view(vera)
    await pass(520)
    assert.equal(gate.loads.get('web')?.failure, 'it did not answer within 0.5 s')
    assert.ok(signals[0]?.aborted)
    await pass(600_000)
    assert.equal(web.count, 3)
  })

  it('takes no tool that its selectors do not name, and none that is broken, and says so', async (test) => {
    const foreign = defineTool({ name: 'notes', description: 'mine now' })
    const { gate } = open(
      test,
      loader(() => [foreign, OPEN, { name: '' }, OPEN]),
    )
    const { status, failure } = await gate.loads.load('web')
    assert.equal(status, 'loaded')
    assert.match(failure ?? '', /"notes" is not a tool of the group; .* cannot be used/)
    assert.deepEqual((await gate.view(vera)).ids, ['notes', 'web:open'])
    assert.equal(gate.catalog.get('notes'), NOTES)
  })

  it('fails where it gives no list, or nothing that can be used', async (test) => {
    for (const given of [undefined, 'text', 7, [{ name: '' }], [NOTES]]) {
      const gate = createGate({ groups: { web: { tools: ['web:*'], load: () => given as never } } })
      assert.equal((await gate.loads.load('web')).status, 'failed')
      await gate.close()
    }
    assert.ok(test.name)
  })

  it('that takes long before it gives its promise delays no view, and one may give its tools at once', async (test) => {
    let isRunning = false
    const { gate, pass } = open(test, { load: () => ((isRunning = true), [OPEN]) })
    await gate.view(vera)
    assert.equal(isRunning, false)
    await pass(10)
    assert.equal(gate.catalog.get('web:open'), OPEN)
  })

  it('is under the policy as any group is, before and after', async (test) => {
    const { gate } = open(test, loader(), { policy: { deny: ['group:web'] } })
    await gate.loads.load('web')
    const view = await gate.view(vera)
    assert.deepEqual(view.ids, ['notes'])
    assert.equal((await view.call({ tool: 'web:open' })).status, 'refused')
  })

  it('ends with the gate: what is under way is told to stop, and nothing comes after', async (test) => {
    let signal: AbortSignal | undefined
    const web = loader((given) => ((signal = given), new Promise(() => {})))
    const { gate, pass } = open(test, web)
    const load = gate.loads.load('web')
    await pass(10)
    await gate.close()
    assert.equal((await load).status, 'loading')
    assert.ok(signal?.aborted)
    await pass(100_000)
    assert.equal(web.count, 1)
  })
})

describe('createGate with groups that have probes', () => {
  it('asks them by itself, and ends that when it is closed', async (test) => {
    let works = false
    let asked = 0
    const probe = () => (asked++, works)
    const { gate, pass } = open(test, { availableWhen: [probe], suggestion: 'Start it.' }, { tools: [NOTES, OPEN] })
    const view = await gate.view(vera)
    assert.deepEqual(view.ids, ['notes'])
    assert.equal((await view.call({ tool: 'web:open' })).text, 'web:open is unavailable: its probe says no. Start it.')
    works = true
    await pass(11_010)
    assert.deepEqual((await gate.view(vera)).ids, ['notes', 'web:open'])
    assert.deepEqual(view.narrow({}).ids, ['notes', 'web:open'])
    await gate.close()
    const before = asked
    await pass(60_000)
    assert.equal(asked, before)
  })

  it('asks the given availability instead, where there is one', async (test) => {
    let asked = 0
    const availability = memoryAvailability({ web: { available: true } })
    const { gate } = open(test, { availableWhen: [() => (asked++, false)] }, { tools: [NOTES, OPEN], availability })
    assert.deepEqual((await gate.view(vera)).ids, ['notes', 'web:open'])
    assert.equal(asked, 0)
  })

  it('tells the whole chain to the model, but not what is for people', async (test) => {
    const groups: Record<string, Group> = {
      web: { tools: ['web:*'], visibility: 'conditional', dependsOn: ['python'] },
      python: { tools: [], dependsOn: ['docker'] },
      docker: {
        tools: [],
        availableWhen: [() => ({ available: false, reason: 'docker does not run', detail: 'exit 1' })],
      },
    }
    const { gate } = open(test, {}, { tools: [NOTES, OPEN], groups })
    const view = await gate.view(vera)
    const because = 'python is unavailable because docker is unavailable because docker does not run'
    assert.equal((await view.call({ tool: 'web:open' })).text, `web:open is unavailable: ${because}.`)
    assert.equal(view.explain('web:open').reasons[0]?.text, `${because}: exit 1`)
  })
})
