import type { Telemetry } from '@toolgate/core'
import type { CallTrace } from '@toolgate/core/internal'
import type { Clock } from '@toolgate/core/stores'

type CallEnd = Parameters<CallTrace['end']>[0]
export type CallStatus = CallEnd['status']

/** The calls of this process, counted as they go through the gate. */
export interface CallCounts extends Telemetry {
  readonly running: number
  /** By status and reason; the reason of a call that is done is empty. */
  readonly calls: readonly CallCount[]
  /** By tool and status, the first {@link MAX_TOOLS} tools apart, the others together. */
  readonly tools: readonly ToolCount[]
  /** How long the calls took that ran. */
  readonly durations: ReadonlyMap<CallStatus, Durations>
}

export interface CallCount {
  readonly status: CallStatus
  readonly reason: string
  readonly count: number
}

export interface ToolCount {
  /** Its id; `_unknown` for what the catalog does not have, `_other` beyond the first. */
  readonly tool: string
  readonly status: CallStatus
  readonly count: number
}

export interface Durations {
  /** Upper bounds in seconds, and how many took no longer. */
  readonly buckets: readonly (readonly [bound: number, count: number])[]
  readonly sum: number
  readonly count: number
}

/** Tools with series of their own: a server that renames its tools over and over must not fill the memory. */
export const MAX_TOOLS = 500
const MAX_REASONS = 100
const UNKNOWN = '_unknown'
const OTHER = '_other'
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const RAN: readonly CallStatus[] = ['done', 'failed']

/** Gives a telemetry that counts. It keeps a bounded number of figures, whatever is called. */
export function countCalls(clock: Pick<Clock, 'monotonicMs'>): CallCounts {
  const byReason = createCounts(MAX_REASONS)
  const byTool = createCounts(MAX_TOOLS + 1)
  const durations = new Map(RAN.map((status) => [status, createHistogram()]))
  let running = 0

  const ended = (tool: string, { status, code = '' }: CallEnd, startedMs: number): void => {
    running--
    byReason.add(code, status)
    byTool.add(tool, status)
    durations.get(status)?.add((clock.monotonicMs() - startedMs) / 1000)
  }
  return {
    startCall({ tool }) {
      running++
      return new CountedCall(tool?.id ?? UNKNOWN, clock.monotonicMs(), ended)
    },
    get running() {
      return running
    },
    get calls() {
      return byReason.list().map(({ key, status, count }) => ({ status, reason: key, count }))
    },
    get tools() {
      return byTool.list().map(({ key, status, count }) => ({ tool: key, status, count }))
    },
    get durations() {
      return new Map([...durations].map(([status, histogram]) => [status, histogram.read()]))
    },
  }
}

class CountedCall implements CallTrace {
  readonly traceId = undefined
  readonly #tool: string
  readonly #startedMs: number
  #ended: ((tool: string, end: CallEnd, startedMs: number) => void) | undefined

  constructor(tool: string, startedMs: number, ended: (tool: string, end: CallEnd, startedMs: number) => void) {
    this.#tool = tool
    this.#startedMs = startedMs
    this.#ended = ended
  }

  within<T>(work: () => T): T {
    return work()
  }

  end(result: CallEnd): void {
    this.#ended?.(this.#tool, result, this.#startedMs)
    this.#ended = undefined
  }
}

interface Counted {
  readonly key: string
  readonly status: CallStatus
  readonly count: number
}

/** Counts by key and status, so many keys apart and the rest together. */
function createCounts(maxKeys: number) {
  const counts = new Map<string, Map<CallStatus, number>>()
  return {
    add(key: string, status: CallStatus): void {
      const own = counts.get(key) ?? open(counts.size < maxKeys ? key : OTHER)
      own.set(status, (own.get(status) ?? 0) + 1)
    },
    list: (): readonly Counted[] =>
      [...counts].flatMap(([key, own]) => [...own].map(([status, count]) => ({ key, status, count }))),
  }

  function open(key: string): Map<CallStatus, number> {
    let own = counts.get(key)
    if (!own) counts.set(key, (own = new Map()))
    return own
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
