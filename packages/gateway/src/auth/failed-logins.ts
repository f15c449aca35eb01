import type { AuditSink } from '@toolgate/core/audit'
import type { Clock } from '@toolgate/core/stores'

/** What is counted, slowed and recorded of keys that are wrong. */
export interface FailedLogins {
  /** How many there were. */
  readonly count: number
  /** Counts one, and resolves when it may be answered. Never rejects. */
  failed(address: string | undefined, keyId: string | undefined): Promise<void>
  /** Records what was counted, and answers those who wait. */
  close(): void
}

export interface FailedLoginsDeps {
  readonly audit: Pick<AuditSink, 'write'>
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  revisions(): { readonly policy_revision: number; readonly catalog_revision: number }
  readonly onFault: (error: unknown) => void
  /** Waits, for tests. Default: a timer. */
  readonly wait?: (ms: number, stopped: AbortSignal) => Promise<void>
}

/** A person mistypes a key some times; nobody waits for those. */
const FREE_FAILURES = 5
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 5_000
/** So long after the last failure of an address or key, it begins again. */
const FORGET_MS = 10 * 60_000
/** Addresses and keys whose failures are remembered; the one whose last failure is oldest is forgotten first. */
const MAX_REMEMBERED = 10_000
/** Answers that wait at one time. Beyond it they come at once: waiting costs memory, too. */
const MAX_WAITING = 1_000
const SUMMARY_MS = 60_000
/** Addresses that have a record of their own in one summary. */
const MAX_SUMMARISED = 100

/**
 * Returns what slows and records failed logins: by console key, API key and agents' keys alike.
 *
 * The delay grows with the failures of an address, and with those of one key from anywhere. Only failures are delayed:
 * a right key is never looked up here, so nobody can lock out its owner. A minute's failures are one record for each
 * address, however many there were.
 */
export function createFailedLogins(deps: FailedLoginsDeps): FailedLogins {
  const { clock, wait = waitFor } = deps
  const recent = new Map<string, Recent>()
  const summary = new Summary(deps)
  const stopping = new AbortController()
  let count = 0
  let waiting = 0

  /** Returns how long the answer to one more failure of an address or key is held back. */
  const delayOf = (key: string): number => {
    const now = clock.monotonicMs()
    const before = recent.get(key)
    const failures = before && now - before.lastMs < FORGET_MS ? before.failures + 1 : 1
    // In the order of the last failure, so that the oldest is the first.
    recent.delete(key)
    recent.set(key, { failures, lastMs: now })
    if (recent.size > MAX_REMEMBERED) recent.delete(recent.keys().next().value as string)
    if (failures <= FREE_FAILURES) return 0
    return Math.min(FIRST_DELAY_MS * 2 ** (failures - FREE_FAILURES - 1), MAX_DELAY_MS)
  }

  return {
    get count() {
      return count
    },
    async failed(address, keyId) {
      count++
      const from = toNetwork(address)
      summary.add(from, keyId)
      const delays = [delayOf(`address ${from}`), keyId === undefined ? 0 : delayOf(`key ${keyId}`)]
      const delayMs = Math.max(...delays)
      if (delayMs === 0 || waiting >= MAX_WAITING || stopping.signal.aborted) return
      waiting++
      await wait(delayMs, stopping.signal)
      waiting--
    },
    close() {
      stopping.abort()
      summary.write()
    },
  }
}

interface Recent {
  readonly failures: number
  readonly lastMs: number
}

/** Counts the failures of a minute by address, and records them at its end. */
class Summary {
  readonly #deps: FailedLoginsDeps
  #addresses = new Map<string, { count: number; readonly keyIds: Set<string> }>()
  #timer: NodeJS.Timeout | undefined

  constructor(deps: FailedLoginsDeps) {
    this.#deps = deps
  }

  add(address: string, keyId: string | undefined): void {
    const name = this.#addresses.has(address) || this.#addresses.size < MAX_SUMMARISED ? address : OTHERS
    const own = this.#addresses.get(name) ?? { count: 0, keyIds: new Set() }
    this.#addresses.set(name, own)
    own.count++
    if (keyId !== undefined && own.keyIds.size < MAX_KEY_IDS) own.keyIds.add(keyId)
    this.#timer ??= setTimeout(() => this.write(), SUMMARY_MS).unref()
  }

  write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const counted = this.#addresses
    this.#addresses = new Map()
    for (const [address, { count, keyIds }] of counted) this.#record(describe(address, count, keyIds))
  }

  #record(detail: string): void {
    const { audit, clock, revisions, onFault } = this.#deps
    try {
      const written = audit.write({ event: 'login_failed', detail, wallMs: clock.wallMs(), ...revisions() })
      if (written instanceof Promise) written.catch(onFault)
    } catch (error) {
      onFault(error)
    }
  }
}

const OTHERS = 'other addresses'
/** Ids of keys that a record names. */
const MAX_KEY_IDS = 5

function describe(address: string, count: number, keyIds: ReadonlySet<string>): string {
  const times = count === 1 ? 'one failed login' : `${count} failed logins`
  const keys = keyIds.size === 0 ? '' : `, key ids ${[...keyIds].join(' ')}${keyIds.size < MAX_KEY_IDS ? '' : ' …'}`
  return `${address}: ${times}${keys}`
}

const IPV4_IN_IPV6 = /^::ffff:(?=[\d.]+$)/i

/**
 * Returns what stands for one client: its IPv4 address, or the first half of its IPv6 address, as each client has all of
 * the second (RFC 6177).
 */
export function toNetwork(address: string = 'unknown'): string {
  const plain = address.replace(IPV4_IN_IPV6, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0')
  return `${[...first, ...zeros, ...last].slice(0, 4).join(':')}::/64`
}

async function waitFor(ms: number, stopped: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      stopped.removeEventListener('abort', done)
      resolve()
    }
    stopped.addEventListener('abort', done)
  })
}
