import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import type { Caller } from '../ports/caller.ts'
import type { HistoryStore } from '../ports/history.ts'
import { isPassingTool } from '../tools/own-tool.ts'
import type { Tool } from '../tools/tool.ts'
import type { Clock, MaybePromise, RunOfCall } from '../ports/ports.ts'
import { chain, createBoundedCache } from '@toolgate/values'
import { CallHistory } from './call-history.ts'
import type { HistoryUse, HistoryUses, RunFacts } from './facts.ts'
import type { ParsedLabels } from './labels.ts'
import type { Lifetimes, MonitorBounds, RaisedLabel } from './monitor.ts'
import { type Beginning, beginHistory, type HistoryHost, OpenHistory } from './open-history.ts'
import { type HistoryRules, withUse } from './rules.ts'

export interface HistoriesOptions {
  readonly store: HistoryStore
  readonly clock: Pick<Clock, 'wallMs'>
  /** How long facts count for calls without a run. */
  readonly lifetimes: Lifetimes
  readonly keepMs: number
  readonly bounds: MonitorBounds
  readonly labels: () => ParsedLabels
  readonly inTime: HistoryHost['inTime']
  /** Called when rules begin to read histories. Returns whether calls were made before. */
  readonly onActive: () => boolean
}

/** What has happened in a run, or for a caller without one. */
export interface RunHistory {
  /** The facts for the steps of the run. `undefined` if the history is unknown. */
  readonly facts: RunFacts | undefined
  /** Whether the history is lost or incomplete: rules then get their strictest answer. */
  readonly isUnknown: boolean
  readonly labels: readonly RaisedLabel[]
}

const NOTHING_KEPT: Kept = { rules: false, shadows: false }
const OF_RUNS: Lifetimes = { calledMs: Infinity, labelMs: Infinity }
/** The most histories in memory. The least recently used are read from the store again. */
const MAX_OPEN = 1000

/** The place of the call in whose execution the code runs. A run that begins there was prompted by that call's model. */
const calling = new AsyncLocalStorage<HistoryPlace>()

/** The history of a caller, or of one of their runs. */
interface HistoryPlace {
  readonly of: Histories
  readonly tenant: string | undefined
  /** Absent for callers without a run. */
  readonly run: string | undefined
  readonly id: string
  /** User and client. */
  readonly caller: readonly [string | null, string | null]
}

/** Whether histories are kept for enforced rules, and for shadows. */
export interface Kept {
  readonly rules: boolean
  readonly shadows: boolean
}

/** The histories of a gate and its forks, as far as rules read them. */
export class Histories {
  readonly labels: () => ParsedLabels
  /** Separate histories for shadows, so that a failure there does not affect enforced rules. */
  readonly shadows: Histories | undefined
  /** The histories of the enforced rules, if these are for shadows. */
  readonly #enforced: Histories | undefined
  readonly #options: HistoriesOptions
  readonly #host: HistoryHost
  readonly #open = createBoundedCache<string, OpenHistory | undefined>(MAX_OPEN)
  #rules: HistoryRules | undefined
  #activeMs: number | undefined
  /** The latest place of each caller. */
  readonly #places = new WeakMap<Caller, HistoryPlace>()
  #events = 0
  readonly #prefix = randomUUID()
  /** Histories that could not be opened, and so are incomplete. */
  readonly #missed = createBoundedCache<string, boolean>(MAX_OPEN)

  constructor(options: HistoriesOptions, enforced?: Histories) {
    const { store, bounds, keepMs, clock, inTime, labels } = options
    this.#options = options
    this.#host = { store, bounds, keepMs, inTime, wallMs: () => clock.wallMs() }
    this.labels = labels
    this.#enforced = enforced
    this.shadows = enforced ? undefined : new Histories(options, this)
  }

