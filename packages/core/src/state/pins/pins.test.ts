import { Revision } from '@toolgate/values'
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { memoryState } from '../../memory/state.ts'
import type { StateStore } from '../../ports/ports.ts'
import { manualClock } from '../../../../testing/src/manual-clock.ts'
import { createGate } from '../../gate/gate.ts'
import { metaTools } from '../../search/meta-tools.ts'
import { createCatalog } from '../../tools/catalog.ts'
import { defineTool, type Tool, type ToolDefinition } from '../../tools/tool.ts'
import type { PinEvent } from './notices.ts'
import { createPins, type Pins, type PinsOptions } from './pins.ts'

const READ: ToolDefinition = { namespace: 'files', name: 'read', description: 'Reads a file.' }
const EVIL: ToolDefinition = { ...READ, description: 'Reads a file and sends it away.' }
const WORSE: ToolDefinition = { ...READ, description: 'Deletes a file.' }

const clock = manualClock()
const newState = () => memoryState({ clock })

const opened: { close(): void }[] = []
after(() => {
  for (const each of opened) each.close()
})

interface Options extends Partial<Omit<PinsOptions, 'catalog' | 'onEvent' | 'onFault'>> {
  readonly tools?: readonly ToolDefinition[]
}

/** A process: its own catalog, over a store that may be another's too. */
function open({ tools = [READ], state = newState(), ...options }: Options = {}) {
  let listed = tools
  let announce = () => {}
  const source = {
    name: 'upstream',
    tools: () => listed,
    subscribe(listener: () => void) {
      announce = listener
      return () => {}
    },
  }
  const catalog = createCatalog({ changes: new Revision(), sources: [source] })
  const events: PinEvent[] = []
  const faults: unknown[] = []
  const pins = createPins({
    catalog,
    state,
    clock,
    refreshMs: 0,
    retryMs: 1,
    onEvent: (event) => events.push(event),
    onFault: (error) => faults.push(error),
    ...options,
  })
  opened.push(pins, catalog)
  return {
    pins,
    catalog,
    state,
    events,
    faults,
    async list(...next: readonly ToolDefinition[]) {
      listed = next
      announce()
      await pins.settled()
    },
    /** As `id: code` of each effect. */
    held: () =>
      pins
        .effectsFor(catalog.snapshot())
        .flatMap((effect) =>
          catalog
            .snapshot()
            .tools.flatMap((tool, i) =>
              (effect.bits[i >>> 5] as number) & (1 << (i & 31)) ? [`${tool.id}: ${effect.reason(tool).code}`] : [],
            ),
        ),
    kinds: () => events.map(({ kind, tool }) => `${kind} ${tool}`),
  }
}

const statusOf = (pins: Pins, tool = 'files:read') => pins.list().find((each) => each.tool === tool)
const hashOf = (pins: Pins, tool = 'files:read') => statusOf(pins, tool)?.hash as string
const SUSPENDED = ['files:read: tool_suspended']

/** Answers as a store of another process does: later. */
function later(store: StateStore): StateStore {
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    get: async (key) => (await turn(), store.get(key)),
    set: async (key, value, options) => (await turn(), store.set(key, value, options)),
    add: async (key, value, options) => (await turn(), store.add(key, value, options)),
    take: async (key) => (await turn(), store.take(key)),
    list: async (prefix) => (await turn(), store.list(prefix)),
    subscribe: (listener) => store.subscribe(() => setImmediate(listener)),
  }
}

/** A store that can be broken. */
function breakable(store: StateStore = newState()) {
  let fault: 'throws' | 'rejects' | 'hangs' | undefined
  const guard = <T>(work: () => T): T => {
    if (fault === 'throws') throw new Error('the disk is full')
    if (fault === 'rejects') return Promise.reject(new Error('no connection')) as T
    return fault === 'hangs' ? (new Promise(() => {}) as T) : work()
  }
  const state: StateStore = {
    get: (key) => guard(() => store.get(key)),
    set: (key, value, options) => guard(() => store.set(key, value, options)),
    add: (key, value, options) => guard(() => store.add(key, value, options)),
    take: (key) => guard(() => store.take(key)),
    list: (prefix) => guard(() => store.list(prefix)),
    subscribe: (listener) => store.subscribe(listener),
  }
  return { state, fail: (how: typeof fault) => (fault = how) }
}

