import { backgroundTimeout, cut, messageOf, type Outcome, TimeoutError } from '@toolgate/values'
import type { Clock, ProbeState } from '../ports/ports.ts'
import type { Group, Probe, ProbeFunction } from '../tools/groups.ts'
import { createTurns, type Turns } from './turns.ts'
import { isObject } from '@toolgate/values/json'
import { NOT_CHECKED, type ProbeResult } from './states.ts'
import { GroupTask } from './task.ts'

interface ProbesOptions {
  readonly clock: Clock
  /** Called with the groups that name a probe, after the probe ran. */
  readonly onResult: (groups: Iterable<string>) => void
  readonly random: () => number
}

const DEFAULT_TTL_MS = 10_000
const DEFAULT_TIMEOUT_MS = 1000
const JITTER = 0.1
const MAX_AT_ONCE = 50
const MAX_LATE_AT_ONCE = 40
const MAX_HEAVY_AT_ONCE = 4
const MAX_HEAVY_LATE_AT_ONCE = 3

/** The probes of all groups. A probe that several groups name runs once for all of them. */
export class Probes {
  readonly #shared = new Map<string | ProbeFunction, SharedProbe>()
  readonly #options: ProbesOptions
  readonly #light = createTurns(MAX_AT_ONCE, MAX_LATE_AT_ONCE)
  readonly #heavy = createTurns(MAX_HEAVY_AT_ONCE, MAX_HEAVY_LATE_AT_ONCE)
  #byGroup: ReadonlyMap<string, readonly SharedProbe[]> = new Map()
  #made = 0
  #phase: 'new' | 'started' | 'closed' = 'new'

  constructor(groups: ReadonlyMap<string, Group>, options: ProbesOptions) {
    this.#options = options
    this.#join(groups)
  }