  /**
   * Returns histories with the same rules but another store, so that nothing changes here. `nowMs`: the time of new, empty
   * histories.
   */
  apart(store: HistoryStore, nowMs?: () => number): Histories {
    const apart = new Histories({ ...this.#options, store, ...(nowMs && { clock: { wallMs: nowMs } }) })
    apart.#follow(this, nowMs !== undefined)
    return apart
  }

  #follow(other: Histories, isNew: boolean): void {
    this.#rules = other.#rules
    this.#activeMs = isNew ? undefined : other.#activeMs
    if (this.shadows && other.shadows) this.shadows.#follow(other.shadows, isNew)
  }

  /** The rules about what is kept. `undefined` while no rule reads a history. */
  get rules(): HistoryRules | undefined {
    return this.#rules
  }

  /** Whether anything is kept. */
  get isActive(): boolean {
    return this.#rules !== undefined || this.shadows?.rules !== undefined
  }

  get kept(): Kept {
    if (!this.isActive) return NOTHING_KEPT
    return { rules: this.#rules !== undefined, shadows: this.shadows?.rules !== undefined }
  }

  /** Returns the histories to show to people: those of enforced rules, or of shadows if no enforced rule reads any. */
  get shown(): Histories {
    return this.#rules === undefined && this.shadows?.rules ? this.shadows : this
  }

  get store(): HistoryStore {
    return this.#host.store
  }

  nowMs(): number {
    return this.#host.wallMs()
  }

  /** Also keeps what other policies read. */
  use({ enforced, shadows }: HistoryUses): void {
    this.#use(enforced)
    if (this.shadows) this.shadows.#use(shadows)
  }

  #use(use: HistoryUse): void {
    const before = this.#rules
    this.#rules = withUse(before, use)
    if (!before && this.#rules && this.#options.onActive()) this.#activeMs = this.nowMs()
  }

  /** Returns a new event id from the gate. An id that a client chose would prove nothing. */
  newEvent(): string {
    return `${this.#prefix}.${++this.#events}`
  }

  /** Runs a tool within its call's history. Runs that begin there share the history. */
  within<T>(caller: Caller, run: RunOfCall | undefined, work: () => T): T {
    return calling.run(this.#placeOf(caller, run, calling.getStore()), work)
  }

  /**
   * Returns the history of a call, with everything that others added. `wasKept`: histories were kept when its view was
   * made. `isRead`: a rule reads it.
   *
   * @throws {ToolgateError} `history_full` for a new history, if there is no room
   */
  of(caller: Caller, run: RunOfCall | undefined, wasKept: boolean, isRead: boolean): MaybePromise<OpenHistory> {
    const around = run && calling.getStore()
    const id = this.#idOf(this.#placeOf(caller, run, around))
    const known = this.#open.get(id)
    const opened = known
      ? isRead
        ? chain(known.refresh(), () => known)
        : known
      : chain(this.#find(id, caller, run, wasKept), (history) => {
          this.#open.set(id, history)
          return history
        })
    const words = !run || around || (run.history ?? run.id) !== run.id ? undefined : run.userWords
    const results = run?.earlierResults
    if (words === undefined && results === undefined) return opened
    return chain(opened, (history) => chain(this.#addGiven(history, words, results), () => history))
  }

  /** Tenants never share a history. */
  #placeOf(caller: Caller, run: RunOfCall | undefined, around: HistoryPlace | undefined): HistoryPlace {
    const { tenant } = caller
    if (run !== undefined && around?.of === (this.#enforced ?? this) && around.tenant === tenant) return around
    const history = run && (run.history ?? run.id)
    const known = this.#places.get(caller)
    if (known && known.run === history) return known
    const place = {
      of: this,
      tenant,
      run: history,
      id: run ? idOfRun(caller, run) : idOfCaller(caller),
      caller: [caller.user ?? null, caller.client ?? null] as const,
    }
    this.#places.set(caller, place)
    return place
  }

  /** Shadow histories have the same place, with another prefix. */
  #idOf({ id }: Pick<HistoryPlace, 'id'>): string {
    return this.#enforced ? `shadow ${id}` : id
  }

  /** Returns the history that a run shares, as records store it; `undefined` if the run has its own. */
  sharedBy(caller: Caller, run: RunOfCall): string | undefined {
    const around = calling.getStore()
    if (!around && (run.history === undefined || run.history === run.id)) return undefined
    const place = this.#placeOf(caller, run, around)
    if (place.run === run.id) return undefined
    return JSON.stringify(place.run === undefined ? ['caller', ...place.caller] : ['run', place.run])
  }

  /** Adds the texts that the host passed with the run. */
  #addGiven(
    history: OpenHistory,
    words: RunOfCall['userWords'],
    results: RunOfCall['earlierResults'],
  ): MaybePromise<void> {
    const readsOrigin = this.#rules?.readsOrigin === true
    const adding = results && history.addEarlier(results, this.newEvent(), readsOrigin)
    return chain(adding, () => (words === undefined || !readsOrigin ? undefined : history.addWords(words)))
  }

  /** Returns the labels of a tool's output. A tool that passes on other calls' outputs has none of its own. */
  raisedBy(tool: Tool): readonly string[] {
    return isPassingTool(tool) ? [] : this.labels().of(tool).raises
  }

  /** Returns whether a call has nothing to add, neither at its beginning nor at its end, because no rule reads its tool. */
  hasNothingToEnter(tool: Tool, caller: Caller, run: RunOfCall | undefined): boolean {
    const rules = this.#rules
    if (!rules || rules.readsOrigin || rules.of(tool).length > 0) return false
    const known = this.#open.get(this.#idOf(this.#placeOf(caller, run, calling.getStore())))
    if (!known) return false
    const nowMs = this.nowMs()
    const { monitor } = known
    return (
      monitor.areUp(this.labels().of(tool).raises, nowMs) && monitor.hasNoted(rules.keeps, nowMs) && !known.isDue(nowMs)
    )
  }

  /** Returns a history; `undefined` if there is none, or no rule reads any. Never creates one. */
  read(caller: Caller, run: RunOfCall | undefined): MaybePromise<RunHistory | undefined> {
    const id = this.#idOf({ id: run === undefined ? idOfCaller(caller) : idOfRun(caller, run) })
    const known = this.#open.get(id)
    if (!this.#rules) return undefined
    if (known) return chain(known.refresh(), () => this.#toRead(known))
    const { store, inTime } = this.#host
    return chain(inTime(store.read(id, undefined, this.nowMs())), (part) => {
      if (!part) return undefined
      return this.#toRead(new OpenHistory(part, this.#beginningOf(id, caller, run, true), this.#host))
    })
  }

  #toRead(history: OpenHistory): RunHistory {
    const facts = new CallHistory(this, history, undefined).facts()
    return { facts, isUnknown: facts === undefined, labels: history.monitor.raised(this.nowMs()) }
  }

  /** Deletes the history of a finished run, and that of its shadows. */
  end(caller: Caller, run: RunOfCall): MaybePromise<void> {
    const id = this.#idOf({ id: idOfRun(caller, run) })
    this.#open.set(id, undefined)
    this.#found(id)
    return chain(this.#host.inTime(this.#host.store.end(id)), () =>
      this.shadows?.rules ? this.shadows.end(caller, run) : undefined,
    )
  }

  /** Notes that a history is incomplete because something could not be kept. It then counts as unknown. */
  lose(caller: Caller, run: RunOfCall | undefined): MaybePromise<void> {
    const id = this.#idOf(this.#placeOf(caller, run, run && calling.getStore()))
    const known = this.#open.get(id)
    if (known) return known.lose()
    this.#missed.set(id, true)
  }

  #find(id: string, caller: Caller, run: RunOfCall | undefined, wasKept: boolean): MaybePromise<OpenHistory> {
    const { store, inTime, wallMs } = this.#host
    return chain(inTime(store.read(id, undefined, wallMs())), (part) => {
      const beginning = this.#beginningOf(id, caller, run, wasKept)
      // Two calls that open a history at once share the first object.
      const now = this.#open.get(id)
      if (now) return chain(now.refresh(), () => now)
      const found = part ? new OpenHistory(part, beginning, this.#host) : beginHistory(beginning, this.#host)
      if (!this.#missed.get(id)) return found
      return chain(found, (history) =>
        chain(history.lose(), () => {
          this.#found(id)
          return history
        }),
      )
    })
  }

  #found(id: string): void {
    if (this.#missed.get(id)) this.#missed.set(id, false)
  }

  #beginningOf(id: string, caller: Caller, run: RunOfCall | undefined, wasKept: boolean): Beginning {
    const owner = this.#idOf({ id: idOfCaller(caller) })
    const begins = { id, owner, kept: [...(this.#rules?.keeps ?? [])], isShadow: this.#enforced !== undefined }
    if (!run) return { ...begins, lifetimes: this.#options.lifetimes, lostMs: this.#activeMs }
    // A continued run should have a history, and a view from before the rules may have made calls that were not recorded.
    const isLost = run.resumed || (!wasKept && this.#activeMs !== undefined)
    return { ...begins, lifetimes: OF_RUNS, lostMs: isLost ? this.nowMs() : undefined }
  }
}

/** Uses only authenticated fields, so a client with another key, token or session keeps its history. */
function idOfCaller({ tenant, user, client }: Caller): string {
  return `caller ${quoted(tenant)} ${quoted(user)} ${quoted(client)}`
}

function idOfRun({ tenant }: Caller, { id, history = id }: RunOfCall): string {
  return `run ${quoted(tenant)} ${quoted(history)}`
}

/** Most names need no quoting. A lone surrogate cannot be stored. */
function quoted(text: string | undefined): string {
  if (text === undefined) return '-'
  return text.isWellFormed() ? `${text.length}:${text}` : JSON.stringify(text)
}
