import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type Caller, ConfigError, defineCaller, type Policy } from '@toolgate/core'
import { ApiFault } from '../model/faults.ts'
import type { RunScope, RunSource } from '@toolgate/core/call'
import { sha256Hex } from '@toolgate/values'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { Revision, Revisions } from './revision.ts'
import type { Bearer, Credential, CredentialSource } from './credential.ts'
import { checkNewKey, makersWith, type NewKey, toEntry } from './made-key.ts'
import {
  type EndedRun,
  endRecord,
  hostKey,
  type ListedRun,
  type MadeRun,
  type RunEnd,
  type RunRecord,
  startRecord,
  toListed,
  toListedRun,
  toMadeRun,
} from './made-run.ts'

/** The request for a run. A child has the caller and the history of its parent, and no texts of its own. */
export interface NewRun extends Pick<NewKey, 'tenant' | 'like' | 'apps'> {
  readonly user?: string | undefined
  /** The id of the parent run, whose rights the child's token narrows. */
  readonly parent?: string | undefined
  /** Policies that are added to the gateway's. They can only narrow. */
  readonly policy: readonly Policy[]
  readonly userWords?: readonly string[] | undefined
  /** Default: an hour; for a child, until its parent ends. */
  readonly ttlMs?: number | undefined
}

interface RunsDeps {
  readonly revisions: Revisions
  readonly clock: Pick<Clock, 'wallMs'>
  /** Finds the keys of hosts. */
  readonly keys: Pick<CredentialSource, 'current'>
  readonly onFault: (error: unknown) => void
}

interface KnownRun {
  readonly run: MadeRun
  readonly scope: RunScope
  readonly of: Revision
  readonly credential: Credential | undefined
}

const TOKENS = 'run-token:'
const ENDED = 'run-ended:'
const IDS = 'run-id:'
const TOKEN = /^tgr_[\w-]{43}$/
const HASH = /^[0-9a-f]{64}$/
const HOUR_MS = 3_600_000
const MAX_TTL_MS = 24 * HOUR_MS
const MAX_OF_HOST = 1000
const MAX_DEPTH = 8
const TICK_MS = 1000
/** How often runs that ended without a request are looked for. */
const CONCLUDE_MS = 15_000
const DAY_MS = 24 * HOUR_MS
const NEW_MS = 60_000

/**
 * The runs that hosts have started, by their tokens.
 *
 * Only the hash of a token is stored. The row of a run never changes. Its end is stored as another row, and every
 * replica reads such rows.
 */
export class Runs implements CredentialSource, RunSource {
  readonly #deps: RunsDeps
  /** By the hash of the token. */
  readonly #known = new Map<string, KnownRun>()
  readonly #scopes = new Map<string, RunScope>()
  #ended: ReadonlyMap<string, EndedRun> = new Map()
  /** The number of the latest read of ended runs, and of the one that was applied. */
  #reads = 0
  #applied = 0
  /** Runs that were seen to have expired. They stay expired if the clock is set back. Their rows are then removed. */
  readonly #expired = new Set<string>()
  #state: StateStore | undefined
  #record: (record: RunRecord) => void = () => {}
  readonly #timers: NodeJS.Timeout[] = []
  #unsubscribe: (() => void) | undefined

  constructor(deps: RunsDeps) {
    this.#deps = deps
  }

  /** Reads the ended runs from the store, and follows its changes. */
  async open(state: StateStore, record: (record: RunRecord) => void): Promise<void> {
    this.#state = state
    this.#record = record
    await this.#readEnded()
    this.#unsubscribe = state.subscribe((change) => {
      const applied = this.#readEnded()
      change?.waitUntil(applied)
      applied.catch(this.#deps.onFault)
    })
    const conclude = () => void this.conclude().catch(this.#deps.onFault)
    this.#timers.push(setInterval(() => this.renew(), TICK_MS).unref(), setInterval(conclude, CONCLUDE_MS).unref())
  }

