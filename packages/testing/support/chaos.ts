import fc from 'fast-check'
import { type CallOutcome, createGate, defineTool, type Gate, type Hooks, memoryAudit, type Tool } from '@toolgate/core'
import type { MemoryAudit } from '@toolgate/core/audit'
import { memoryApprovals, memoryCounters, systemClock } from '@toolgate/core/stores'
import type { Source } from '@toolgate/core/toolset'

/** The ways in which a part of a gate may answer. */
export const MANNERS = ['well', 'later', 'throws', 'rejects', 'hangs', 'nonsense', 'too late'] as const
export type Manner = (typeof MANNERS)[number]

/** A gate whose parts may each fail in a different way, and the events during its calls. */
export interface Chaos {
  readonly parts: Readonly<Record<Part, Manner>>
  readonly tool: Manner | 'streams' | 'streams for ever' | 'stream fails'
  /** The milliseconds until the signal aborts. `undefined`: never. */
  readonly aborts: number | undefined
  readonly halts: number | undefined
  /** The milliseconds from the halt to its release. */
  readonly releases: number | undefined
  readonly denies: number | undefined
  /** The milliseconds until the definition of a tool changes. */
  readonly changes: number | undefined
  readonly asks: boolean
  /** The object that the calls are made on. A fork has hooks of its own. A view is narrowed while its calls run. */
  readonly through: 'gate' | 'fork' | 'narrowed'
  /** Whether a person is asked before each call, as by a host with its own loop. */
  readonly asksFirst: boolean
  readonly calls: number
}

const PARTS = [
  'peek',
  'take',
  'giveBack',
  'request',
  'consume',
  'approvalGiveBack',
  'recordCall',
  'before',
  'after',
  'forkBefore',
] as const
type Part = (typeof PARTS)[number]

/** Returns how a part answers. Most parts mostly work, because otherwise no call would get far. */
const manner = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Manner>('well') },
  { weight: 2, arbitrary: fc.constant<Manner>('later') },
  { weight: 3, arbitrary: fc.constantFrom(...MANNERS) },
)
const moment = fc.option(fc.integer({ min: 0, max: 8 }), { nil: undefined, freq: 2 })

export const chaosArbitrary: fc.Arbitrary<Chaos> = fc.record({
  parts: fc.record(Object.fromEntries(PARTS.map((part) => [part, manner])) as Record<Part, typeof manner>),
  tool: fc.oneof(manner, fc.constantFrom('streams', 'streams for ever', 'stream fails')),
  aborts: moment,
  halts: moment,
  releases: moment,
  denies: moment,
  changes: moment,
  asks: fc.boolean(),
  through: fc.constantFrom('gate', 'fork', 'narrowed'),
  asksFirst: fc.boolean(),
  calls: fc.integer({ min: 1, max: 4 }),
})

/** The results of a chaos. */
export interface Aftermath {
  readonly gate: Gate
  readonly audit: MemoryAudit
  /** For each call, the value that it resolved with, or the error that it rejected with. */
  readonly settled: readonly PromiseSettledResult<CallOutcome>[]
  /** For each call that was asked for first, by the id of the question. `undefined` if no approval was needed. */
  readonly asked: ReadonlyMap<string, PromiseSettledResult<CallOutcome | undefined>>
  readonly callIds: readonly string[]
  readonly toolOf: ReadonlyMap<string, string>
  /** The outcome of another call when everything works again. */
  readonly healed: CallOutcome
  /** The ids of the calls whose tool ran, as the tool records them. */
  readonly ran: readonly string[]
  readonly faults: readonly unknown[]
}

const DEADLINE_MS = 12
const LATE_MS = 25
const MAX_USES = 2
const NAMES = ['tool', 'other'] as const

