import type { Clock } from '../ports.ts'
import type { Group, Probe, ProbeFunction } from '../tools/groups.ts'
import { type ProbeResult, toFailedResult, toProbeResult, toLateResult } from './probe-result.ts'
import { type Ending, startInTime } from './in-time.ts'
import { createTurns, type Turns } from './turns.ts'

/** One probe of all groups that name it, and the answer that is kept of it. */
export interface Question {
  readonly probe: Probe
  /** What is asked, as a noun; `undefined` where neither the probe nor the function has a name. */
  readonly what: string | undefined
  readonly ttlMs: number
  readonly timeoutMs: number
  /** Absent until it was first answered. */
  readonly result: ProbeResult | undefined
  /** Wall-clock milliseconds: when it last became available, unavailable or unknown. */
  readonly since: number
}

export interface QuestionsDeps {
  readonly clock: Clock
  /** Calls for an account of all groups that stand on it. */
  readonly onAnswer: (question: Question) => void
  readonly random: () => number
}

export interface Questions {
  /** Gives the probes of a group, those of equal identity being the same objects. */
  of(group: string): readonly Question[]
  /** Asks what has no answer or one older than its time to live. Resolves when all of those have one. */
  check(): Promise<void>
  /** Goes on asking in the background: each once in its time to live, and a little later. */
  start(): void
  close(): void
}

interface Asked extends Question {
  ttlMs: number
  timeoutMs: number
  result: ProbeResult | undefined
  since: number
  answeredAtMs: number
  /** Of one ask that all wait for who ask meanwhile. */
  underWay: PromiseWithResolvers<void> | undefined
  askAgain: boolean
  /** Asks that are late and not over: what ignores its signal must not pile up. */
  left: number
  /** At the last ask. What hangs must not hold up what answers. */
  wasLate: boolean
  stop: (() => void) | undefined
  timer: NodeJS.Timeout | undefined
}

const DEFAULT_TTL_MS = 10_000
const DEFAULT_TIMEOUT_MS = 1000
const JITTER = 0.1
const MAX_AT_ONCE = 50
const MAX_LATE_AT_ONCE = 40
const MAX_HEAVY_AT_ONCE = 4
const MAX_HEAVY_LATE_AT_ONCE = 3
const MAX_LEFT = 3

/** Gives the probes of all groups, each once. Where groups differ, the shorter time to live and the longer deadline hold. */
export function createQuestions(groups: ReadonlyMap<string, Group>, deps: QuestionsDeps): Questions {
  const { clock, onAnswer, random } = deps
  const { all, byGroup } = collect(groups, clock.wallMs())
  const light = createTurns(MAX_AT_ONCE, MAX_LATE_AT_ONCE)
  const heavy = createTurns(MAX_HEAVY_AT_ONCE, MAX_HEAVY_LATE_AT_ONCE)
  const unsubscribes: (() => void)[] = []
  let isStarted = false
  let isClosed = false

  const schedule = (asked: Asked) => {
    clearTimeout(asked.timer)
    if (!isStarted || asked.probe.subscribe) return
    const delayMs = asked.ttlMs + Math.max(1, asked.ttlMs * JITTER * random())
    asked.timer = setTimeout(() => void ask(asked), delayMs).unref()
  }

  const keep = (asked: Asked, result: ProbeResult) => {
    const { underWay, askAgain } = asked
    asked.underWay = undefined
    asked.stop = undefined
    asked.askAgain = false
    if (isClosed) return underWay?.resolve()
    if (asked.result?.available !== result.available) asked.since = clock.wallMs()
    asked.result = result
    asked.answeredAtMs = clock.monotonicMs()
    onAnswer(asked)
    // In a turn of its own: one that says it changed whenever it is asked must not hold up everything.
    if (askAgain) asked.timer = setTimeout(() => void ask(asked), 0).unref()
    else schedule(asked)
    underWay?.resolve()
  }

  const askNow = (asked: Asked, done: () => void) => {
    const { probe, timeoutMs } = asked
    if (isClosed || asked.left >= MAX_LEFT) {
      done()
      keep(asked, toLateResult(probe, timeoutMs))
      return
    }
    asked.left++
    const stop = startInTime<unknown>({
      start: (signal) => probe.ask({ signal, timeoutMs }),
      timeoutMs,
      onOver: () => asked.left--,
      onEnd(ending) {
        done()
        asked.wasLate = ending.end === 'late'
        keep(asked, resultOf(ending, asked))
      },
    })
    if (asked.underWay) asked.stop = stop
  }

  const ask = (asked: Asked): Promise<void> => {
    if (asked.underWay) return asked.underWay.promise
    const { promise } = (asked.underWay = Promise.withResolvers<void>())
    if (asked.probe.subscribe) askNow(asked, () => {})
    else turnsOf(asked).take((done) => askNow(asked, done), asked.wasLate)
    return promise
  }

  const turnsOf = ({ probe }: Asked): Turns => (probe.isHeavy ? heavy : light)

  const isStale = ({ result, answeredAtMs, ttlMs, probe }: Asked): boolean =>
    result === undefined || (!probe.subscribe && clock.monotonicMs() - answeredAtMs > ttlMs)

  /** Follows what tells by itself when it changed. */
  const follow = (asked: Asked) => {
    const unsubscribe = asked.probe.subscribe?.(() => {
      if (isClosed) return
      if (asked.underWay) asked.askAgain = true
      else void ask(asked)
    })
    if (unsubscribe) unsubscribes.push(unsubscribe)
  }

  return {
    of: (group) => byGroup.get(group) ?? [],
    async check() {
      if (isClosed) return
      await Promise.all(all.filter(isStale).map(ask))
    },
    start() {
      if (isStarted || isClosed) return
      isStarted = true
      for (const asked of all) {
        follow(asked)
        if (asked.result) schedule(asked)
        else void ask(asked)
      }
    },
    close() {
      isClosed = true
      for (const unsubscribe of unsubscribes) unsubscribe()
      for (const asked of all) {
        clearTimeout(asked.timer)
        asked.stop?.()
        asked.underWay?.resolve()
      }
    },
  }
}

