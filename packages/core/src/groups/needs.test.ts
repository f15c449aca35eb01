import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { AppsInput } from './app.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryAvailability } from '../memory/availability.ts'
import { manualTime } from '../../../testing/support/manual-time.ts'
import type { Group, Probe, ProbeAnswer } from '../tools/groups.ts'
import { defineTool } from '../tools/tool.ts'
import { type Availability, createAvailability } from './availability.ts'

const DOWN = { available: false, reason: 'nothing listens on 127.0.0.1:4444' }

/** A probe whose answer the test changes. */
class Port implements Probe {
  readonly key: string
  readonly kind = 'tcp'
  readonly what: string
  answer: ProbeAnswer = true

  constructor(what: string) {
    this.key = `tcp ${what}`
    this.what = what
  }

  readonly ask = (): ProbeAnswer => this.answer
}

const TOOLS = ['web:open', 'web:submit', 'files:read', 'sql:query', 'search'].map((id) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ namespace, name, execute: () => 'ok' })
})

interface Opened {
  readonly gate: Gate
  readonly availability: Availability
  readonly startMs: number
  advance(ms: number): void
}

function open(
  test: TestContext,
  groups: Readonly<Record<string, Group>>,
  { apps, ...more }: { apps?: AppsInput } & GateOptions = {},
): Opened {
  const { clock } = manualTime(test)
  const availability = createAvailability(groups, { clock })
  const gate = createGate({ tools: TOOLS, groups, availability, clock, ...(apps ? { apps } : {}), ...more })
  test.after(async () => {
    availability.close()
    await gate.close()
  })
  return { gate, availability, startMs: clock.wallMs(), advance: (ms) => clock.advance(ms) }
}

const namesOf = (gate: Gate, app?: string) => gate.needsOf(app).map(({ what }) => what)

