import type { Caller } from '../ports/caller.ts'
import {
  type Cancelling,
  checkShape,
  ConfigError,
  type Deadlines,
  shapeOf,
  type Timed,
  type Watched,
} from '@toolgate/values'
import { type Decision, reason } from '../decide/decision.ts'
import type { Clock, MaybePromise } from '../ports/ports.ts'
import {
  type GroupSelectors,
  matchesSelector,
  parseSelector,
  type Selector,
  checkEntry,
  splitEntries,
} from '../tools/selector.ts'
import { countedAs } from '../tools/tool-id.ts'
import type { Tool } from '../tools/tool.ts'
import { callerGone } from './refusals.ts'

/** How many calls of some tools may run at once. */
export interface ConcurrencyCap {
  /** A selector. */
  readonly match: string
  readonly max: number
  /** The fields that are counted separately. Users, sessions and chats count within their tenant. Default: `['tool']`. */
  readonly per?: readonly CapPart[] | undefined
  /** Milliseconds that a call waits for a slot. `0` refuses at once. Default: 10 s. */
  readonly waitMs?: number | undefined
  /** The most calls that may wait for a slot. Default: 100. */
  readonly maxWaiting?: number | undefined
}

export const CAP_PARTS = ['tool', 'user', 'tenant', 'session', 'chat'] as const
export type CapPart = (typeof CAP_PARTS)[number]

/** `browser:*:2`, several with commas between them, or a list of such texts or of objects. */
export type CapInput = string | readonly (string | ConcurrencyCap)[]

export interface ParsedCap {
  readonly selector: Selector
  readonly max: number
  readonly per: readonly CapPart[]
  readonly waitMs: number
  readonly maxWaiting: number
}

const MAX_RUNNING = 1_000_000
const MAX_WAIT_MS = 60 * 60 * 1000
const DEFAULT_PER: readonly CapPart[] = ['tool']
const DEFAULT_WAIT_MS = 10_000
const DEFAULT_MAX_WAITING = 100

/**
 * Checks caps and returns them: `browser:*:2` is two calls at once of each tool of `browser`.
 *
 * @throws {ConfigError} naming the invalid entry
 */
export function parseCaps(
  caps: CapInput | undefined,
  groups?: GroupSelectors,
  path = 'concurrency',
): readonly ParsedCap[] {
  const list = typeof caps === 'string' ? splitEntries(caps) : caps === undefined ? [] : caps
  if (!Array.isArray(list)) throw new ConfigError(path, 'must be a list of caps')
  return list.map((cap: string | ConcurrencyCap, i) => parseCap(`${path}[${i}]`, cap, groups))
}

function parseCap(path: string, written: string | ConcurrencyCap, groups: GroupSelectors | undefined): ParsedCap {
  const cap = typeof written === 'string' ? readText(path, written) : checkKeys(path, written)
  const { match, max, per = DEFAULT_PER, waitMs = DEFAULT_WAIT_MS, maxWaiting = DEFAULT_MAX_WAITING } = cap
  checkCount(`${path}.max`, max, 1, MAX_RUNNING)
  checkCount(`${path}.waitMs`, waitMs, 0, MAX_WAIT_MS)
  checkCount(`${path}.maxWaiting`, maxWaiting, 0, MAX_RUNNING)
  if (!Array.isArray(per)) throw new ConfigError(`${path}.per`, `must be a list of ${CAP_PARTS.join(', ')}`)
  const unknown: unknown = per.find((part) => !CAP_PARTS.includes(part))
  if (unknown !== undefined)
    throw new ConfigError(
      `${path}.per`,
      `a cap cannot count per ${JSON.stringify(unknown)}; the parts are ${CAP_PARTS.join(', ')}`,
    )
  try {
    return { selector: parseSelector(match, groups), max, per: withTenant(per), waitMs, maxWaiting }
  } catch (cause) {
    throw new ConfigError(path, (cause as Error).message, { code: 'selector_invalid', cause })
  }
}

/** Two tenants may both have a user "vera", and they must not block each other. */
function withTenant(per: readonly CapPart[]): readonly CapPart[] {
  const isWithinTenant = per.some((part) => part !== 'tool' && part !== 'tenant')
  return CAP_PARTS.filter((part) => per.includes(part) || (part === 'tenant' && isWithinTenant))
}

function checkCount(path: string, count: number, min: number, max: number): void {
  if (!Number.isSafeInteger(count) || count < min || count > max)
    throw new ConfigError(path, `${String(count)} is not a whole number of ${min} to ${max}`)
}

