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
  /** Of calls that belong to no run. */
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
  /** For the steps of the run. `undefined` where it is unknown. */
  readonly facts: RunFacts | undefined
  /** Whether it is lost, or was not kept from its beginning: rules get their strictest answer. */
  readonly isUnknown: boolean
  readonly labels: readonly RaisedLabel[]
}

const NOTHING_KEPT: Kept = { rules: false, shadows: false }
const OF_RUNS: Lifetimes = { calledMs: Infinity, labelMs: Infinity }
/** Those that were used last. Others are read from the store again. */
const MAX_OPEN = 1000

/** Where the call is entered in which something runs. A run that begins there was prompted by the model of that call. */
const calling = new AsyncLocalStorage<Place>()

/** The history of a caller, or of one of their runs. */
interface Place {
  readonly of: Histories
  readonly tenant: string | undefined
  /** Absent for callers without a run. */
  readonly run: string | undefined
  readonly id: string
  /** User and client. */
  readonly caller: readonly [string | null, string | null]
}

/** Whether histories are kept, of what rules read and of what shadows of rules do. */
export interface Kept {
  readonly rules: boolean
  readonly shadows: boolean
}

/** The histories of a gate and its forks: what happened in runs, as far as rules ask. */
export class Histories {
  readonly labels: () => ParsedLabels
  /** The facts that shadows read, in histories of their own: a failure there takes nothing from enforced rules. */
  readonly shadows: Histories | undefined
  /** Whose shadows these are of. */
  readonly #enforced: Histories | undefined
  readonly #options: HistoriesOptions
  readonly #host: HistoryHost
  readonly #open = createBoundedCache<string, OpenHistory | undefined>(MAX_OPEN)
  #rules: HistoryRules | undefined
  #activeMs: number | undefined
  /** Of each caller, the latest. */
  readonly #places = new WeakMap<Caller, Place>()
  #events = 0
  readonly #prefix = randomUUID()
  /** Histories that could not be opened, so that something of them is missing. */
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
   * Returns histories that keep what these keep, in another store: nothing is changed here. `nowMs`: of histories in which
   * nothing has happened yet.
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

  /** What is kept. `undefined` while no rule reads a history. */
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

  /** Returns the histories that people are shown: those of the rules, or of the shadows where no rule reads any. */
  get shown(): Histories {
    return this.#rules === undefined && this.shadows?.rules ? this.shadows : this
  }

  get store(): HistoryStore {
    return this.#host.store
  }

  nowMs(): number {
    return this.#host.wallMs()
  }

  /** Keeps what other policies ask for, too. */
  use({ enforced, shadows }: HistoryUses): void {
    this.#use(enforced)
    if (this.shadows) this.shadows.#use(shadows)
  }

  #use(use: HistoryUse): void {
    const before = this.#rules
    this.#rules = withUse(before, use)
    if (!before && this.#rules && this.#options.onActive()) this.#activeMs = this.nowMs()
  }

  /** Returns the gate's own name of an attempt. One that a client chose would prove nothing. */
  newEvent(): string {
    return `${this.#prefix}.${++this.#events}`
  }

  /** Runs a tool in its call's history, which runs that begin there share. */
  within<T>(caller: Caller, run: RunOfCall | undefined, work: () => T): T {
    return calling.run(this.#placeOf(caller, run, calling.getStore()), work)
  }

  /**
   * Returns the history of a call, with all that others have added. `wasKept`: since its view was made. `isRead`: a rule asks for it.
   *
   * @throws {ToolgateError} `history_full` if it is a new one, and there is no room
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

  /** Two tenants share no history. */
  #placeOf(caller: Caller, run: RunOfCall | undefined, around: Place | undefined): Place {
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

  /** Histories for shadows are beside those of the same place. */
  #idOf({ id }: Pick<Place, 'id'>): string {
    return this.#enforced ? `shadow ${id}` : id
  }

  /** Returns whose history a run shares, as records have it; `undefined` where it has its own. */
  sharedBy(caller: Caller, run: RunOfCall): string | undefined {
    const around = calling.getStore()
    if (!around && (run.history === undefined || run.history === run.id)) return undefined
    const place = this.#placeOf(caller, run, around)
    if (place.run === run.id) return undefined
    return JSON.stringify(place.run === undefined ? ['caller', ...place.caller] : ['run', place.run])
  }

  /** Adds what the host has handed in with the run. */
  #addGiven(
    history: OpenHistory,
    words: RunOfCall['userWords'],
    results: RunOfCall['earlierResults'],
  ): MaybePromise<void> {
    const readsOrigin = this.#rules?.readsOrigin === true
    const adding = results && history.addEarlier(results, this.newEvent(), readsOrigin)
    return chain(adding, () => (words === undefined || !readsOrigin ? undefined : history.addWords(words)))
  }

  /** Returns the labels of a tool's output. The output of a passing tool is that of the calls it makes. */
  raisedBy(tool: Tool): readonly string[] {
    return isPassingTool(tool) ? [] : this.labels().of(tool).raises
  }

  /** Whether a call of a tool about which no rule asks has nothing to enter, neither when it begins nor when it ends. */
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

  /** Returns what is known of a history; `undefined` where there is none, or no rule reads any. Makes none. */
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

  /** Forgets the history of a run that is over, and that of its shadows. */
  end(caller: Caller, run: RunOfCall): MaybePromise<void> {
    const id = this.#idOf({ id: idOfRun(caller, run) })
    this.#open.set(id, undefined)
    this.#found(id)
    return chain(this.#host.inTime(this.#host.store.end(id)), () =>
      this.shadows?.rules ? this.shadows.end(caller, run) : undefined,
    )
  }

  /** Notes that something in a history could not be kept: nobody knows any more what has happened in it. */
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
      // Two calls that open it at once share what was opened first.
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
    // A run that goes on has a history, and one whose view was made before the rules may have made calls that nobody kept.
    const isLost = run.resumed || (!wasKept && this.#activeMs !== undefined)
    return { ...begins, lifetimes: OF_RUNS, lostMs: isLost ? this.nowMs() : undefined }
  }
}

/** Of what was authenticated: a client that gets another key, token or session gets no other history. */
function idOfCaller({ tenant, user, client }: Caller): string {
  return `caller ${quoted(tenant)} ${quoted(user)} ${quoted(client)}`
}

function idOfRun({ tenant }: Caller, { id, history = id }: RunOfCall): string {
  return `run ${quoted(tenant)} ${quoted(history)}`
}

/** Most names are plain, and a lone surrogate has no place in a store. */
function quoted(text: string | undefined): string {
  if (text === undefined) return '-'
  return text.isWellFormed() ? `${text.length}:${text}` : JSON.stringify(text)
}