  close(): void {
    this.#unsubscribe?.()
    for (const timer of this.#timers) clearInterval(timer)
  }

  of({ run = '' }: Caller): RunScope | undefined {
    return this.#scopes.get(run)
  }

  async find({ token, digest }: Bearer): Promise<Credential | undefined> {
    if (!TOKEN.test(token)) return undefined
    const hash = Buffer.from(digest, 'base64').toString('hex')
    return this.#known.has(hash) ? this.current(hash) : this.#load(hash).catch(this.#refuse)
  }

  /** Reads the run of a credential that this process has not seen in a request, such as the owner of a task. */
  async load(id: string): Promise<void> {
    if (HASH.test(id) && !this.#known.has(id)) await this.#load(id)
  }

  current(id: string): Credential | undefined {
    const known = this.#known.get(id)
    if (!known) return undefined
    if (this.#isOver(known.run)) return undefined
    if (known.of === this.#deps.revisions.current) return known.credential
    return this.#keep(id, known.run, known.scope).credential
  }

  /** Ends everything that was opened with tokens whose run is over or whose caller has changed. */
  renew(): void {
    const replaced = new Map<Caller, Caller | undefined>()
    for (const [id, { run, credential: before }] of this.#known) {
      const now = this.current(id)
      if (this.#isOver(run)) this.#forget(id, run)
      if (before && !isDeepStrictEqual(before, now)) replaced.set(before.caller, now?.caller)
    }
    this.#deps.revisions.end({ ended: new Set(replaced.keys()), replaced })
  }

  /**
   * Starts a run for a host. The token is returned once and not stored.
   *
   * @throws {ConfigError} naming the field
   */
  async start(
    asked: NewRun,
    host: Credential,
  ): Promise<{ readonly id: string; readonly token: string; readonly expiresAt: number }> {
    const state = this.#stateStore()
    const nowMs = this.#deps.clock.wallMs()
    const run = await this.#toRun(asked, host, nowMs)
    if ((await this.list(host)).length >= MAX_OF_HOST)
      throw new ConfigError('user', 'the host has too many runs; end some first')
    const token = `tgr_${randomBytes(32).toString('base64url')}`
    const hash = sha256Hex(token)
    const { id, expiresAt } = run
    const listed = toListed(run, hash, host.caller.user)
    await state.set(TOKENS + hash, run, { expiresAt })
    await state.set(`${IDS}${hostKey(host)}/${id}`, listed, { expiresAt: expiresAt + DAY_MS })
    this.#keep(hash, run)
    this.#record(startRecord(listed))
    return { id, token, expiresAt }
  }

  /** Returns the active runs of one host or of all, newest first. */
  async list(host?: Credential): Promise<readonly ListedRun[]> {
    const rows = await this.#rows(host)
    return rows.flatMap(([, run]) => (this.#endOf(run) ? [] : [run])).toSorted((a, b) => b.createdAt - a.createdAt)
  }

  /** Ends a run and its children. @throws {ApiFault} `run_unknown`, also for a run that `mayEnd` rejects */
  async end(
    id: string,
    { reason, by }: EndedRun,
    mayEnd: (run: ListedRun) => boolean,
    host?: Credential,
  ): Promise<void> {
    const run = (await this.list(host)).find((one) => one.id === id)
    if (!run || !mayEnd(run))
      throw new ApiFault('run_unknown', `No run with the id ${JSON.stringify(id.slice(0, 100))} goes on.`)
    await this.#stateStore().set(ENDED + id, { reason, by }, { expiresAt: run.expiresAt + DAY_MS })
    await this.#readEnded()
    await this.conclude()
  }

  /** Records the end of each run that is over. Only one of several processes does so. */
  async conclude(): Promise<void> {
    const state = this.#stateStore()
    const rows = await this.#rows()
    const kept = new Set(rows.map(([, { id }]) => id))
    for (const [key, run] of rows) {
      const end = this.#endOf(run)
      // Another process may not have read a new key yet.
      if (end?.reason === 'host_ended' && this.#deps.clock.wallMs() - run.createdAt < NEW_MS) continue
      if (!end) continue
      // The row is removed first: without it the token opens nothing, even if a clock is set back.
      await state.take(TOKENS + run.hash)
      if ((await state.take(key)) !== undefined) this.#record(endRecord(run, end.reason, end.by))
    }
    for (const id of this.#expired) if (!kept.has(id)) this.#expired.delete(id)
  }

  async #rows(host?: Credential): Promise<readonly (readonly [key: string, run: ListedRun])[]> {
    const entries = await this.#stateStore().list(host ? `${IDS}${hostKey(host)}/` : IDS)
    return entries.flatMap(({ key, value }) => {
      const run = toListedRun(value)
      return run ? [[key, run] as const] : []
    })
  }

  async #toRun(asked: NewRun, host: Credential, nowMs: number): Promise<MadeRun> {
    const { parent: parentId, policy, userWords, ttlMs } = asked
    const parent = parentId === undefined ? undefined : await this.#runOf(parentId, host, 'parent')
    const makers = [...new Set([...makersWith(host.caller), ...(parent ? this.#makersOf(parent) : [])])]
    const made = { id: `r-${randomBytes(12).toString('hex')}`, createdAt: nowMs, host: host.id, makers }
    const endsAt = nowMs + checkTtl(ttlMs ?? (parent ? MAX_TTL_MS : HOUR_MS))
    if (parent) {
      const above = [parent.id, ...parent.above]
      if (above.length > MAX_DEPTH) throw new ConfigError('parent', `has ${MAX_DEPTH} runs above it already`)
      const { user, tenant, like, apps } = parent
      const expiresAt = Math.min(endsAt, parent.expiresAt)
      return { ...made, above, user, tenant, like, apps, policy: [...parent.policy, ...policy], expiresAt }
    }
    const { user, tenant = host.caller.tenant, like, apps } = asked
    if (user === undefined) throw new ConfigError('user', 'is missing')
    if (host.caller.tenant !== undefined && tenant !== host.caller.tenant)
      throw new ConfigError('tenant', 'is another one than that of your key')
    checkNewKey({ for: 'mcp', user, tenant, like, apps }, this.#deps.revisions.current, nowMs, undefined)
    return { ...made, above: [], user, tenant, like, apps, policy, userWords, expiresAt: endsAt }
  }

  /** Returns a run of this host. The run of another host is treated as unknown. */
  async #runOf(id: string, host: Credential, field: string): Promise<MadeRun> {
    const state = this.#stateStore()
    const listed = toListedRun(await state.get(`${IDS}${hostKey(host)}/${id}`))
    const run = listed && toMadeRun(await state.get(TOKENS + listed.hash))
    if (!run || this.#isOver(run)) throw noSuchRun(field, id)
    return run
  }

  async #load(hash: string): Promise<Credential | undefined> {
    const run = toMadeRun(await this.#state?.get(TOKENS + hash))
    if (!run) return undefined
    // The end of the run may be newer than the rows that this process has read.
    await this.#readEnded()
    if (this.#isOver(run)) return undefined
    return (this.#known.get(hash) ?? this.#keep(hash, run)).credential
  }

  readonly #refuse = (error: unknown): undefined => {
    this.#deps.onFault(error)
  }

  #keep(hash: string, run: MadeRun, scope: RunScope = this.#toScope(run)): KnownRun {
    const { revisions } = this.#deps
    const credential = toCredential(hash, { ...run, makers: this.#makersOf(run) }, revisions.current)
    const known = { run, scope, of: revisions.current, credential }
    const before = this.#known.get(hash)?.credential
    // An unchanged caller keeps its object, because streams and subscriptions are found by it.
    const same = before && isDeepStrictEqual(before, known.credential) ? { ...known, credential: before } : known
    this.#known.set(hash, same)
    this.#scopes.set(run.id, scope)
    return same
  }

  #forget(hash: string, { id }: MadeRun): void {
    this.#known.delete(hash)
    this.#scopes.delete(id)
  }

  /**
   * Returns the makers of a run. For a row of an earlier version, these are the makers of the host's current key, with
   * which the run ends.
   */
  #makersOf({ makers, host }: MadeRun): readonly string[] {
    return makers ?? makersWith(this.#deps.keys.current(host)?.caller)
  }

  #toScope({ id, above, policy, userWords }: MadeRun): RunScope {
    return { run: { id, history: above.at(-1) ?? id, ...(userWords && { userWords }) }, policy }
  }

  #isOver(run: MadeRun): boolean {
    return this.#endOf(run) !== undefined
  }

  #endOf({
    id,
    above,
    expiresAt,
    host,
  }: Pick<MadeRun, 'id' | 'above' | 'expiresAt' | 'host'>):
    | { readonly reason: RunEnd; readonly by?: string | undefined }
    | undefined {
    const own = this.#ended.get(id)
    if (own) return own
    const parent = above.find((one) => this.#ended.has(one))
    if (parent !== undefined) return { reason: 'parent_ended', by: this.#ended.get(parent)?.by }
    if (this.#expired.has(id) || expiresAt <= this.#deps.clock.wallMs()) {
      this.#expired.add(id)
      return { reason: 'expired' }
    }
    return this.#deps.keys.current(host)?.for === 'host' ? undefined : { reason: 'host_ended' }
  }

  /** Applies the ended runs. Of overlapping reads the later one wins, so that no slow read takes an end back. */
  async #readEnded(): Promise<void> {
    const read = ++this.#reads
    const entries = (await this.#state?.list(ENDED)) ?? []
    if (read < this.#applied) return
    this.#applied = read
    this.#ended = new Map(entries.map(({ key, value }) => [key.slice(ENDED.length), value as EndedRun]))
    this.renew()
  }

  #stateStore(): StateStore {
    if (!this.#state) throw new ConfigError('state', 'is not open yet')
    return this.#state
  }
}

function noSuchRun(field: string, id: string): ConfigError {
  return new ConfigError(field, `no run with the id ${JSON.stringify(id.slice(0, 100))} goes on`)
}

/** Returns the current credential of a run; `undefined` if the file no longer has its caller. */
function toCredential(id: string, run: MadeRun, { callers }: Revision): Credential | undefined {
  const { user, tenant, like, apps, expiresAt, createdAt, makers } = run
  const source = { for: 'mcp', user, tenant, like, apps } as const
  const entry = toEntry({ id: run.id, hash: id, ...source, createdAt, createdBy: undefined, makers }, callers)
  if (!entry) return undefined
  return Object.freeze({
    id,
    for: 'mcp',
    caller: defineCaller({ ...entry.caller, run: run.id }),
    issuer: 'key',
    ...(entry.apps && { apps: entry.apps }),
    expiresAtMs: expiresAt,
  } satisfies Credential)
}

function checkTtl(ttlMs: number): number {
  if (Number.isInteger(ttlMs) && ttlMs > 0 && ttlMs <= MAX_TTL_MS) return ttlMs
  throw new ConfigError('ttlMs', `must be a number of milliseconds from 1 to ${MAX_TTL_MS}`)
}