const CAP = shapeOf<ConcurrencyCap>({ match: true, max: true, per: true, waitMs: true, maxWaiting: true }, 'key')

function checkKeys(path: string, written: ConcurrencyCap): ConcurrencyCap {
  if (typeof written !== 'object' || written === null || Array.isArray(written))
    throw new ConfigError(path, 'must be a text as "browser:*:2", or an object')
  checkShape(path, written, CAP)
  return written
}

function readText(path: string, text: string): ConcurrencyCap {
  const [, match, max] = /^(.+):(\d{1,9})$/.exec(text) ?? []
  if (match === undefined)
    throw new ConfigError(path, `${JSON.stringify(text)} must read selector:calls, as "browser:*:2"`)
  checkEntry(path, text, match)
  return { match, max: Number(max) }
}

/** One cap, applied to one call. */
export interface CapUse {
  readonly key: string
  readonly cap: ParsedCap
}

/** The slots of a running call, until they are released. */
export interface HeldSlots {
  /** Frees the slots for the next call. A second call does nothing. */
  release(): void
}

interface SlotPorts {
  readonly deadlines: Deadlines
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly cancelling?: Cancelling | undefined
}

/** Limits the number of concurrent calls to the caps. */
export interface Slots {
  /** Returns the caps that apply to a tool and a caller. Computed once for each pair. */
  capsOf(tool: Tool, caller: Caller): readonly CapUse[]
  /** Returns a cap that has no free slot now; `undefined` if all have one. */
  fullOf(uses: readonly CapUse[]): ParsedCap | undefined
  /**
   * Takes a slot of every cap, or none: at once if all have a free slot, otherwise in turn. Returns a `Decision` if too
   * many calls wait, the wait is too long, or the caller leaves.
   */
  acquire(uses: readonly CapUse[], ports: SlotPorts): MaybePromise<HeldSlots | Decision>
  /** Replaces the selectors of the caps after the groups have changed. Pass the same caps in the same order. */
  regroup(caps: readonly ParsedCap[]): void
  /** The number of stored keys, which are those of running and waiting calls. */
  readonly size: number
}

/** Returns whether a call may run now. */
export function isHeld(answer: HeldSlots | Decision): answer is HeldSlots {
  return 'release' in answer
}

/**
 * Creates slots for caps, in this process.
 *
 * A released slot goes to the first waiting call that can use it. Calls under the same caps run in the order in which they
 * came, and a call that waits for one cap does not block another cap. A waiting call holds no slots, so there are no
 * deadlocks. Keys without running or waiting calls are deleted.
 */
export function createSlots(caps: readonly ParsedCap[]): Slots {
  const lanes = new Map<string, Lane>()
  let usesByCaller = new WeakMap<Caller, WeakMap<Tool, readonly CapUse[]>>()
  const laneOf = ({ key, cap }: CapUse): Lane => {
    let lane = lanes.get(key)
    if (!lane) lanes.set(key, (lane = new Lane(key, cap, lanes)))
    return lane
  }
  return {
    capsOf(tool, caller) {
      if (caps.length === 0) return NO_USES
      let byTool = usesByCaller.get(caller)
      if (!byTool) usesByCaller.set(caller, (byTool = new WeakMap()))
      let uses = byTool.get(tool)
      if (!uses) byTool.set(tool, (uses = usesOf(caps, tool, caller)))
      return uses
    },
    fullOf: (uses) => uses.find(({ key }) => lanes.get(key)?.isFull)?.cap,
    acquire(uses, ports) {
      if (uses.length === 0) return NOTHING_HELD
      if (ports.cancelling?.aborted) return callerGone()
      if (!uses.some(({ key }) => lanes.get(key)?.isFull)) return take(uses.map(laneOf))
      const full = uses.flatMap(({ key }) => lanes.get(key) ?? []).filter((lane) => lane.isFull)
      const crowded = full.find((lane) => lane.waiters.size >= lane.cap.maxWaiting || lane.cap.waitMs === 0)
      if (crowded) return tooBusy(crowded)
      const waitMs = Math.min(...full.map(({ cap }) => cap.waitMs))
      return new Promise((resolve) => new Waiter(uses.map(laneOf), resolve).start(waitMs, ports))
    },
    regroup(next) {
      caps = next
      usesByCaller = new WeakMap()
    },
    get size() {
      return lanes.size
    },
  }
}