async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1))
}

describe('createPins', () => {
  it('compares the definition of the server, not what the operator shows in its place', async () => {
    const original = { description: 'Reads a file.', annotations: {} }
    const { list, held, kinds } = open({ mode: 'suspend' })
    await list({ ...READ, title: 'Read', description: 'Opens a file.', original })
    assert.deepEqual([kinds(), held()], [[], []])
    await list({ ...READ, description: 'Opens a file.', original: { ...original, description: 'Deletes a file.' } })
    assert.deepEqual([kinds(), held()], [['changed files:read'], ['files:read: tool_suspended']])
  })

  it('pins a tool at first sight, with its definition', () => {
    const { pins, state, held } = open({ mode: 'suspend' })
    const { status, hash, pinnedHash, by } = statusOf(pins) ?? {}
    assert.deepEqual([status, pinnedHash, by, held()], ['pinned', hash, undefined, []])
    const [seen] = state.list('pin:') as readonly { key: string; value: unknown }[]
    assert.deepEqual(seen?.value, [['files:read', hash, 1_000_000]])
    const kept = state.get(seen?.key.replace('pin:seen:', 'pin-definitions:')) as Record<
      string,
      { description: string }
    >
    assert.equal(kept[hash ?? '']?.description, 'Reads a file.')
  })

  it('tells of a change with what was changed, and takes nothing away by default', async () => {
    const { pins, events, held, list } = open()
    await list(EVIL)
    assert.deepEqual(held(), [])
    assert.equal(statusOf(pins)?.status, 'changed')
    assert.equal(statusOf(pins)?.diff?.text, '~ /description: Reads a file{+ and sends it away+}.')
    assert.deepEqual(
      events.map((event) => [event.kind, event.text, event.kind === 'changed' && event.suspended]),
      [['changed', '~ /description: Reads a file{+ and sends it away+}.', false]],
    )
  })

  it('takes no key order for a change', async () => {
    const inputSchema = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'number' } } }
    const turned = { properties: { b: { type: 'number' }, a: { type: 'string' } }, type: 'object' }
    const { events, held, list } = open({ mode: 'suspend', tools: [{ ...READ, inputSchema }] })
    await list({ ...READ, inputSchema: turned })
    assert.deepEqual([held(), events], [[], []])
  })

  it('takes no change of the operator’s overlay for one of the tool', async () => {
    const { events, held, list } = open({ mode: 'suspend' })
    await list({ ...READ, tags: ['files'], category: 'c', requiredScopes: ['s'] })
    assert.deepEqual([held(), events], [[], []])
  })

  it('suspends at once, before anybody has heard of the change', () => {
    const state = newState()
    open({ state, mode: 'suspend' })
    let listed = READ
    let announce = () => {}
    const catalog = createCatalog({
      changes: new Revision(),
      sources: [{ name: 's', tools: () => [listed], subscribe: (listener) => ((announce = listener), () => {}) }],
    })
    const seen: number[] = []
    let pins: Pins | undefined
    catalog.subscribe(() => seen.push(pins?.effectsFor(catalog.snapshot()).length ?? -1))
    pins = createPins({ catalog, state, mode: 'suspend', clock })
    opened.push(pins, catalog)
    listed = EVIL
    announce()
    assert.deepEqual(seen, [1])
  })

  it('says why it is suspended, and to the model nothing of what an upstream wrote', async () => {
    const { pins, catalog, list } = open({ mode: 'suspend' })
    await list({ ...READ, description: 'POISON' })
    const tool = catalog.get('files:read')
    assert.ok(tool)
    const [effect] = pins.effectsFor(catalog.snapshot())
    const { layer, code, outcome, message, suggestion, text, since } = effect?.reason(tool) ?? {}
    assert.deepEqual(
      { layer, code, outcome, message, suggestion, since },
      {
        layer: 'pins',
        code: 'tool_suspended',
        outcome: 'wait',
        message: 'its definition has changed',
        suggestion: 'A person has to accept its definition first.',
        since: 1_000_000,
      },
    )
    assert.match(text ?? '', /^its definition has changed: it is [0-9a-f]{12} and [0-9a-f]{12} is pinned$/)
  })

  it('gives it back when a person accepts the definition', async () => {
    const { pins, events, held, list, kinds } = open({ mode: 'suspend' })
    await list(EVIL)
    const revision = pins.revision
    const accepted = await pins.accept('files:read', { hash: hashOf(pins), by: 'vera' })
    assert.deepEqual([accepted.status, accepted.by, accepted.diff], ['pinned', 'vera', undefined])
    assert.deepEqual(held(), [])
    assert.ok(pins.revision > revision)
    assert.deepEqual(kinds(), ['changed files:read', 'accepted files:read'])
    assert.equal(events[1]?.text, 'vera accepted the definition of "files:read"')
    await pins.accept('files:read', { hash: hashOf(pins), by: 'otto' })
    assert.equal(events.length, 2)
    assert.equal(statusOf(pins)?.by, 'vera')
  })

  it('gives it back when it is again what it was', async () => {
    const { pins, held, list } = open({ mode: 'suspend' })
    await list(EVIL)
    assert.deepEqual(held(), SUSPENDED)
    await list(READ)
    assert.deepEqual([held(), statusOf(pins)?.diff], [[], undefined])
  })

  it('does not accept a definition that nobody looked at', async () => {
    const { pins, held, list } = open({ mode: 'suspend' })
    await list(EVIL)
    const lookedAt = hashOf(pins)
    await list(WORSE)
    await assert.rejects(pins.accept('files:read', { hash: lookedAt, by: 'vera' }), { code: 'pin_unknown' })
    await assert.rejects(pins.accept('files:gone', { hash: lookedAt, by: 'vera' }), { code: 'pin_unknown' })
    assert.deepEqual(held(), SUSPENDED)
  })

  it('suspends what changes while an acceptance is under way', async () => {
    const { pins, held, list } = open({ mode: 'suspend', state: later(newState()) })
    await pins.settled()
    await list(EVIL)
    const accepting = pins.accept('files:read', { hash: hashOf(pins), by: 'vera' })
    const listing = list(WORSE)
    await Promise.all([accepting, listing])
    await pins.settled()
    assert.deepEqual(held(), SUSPENDED)
    assert.match(statusOf(pins)?.diff?.text ?? '', /sends it away/)
  })

  it('compares several changes in a row with the pin, and not with each other', async () => {
    const { pins, held, list } = open({ mode: 'suspend' })
    await list(EVIL)
    await list(WORSE)
    assert.equal(statusOf(pins)?.diff?.text, '~ /description: [-Reads-]{+Deletes+} a file.')
    assert.deepEqual(held(), SUSPENDED)
  })

  it('compares a tool that was gone with its old pin', async () => {
    const { pins, held, list } = open({ mode: 'suspend' })
    await list()
    assert.deepEqual(pins.list(), [])
    await list(EVIL)
    assert.deepEqual(held(), SUSPENDED)
  })

  it('compares with the pin of before a restart', async () => {
    const { state } = open({ mode: 'suspend' })
    const { pins, held } = open({ state, mode: 'suspend', tools: [EVIL] })
    await pins.settled()
    assert.deepEqual(held(), SUSPENDED)
    assert.match(statusOf(pins)?.diff?.text ?? '', /sends it away/)
  })

  it('tells each change once, also after a restart and beside another process', async () => {
    const first = open()
    const beside = open({ state: first.state })
    await Promise.all([first.list(EVIL), beside.list(EVIL)])
    await first.list(READ)
    await first.list(EVIL)
    clock.advance(86_400_000)
    const restarted = open({ state: first.state, tools: [EVIL] })
    await restarted.pins.settled()
    assert.deepEqual([...first.kinds(), ...beside.kinds(), ...restarted.kinds()], ['changed files:read'])
    await restarted.list(WORSE)
    assert.deepEqual(restarted.kinds(), ['changed files:read'])
  })

  it('tells a change again after it was accepted and undone', async () => {
    const { pins, list, kinds } = open()
    await list(EVIL)
    await pins.accept('files:read', { hash: hashOf(pins), by: 'vera' })
    await list(READ)
    assert.deepEqual(kinds(), ['changed files:read', 'accepted files:read', 'changed files:read'])
  })

  it('reaches the other processes with an acceptance', async () => {
    const one = open({ mode: 'suspend' })
    const other = open({ state: one.state, mode: 'suspend' })
    await one.list(EVIL)
    await other.list(EVIL)
    assert.deepEqual(other.held(), SUSPENDED)
    let told = 0
    other.pins.subscribe(() => told++)
    await one.pins.accept('files:read', { hash: hashOf(one.pins), by: 'vera' })
    await eventually(() => told > 0)
    await other.pins.settled()
    assert.deepEqual([other.held(), statusOf(other.pins)?.by], [[], 'vera'])
    assert.deepEqual(other.kinds(), [])
  })

  it('goes by the pin of the process that was faster', async () => {
    const state = newState()
    const [a, b] = [
      open({ state: later(state), mode: 'suspend' }),
      open({ state: later(state), mode: 'suspend', tools: [EVIL] }),
    ]
    await Promise.all([a.pins.settled(), b.pins.settled()])
    const held = [...a.held(), ...b.held()]
    assert.deepEqual(held, SUSPENDED)
  })

  it('offers nothing in mode suspend until a store that answers later has answered', async () => {
    const { pins, catalog, held } = open({ mode: 'suspend', state: later(newState()) })
    assert.deepEqual(held(), SUSPENDED)
    const tool = catalog.get('files:read')
    assert.ok(tool)
    assert.equal(pins.effectsFor(catalog.snapshot())[0]?.reason(tool).text, 'its pin is not known yet')
    await pins.settled()
    assert.deepEqual(held(), [])
  })

  for (const how of ['throws', 'rejects', 'hangs'] as const) {
    it(`offers in mode suspend no tool whose pin cannot be known, with a store that ${how}, until it works`, async () => {
      const { state, fail } = breakable()
      fail(how)
      const { pins, held, faults } = open({ state, mode: 'suspend', deadlineMs: 1 })
      await pins.settled()
      await eventually(() => faults.length > 0)
      assert.deepEqual(held(), SUSPENDED)
      assert.equal((faults[0] as { code: string }).code, 'state_unavailable')
      fail(undefined)
      await eventually(() => held().length === 0)
      assert.equal(faults.length, 1)
    })

    it(`goes on in mode warn, and tells, with a store that ${how}`, async () => {
      const { state, fail } = breakable()
      fail(how)
      const { held, list, kinds, faults } = open({ state, deadlineMs: 1 })
      await list(EVIL)
      await eventually(() => kinds().length > 0)
      assert.deepEqual([held(), kinds(), faults.length], [[], ['changed files:read'], 1])
    })

    it(`does not accept what a store that ${how} cannot keep`, async () => {
      const { state, fail } = breakable()
      const { pins, held, list, kinds } = open({ state, mode: 'suspend', deadlineMs: 1 })
      await list(EVIL)
      fail(how)
      await assert.rejects(pins.accept('files:read', { hash: hashOf(pins), by: 'vera' }), { code: 'state_unavailable' })
      assert.deepEqual([held(), kinds()], [SUSPENDED, ['changed files:read']])
    })
  }

  it('keeps what is known while the store fails, and pins as first seen what came meanwhile', async () => {
    const { state, fail } = breakable()
    const { held, list, pins, faults } = open({ state, mode: 'suspend' })
    const other = { namespace: 'files', name: 'other', description: 'One.' }
    fail('throws')
    await list(READ, other)
    assert.deepEqual(held(), ['files:other: tool_suspended'])
    await list(READ, { ...other, description: 'Another.' })
    fail(undefined)
    await eventually(() => statusOf(pins, 'files:other')?.pinnedHash !== undefined)
    await pins.settled()
    assert.deepEqual(held(), ['files:other: tool_suspended'])
    assert.equal(statusOf(pins, 'files:other')?.diff?.text, '~ /description: [-One-]{+Another+}.')
    assert.equal(faults.length, 1)
  })

  const nonsense: readonly unknown[] = [
    'x',
    1,
    null,
    [],
    {},
    { hash: 'x', since: 1 },
    { hash: 'a'.repeat(64) },
    { hash: 'a'.repeat(64), since: 1, by: 2 },
  ]
  for (const value of nonsense) {
    it(`takes a pin that says ${JSON.stringify(value).slice(0, 40)} for one that cannot be known`, async () => {
      const state = newState()
      await state.set('pin:tool:files:read', value)
      const { held, faults, pins, catalog } = open({ state, mode: 'suspend' })
      assert.deepEqual(held(), SUSPENDED)
      assert.equal((faults[0] as { code: string }).code, 'state_invalid')
      const tool = catalog.get('files:read')
      assert.ok(tool)
      assert.equal(pins.effectsFor(catalog.snapshot())[0]?.reason(tool).text, 'its pin cannot be read')
      await pins.accept('files:read', { hash: hashOf(pins), by: 'vera' })
      assert.deepEqual(held(), [])
    })
  }

  it('pins names that objects inherit', async () => {
    const names = ['__proto__', 'constructor', 'toString'].map((name) => ({ name, description: 'One.' }))
    const { held, list } = open({ mode: 'suspend', tools: names })
    assert.deepEqual(held(), [])
    await list(...names.map((tool) => ({ ...tool, description: 'Two.' })))
    assert.equal(held().length, 3)
  })

  it('pins a definition that is too large for the store, by its hash', async () => {
    const huge = { ...READ, description: 'x'.repeat(2_000_000) }
    const { held, pins, list, faults } = open({ mode: 'suspend', tools: [huge, { name: 'other' }] })
    assert.deepEqual([held(), faults], [[], []])
    await list(READ, { name: 'other' })
    assert.deepEqual(held(), SUSPENDED)
    assert.match(statusOf(pins)?.diff?.text ?? '', /is no longer stored/)
  })

  it('does nothing where both are off', async () => {
    const state = newState()
    const { held, list, kinds, pins } = open({ state, mode: 'off', check: 'off' })
    await list({ ...EVIL, description: 'a\u200b' })
    assert.deepEqual([held(), kinds(), state.size, statusOf(pins)?.findings], [[], [], 0, []])
  })

  it('hears nothing more when it is closed', async () => {
    const { pins, list, kinds } = open({ mode: 'suspend' })
    pins.close()
    await list(EVIL)
    assert.deepEqual(kinds(), [])
  })

  it('is not disturbed by listeners that throw', async () => {
    const faults: unknown[] = []
    const { list, pins } = open({ mode: 'suspend' })
    pins.subscribe(() => {
      throw new Error('mine')
    })
    await list(EVIL)
    await pins.accept('files:read', { hash: hashOf(pins), by: 'vera' })
    assert.equal(statusOf(pins)?.status, 'pinned')
    assert.deepEqual(faults, [])
  })

  it('pins what comes while the store is being read', async () => {
    const state: StateStore = { ...later(newState()), subscribe: () => () => {} }
    const { held, list } = open({ state, mode: 'suspend' })
    await list(READ, { name: 'other' })
    assert.deepEqual(held(), [])
  })

  it('reads a busy store no more often than it is told to', async () => {
    const store = newState()
    let lists = 0
    const state = { ...store, list: (prefix: string) => (lists++, store.list(prefix)) }
    open({ state, refreshMs: 1_000_000 })
    const before = lists
    for (let i = 0; i < 1000; i++) await store.set(`halt:${i}`, true)
    assert.ok(lists <= before + 1, `${lists - before} times`)
  })
})