function resultOf(ending: Ending<unknown>, { probe, timeoutMs }: Asked): ProbeResult {
  if (ending.end === 'answered') return toProbeResult(ending.answer, probe)
  return ending.end === 'late' ? toLateResult(probe, timeoutMs) : toFailedResult(ending.error, probe)
}

function collect(groups: ReadonlyMap<string, Group>, since: number) {
  const byIdentity = new Map<string | ProbeFunction, Asked>()
  const byGroup = new Map<string, readonly Asked[]>()
  for (const [name, { availableWhen = [], ttlMs = DEFAULT_TTL_MS }] of groups) {
    const asked = availableWhen.map((probe) => {
      const identity = typeof probe === 'function' ? probe : probe.key
      const one = byIdentity.get(identity) ?? toAsked(probe, { ttlMs, since, nth: byIdentity.size })
      const timeoutMs = typeof probe === 'function' ? undefined : probe.timeoutMs
      one.ttlMs = Math.min(one.ttlMs, ttlMs)
      one.timeoutMs = Math.max(one.timeoutMs, timeoutMs ?? DEFAULT_TIMEOUT_MS)
      byIdentity.set(identity, one)
      return one
    })
    byGroup.set(name, asked)
  }
  return { all: [...byIdentity.values()], byGroup }
}

function toAsked(
  probe: Probe | ProbeFunction,
  { ttlMs, since, nth }: { ttlMs: number; since: number; nth: number },
): Asked {
  return {
    ...namesOf(probe, nth),
    ttlMs,
    timeoutMs: (typeof probe === 'function' ? undefined : probe.timeoutMs) ?? DEFAULT_TIMEOUT_MS,
    result: undefined,
    since,
    answeredAtMs: 0,
    underWay: undefined,
    askAgain: false,
    left: 0,
    wasLate: false,
    stop: undefined,
    timer: undefined,
  }
}

/** The key of a function is one that no host writes: a function is the same probe as itself only. */
function namesOf(probe: Probe | ProbeFunction, nth: number): Pick<Asked, 'probe' | 'what'> {
  if (typeof probe !== 'function') return { probe, what: probe.what }
  const what = probe.name === '' ? undefined : `the function ${probe.name}`
  return { probe: { key: `\u0000function ${nth}`, ask: probe }, what }
}