describe('gate.needsOf', () => {
  it('lists what the groups of an app need, with the state, the reason, since when and what to do', async (test) => {
    const port = new Port('127.0.0.1:4444')
    const groups = { web: { tools: ['web:*'], availableWhen: [port], suggestion: 'Start the browser.' } }
    const { gate, availability, startMs, advance } = open(test, groups, { apps: { research: { import: ['web'] } } })
    const need = { kind: 'tcp', what: '127.0.0.1:4444', groups: ['web'] }
    assert.deepEqual(gate.needsOf('research'), [
      {
        ...need,
        state: 'unknown',
        reason: 'it has not been checked yet',
        suggestion: 'Start the browser.',
        since: startMs,
      },
    ])

    port.answer = DOWN
    advance(5)
    await availability.check()
    const down = { ...need, state: 'unavailable', reason: DOWN.reason, suggestion: 'Start the browser.' }
    assert.deepEqual(gate.needsOf('research'), [{ ...down, since: startMs + 5 }])

    port.answer = { available: false, reason: 'the name is not found' }
    advance(10_001)
    await availability.check()
    assert.deepEqual(gate.needsOf('research'), [{ ...down, reason: 'the name is not found', since: startMs + 5 }])

    port.answer = true
    advance(10_001)
    await availability.check()
    assert.deepEqual(gate.needsOf('research'), [{ ...need, state: 'available', since: startMs + 20_007 }])
  })

  it('lists each once, by kind and then by name, with every group that needs it by whatever it depends on', async (test) => {
    const shared = new Port('127.0.0.1:9200')
    const isReady = () => true
    const groups: Record<string, Group> = {
      chain: { tools: ['search'], dependsOn: ['middle'] },
      middle: { tools: [], dependsOn: ['sql'] },
      sql: { tools: ['sql:*'], availableWhen: [shared, isReady, shared] },
      web: {
        tools: ['web:*'],
        availableWhen: [new Port('127.0.0.1:4444'), { key: shared.key, ask: () => true }, isReady, () => true],
      },
      files: {
        tools: ['files:*'],
        availableWhen: [{ key: 'server files', kind: 'server', what: 'the server files', ask: () => true }],
      },
    }
    const { gate } = open(test, groups)
    assert.deepEqual(
      gate.needsOf().map(({ kind, what, groups: asking }) => [kind, what, asking]),
      [
        ['server', 'the server files', ['files']],
        ['tcp', '127.0.0.1:4444', ['web']],
        ['tcp', '127.0.0.1:9200', ['chain', 'middle', 'sql', 'web']],
        ['function', 'a probe of the group web', ['web']],
        ['function', 'the function isReady', ['chain', 'middle', 'sql', 'web']],
      ],
    )
  })

  it('follows the groups of an app, those its own tools are members of, and what these depend on', (test) => {
    const group = (tools: string[], port: string, more: Partial<Group> = {}): Group => ({
      tools,
      availableWhen: [new Port(port)],
      ...more,
    })
    const { gate } = open(
      test,
      {
        web: group(['web:*'], 'web'),
        forms: group(['web:submit'], 'forms', { dependsOn: ['net'] }),
        net: group([], 'net'),
        files: group(['files:*'], 'files'),
        reading: group(['tag:read'], 'reading'),
        sql: group(['sql:*'], 'sql'),
      },
      {
        tools: [...TOOLS, defineTool({ namespace: 'notes', name: 'list', tags: ['read'], execute: () => 'ok' })],
        apps: {
          research: { import: ['web'] },
          desk: { tools: ['files:read'] },
          notes: { tools: ['notes:list'] },
          plain: { tools: ['search'] },
        },
      },
    )
    assert.deepEqual(namesOf(gate, 'research'), ['forms', 'net', 'web'])
    assert.deepEqual(namesOf(gate, 'desk'), ['files'])
    assert.deepEqual(namesOf(gate, 'notes'), ['reading'])
    assert.deepEqual(namesOf(gate, 'plain'), [])
    assert.deepEqual(namesOf(gate), ['files', 'forms', 'net', 'reading', 'sql', 'web'])
  })

  it('leaves out the groups that an app hides, and those that only its hidden tools are members of', (test) => {
    const groups: Record<string, Group> = {
      files: { tools: ['files:*'], availableWhen: [new Port('files')] },
      sql: { tools: ['sql:query'], availableWhen: [new Port('sql')] },
      database: { tools: ['sql:*'], availableWhen: [new Port('database')] },
    }
    const hidden = { group: 'sql', visibility: 'hidden' } as const
    const apps: AppsInput = {
      byName: { import: ['files', hidden], tools: ['sql:query'] },
      byGlob: { import: ['files', hidden], tools: ['sql:q*'] },
    }
    const { gate } = open(test, groups, { apps })
    assert.deepEqual(namesOf(gate, 'byName'), ['files'])
    assert.equal(namesOf(gate, 'byGlob').includes('sql'), false)
  })

  it('names a server that has not started yet, whose tools nobody knows', (test) => {
    const server: Probe = { key: 'server mail', kind: 'server', what: 'the server mail', ask: () => false }
    const groups = { 'server:mail': { tools: ['mail:*'], availableWhen: [server] }, post: { tools: ['mail:send_*'] } }
    const apps = { byGroup: { import: ['post'] }, byTool: { tools: ['mail:read'] }, other: { tools: ['search'] } }
    const { gate } = open(test, groups, {
      apps,
      sources: [{ name: 'mail', tools: () => [], subscribe: () => () => {} }],
    })
    assert.deepEqual(namesOf(gate, 'byGroup'), ['the server mail'])
    assert.deepEqual(namesOf(gate, 'byTool'), ['the server mail'])
    assert.deepEqual(namesOf(gate, 'other'), [])
  })

  it('suggests what the nearest group says, then what the probe says', async (test) => {
    const probe = (key: string): Probe => ({
      key,
      what: key,
      ask: () => ({ ...DOWN, suggestion: 'Ask the probe.' }),
    })
    const silent: Probe = { key: 'c', what: 'c', ask: () => false }
    const groups: Record<string, Group> = {
      above: { tools: [], dependsOn: ['own', 'probe', 'none'], suggestion: 'Look above.' },
      own: { tools: [], availableWhen: [probe('a')], suggestion: 'Start it.' },
      probe: { tools: [], availableWhen: [probe('b')] },
      none: { tools: [], availableWhen: [silent] },
    }
    const { gate, availability } = open(test, groups)
    await availability.check()
    assert.deepEqual(
      gate.needsOf().map(({ what, suggestion }) => [what, suggestion]),
      [
        ['a', 'Start it.'],
        ['b', 'Ask the probe.'],
        ['c', 'Look above.'],
      ],
    )
  })

  it('answers group by group where the host says what is available', async () => {
    const availability = memoryAvailability({ web: { ...DOWN, suggestion: 'Start it.', since: 7 } })
    const groups: Record<string, Group> = {
      web: { tools: ['web:*'], visibility: 'conditional' },
      sql: { tools: ['sql:*'], visibility: 'conditional', dependsOn: ['web'] },
      files: { tools: ['files:*'] },
    }
    const apps: AppsInput = { desk: { import: [{ group: 'files', visibility: 'conditional' }] } }
    const gate = createGate({ tools: TOOLS, groups, apps, availability })
    const unchecked = { state: 'unknown', reason: 'it has not been checked yet' }
    assert.deepEqual(gate.needsOf(), [
      { kind: 'group', what: 'the group sql', groups: ['sql'], ...unchecked },
      {
        kind: 'group',
        what: 'the group web',
        groups: ['web', 'sql'],
        state: 'unavailable',
        reason: DOWN.reason,
        suggestion: 'Start it.',
        since: 7,
      },
    ])
    assert.deepEqual(gate.needsOf('desk'), [
      { kind: 'group', what: 'the group files', groups: ['files'], ...unchecked },
    ])
    await gate.close()
  })

  it('is empty where nothing is needed', async () => {
    const groups: Record<string, Group> = { web: { tools: ['web:*'], visibility: 'conditional' } }
    const gate = createGate({ tools: TOOLS, groups, apps: { desk: { import: ['web'] } } })
    assert.deepEqual([gate.needsOf(), gate.needsOf('desk')], [[], []])
    await gate.close()
  })

  it('is the same of a fork', async (test) => {
    const { gate } = open(test, { web: { tools: ['web:*'], availableWhen: [new Port('p')] } })
    assert.deepEqual(gate.fork({ policy: { deny: ['*'] } }).needsOf(), gate.needsOf())
  })

  it('names the nearest app for an unknown one', (test) => {
    const { gate } = open(test, {}, { apps: { research: { tools: ['search'] } } })
    assert.throws(() => gate.needsOf('reserch'), {
      code: 'app_unknown',
      message: 'No app is named "reserch"; the nearest is "research".',
    })
  })
})

describe('a probe', () => {
  it('may say its kind, one of those that lists of needs know', () => {
    const probe = { key: 'k', kind: 'tpc', ask: () => true }
    assert.throws(() => createAvailability({ web: { tools: [], availableWhen: [probe as unknown as Probe] } }), {
      path: 'groups.web.availableWhen[0].kind',
      problem: 'must be one of server, tcp, http, command, env, function, not "tpc"',
    })
  })
})