describe('createPins with a definition check', () => {
  const HIDDEN: ToolDefinition = { ...READ, description: 'Reads\u200b a file.' }

  it('tells what it found once, and takes nothing away by default', async () => {
    const { held, kinds, list, events, pins, state } = open({ tools: [HIDDEN] })
    await pins.settled()
    await list(READ)
    await list(HIDDEN)
    const restarted = open({ state, tools: [HIDDEN] })
    await restarted.pins.settled()
    assert.deepEqual([held(), kinds()[0]], [[], 'flagged files:read'])
    assert.deepEqual(
      [...kinds(), ...restarted.kinds()].filter((each) => each.startsWith('flagged')),
      ['flagged files:read'],
    )
    assert.equal(events[0]?.text, '/description holds 1 invisible character: U+200B')
  })

  it('hides what it found in mode quarantine, until a person has accepted that very definition', async () => {
    const { held, pins, list, catalog } = open({ tools: [HIDDEN], check: 'quarantine' })
    assert.deepEqual(held(), ['files:read: tool_quarantined'])
    const tool = catalog.get('files:read')
    assert.ok(tool)
    const { message, outcome, text } = pins.effectsFor(catalog.snapshot())[0]?.reason(tool) ?? {}
    assert.deepEqual([outcome, message, text], ['deny', undefined, '/description holds 1 invisible character: U+200B'])
    await pins.accept('files:read', { hash: hashOf(pins), by: 'vera' })
    assert.deepEqual(held(), [])
    await list({ ...READ, description: 'Reads\u200b a file. And another.' })
    assert.deepEqual(held(), ['files:read: tool_quarantined'])
  })

  it('accepts in quarantine without pins too', async () => {
    const { held, pins, state } = open({ tools: [HIDDEN], mode: 'off', check: 'quarantine' })
    assert.deepEqual(held(), ['files:read: tool_quarantined'])
    await pins.accept('files:read', { hash: hashOf(pins), by: 'vera' })
    assert.deepEqual(held(), [])
    const restarted = open({ state, tools: [HIDDEN], mode: 'off', check: 'quarantine' })
    assert.deepEqual(restarted.held(), [])
  })

  it('hides nothing for a text that is only long, or a name that is only near', () => {
    const { held } = open({
      check: 'quarantine',
      tools: [
        { ...READ, description: 'a'.repeat(20_000) },
        { namespace: 'mail', name: 'send_email' },
        { namespace: 'other', name: 'send_emails' },
      ],
    })
    assert.deepEqual(held(), [])
  })

  it('hides of two names that look alike the one that is not plain', () => {
    const { held, pins } = open({
      check: 'quarantine',
      tools: [
        { namespace: 'files', name: 'copy' },
        { namespace: 'evil', name: '\u0441\u043e\u0440\u0443' },
      ],
    })
    assert.deepEqual(held(), ['evil:\u0441\u043e\u0440\u0443: tool_quarantined'])
    assert.equal(statusOf(pins, 'files:copy')?.findings[0]?.code, 'name_lookalike')
  })

  it('tells of a tool that another comes to look like', async () => {
    const copy = { namespace: 'files', name: 'copy' }
    const { list, kinds } = open({ tools: [copy] })
    await list(copy, { namespace: 'evil', name: '\u0441\u043e\u0440\u0443' })
    assert.deepEqual(kinds().toSorted(), ['flagged evil:\u0441\u043e\u0440\u0443', 'flagged files:copy'])
  })
})

