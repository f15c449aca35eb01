import type { AvailabilitySource, Clock, GroupState } from '@toolgate/core'
import type { GroupConfig } from '../config/config.ts'
import { orderGroups } from './dependencies.ts'
import { type ProbeAnswer, probeTcp, type TcpProbe, type TcpTarget, toAddress } from './tcp-probe.ts'

export interface MonitorDeps {
  readonly clock: Clock
  /** Default: a real connection. */
  readonly connect?: TcpProbe
  /** Names that are not configured groups but will be `set`, such as upstream servers. `dependsOn` may name them. */
  readonly implicit?: readonly string[]
  /** How often all probes run in the background, jittered by a fifth either way. Default 2 s, at most `ttlMs`. */
  readonly refreshMs?: number
  /** How long `check()` trusts an answer; exactly that age is still trusted. Default 10 s. */
  readonly ttlMs?: number
  /** The deadline of one probe. Default 1 s. */
  readonly timeoutMs?: number
  /** From 0 up to 1, for the jitter. */
  readonly random?: () => number
}

/** Watches what the groups depend on. `revision` grows and listeners hear only when an answer changed. */
export interface Monitor extends AvailabilitySource {
  /** Every group, configured and implicit, by name. */
  states(): ReadonlyMap<string, GroupState>
  /** Sets the state of an implicit group; `since` defaults to now where `available` changed. */
  set(name: string, state: GroupState): void
  /** Probes everything once, then goes on in the background. Resolves after the first round. */
  start(): Promise<void>
  /** Asks again whatever is older than `ttlMs`; with `now`, everything. One connection per address at a time, for all who ask. */
  check(now?: 'now'): Promise<void>
  /** Ends the background work and the probes under way. */
  close(): void
}

interface Probe {
  readonly target: TcpTarget
  answer: ProbeAnswer
  askedAtMs: number | undefined
  underWay: Promise<void> | undefined
}

const NOT_CHECKED = 'it has not been checked yet'
const JITTER = 0.2

/**
 * Gives the monitor of a gateway's groups.
 *
 * A group is available when all its probes are answered and every group it depends on is available.
 * Nothing is asked before `start` or `check`, and until it is, a group with probes is unavailable.
 *
 * @throws {ConfigError} for a dependency that is not known and for a cycle
 */
export function createMonitor(groups: readonly GroupConfig[], deps: MonitorDeps): Monitor {
  const { clock, connect = probeTcp, ttlMs = 10_000, timeoutMs = 1000, random = Math.random } = deps
  const refreshMs = Math.min(deps.refreshMs ?? 2000, ttlMs)
  const ordered = orderGroups(groups, new Set(deps.implicit))
  const probes = collectProbes(groups)
  const implicit = new Map<string, GroupState>()
  const listeners = new Set<() => void>()
  const closing = new AbortController()
  let states: ReadonlyMap<string, GroupState> = new Map()
  let revision = 0
  let timer: NodeJS.Timeout | undefined

  settle()
  return {
    get revision() {
      return revision
    },
    get: (name) => states.get(name),
    states: () => states,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    set(name, state) {
      if (groups.some((group) => group.name === name))
        throw new TypeError(`"${name}" is a configured group; it is not set but probed`)
      implicit.set(name, state)
      settle()
    },
    async start() {
      await check('now')
      schedule()
    },
    check,
    close() {
      closing.abort()
      clearTimeout(timer)
    },
  }

  async function check(now?: 'now'): Promise<void> {
    const due = [...probes.values()].filter((probe) => now === 'now' || isStale(probe))
    await Promise.all(due.map((probe) => (probe.underWay ??= ask(probe))))
  }

  function isStale({ askedAtMs }: Probe): boolean {
    return askedAtMs === undefined || clock.monotonicMs() - askedAtMs > ttlMs
  }

  async function ask(probe: Probe): Promise<void> {
    const askedAtMs = clock.monotonicMs()
    const answer = await connect(probe.target, { timeoutMs, signal: closing.signal })
    probe.underWay = undefined
    if (closing.signal.aborted) return
    Object.assign(probe, { answer, askedAtMs })
    settle()
  }

  function schedule(): void {
    if (closing.signal.aborted) return
    const delayMs = refreshMs * (1 - JITTER + 2 * JITTER * random())
    timer = setTimeout(() => void check('now').then(schedule), delayMs).unref()
  }

  /** Works out every state anew, each after all that it depends on. */
  function settle(): void {
    const next = new Map<string, GroupState>()
    for (const [name, state] of implicit) next.set(name, carryOn(states.get(name), state, clock))
    for (const group of ordered)
      next.set(group.name, carryOn(states.get(group.name), stateOf(group, next, probes), clock))
    const changed = next.size !== states.size || [...next].some(([name, state]) => states.get(name) !== state)
    if (!changed) return
    states = next
    revision++
    for (const listener of listeners) listener()
  }
}

/** Groups that name the same address share its probe. */
function collectProbes(groups: readonly GroupConfig[]): ReadonlyMap<string, Probe> {
  const targets = groups.flatMap((group) => group.availableWhen.map(({ tcp }) => tcp))
  return new Map(
    targets.map((target) => [
      toAddress(target),
      { target, answer: NOT_CHECKED, askedAtMs: undefined, underWay: undefined },
    ]),
  )
}

function stateOf(
  group: GroupConfig,
  below: ReadonlyMap<string, GroupState>,
  probes: ReadonlyMap<string, Probe>,
): GroupState {
  for (const { tcp } of group.availableWhen) {
    const reason = probes.get(toAddress(tcp))?.answer
    if (reason !== undefined) return unavailable(reason, group.suggestion)
  }
  for (const name of group.dependsOn) {
    const state = below.get(name)
    if (state?.available) continue
    const reason = `${name} is unavailable because ${state ? (state.reason ?? 'it is switched off') : NOT_CHECKED}`
    return unavailable(reason, state?.suggestion ?? group.suggestion)
  }
  return { available: true }
}

function unavailable(reason: string, suggestion: string | undefined): GroupState {
  return { available: false, reason, ...(suggestion === undefined ? {} : { suggestion }) }
}

/** Keeps the former state where nothing changed, and its `since` where only the words did. */
function carryOn(former: GroupState | undefined, state: GroupState, clock: Clock): GroupState {
  const since = state.since ?? (former?.available === state.available ? former.since : undefined) ?? clock.wallMs()
  const same =
    former?.available === state.available &&
    former.reason === state.reason &&
    former.detail === state.detail &&
    former.suggestion === state.suggestion &&
    former.since === since
  return same ? former : Object.freeze({ ...state, since })
}
