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

/** The parts that a gate asks for one call, in that order. */
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

/** A replacement for a part's behaviour. It gets the correct behaviour, and the world that may change meanwhile. */
export type Behaviour = (well: () => unknown, world: BrokenGate) => unknown

export interface BrokenGateOptions extends Omit<GateOptions, 'tools'> {
  /** Whether a person must approve calls, and has approved the breaking call. */
  readonly asks?: boolean
  readonly breaks?: { readonly [P in Part]?: Behaviour }
}

/** A gate with one tool `job`. Its parts work before and after one call, in which they are broken. */
export interface BrokenGate {
  readonly gate: Gate
  readonly audit: MemoryAudit
  readonly faults: readonly unknown[]
  /** The ids of the calls whose tool ran, as the tool records them. */
  readonly ran: readonly string[]
  readonly controller: AbortController
  /** Calls the tool while the parts are broken. */
  callBroken(request?: object): Promise<CallOutcome>
  /** Asks a person to approve a call of the tool while the parts are broken. */
  askBroken(request?: object): Promise<CallRefused | CallWaiting | undefined>
  /** Approves all waiting calls. */
  approve(): Promise<void>
  /** Calls the tool again when the parts work. */
  callWell(callId: string): Promise<CallOutcome>
}

export const MAX_USES = 2
export const DEADLINE_MS = 100
export const LATE_MS = 250
/** The deadline of a gate in which nothing is late. No pause of the machine is as long. */
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
 * Marks a behaviour that ends only after a deadline. A gate that it breaks has deadlines of `DEADLINE_MS`. Other gates
 * have deadlines that no test reaches.
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
/** Succeeds when nobody waits for it any longer. */
export const succeedsLate: Behaviour = late((well) => tooLate().then(well))
export const answers =
  (nonsense: unknown): Behaviour =>
  () =>
    nonsense
/** Returns a thenable whose `then` throws. */
// oxlint-disable-next-line unicorn/no-thenable -- what a part may answer
export const thenThrows: Behaviour = () => ({ then: throws })
/** Returns a thenable that never settles and is not a promise. */
// oxlint-disable-next-line unicorn/no-thenable -- what a part may answer
export const thenHangs: Behaviour = late(() => ({ then: () => {} }))

/**
 * Resolves when an earlier deadline of `DEADLINE_MS` has passed and was noticed, even on a busy machine.
 *
 * It waits several times: after a pause of the whole process that spans both times, Node calls timers in the order of
 * their lists, so the later one may come first. It uses the clock of the deadlines: a timer that is set after much work
 * counts from before that work, and so ends early.
 */
export async function tooLate(): Promise<void> {
  const wait = () => new Promise((resolve) => setTimeout(resolve, DEADLINE_MS / 2))
  const untilMs = performance.now() + LATE_MS
  while (performance.now() < untilMs) await wait()
  for (let i = 0; i < 3; i++) await wait()
}
