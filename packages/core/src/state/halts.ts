import type { Caller } from '../ports/caller.ts'
import { checkShape, ConfigError, messageOf, type Revision, sha256Hex, shapeOf, ToolgateError } from '@toolgate/values'
import {
  haltEffects,
  type HaltEffect,
  indexHalts,
  type Stopping,
  stopsCaller,
  stopsTool,
  unknownHalts,
} from '../decide/layers/held.ts'
import type { Effect } from '../decide/evaluation.ts'
import type { EffectsOver } from '../decide/policy-snapshot.ts'
import type { Clock, StateEntry, StateStore } from '../ports/ports.ts'
import type { WrittenSelector } from '../policy/unknown-names.ts'
import { type GroupSelectors, parseSelectorAt } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import { canonicalize } from '@toolgate/values/json'
import { Mirror } from './mirror.ts'

/** The target of a halt. All fields must match. `all` cannot be combined with other fields. */
export interface HaltTarget {
  readonly user?: string | undefined
  readonly session?: string | undefined
  /** A selector, such as `files:write_file`, `browser:*` or `group:web`. */
  readonly tool?: string | undefined
  readonly tenant?: string | undefined
  readonly all?: true | undefined
}

export interface HaltRequest extends HaltTarget {
  /**
   * A clause without a full stop. The model sees it, up to 500 characters. Default: `a person has halted it`.
   */
  readonly reason?: string | undefined
  /** The person who sets the halt. */
  readonly by?: string | undefined
  /** The person's tenant, if they may act for that tenant only. Hosts check it before a release. */
  readonly byTenant?: string | undefined
}

/** An immediate stop of a user, session, tool, tenant or everything. */
export interface Halt {
  /** Equal targets have equal ids, so halting the same target again replaces the reason. */
  readonly id: string
  readonly target: HaltTarget
  readonly reason: string
  readonly by: string | undefined
  readonly byTenant?: string | undefined
  /** Wall-clock milliseconds. */
  readonly at: number
}

/** The halts of a gate: in effect here at once, and on every gate of the same store within a second. */
export interface Halts {
  list(): readonly Halt[]
  /** Returns the selectors of the halts that name tools, with their place in the list. */
  selectors(): readonly WrittenSelector[]
  /** Sets a halt. It is in effect when this returns. `stored` resolves when the store has it. */
  set(request: HaltRequest): { readonly halt: Halt; readonly stored: Promise<void> }
  /**
   * Releases a halt once the store has deleted it. `onReleased` is called then, also after `stored` has timed out.
   *
   * @throws {ToolgateError} `halt_unknown`
   */
  release(
    target: HaltTarget | { readonly id: string },
    onReleased?: (halt: Halt) => void,
  ): { readonly halt: Halt; readonly stored: Promise<void> }
  /** Returns the effects of the current halts. */
  now(): EffectsOver
  /** Returns the halt that stops a call. */
  stopping(caller: Caller, tool: Tool): Halt | undefined
  /** Returns the halt of a person, under any of their names, that covers a tool. An unknown tool counts as covered. */
  ofPerson(person: Caller, tool: Tool | undefined): Halt | undefined
  /** Returns a test for calls that a halt of the target would stop. @throws {ConfigError} for an invalid target */
  wouldStop(target: HaltTarget): (caller: Caller, tool: Tool) => boolean
  /** Parses the selectors of the halts again, after the groups have changed. */
  regroup(): void
  close(): void
}

interface HaltsOptions {
  readonly state: StateStore
  /** The current groups. */
  readonly groups: () => GroupSelectors
  readonly clock: Pick<Clock, 'wallMs'>
  /** Bumped when the halts change. */
  readonly changes: Revision
  /** Called after any process set a halt. */
  readonly onHalted: () => void
  readonly onFault: (error: unknown) => void
  /** Milliseconds to wait for the store. */
  readonly deadlineMs: number
}

const PREFIX = 'halt:'
const NO_EFFECTS: readonly Effect[] = []

/** Returns the halts of a state store. Until the store has answered for the first time, every tool is held back. */
export function createHalts(options: HaltsOptions): Halts {
  return new StoredHalts(options)
}

class StoredHalts implements Halts {
  readonly #options: HaltsOptions
  readonly #mirror: Mirror
  #halts: ReadonlyMap<string, ParsedHalt> = new Map()
  /** Halts that are set here and not yet in the store. Reading the store does not remove them. */
  readonly #unsaved = new Map<string, ParsedHalt>()

