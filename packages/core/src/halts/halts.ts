import { messageOf, ToolgateError } from '../errors.ts'
import {
  haltEffects,
  type HaltEffect,
  indexHalts,
  stopsCaller,
  stopsTool,
  unknownHalts,
} from '../decide/layers/held.ts'
import type { Effect } from '../decide/evaluation.ts'
import type { Caller } from '../caller.ts'
import type { Clock, MaybePromise, StateEntry, StateStore } from '../ports.ts'
import type { WrittenSelector } from '../policy/unknown-names.ts'
import type { GroupSelectors } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import {
  type Halt,
  haltId,
  type HaltRequest,
  type HaltTarget,
  type ParsedHalt,
  parseHalt,
  parseTarget,
  restoreHalt,
} from './halt.ts'

/** What people have halted: in force here at once, and wherever the store reaches within a second. */
export interface Halts {
  /** Grows whenever a decision may change. */
  readonly revision: number
  list(): readonly Halt[]
  /** The selectors of those that name tools, with their place in the list. */
  selectors(): readonly WrittenSelector[]
  /** In force when this returns; resolves when the store has it. */
  set(request: HaltRequest): { readonly halt: Halt; readonly stored: Promise<void> }
  /**
   * `onReleased` hears of it when the store has forgotten the halt, also where that comes too late for `stored`.
   *
   * @throws {ToolgateError} `halt_unknown`
   */
  release(
    target: HaltTarget | { readonly id: string },
    onReleased?: (halt: Halt) => void,
  ): { readonly halt: Halt; readonly stored: Promise<void> }
  /** What holds back a caller's tools of a snapshot: the same effects for as long as nothing changes. */
  effectsOver(snapshot: Toolset): (caller: Caller) => readonly Effect[]
  /** Gives the halt that stops a call, if there is one. */
  stopping(caller: Caller, tool: Tool): Halt | undefined
  close(): void
}

export interface HaltsOptions {
  readonly state: StateStore
  readonly groups: GroupSelectors
  readonly clock: Pick<Clock, 'wallMs'>
  /** Called after something was halted, here or elsewhere. */
  readonly onHalted: () => void
  readonly onFault: (error: unknown) => void
  /** Gives a store's answer, or rejects when it does not come in time. */
  readonly inTime: <T>(answer: MaybePromise<T>) => MaybePromise<T>
}

const PREFIX = 'halt:'
const RETRY_MS = 1000