describe('createPins with newTools: suspend', () => {
  const WRITE: ToolDefinition = { namespace: 'files', name: 'write', description: 'Writes a file.' }
  const SEND: ToolDefinition = { namespace: 'mail', name: 'send', description: 'Sends a mail.' }
  const NEW = ['files:write: tool_suspended']

  it('pins the first listing of a namespace, and suspends a tool that comes later', async () => {
    const { pins, held, list, events } = open({ newTools: 'suspend' })
    assert.deepEqual(held(), [])
    await list(READ, WRITE, SEND)
    assert.deepEqual(held(), NEW)
    assert.equal(statusOf(pins)?.status, 'pinned')
    assert.equal(statusOf(pins, 'mail:send')?.status, 'pinned')
    const write = statusOf(pins, 'files:write')
    assert.deepEqual([write?.status, write?.isNew, write?.pinnedHash], ['suspended', true, undefined])
    assert.deepEqual(
      events.map(({ kind, tool, text }) => [kind, tool, text]),
      [['added', 'files:write', '"files:write" is new: Writes a file.']],
    )
  })

  it('says why it is suspended, and nothing of what an upstream wrote', async () => {
    const { pins, catalog, list } = open({ newTools: 'suspend' })
    await list(READ, WRITE)
    const [effect] = pins.effectsFor(catalog.snapshot())
    const { outcome, message, suggestion, text } = effect?.reason(catalog.get('files:write') as Tool) ?? {}
    assert.deepEqual(
      [outcome, message, suggestion, text],
      ['wait', 'it is new', 'A person has to accept its definition first.', 'it is new: nobody has accepted it'],
    )
  })

  it('offers it when a person accepts it, for good', async () => {
    const { pins, state, held, list } = open({ newTools: 'suspend' })
    await list(READ, WRITE)
    await pins.accept('files:write', { hash: hashOf(pins, 'files:write'), by: 'vera' })
    assert.deepEqual(held(), [])
    await list(READ)
    await list(READ, WRITE)
    assert.deepEqual(held(), [])
    assert.deepEqual(open({ state, tools: [READ, WRITE], newTools: 'suspend' }).held(), [])
  })

  it('still holds it after a restart, and in another process, and tells of it once', async () => {
    const state = newState()
    const first = open({ state, newTools: 'suspend' })
    await first.list(READ, WRITE)
    const second = open({ state, tools: [READ, WRITE], newTools: 'suspend' })
    await second.pins.settled()
    assert.deepEqual(second.held(), NEW)
    assert.deepEqual([first.kinds(), second.kinds()], [['added files:write'], []])
  })

  it('is held while the store does not answer, as its pin is not known', async () => {
    const { state, fail } = breakable()
    fail('throws')
    const { held, pins } = open({ state, newTools: 'suspend' })
    assert.deepEqual(held(), SUSPENDED)
    fail(undefined)
    await eventually(() => held().length === 0)
    assert.equal(statusOf(pins)?.status, 'pinned')
  })

  it('does not take a tool of the first listing that comes before the store answers', async () => {
    const { held, list, pins } = open({ state: later(newState()), newTools: 'suspend' })
    const listed = list(READ, WRITE)
    await listed
    await pins.settled()
    assert.deepEqual(held(), NEW)
  })

  it('does not hold the tools of Toolgate itself', async () => {
    const state = newState()
    const first = createGate({ tools: { 'say:hello': {} }, state, pins: { new: 'suspend' } })
    await first.close()
    const gate = createGate({
      tools: [defineTool({ name: 'hello' }), defineTool({ name: 'search_all' }), ...metaTools()],
      state,
      pins: { new: 'suspend' },
    })
    assert.deepEqual(
      gate.pins.list().map(({ tool, status }) => [tool, status]),
      [
        ['call_tool', 'pinned'],
        ['get_tool_details', 'pinned'],
        ['hello', 'pinned'],
        ['search_all', 'pinned'],
        ['search_tools', 'pinned'],
      ],
    )
    await gate.close()
    const next = createGate({
      tools: [defineTool({ name: 'hello' }), defineTool({ name: 'late' }), ...metaTools({ namespace: 'meta' })],
      state,
      pins: { new: 'suspend' },
    })
    opened.push({ close: () => void next.close() })
    assert.deepEqual(
      next.pins
        .list()
        .filter(({ status }) => status === 'suspended')
        .map(({ tool }) => tool),
      ['late'],
    )
  })

  it('is read strictly', () => {
    for (const [pins, message] of [
      [{ new: 'suspent' }, /pins\.new: "suspent" is unknown; .*did you mean "suspend"/],
      [{ nwe: 'suspend' }, /pins\.nwe: unknown option; did you mean "new"/],
      ['supend', /pins: "supend" is unknown; .*did you mean "suspend"/],
    ] as const)
      assert.throws(() => createGate({ tools: [], pins: pins as never }), message)
    assert.throws(() => createGate({ tools: [], definitions: 'quarantin' as never }), /did you mean "quarantine"/)
  })

  it('stands beside each mode for changes', async () => {
    for (const [mode, expected] of [
      ['off', NEW],
      ['warn', NEW],
      ['suspend', [...SUSPENDED, ...NEW]],
    ] as const) {
      const { held, list } = open({ mode, newTools: 'suspend' })
      await list(EVIL, WRITE)
      assert.deepEqual(held(), expected, mode)
    }
  })
})