  constructor(options: HaltsOptions) {
    this.#options = options
    const { state, deadlineMs, onFault } = options
    this.#mirror = new Mirror({
      state,
      prefix: PREFIX,
      deadlineMs,
      onRead: (entries, isFirst) => this.#restore(entries, isFirst),
      onFailed: onFault,
    })
    this.#mirror.start()
  }

  list(): readonly Halt[] {
    return [...this.#halts.values()].map(toHalt)
  }

  selectors(): readonly WrittenSelector[] {
    return [...this.#halts.values()].flatMap(({ selector }, i) =>
      selector ? [{ path: `halts[${i}].tool`, selector }] : [],
    )
  }

  set(request: HaltRequest): { readonly halt: Halt; readonly stored: Promise<void> } {
    const halt = parseHalt(request, this.#options.clock.wallMs(), this.#options.groups())
    const { id } = halt
    this.#unsaved.set(id, halt)
    this.#replace(new Map([...this.#halts, [id, halt]]))
    const save = async () => {
      await this.#options.state.set(PREFIX + id, toStored(halt))
      if (this.#unsaved.get(id) === halt) this.#unsaved.delete(id)
    }
    return { halt: toHalt(halt), stored: this.#store(id, save) }
  }

  release(
    target: HaltTarget | { readonly id: string },
    onReleased: (halt: Halt) => void = () => {},
  ): { readonly halt: Halt; readonly stored: Promise<void> } {
    const id = 'id' in target ? target.id : haltId(parseTarget(target))
    const released = this.#halts.get(id)
    if (!released) throw new ToolgateError('halt_unknown', 'No halt has this target.', { detail: id })
    const halt = toHalt(released)
    // The halt stays in effect until the store has deleted it. Otherwise it could come back by itself.
    const forget = async () => {
      await takeSurely(this.#options.state, PREFIX + id)
      this.#unsaved.delete(id)
      onReleased(halt)
    }
    return { halt, stored: this.#store(id, forget) }
  }

  now(): EffectsOver {
    const { isRead } = this.#mirror
    const halts = [...this.#halts.values()]
    if (isRead && halts.length === 0) return () => () => NO_EFFECTS
    return (snapshot) => {
      const index: readonly HaltEffect[] = indexHalts(snapshot, halts)
      if (isRead) return (caller) => haltEffects(index, caller)
      const everything = unknownHalts(snapshot)
      return (caller) => [...haltEffects(index, caller), everything]
    }
  }

  stopping(caller: Caller, tool: Tool): Halt | undefined {
    for (const halt of this.#halts.values()) if (stopsCaller(halt, caller) && stopsTool(halt, tool)) return halt
    return undefined
  }

  ofPerson(person: Caller, tool: Tool | undefined): Halt | undefined {
    const names = new Set([person.user, ...(person.aliases ?? [])])
    for (const halt of this.#halts.values()) {
      const isNamed = halt.target.user !== undefined && names.has(halt.target.user)
      // A name of the person stands for all of them.
      const isStopped = isNamed && stopsCaller(halt, { ...person, user: halt.target.user })
      if (isStopped && (tool === undefined || stopsTool(halt, tool))) return halt
    }
    return undefined
  }

  wouldStop(target: HaltTarget): (caller: Caller, tool: Tool) => boolean {
    const halt = parseHalt({ ...target, reason: 'asked' }, 0, this.#options.groups())
    return (caller, tool) => stopsCaller(halt, caller) && stopsTool(halt, tool)
  }

  regroup(): void {
    const again = [...this.#halts].map(([id, halt]) => [id, this.#readStored(PREFIX + id, toHalt(halt))] as const)
    for (const [id, halt] of again) if (this.#unsaved.has(id)) this.#unsaved.set(id, halt)
    this.#halts = new Map(again)
    this.#options.changes.bump()
  }

  close(): void {
    this.#mirror.close()
  }

  #replace(next: ReadonlyMap<string, ParsedHalt>): void {
    const added = [...next.values()].some((halt) => !isSame(this.#halts.get(halt.id), halt))
    this.#halts = next
    this.#options.changes.bump()
    if (added) this.#options.onHalted()
  }

  #restore(entries: readonly StateEntry[], isFirst: boolean): void {
    const stored = entries.map(({ key, value }) => [key.slice(PREFIX.length), this.#readStored(key, value)] as const)
    const next = new Map([...stored, ...this.#unsaved])
    const isChanged =
      next.size !== this.#halts.size || [...next].some(([id, halt]) => !isSame(this.#halts.get(id), halt))
    if (isChanged || isFirst) this.#replace(next)
  }

  /** If a stored halt is invalid, its tool is unknown, so the halt stops every tool for its callers. */
  #readStored(key: string, value: unknown): ParsedHalt {
    try {
      return restoreHalt(value, this.#options.groups())
    } catch (error) {
      this.#options.onFault(error)
      const { user, session, tenant } = ((value ?? {}) as Partial<Halt>).target ?? {}
      const target = { user, session, tenant }
      const why = `a halt that cannot be read here: ${messageOf(error)}`
      return { id: key.slice(PREFIX.length), target, reason: why, by: undefined, at: 0, selector: undefined }
    }
  }

  async #store(id: string, write: () => Promise<void>): Promise<void> {
    try {
      await this.#mirror.write(id, write)
    } catch (cause) {
      throw new ToolgateError('state_unavailable', 'The state store did not save the halt or its release.', { cause })
    }
  }
}

/** Deletes an entry. Throws if it is still there afterwards. */
async function takeSurely(state: StateStore, key: string): Promise<void> {
  try {
    await state.take(key)
  } catch (error) {
    // The entry may be deleted although the answer was lost.
    if ((await state.get(key)) !== undefined) throw error
  }
}

function toHalt({ selector: _, ...halt }: ParsedHalt): Halt {
  return halt
}

interface ParsedHalt extends Halt, Stopping {
  readonly target: HaltTarget
}

const FIELDS = ['all', 'session', 'tenant', 'tool', 'user'] as const
const REQUEST = shapeOf<HaltRequest>(
  { all: true, session: true, tenant: true, tool: true, user: true, reason: true, by: true, byTenant: true },
  'field',
)
const MAX_REASON = 500
const DEFAULT_REASON = 'a person has halted it'

/** Parses a requested halt. @throws {ConfigError} naming the field */
function parseHalt(request: HaltRequest, at: number, groups: GroupSelectors): ParsedHalt {
  const target = parseTarget(request)
  const { by, byTenant } = request
  const reason = parseReason(request.reason)
  for (const [field, value] of Object.entries({ by, byTenant }))
    if (value !== undefined && typeof value !== 'string') throw new ConfigError(`halt.${field}`, 'must be a text')
  const tenantPart = byTenant === undefined ? {} : { byTenant }
  return withSelector({ id: haltId(target), target, reason, by, ...tenantPart, at }, groups)
}

/** A halt must not fail for want of a reason, or because the reason is long. */
function parseReason(reason: unknown = ''): string {
  if (typeof reason !== 'string') throw new ConfigError('halt.reason', 'must be a text')
  const text = reason.trim()
  if (text === '') return DEFAULT_REASON
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON - 1)}…` : text
}

/** Parses a stored halt. @throws {ConfigError} if it is invalid */
function restoreHalt(stored: unknown, groups: GroupSelectors): ParsedHalt {
  const { target, reason, by, byTenant, at } = (stored ?? {}) as Partial<Halt>
  return parseHalt({ ...target, reason, by, byTenant }, Number(at), groups)
}

function parseTarget(request: HaltTarget): HaltTarget {
  checkShape('halt', request, REQUEST)
  const target: Record<string, string | true> = {}
  for (const field of FIELDS) {
    const value = request[field]
    if (value === undefined) continue
    if (field === 'all' ? value !== true : typeof value !== 'string' || value === '')
      throw new ConfigError(`halt.${field}`, field === 'all' ? 'must be true' : 'must be a text that is not empty')
    target[field] = value
  }
  const named = Object.keys(target).length
  if (named === 0) throw new ConfigError('halt', `must name what to halt: ${FIELDS.join(', ')}`)
  // `all` with a user is ambiguous: it could halt everybody or one user.
  if (target['all'] && named > 1) throw new ConfigError('halt.all', 'cannot be combined with other fields')
  return Object.freeze(target)
}

/** Equal targets have equal ids. */
function haltId(target: HaltTarget): string {
  return sha256Hex(canonicalize(target)).slice(0, 16)
}

function withSelector(halt: Halt, groups: GroupSelectors): ParsedHalt {
  const { tool } = halt.target
  return Object.freeze({
    ...halt,
    selector: tool === undefined ? undefined : parseSelectorAt('halt.tool', tool, groups, 'servers'),
  })
}

function toStored({ target, reason, by, byTenant, at }: Halt): unknown {
  return { target, reason, at, ...(by === undefined ? {} : { by }), ...(byTenant === undefined ? {} : { byTenant }) }
}

function isSame(a: Halt | undefined, b: Halt): boolean {
  return (
    a !== undefined &&
    a.id === b.id &&
    a.reason === b.reason &&
    a.at === b.at &&
    a.by === b.by &&
    a.byTenant === b.byTenant
  )
}
