import type { Telemetry } from '@toolgate/core'
import { readOwnJson } from '@toolgate/values/json'
import type { CallTrace } from '@toolgate/core/internal'
import type { Clock } from '@toolgate/core/stores'

type CallEnd = Parameters<CallTrace['end']>[0]
type TracedCall = Parameters<Telemetry['startCall']>[0]
type CallStatus = CallEnd['status']

/** Counts of the calls of this process. */
export interface CallCounts extends Telemetry {
  readonly running: number
  /** Counts by status and reason. The reason of a finished call is empty. */
  readonly calls: readonly CallCount[]
  /** Counts by tool and status. Tools beyond {@link MAX_TOOLS} are counted together. */
  readonly tools: readonly ToolCount[]
  /** The durations of the calls that ran, by status. */
  readonly durations: ReadonlyMap<CallStatus, Durations>
  /** Counts by server and status. */
  readonly servers: readonly ServerCount[]
  /**
   * Refusals for reasons other than limits, by tool and reason. Beyond {@link MAX_DENIED} pairs they are counted
   * together.
   */
  readonly denied: readonly DeniedCount[]
  /** The durations of the calls that ran, by server. */
  readonly serverDurations: ReadonlyMap<string, Durations>
  /** The durations by tool, for the first {@link MAX_TIMED} tools. The others share `_other`. */
  readonly toolDurations: ReadonlyMap<string, Durations>
}

export interface CallCount {
  readonly status: CallStatus
  readonly reason: string
  readonly count: number
}

interface ToolCount {
  /** The tool's id, `_unknown` for a name that is not in the catalog, or `_other`. */
  readonly tool: string
  readonly status: CallStatus
  readonly count: number
}

interface ServerCount {
  readonly server: string
  readonly status: CallStatus
  readonly count: number
}

interface DeniedCount {
  readonly tool: string
  readonly reason: string
  readonly count: number
}

export interface Durations {
  /** Upper bounds in seconds, each with the number of calls up to it. */
  readonly buckets: readonly (readonly [bound: number, count: number])[]
  readonly sum: number
  readonly count: number
}

/**
 * The maximum number of tools with their own series, so that a server that keeps renaming its tools cannot fill the
 * memory.
 */
export const MAX_TOOLS = 500
/** The maximum number of tools with their own histogram. */
export const MAX_TIMED = 100
export const MAX_DENIED = 500
/**
 * The maximum number of servers. Their names come from the configuration, and those of several revisions may add up.
 */
const MAX_SERVERS = 500
const MAX_REASONS = 100
const UNKNOWN = '_unknown'
const OTHER = '_other'
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const RAN: readonly CallStatus[] = ['done', 'failed']

/** Returns a telemetry that counts calls, and passes each call on to `next`. Its memory is bounded. */
export function countCalls(clock: Pick<Clock, 'monotonicMs'>, next?: Telemetry): CallCounts {
  return new CallCounter(clock, next)
}