  /** Replaces the groups. Probes that none of them names any longer are closed. */
  replace(groups: ReadonlyMap<string, Group>): void {
    for (const shared of this.#shared.values()) shared.leaveAll()
    this.#join(groups)
    for (const [identity, shared] of this.#shared) {
      if (shared.isNamed) continue
      shared.close()
      this.#shared.delete(identity)
    }
    if (this.#phase === 'started') for (const shared of this.#shared.values()) shared.start()
  }

  #join(groups: ReadonlyMap<string, Group>): void {
    const byGroup = new Map<string, readonly SharedProbe[]>()
    for (const [name, { availableWhen = [], ttlMs = DEFAULT_TTL_MS }] of groups) {
      const own = availableWhen.map((written) => {
        const { timeoutMs = DEFAULT_TIMEOUT_MS } = typeof written === 'function' ? {} : written
        return this.#share(written).join(name, ttlMs, timeoutMs)
      })
      byGroup.set(name, own)
    }
    this.#byGroup = byGroup
  }

  #share(written: Probe | ProbeFunction): SharedProbe {
    const identity = typeof written === 'function' ? written : written.key
    const known = this.#shared.get(identity)
    if (known) return known
    const { probe, what } = named(written, this.#made++)
    const turns = probe.isHeavy ? this.#heavy : this.#light
    const shared = new SharedProbe({ ...this.#options, probe, what, turns })
    this.#shared.set(identity, shared)
    return shared
  }

  /** Returns the probes of a group; those that groups share are the same objects. */
  of(group: string): readonly SharedProbe[] {
    return this.#byGroup.get(group) ?? []
  }

  /** Runs every probe without a result, or with one older than its time to live. Resolves when all of them have ended. */
  async check(): Promise<void> {
    const stale = [...this.#shared.values()].filter((shared) => shared.isStale())
    if (this.#phase !== 'closed') await Promise.all(stale.map((shared) => shared.run()))
  }

  /** Starts to run the probes in the background, each once in its time to live, with some jitter. */
  start(): void {
    if (this.#phase !== 'new') return
    this.#phase = 'started'
    for (const shared of this.#shared.values()) shared.start()
  }

  close(): void {
    this.#phase = 'closed'
    for (const shared of this.#shared.values()) shared.close()
  }
}

interface SharedProbeOptions extends ProbesOptions {
  readonly probe: Probe
  /** A noun for what is checked; `undefined` if neither the probe nor the function has a name. */
  readonly what: string | undefined
  readonly turns: Turns
}

/** One probe of all groups that name it, and its last result. */
class SharedProbe {
  readonly #options: SharedProbeOptions
  readonly #groups = new Set<string>()
  readonly #task: GroupTask<unknown>
  #ttlMs = Infinity
  #timeoutMs = 0
  #result: ProbeResult | undefined
  /** Wall-clock milliseconds of the last change to available, unavailable or unknown. */
  #since: number
  #endedAtMs = 0
  /** Whether the probe reported a change while it ran. */
  #isChanged = false
  #wasLate = false
  #isStarted = false
  #timer: NodeJS.Timeout | undefined
  #unsubscribe: (() => void) | undefined

  constructor(options: SharedProbeOptions) {
    const { probe, turns, clock } = options
    this.#options = options
    this.#since = clock.wallMs()
    this.#task = new GroupTask<unknown>({
      run: (signal) => probe.ask({ signal, timeoutMs: this.#timeoutMs }),
      deadlineMs: () => this.#timeoutMs,
      // A probe that hangs must not delay the others.
      ...(probe.subscribe ? {} : { inTurn: (run) => turns.take(run, this.#wasLate) }),
      onEnd: (outcome) => this.#end(outcome),
    })
  }

  /** Absent until the probe has run once. */
  get result(): ProbeResult | undefined {
    return this.#result
  }

  /** Adds a group that names the probe. The shortest time to live and the longest deadline apply. */
  join(group: string, ttlMs: number, timeoutMs: number): this {
    this.#groups.add(group)
    this.#ttlMs = Math.min(this.#ttlMs, ttlMs)
    this.#timeoutMs = Math.max(this.#timeoutMs, timeoutMs)
    return this
  }

  /** Whether any group names the probe. */
  get isNamed(): boolean {
    return this.#groups.size > 0
  }

  /** Removes the probe from all groups. After a change of the groups, those that name it join again. */
  leaveAll(): void {
    this.#groups.clear()
    this.#ttlMs = Infinity
    this.#timeoutMs = 0
  }

  /** Returns the last result, in the form that is shown. */
  state(): ProbeState {
    const { probe, what } = this.#options
    const { key, kind = 'function' } = probe
    const result = this.#result ?? { available: false, unknown: true, reason: NOT_CHECKED }
    return Object.freeze({ key, kind, ...(what === undefined ? {} : { what }), ...result, since: this.#since })
  }

  isStale(): boolean {
    const { probe, clock } = this.#options
    if (this.#result === undefined) return true
    return !probe.subscribe && clock.monotonicMs() - this.#endedAtMs > this.#ttlMs
  }

  run(): Promise<void> {
    return this.#task.begin()
  }

  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#unsubscribe = this.#options.probe.subscribe?.(() => {
      if (this.#task.isUnderWay) this.#isChanged = true
      else void this.run()
    })
    if (this.#result) this.#schedule()
    else void this.run()
  }

  close(): void {
    this.#unsubscribe?.()
    clearTimeout(this.#timer)
    this.#task.close()
  }

  #end(outcome: Outcome<unknown>): void {
    const { probe, clock, onResult } = this.#options
    const isChanged = this.#isChanged
    const result = resultOf(outcome, probe, this.#timeoutMs)
    this.#isChanged = false
    this.#wasLate = isLate(outcome)
    if (this.#result?.available !== result.available) this.#since = clock.wallMs()
    this.#result = result
    this.#endedAtMs = clock.monotonicMs()
    onResult(this.#groups)
    // Runs asynchronously, because a probe that reports a change on every run must not block everything else.
    if (isChanged) this.#timer = backgroundTimeout(() => void this.run(), 0)
    else this.#schedule()
  }

  #schedule(): void {
    const { probe, random } = this.#options
    clearTimeout(this.#timer)
    if (!this.#isStarted || probe.subscribe) return
    const delayMs = this.#ttlMs + Math.max(1, this.#ttlMs * JITTER * random())
    this.#timer = backgroundTimeout(() => void this.run(), delayMs)
  }
}

function isLate(outcome: Outcome<unknown>): boolean {
  return 'error' in outcome && outcome.error instanceof TimeoutError
}

function resultOf(outcome: Outcome<unknown>, probe: Probe, timeoutMs: number): ProbeResult {
  if ('value' in outcome) return toProbeResult(outcome.value, probe)
  return isLate(outcome) ? toLateResult(probe, timeoutMs) : toFailedResult(outcome.error, probe)
}

/** Gives a function a key that no host can write, because a function is never the same probe as another. */
function named(probe: Probe | ProbeFunction, nth: number): Pick<SharedProbeOptions, 'probe' | 'what'> {
  if (typeof probe !== 'function') return { probe, what: probe.what }
  const what = probe.name === '' ? undefined : `the function ${probe.name}`
  return { probe: { key: `\u0000function ${nth}`, ask: probe }, what }
}

const MAX_CHARS = 500
const WORKS: ProbeResult = Object.freeze({ available: true })

/** Reads the answer of a probe. An invalid answer counts as unavailable. */
function toProbeResult(answer: unknown, probe: Probe): ProbeResult {
  if (answer === true) return WORKS
  if (answer === false) return { available: false, reason: `${nameOf(probe)} says no` }
  if (!isObject(answer) || typeof answer['available'] !== 'boolean')
    return { available: false, reason: `${nameOf(probe)} returned an invalid result` }
  const { available, reason, detail, suggestion } = answer
  if (available) return WORKS
  return {
    available: false,
    reason: toText(reason) ?? `${nameOf(probe)} says no`,
    ...textAs('detail', detail),
    ...textAs('suggestion', suggestion),
  }
}

/** The error goes to `detail`, which only people see, because it may quote anything. */
function toFailedResult(error: unknown, probe: Probe): ProbeResult {
  return { available: false, reason: `${nameOf(probe)} failed`, ...textAs('detail', messageOf(error)) }
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

function textAs(field: 'detail' | 'suggestion', value: unknown): Pick<ProbeResult, typeof field> {
  const text = toText(value)
  return text === undefined ? {} : { [field]: text }
}
