import { messageOf } from '../errors.ts'
import type { Clock, ProbeState } from '../ports.ts'
import type { Group, Probe, ProbeFunction } from '../tools/groups.ts'
import { createTurns, type Turns } from './turns.ts'
import { backgroundTimeout, type Outcome, TimeoutError } from '../util/async.ts'
import { isObject } from '../util/json.ts'
import { cut } from '../util/text.ts'
import { NOT_CHECKED, type ProbeResult } from './states.ts'
import { GroupTask } from './task.ts'

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
  askAgain: boolean
  /** At the last ask. What hangs must not hold up what answers. */
  wasLate: boolean
  readonly task: GroupTask<unknown>
  timer: NodeJS.Timeout | undefined
}

const DEFAULT_TTL_MS = 10_000
const DEFAULT_TIMEOUT_MS = 1000
const JITTER = 0.1
const MAX_AT_ONCE = 50
const MAX_LATE_AT_ONCE = 40
const MAX_HEAVY_AT_ONCE = 4
const MAX_HEAVY_LATE_AT_ONCE = 3

/** Gives the probes of all groups, each once. Where groups differ, the shorter time to live and the longer deadline hold. */
export function createQuestions(groups: ReadonlyMap<string, Group>, deps: QuestionsDeps): Questions {
  const { clock, onAnswer, random } = deps
  const { all, byGroup } = collect(groups, clock.wallMs(), toTask)
  const light = createTurns(MAX_AT_ONCE, MAX_LATE_AT_ONCE)
  const heavy = createTurns(MAX_HEAVY_AT_ONCE, MAX_HEAVY_LATE_AT_ONCE)
  const unsubscribes: (() => void)[] = []
  let isStarted = false
  let isClosed = false

  const schedule = (asked: Asked) => {
    clearTimeout(asked.timer)
    if (!isStarted || asked.probe.subscribe) return
    const delayMs = asked.ttlMs + Math.max(1, asked.ttlMs * JITTER * random())
    asked.timer = backgroundTimeout(() => void ask(asked), delayMs)
  }

  const keep = (asked: Asked, result: ProbeResult) => {
    const { askAgain } = asked
    asked.askAgain = false
    if (asked.result?.available !== result.available) asked.since = clock.wallMs()
    asked.result = result
    asked.answeredAtMs = clock.monotonicMs()
    onAnswer(asked)
    // In a turn of its own: one that says it changed whenever it is asked must not hold up everything.
    if (askAgain) asked.timer = backgroundTimeout(() => void ask(asked), 0)
    else schedule(asked)
  }
  const ask = (asked: Asked): Promise<void> => asked.task.begin()
  function toTask(asked: () => Asked): GroupTask<unknown> {
    return new GroupTask<unknown>({
      run: (signal) => asked().probe.ask({ signal, timeoutMs: asked().timeoutMs }),
      deadlineMs: () => asked().timeoutMs,
      inTurn(run) {
        if (asked().probe.subscribe) run(() => {})
        else turnsOf(asked()).take(run, asked().wasLate)
      },
      onEnd(outcome) {
        asked().wasLate = isLate(outcome)
        keep(asked(), resultOf(outcome, asked()))
      },
    })
  }
  const turnsOf = ({ probe }: Asked): Turns => (probe.isHeavy ? heavy : light)

  const isStale = ({ result, answeredAtMs, ttlMs, probe }: Asked): boolean =>
    result === undefined || (!probe.subscribe && clock.monotonicMs() - answeredAtMs > ttlMs)

  /** Follows what tells by itself when it changed. */
  const follow = (asked: Asked) => {
    const unsubscribe = asked.probe.subscribe?.(() => {
      if (isClosed) return
      if (asked.task.isUnderWay) asked.askAgain = true
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
        asked.task.close()
      }
    },
  }
}

function isLate(outcome: Outcome<unknown>): boolean {
  return 'error' in outcome && outcome.error instanceof TimeoutError
}