class CallCounter implements CallCounts {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #next: Telemetry | undefined
  readonly #byReason = createCounts(MAX_REASONS)
  readonly #byTool = createCounts(MAX_TOOLS + 1)
  readonly #durations = new Map(RAN.map((status) => [status, createHistogram()]))
  readonly #byServer = createCounts(MAX_SERVERS)
  readonly #denied = createCounts(MAX_DENIED)
  readonly #serverDurations = createHistograms(MAX_SERVERS)
  readonly #toolDurations = createHistograms(MAX_TIMED)
  #running = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>, next: Telemetry | undefined) {
    this.#clock = clock
    this.#next = next
  }

  startCall(call: TracedCall): CallTrace {
    const trace = this.#next?.startCall(call)
    this.#running++
    return new CountedCall(this, call.tool, this.#clock.monotonicMs(), trace)
  }

  /** Counts a call that has ended. */
  add(called: TracedCall['tool'], { status, code = '' }: CallEnd, startedMs: number): void {
    const { id: tool = UNKNOWN, namespace: server = tool } = called ?? {}
    this.#running--
    this.#byReason.add(code, status)
    this.#byTool.add(tool, status)
    if (called) this.#byServer.add(server, status)
    if (status === 'refused' && code !== 'rate_limited') this.#denied.add(JSON.stringify([tool, code]), status)
    const ofStatus = this.#durations.get(status)
    if (!ofStatus) return
    const seconds = (this.#clock.monotonicMs() - startedMs) / 1000
    ofStatus.add(seconds)
    this.#serverDurations.add(server, seconds)
    this.#toolDurations.add(tool, seconds)
  }

  get running(): number {
    return this.#running
  }

  get calls(): readonly CallCount[] {
    return this.#byReason.list().map(({ key, status, count }) => ({ status, reason: key, count }))
  }

  get tools(): readonly ToolCount[] {
    return this.#byTool.list().map(({ key, status, count }) => ({ tool: key, status, count }))
  }

  get durations(): ReadonlyMap<CallStatus, Durations> {
    return new Map([...this.#durations].map(([status, histogram]) => [status, histogram.read()]))
  }

  get servers(): readonly ServerCount[] {
    return this.#byServer.list().map(({ key, status, count }) => ({ server: key, status, count }))
  }

  get denied(): readonly DeniedCount[] {
    return this.#denied.list().map(({ key, count }) => {
      const [tool, reason] = key === OTHER ? [OTHER, OTHER] : (readOwnJson(key) as [string, string])
      return { tool, reason, count }
    })
  }

  get serverDurations(): ReadonlyMap<string, Durations> {
    return this.#serverDurations.read()
  }

  get toolDurations(): ReadonlyMap<string, Durations> {
    return this.#toolDurations.read()
  }
}

class CountedCall implements CallTrace {
  readonly traceId: string | undefined
  readonly within: CallTrace['within']
  readonly #tool: TracedCall['tool']
  readonly #startedMs: number
  readonly #trace: CallTrace | undefined
  #counter: CallCounter | undefined

  constructor(counter: CallCounter, tool: TracedCall['tool'], startedMs: number, trace: CallTrace | undefined) {
    this.traceId = trace?.traceId
    this.within = trace?.within && ((work) => withinTrace(trace, work))
    this.#counter = counter
    this.#tool = tool
    this.#startedMs = startedMs
    this.#trace = trace
  }

  end(result: CallEnd): void {
    this.#counter?.add(this.#tool, result, this.#startedMs)
    this.#counter = undefined
    this.#trace?.end(result)
  }
}

function withinTrace<T>(trace: CallTrace, work: () => T): T {
  return trace.within ? trace.within(work) : work()
}

/** Counts by key and status. Keys beyond `maxKeys` are counted together. */
function createCounts(maxKeys: number) {
  const counts = new Map<string, Map<CallStatus, number>>()
  return {
    add(key: string, status: CallStatus): void {
      const name = counts.has(key) || counts.size < maxKeys ? key : OTHER
      let own = counts.get(name)
      if (!own) counts.set(name, (own = new Map()))
      own.set(status, (own.get(status) ?? 0) + 1)
    },
    list: (): readonly { readonly key: string; readonly status: CallStatus; readonly count: number }[] =>
      [...counts].flatMap(([key, own]) => [...own].map(([status, count]) => ({ key, status, count }))),
  }
}

/** Creates histograms by key. Keys beyond `maxKeys` share one. */
function createHistograms(maxKeys: number) {
  const histograms = new Map<string, ReturnType<typeof createHistogram>>()
  return {
    add(key: string, seconds: number): void {
      const name = histograms.has(key) || histograms.size < maxKeys ? key : OTHER
      let own = histograms.get(name)
      if (!own) histograms.set(name, (own = createHistogram()))
      own.add(seconds)
    },
    read: () => new Map([...histograms].map(([key, histogram]) => [key, histogram.read()])),
  }
}

function createHistogram() {
  const counts = BOUNDS.map(() => 0)
  let sum = 0
  let count = 0
  return {
    add(seconds: number): void {
      sum += seconds
      count++
      const at = BOUNDS.findIndex((bound) => seconds <= bound)
      if (at !== -1) counts[at] = (counts[at] ?? 0) + 1
    },
    read(): Durations {
      let below = 0
      return { buckets: BOUNDS.map((bound, i) => [bound, (below += counts[i] ?? 0)] as const), sum, count }
    },
  }
}
