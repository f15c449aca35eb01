import {
  type CallContext,
  type CallOutcome,
  type CallRefused,
  type CallWaiting,
  createGate,
  defineTool,
  type Gate,
  type GateOptions,
  type Hooks,
  memoryAudit,
  type Telemetry,
} from '@toolgate/core'
import type { MemoryAudit } from '@toolgate/core/audit'
import { memoryApprovals, memoryCounters, systemClock } from '@toolgate/core/stores'
import type { CallTrace } from '@toolgate/core/internal'
import { redactor } from '@toolgate/values/redact'

/** What a gate asks for one call, in the order in which it asks. */
export const ASKED = [
  'startCall',
  'validate',
  'before',
  'peek',
  'redact',
  'request',
  'take',
  'consume',
  'recordCall',
  'within',
  'tool',
  'after',
  'end',
  'recordEnd',
  'giveBackLimit',
  'giveBackApproval',
] as const
export type Part = (typeof ASKED)[number]

/** How a part behaves instead: it is given what it would do, and whatever else may happen meanwhile. */
export type Behaviour = (well: () => unknown, world: BrokenGate) => unknown

export interface BrokenGateOptions extends Omit<GateOptions, 'tools'> {
  /** Whether a person has to approve, and has approved the call that breaks. */
  readonly asks?: boolean
  readonly breaks?: { readonly [P in Part]?: Behaviour }
}

/** A gate over one tool `job`, whose parts work until one call, and again after it. */
export interface BrokenGate {
  readonly gate: Gate
  readonly audit: MemoryAudit
  readonly faults: readonly unknown[]
  /** The calls whose tool was run, by the tool's own word. */
  readonly ran: readonly string[]
  readonly controller: AbortController
  /** Calls the tool while the parts are broken. */
  callBroken(request?: object): Promise<CallOutcome>
  /** Asks a person for a call of it while the parts are broken. */
  askBroken(request?: object): Promise<CallRefused | CallWaiting | undefined>
  /** A person approves all that waits. */
  approve(): Promise<void>
  /** Calls it again when they work. */
  callWell(callId: string): Promise<CallOutcome>
}

export const MAX_USES = 2
export const DEADLINE_MS = 100
export const LATE_MS = 250
/** Of a gate in which nothing is late: no pause of the machine is as long. */
const PATIENT_MS = 60_000

const VERA = { user: 'vera', tenant: 'acme' }