function resultOf(outcome: Outcome<unknown>, { probe, timeoutMs }: Asked): ProbeResult {
  if ('value' in outcome) return toProbeResult(outcome.value, probe)
  return isLate(outcome) ? toLateResult(probe, timeoutMs) : toFailedResult(outcome.error, probe)
}

type ToTask = (asked: () => Asked) => GroupTask<unknown>

function collect(groups: ReadonlyMap<string, Group>, since: number, toTask: ToTask) {
  const byIdentity = new Map<string | ProbeFunction, Asked>()
  const byGroup = new Map<string, readonly Asked[]>()
  for (const [name, { availableWhen = [], ttlMs = DEFAULT_TTL_MS }] of groups) {
    const asked = availableWhen.map((probe) => {
      const identity = typeof probe === 'function' ? probe : probe.key
      const one = byIdentity.get(identity) ?? toAsked(probe, { ttlMs, since, nth: byIdentity.size }, toTask)
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
  toTask: ToTask,
): Asked {
  const asked: Asked = {
    ...namesOf(probe, nth),
    ttlMs,
    timeoutMs: (typeof probe === 'function' ? undefined : probe.timeoutMs) ?? DEFAULT_TIMEOUT_MS,
    result: undefined,
    since,
    answeredAtMs: 0,
    askAgain: false,
    wasLate: false,
    task: toTask(() => asked),
    timer: undefined,
  }
  return asked
}

/** The key of a function is one that no host writes: a function is the same probe as itself only. */
function namesOf(probe: Probe | ProbeFunction, nth: number): Pick<Asked, 'probe' | 'what'> {
  if (typeof probe !== 'function') return { probe, what: probe.what }
  const what = probe.name === '' ? undefined : `the function ${probe.name}`
  return { probe: { key: `\u0000function ${nth}`, ask: probe }, what }
}

/** Returns the last answer of a probe, as it is shown. */
export function toProbeState({ probe, what, result, since }: Question): ProbeState {
  const { key, kind = 'function' } = probe
  const answer = result ?? { available: false, unknown: true, reason: NOT_CHECKED }
  return Object.freeze({ key, kind, ...(what === undefined ? {} : { what }), ...answer, since })
}

const MAX_CHARS = 500
const WORKS: ProbeResult = Object.freeze({ available: true })

/** Reads what a probe answered. What is no answer says that the thing does not work. */
function toProbeResult(answer: unknown, probe: Probe): ProbeResult {
  if (answer === true) return WORKS
  if (answer === false) return { available: false, reason: `${nameOf(probe)} says no` }
  if (!isObject(answer) || typeof answer['available'] !== 'boolean')
    return { available: false, reason: `${nameOf(probe)} gave nothing that is an answer` }
  const { available, reason, detail, suggestion } = answer
  if (available) return WORKS
  return {
    available: false,
    reason: toText(reason) ?? `${nameOf(probe)} says no`,
    ...optional('detail', toText(detail)),
    ...optional('suggestion', toText(suggestion)),
  }
}

/** What was thrown is for people: it may quote anything. */
function toFailedResult(error: unknown, probe: Probe): ProbeResult {
  return { available: false, reason: `${nameOf(probe)} failed`, ...optional('detail', toText(messageOf(error))) }
}

function toLateResult(probe: Probe, timeoutMs: number): ProbeResult {
  return { available: false, reason: `${nameOf(probe)} did not answer within ${timeoutMs / 1000} s` }
}

function nameOf({ what = 'its probe' }: Probe): string {
  return what
}

function toText(text: unknown): string | undefined {
  if (typeof text !== 'string' || text === '') return undefined
  return cut(text, MAX_CHARS + 1).toWellFormed()
}

function optional<Key extends string>(key: Key, text: string | undefined): { readonly [K in Key]?: string } {
  return text === undefined ? {} : ({ [key]: text } as { readonly [K in Key]: string })
}