const NO_USES: readonly CapUse[] = []
const NOTHING_HELD: HeldSlots = { release() {} }

function usesOf(caps: readonly ParsedCap[], tool: Tool, caller: Caller): readonly CapUse[] {
  return caps.flatMap((cap, position) =>
    matchesSelector(cap.selector, tool, 'possible') ? [{ key: keyOf(position, cap, tool, caller), cap }] : [],
  )
}

/** Parts have a length prefix and missing parts are marked, so that two callers never share a key. */
function keyOf(position: number, { per }: ParsedCap, tool: Tool, caller: Caller): string {
  const { user, tenant, session, chat } = caller
  const parts = { tool: countedAs(tool), user, tenant, session, chat: chat?.id }
  return per.reduce((key, part) => `${key}|${part}${lengthPrefixed(parts[part])}`, String(position))
}

function lengthPrefixed(text: string | undefined): string {
  return text === undefined ? '-' : `${text.length}:${text}`
}

/** The running and waiting calls under one key. */
class Lane {
  readonly key: string
  readonly cap: ParsedCap
  /** In the order in which they came. */
  readonly waiters = new Set<Waiter>()
  readonly #lanes: Map<string, Lane>
  #running = 0

  constructor(key: string, cap: ParsedCap, lanes: Map<string, Lane>) {
    this.key = key
    this.cap = cap
    this.#lanes = lanes
  }

  get running(): number {
    return this.#running
  }

  get isFull(): boolean {
    return this.#running >= this.cap.max
  }

  enter(): void {
    this.#running++
  }

  leave(): void {
    this.#running--
  }

  letIn(): void {
    for (const waiter of this.waiters) {
      if (this.isFull) break
      waiter.tryToRun()
    }
    this.forgetIfIdle()
  }

  forgetIfIdle(): void {
    if (this.#running === 0 && this.waiters.size === 0) this.#lanes.delete(this.key)
  }
}

function take(lanes: readonly Lane[]): HeldSlots {
  for (const lane of lanes) lane.enter()
  return new TakenSlots(lanes)
}

class TakenSlots implements HeldSlots {
  #lanes: readonly Lane[] | undefined

  constructor(lanes: readonly Lane[]) {
    this.#lanes = lanes
  }

  release(): void {
    const lanes = this.#lanes
    this.#lanes = undefined
    if (!lanes) return
    // Frees all slots before another call runs, so that a call that waits for several of them is not overtaken.
    for (const lane of lanes) lane.leave()
    for (const lane of lanes) lane.letIn()
  }
}

/** A call that waits for a slot of each of its caps. */
class Waiter implements Timed {
  readonly #lanes: readonly Lane[]
  readonly #resolve: (answer: HeldSlots | Decision) => void
  #deadlines: Deadlines | undefined
  #watched: Watched | undefined
  #unlisten: (() => void) | undefined

  constructor(lanes: readonly Lane[], resolve: (answer: HeldSlots | Decision) => void) {
    this.#lanes = lanes
    this.#resolve = resolve
  }

  start(waitMs: number, { deadlines, clock, cancelling }: SlotPorts): void {
    for (const lane of this.#lanes) lane.waiters.add(this)
    this.#deadlines = deadlines
    this.#watched = deadlines.watch(this, clock.monotonicMs(), waitMs)
    this.#unlisten = cancelling?.onAbort(() => this.#refuse(callerGone()))
  }

  tryToRun(): void {
    if (this.#lanes.some((lane) => lane.isFull)) return
    this.#leaveQueues()
    this.#resolve(take(this.#lanes))
  }

  expire(): void {
    this.#refuse(tooBusy(this.#lanes.find((lane) => lane.isFull) ?? (this.#lanes[0] as Lane)))
  }

  #refuse(decision: Decision): void {
    this.#leaveQueues()
    for (const lane of this.#lanes) lane.forgetIfIdle()
    this.#resolve(decision)
  }

  #leaveQueues(): void {
    for (const lane of this.#lanes) lane.waiters.delete(this)
    if (this.#watched) this.#deadlines?.unwatch(this.#watched)
    this.#unlisten?.()
  }
}

function tooBusy({ running, waiters, cap }: Lane): Decision {
  const message = running === 1 ? '1 call is already running' : `${running} calls are already running`
  const text = `the cap ${cap.selector.text}:${cap.max} is full: ${running} running, ${waiters.size} waiting`
  const one = reason('limits', 'too_busy', text, { message, limit: String(cap.max) })
  return { outcome: one.outcome, reasons: [one] }
}