/** Runs a chaos, and waits until everything has ended. */
export async function unleash(chaos: Chaos): Promise<Aftermath> {
  const ran: string[] = []
  const faults: unknown[] = []
  const audit = memoryAudit()
  const counters = memoryCounters({ clock: systemClock })
  const approvals = memoryApprovals()
  const world: { parts: Chaos['parts']; tool: Chaos['tool'] } = { parts: chaos.parts, tool: chaos.tool }
  const toolsWith = (description: string) =>
    NAMES.map((name) =>
      defineTool({
        name,
        description,
        execute(_, { callId }) {
          ran.push(callId)
          return runTool(world.tool)
        },
      }),
    )
  const source = changingSource(toolsWith('before'))
  const hooks: Hooks = {
    beforeToolCall: () => behave(world.parts.before, () => undefined) as undefined,
    afterToolCall: () => behave(world.parts.after, () => undefined) as undefined,
  }
  const forkHooks: Hooks = { beforeToolCall: () => behave(world.parts.forkBefore, () => undefined) as undefined }
  const gate = createGate({
    sources: [source],
    limits: `*:${MAX_USES}/60`,
    ...(chaos.asks ? { policy: { ask: ['*'] } } : {}),
    hooks,
    concurrency: ['*:1'],
    counters: {
      peek: (uses) => behave(world.parts.peek, () => counters.peek(uses)),
      take: (uses) => behave(world.parts.take, () => counters.take(uses)),
      giveBack: (uses, taken) => behave(world.parts.giveBack, () => counters.giveBack(uses, taken)),
      settle: (uses, taken, costs) => behave(world.parts.giveBack, () => counters.settle(uses, taken, costs)),
    },
    approvals: {
      ...approvals,
      request: (...args) => behave(world.parts.request, () => approvals.request(...args)),
      consume: (...args) => behave(world.parts.consume, () => approvals.consume(...args)),
      giveBack: (...args) => behave(world.parts.approvalGiveBack, () => approvals.giveBack(...args)),
    },
    audit: {
      ...audit,
      write: (entry) =>
        entry.event === 'tool_call' ? behave(world.parts.recordCall, () => audit.write(entry)) : audit.write(entry),
    },
    storeDeadlineMs: DEADLINE_MS,
    hookDeadlineMs: DEADLINE_MS,
    deadlineMs: DEADLINE_MS,
    onFault: (fault) => faults.push(fault),
  })
  const vera = { user: 'vera', tenant: 'acme' }
  if (chaos.asks) await approveFirst(gate, vera)
  const forked = chaos.through === 'fork' ? gate.fork({ hooks: forkHooks }) : gate
  const view = await forked.view(vera)
  const controller = new AbortController()
  const release = () => gate.release({ all: true }).catch(() => {})
  const timers = [
    after(chaos.aborts, () => controller.abort(new Error('gone'))),
    after(chaos.halts, () => void gate.halt({ all: true, reason: 'fire' })),
    after(
      chaos.halts === undefined || chaos.releases === undefined ? undefined : chaos.halts + chaos.releases,
      () => void release(),
    ),
    after(chaos.denies, () => gate.setPolicy({ deny: ['*'] })),
    after(chaos.changes, () => source.change(toolsWith('after'))),
  ]
  const callIds = Array.from({ length: chaos.calls }, (_, i) => `call-${i}`)
  const toolOf = new Map(callIds.map((callId, i) => [callId, NAMES[i % NAMES.length] as string]))
  const asked = new Map<string, PromiseSettledResult<CallOutcome | undefined>>()
  const settled = await Promise.allSettled(
    callIds.map(async (callId) => {
      const through = chaos.through === 'narrowed' ? view.narrow({ activeTools: NAMES }) : view
      const request = { tool: toolOf.get(callId), input: {}, signal: controller.signal }
      if (chaos.asksFirst) {
        const askId = `ask-${callId}`
        const [answer] = await Promise.allSettled([through.requestApproval({ ...request, callId: askId })])
        asked.set(askId, answer)
      }
      // The call is made whatever the answer was, because a host may ask and ignore the answer.
      return through.call({ ...request, callId }).then(drain)
    }),
  )
  for (const timer of timers) clearTimeout(timer)
  // Late results must have arrived by now. They must not change the records.
  await tooLate()
  world.parts = Object.fromEntries(PARTS.map((part) => [part, 'well'])) as Chaos['parts']
  world.tool = 'well'
  await release()
  gate.setPolicy([])
  const healed = await (await gate.view(vera)).call({ tool: 'tool', callId: 'healed' })
  return {
    gate,
    audit,
    settled,
    asked,
    callIds,
    toolOf,
    healed,
    ran: ran.filter((callId) => callId !== 'healed'),
    faults,
  }
}

/** A source of tools whose definitions change. */
function changingSource(tools: readonly Tool[]): Source & { change(tools: readonly Tool[]): void } {
  let offered = tools
  const listeners = new Set<() => void>()
  return {
    name: 'changing',
    tools: () => offered,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    change(next) {
      offered = next
      for (const listener of listeners) listener()
    },
  }
}

async function approveFirst(gate: Gate, vera: { user: string; tenant: string }): Promise<void> {
  const asking = await gate.view(vera)
  for (const tool of NAMES) await asking.call({ tool, input: {}, callId: `asking-${tool}` })
  for (const { id } of await gate.approvals.list({ status: 'pending' }))
    await gate.approvals.decide(vera, id, { decision: 'approve' })
}

/**
 * Resolves when everything that takes `LATE_MS` has happened and every deadline was noticed, even on a busy machine.
 *
 * It uses the clock of the deadlines. A timer that is set after much work counts from before that work, and so ends
 * early.
 */
async function tooLate(): Promise<void> {
  const wait = () => new Promise((resolve) => setTimeout(resolve, DEADLINE_MS / 2))
  const untilMs = performance.now() + LATE_MS + DEADLINE_MS
  while (performance.now() < untilMs) await wait()
  // After a pause of the whole process, the clock reaches the time before the timers do.
  for (let i = 0; i < 3; i++) await wait()
}

function after(ms: number | undefined, action: () => void): NodeJS.Timeout | undefined {
  return ms === undefined ? undefined : setTimeout(action, ms)
}

function behave<T>(how: Manner, well: () => T | Promise<T>): T | Promise<T> {
  switch (how) {
    case 'well':
      return well()
    case 'later':
      return new Promise((resolve) => setTimeout(resolve, 2)).then(well)
    case 'throws':
      throw new Error('broken')
    case 'rejects':
      return Promise.reject(new Error('broken'))
    case 'hangs':
      return new Promise(() => {})
    case 'too late':
      return new Promise((resolve) => setTimeout(resolve, LATE_MS)).then(well)
    case 'nonsense':
      return 'nonsense' as T
  }
}

function runTool(how: Chaos['tool']): unknown {
  switch (how) {
    case 'streams':
      return numbers(3)
    case 'streams for ever':
      return numbers(Number.POSITIVE_INFINITY)
    case 'stream fails':
      return numbers(2, new Error('broken'))
    default:
      return behave(how, () => 'ok')
  }
}

async function* numbers(count: number, end?: Error): AsyncGenerator<number> {
  for (let i = 0; i < count; i++) {
    yield i
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  if (end) throw end
}

/** Reads a stream until it ends or fails. */
async function drain(outcome: CallOutcome): Promise<CallOutcome> {
  if (outcome.status !== 'done' || typeof outcome.output !== 'object' || outcome.output === null) return outcome
  try {
    for await (const _ of outcome.output as AsyncIterable<unknown>);
  } catch {
    // The call's own record contains how it ended.
  }
  return outcome
}
