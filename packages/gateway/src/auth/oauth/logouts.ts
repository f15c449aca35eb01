import { hash } from 'node:crypto'
import { isObject } from '@toolgate/values/json'
import { Mirror } from '@toolgate/core/internal'
import type { Clock, StateEntry, StateStore } from '@toolgate/core/stores'
import { type IssuedTo, isAbout, type ReportedLogout } from '../issued-to.ts'

const PREFIX = 'gateway/logouts/'
/** How long a logout is remembered. */
const KEEP_MS = 30 * 24 * 60 * 60_000
const DEADLINE_MS = 5000

interface LogoutsDeps {
  readonly clock: Pick<Clock, 'wallMs'>
  readonly onFault: (error: unknown) => void
}

/** The logouts that issuers have reported. Replicas share them. */
export class Logouts {
  readonly #deps: LogoutsDeps
  /** By issuer and session, or issuer and person. */
  #known: ReadonlyMap<string, readonly ReportedLogout[]> = new Map()
  #state: StateStore | undefined
  #mirror: Mirror | undefined
  #onChange: () => void = () => {}

  constructor(deps: LogoutsDeps) {
    this.#deps = deps
  }

  /** Reads the logouts from the store, and follows its changes. `onChange` is called when there may be others. */
  async open(state: StateStore, onChange: () => void): Promise<void> {
    const { onFault } = this.#deps
    this.#state = state
    this.#onChange = onChange
    this.#mirror = new Mirror({
      state,
      prefix: PREFIX,
      deadlineMs: DEADLINE_MS,
      onRead: (entries) => this.#replace(entries),
      onFailed: onFault,
    })
    this.#mirror.start()
    await this.#mirror.idle()
  }

  close(): void {
    this.#mirror?.close()
  }

  /** Whether the logouts are known. Until then, a token may be of an ended session. */
  get isRead(): boolean {
    return this.#mirror?.isRead === true
  }

  /** Resolves when every replica knows the logout. */
  async add(logout: ReportedLogout): Promise<void> {
    const { issuer, sub, sid } = logout
    const key = PREFIX + hash('sha256', JSON.stringify([issuer, sub ?? null, sid ?? null]), 'hex')
    const expiresAt = this.#deps.clock.wallMs() + KEEP_MS
    await this.#mirror?.write(key, () => this.#state?.set(key, logout, { expiresAt }))
    await this.#mirror?.idle()
  }

  /**
   * Returns whether the issuer has ended the session of a token since it issued the token. A token without a time may be
   * older.
   */
  hasEnded(issuer: string, of: IssuedTo, issuedAtMs: number | undefined): boolean {
    if (this.#known.size === 0) return false
    return [keyOf(issuer, 'sid', of.sid), keyOf(issuer, 'sub', of.sub)].some((key) =>
      this.#known.get(key)?.some((logout) => isAbout(logout, of) && (issuedAtMs ?? -Infinity) <= logout.atMs),
    )
  }

  #replace(entries: readonly StateEntry[]): void {
    const known = new Map<string, ReportedLogout[]>()
    for (const logout of entries.flatMap(toLogout)) {
      const { issuer, sub, sid } = logout
      for (const key of [keyOf(issuer, 'sid', sid), keyOf(issuer, 'sub', sub)])
        if (key !== '') known.set(key, [...(known.get(key) ?? []), logout])
    }
    this.#known = known
    this.#onChange()
  }
}

/** The name of an issuer contains no space, so no two keys are equal. */
function keyOf(issuer: string, kind: keyof IssuedTo, value: string | undefined): string {
  return value === undefined ? '' : `${kind} ${issuer} ${value}`
}

function toLogout({ value }: StateEntry): readonly ReportedLogout[] {
  if (!isObject(value)) return []
  const { issuer, sub, sid, atMs } = value
  if (typeof issuer !== 'string' || typeof atMs !== 'number') return []
  return [{ issuer, atMs, ...(typeof sub === 'string' && { sub }), ...(typeof sid === 'string' && { sid }) }]
}