/** Gives the halts that a state store holds. Until it has answered for the first time, everything is held back. */
export function createHalts({ state, groups, clock, onHalted, onFault, inTime }: HaltsOptions): Halts {
  let halts: ReadonlyMap<string, ParsedHalt> = new Map()
  /** Set here and not yet in the store: no reading of the store takes these away. */
  const unsaved = new Map<string, ParsedHalt>()
  let isKnown = false
  let revision = 1
  let isClosed = false
  /** Of the latest reading: an earlier one that ends later says nothing any more. */
  let reading = 0
  let writing: Promise<void> = Promise.resolve()
  let retry: ReturnType<typeof setTimeout> | undefined
  let unsubscribe: (() => void) | undefined

  function replace(next: ReadonlyMap<string, ParsedHalt>): void {
    const added = [...next.values()].some((halt) => !isSame(halts.get(halt.id), halt))
    halts = next
    revision++
    if (added) onHalted()
  }

  function restore(entries: readonly StateEntry[]): void {
    const stored = entries.map(({ key, value }) => [key.slice(PREFIX.length), readStored(key, value)] as const)
    const next = new Map([...stored, ...unsaved])
    const isChanged = next.size !== halts.size || [...next].some(([id, halt]) => !isSame(halts.get(id), halt))
    const isFirst = !isKnown
    isKnown = true
    if (isChanged || isFirst) replace(next)
  }

  /** One that this process cannot read halts all tools of whom it names: it was meant to stop something. */
  function readStored(key: string, value: unknown): ParsedHalt {
    try {
      return restoreHalt(value, groups)
    } catch (error) {
      onFault(error)
      const { user, session, tenant } = ((value ?? {}) as Partial<Halt>).target ?? {}
      const target = { user, session, tenant }
      const why = `a halt that cannot be read here: ${messageOf(error)}`
      return { id: key.slice(PREFIX.length), target, reason: why, by: undefined, at: 0, selector: undefined }
    }
  }

  function failed(error: unknown): void {
    onFault(error)
    // What is known stays in force; what is not known yet holds everything back.
    clearTimeout(retry)
    if (!isClosed) retry = setTimeout(start, RETRY_MS).unref()
  }

  function read(): void {
    const mine = ++reading
    const use = (entries: readonly StateEntry[]) => {
      if (mine === reading && !isClosed) restore(entries)
    }
    try {
      const answer: MaybePromise<readonly StateEntry[]> = inTime(state.list(PREFIX))
      if (answer instanceof Promise) answer.then(use).catch(failed)
      else use(answer)
    } catch (error) {
      failed(error)
    }
  }

  async function store(write: () => Promise<void>): Promise<void> {
    // A reading that began before would bring the old state back.
    reading++
    // One after the other, so that a halt and its release end as they were asked for; one that hangs holds up none.
    const written = writing.then(() => inTime(write()))
    writing = written.catch(() => {})
    try {
      await written
    } catch (cause) {
      throw new ToolgateError('state_unavailable', 'The state store did not take the halt or its release.', { cause })
    } finally {
      read()
    }
  }

  /** A store that cannot say when it changes is asked again and again. */
  function start(): void {
    try {
      unsubscribe ??= state.subscribe(read)
    } catch (error) {
      failed(error)
    }
    read()
  }

  start()

  return {
    get revision() {
      return revision
    },
    list: () => [...halts.values()].map(({ selector: _, ...halt }) => halt),
    selectors: () =>
      [...halts.values()].flatMap(({ selector }, i) => (selector ? [{ path: `halts[${i}].tool`, selector }] : [])),
    set(request) {
      const halt = parseHalt(request, clock.wallMs(), groups)
      unsaved.set(halt.id, halt)
      replace(new Map([...halts, [halt.id, halt]]))
      const { selector: _, ...plain } = halt
      const save = async () => {
        await state.set(PREFIX + halt.id, toStored(plain))
        if (unsaved.get(halt.id) === halt) unsaved.delete(halt.id)
      }
      return { halt: plain, stored: store(save) }
    },
    release(target, onReleased = () => {}) {
      const id = 'id' in target ? target.id : haltId(parseTarget(target))
      const halt = halts.get(id)
      if (!halt) throw new ToolgateError('halt_unknown', 'Nothing is halted so.', { detail: id })
      const { selector: _, ...plain } = halt
      // In force until the store has forgotten it: one that came back by itself would surprise more.
      const forget = async () => {
        try {
          await state.take(PREFIX + id)
        } catch (error) {
          // It may be the answer that was lost, and the halt is gone.
          if ((await state.get(PREFIX + id)) !== undefined) throw error
        }
        unsaved.delete(id)
        onReleased(plain)
      }
      return { halt: plain, stored: store(forget) }
    },
    effectsOver(snapshot) {
      if (isKnown && halts.size === 0) return () => NO_MARKS
      const index: readonly HaltEffect[] = indexHalts(snapshot, [...halts.values()])
      if (isKnown) return (caller) => haltEffects(index, caller)
      const everything = unknownHalts(snapshot)
      return (caller) => [...haltEffects(index, caller), everything]
    },
    stopping(caller, tool) {
      for (const halt of halts.values()) if (stopsCaller(halt, caller) && stopsTool(halt, tool)) return halt
      return undefined
    },
    close() {
      isClosed = true
      clearTimeout(retry)
      unsubscribe?.()
    },
  }
}

const NO_MARKS: readonly Effect[] = []

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