export async function openBrokenGate({ asks, breaks = {}, ...options }: BrokenGateOptions): Promise<BrokenGate> {
  let isBroken = false
  const ran: string[] = []
  const faults: unknown[] = []
  const controller = new AbortController()
  const deadlineMs = Object.values(breaks).some((behave) => LATE.has(behave)) ? DEADLINE_MS : PATIENT_MS
  const audit = memoryAudit()
  const counters = memoryCounters({ clock: options.clock ?? systemClock })
  const approvals = memoryApprovals()
  const through = <T>(part: Part, well: () => T): T => {
    const behave = isBroken ? breaks[part] : undefined
    return behave ? (behave(well, world) as T) : well()
  }
  const job = defineTool({
    name: 'job',
    execute(_: unknown, { callId }: CallContext) {
      ran.push(callId)
      return through('tool', () => 'ok')
    },
  })
  const trace: CallTrace = {
    traceId: undefined,
    within: (work) => through('within', work),
    end: () => through('end', () => {}),
  }
  const telemetry: Telemetry = { startCall: () => through('startCall', () => trace) }
  const hooks: Hooks = {
    beforeToolCall: () => through('before', () => {}),
    afterToolCall: () => through('after', () => {}),
  }
  const gate = createGate({
    tools: [job],
    limits: `job:${MAX_USES}/60`,
    concurrency: [{ match: 'job', max: 1, waitMs: 0 }],
    ...(asks ? { policy: { ask: ['job'] } } : {}),
    hooks,
    telemetry,
    validateInput: () => through('validate', () => undefined),
    redactor: { ...redactor, redactValue: (value) => through('redact', () => redactor.redactValue(value)) },
    counters: {
      peek: (uses) => through('peek', () => counters.peek(uses)),
      take: (uses) => through('take', () => counters.take(uses)),
      giveBack: (uses, taken) => through('giveBackLimit', () => counters.giveBack(uses, taken)),
      settle: counters.settle,
    },
    approvals: {
      ...approvals,
      request: (...args) => through('request', () => approvals.request(...args)),
      consume: (...args) => through('consume', () => approvals.consume(...args)),
      giveBack: (...args) => through('giveBackApproval', () => approvals.giveBack(...args)),
    },
    audit: {
      ...audit,
      write: (entry) => through(entry.event === 'tool_call' ? 'recordCall' : 'recordEnd', () => audit.write(entry)),
    },
    storeDeadlineMs: deadlineMs,
    hookDeadlineMs: deadlineMs,
    deadlineMs,
    maxOutputChars: 1000,
    onFault: (fault) => faults.push(fault),
    ...options,
  })
  const toRequest = (request: object) => ({ tool: 'job', input: {}, ...request })
  const call = async (request: object) => (await gate.view(VERA)).call(toRequest(request))
  const ask = async (request: object) => (await gate.view(VERA)).requestApproval(toRequest(request))
  const approve = async () => {
    for (const { id } of await gate.approvals.list({ status: 'pending' }))
      await gate.approvals.decide(VERA, id, { decision: 'approve' })
  }
  const whileBroken = async <T>(work: (request: object) => Promise<T>, request: object = {}): Promise<T> => {
    isBroken = true
    try {
      return await work({ callId: 'broken', signal: controller.signal, ...request })
    } finally {
      isBroken = false
    }
  }
  const world: BrokenGate = {
    gate,
    audit,
    faults,
    ran,
    controller,
    callBroken: (request) => whileBroken(call, request),
    askBroken: (request) => whileBroken(ask, request),
    approve,
    callWell: (callId) => call({ callId }),
  }
  if (asks) {
    await call({ callId: 'asking' })
    await approve()
  }
  return world
}

const LATE = new Set<Behaviour>()
/**
 * Marks what is over only when a deadline has passed: a gate that it breaks has deadlines of `DEADLINE_MS`. Any other
 * has none that a test could run into.
 */
export function late(behave: Behaviour): Behaviour {
  LATE.add(behave)
  return behave
}

export const throws: Behaviour = () => {
  throw new Error('broken')
}
export const rejects: Behaviour = () => Promise.reject(new Error('broken'))
export const hangs: Behaviour = late(() => new Promise(() => {}))
export const rejectsLate: Behaviour = late(() => tooLate().then(throws as () => never))
/** Does what it should, when nobody waits for it any more. */
export const succeedsLate: Behaviour = late((well) => tooLate().then(well))
export const answers =
  (nonsense: unknown): Behaviour =>
  () =>
    nonsense
/** Can be waited for, and throws when it is asked. */
// oxlint-disable-next-line unicorn/no-thenable -- what a part may answer
export const thenThrows: Behaviour = () => ({ then: throws })
/** Can be waited for in vain, and is no promise. */
// oxlint-disable-next-line unicorn/no-thenable -- what a part may answer
export const thenHangs: Behaviour = late(() => ({ then: () => {} }))

/**
 * Resolves when a deadline of `DEADLINE_MS` that was set before has passed and was noticed, however busy the machine.
 *
 * In several waits: after one pause of the whole process that spans both times, Node calls timers in the order of
 * their lists, so the later one may come first. And by the clock that the deadlines go by: a timer that is set after
 * much work counts from before it, and so ends early.
 */
export async function tooLate(): Promise<void> {
  const wait = () => new Promise((resolve) => setTimeout(resolve, DEADLINE_MS / 2))
  const untilMs = performance.now() + LATE_MS
  while (performance.now() < untilMs) await wait()
  for (let i = 0; i < 3; i++) await wait()
}
