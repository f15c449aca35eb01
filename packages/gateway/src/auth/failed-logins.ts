import type { AuditSink } from '@toolgate/core/audit'
import type { Clock } from '@toolgate/core/stores'
import type { FleetFailures } from './fleet-failures.ts'
import type { ClientAddresses, RequestSource } from '../util/client-address.ts'

/** Counts, delays and records failed logins. */
export interface FailedLogins {
  /** The number of failed logins. */
  readonly count: number
  /** Counts a failed login. Resolves when the answer may be sent. Never rejects. */
  failed(from: RequestSource | undefined, keyId: string | undefined): Promise<void>
  /** Records the counts, and ends all delays. */
  close(): void
}

interface FailedLoginsDeps {
  readonly audit: Pick<AuditSink, 'write'>
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  revisions(): { readonly policy_revision: number; readonly catalog_revision: number }
  readonly addresses: Pick<ClientAddresses, 'of'>
  readonly onFault: (error: unknown) => void
  /** The failed logins that other replicas have counted. Absent if this gateway runs alone. */
  readonly fleet?: Pick<FleetFailures, 'note' | 'read'> | undefined
  /** Waits. Tests replace it. Default: a timer. */
  readonly wait?: (ms: number, stopped: AbortSignal) => Promise<void>
}

/** The number of failures without a delay, because people mistype keys. */
const FREE_FAILURES = 5
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 5_000
/** The failures of an address or key are forgotten this long after the last one. */
const FORGET_MS = 10 * 60_000
/** The maximum number of remembered addresses and keys. The one with the oldest last failure is removed first. */
const MAX_REMEMBERED = 10_000
/**
 * The maximum number of answers that are delayed at one time. Further ones are not delayed, as waiting costs memory.
 */
const MAX_WAITING = 1_000
const SUMMARY_MS = 60_000
/** The maximum number of addresses with their own record in one summary. */
const MAX_SUMMARISED = 100

/**
 * Returns a counter of failed logins, for console keys and agents' keys.
 *
 * The delay grows with the failures of an address, and with those of one key from any address. Only failures are
 * delayed, so nobody can lock out the owner of a valid key. The failures of one address in one minute share one record.
 */
export function createFailedLogins(deps: FailedLoginsDeps): FailedLogins {
  const { clock, addresses, fleet, wait = waitFor } = deps
  const recent = new Map<string, { readonly failures: number; readonly lastMs: number }>()
  const summary = new Summary(deps)
  const stopping = new AbortController()
  let count = 0
  let waiting = 0

  /** Counts a failure of an address or key. Returns the number of recent failures. */
  const countOf = (key: string): number => {
    const now = clock.monotonicMs()
    const before = recent.get(key)
    const failures = before && now - before.lastMs < FORGET_MS ? before.failures + 1 : 1
    // Entries are reinserted, so that the one with the oldest last failure comes first.
    recent.delete(key)
    recent.set(key, { failures, lastMs: now })
    if (recent.size > MAX_REMEMBERED) recent.delete(recent.keys().next().value as string)
    fleet?.note(key, failures)
    return failures
  }

  return {
    get count() {
      return count
    },
    async failed(from, keyId) {
      count++
      const network = toNetwork(from && addresses.of(from))
      summary.add(network, keyId)
      const keys = [`address ${network}`, ...(keyId === undefined ? [] : [`key ${keyId}`])]
      const own = keys.map(countOf)
      const ofOthers = await fleet?.read()
      const delayMs = Math.max(...own.map((failures, i) => delayAfter(failures + (ofOthers?.get(keys[i] ?? '') ?? 0))))
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

/** Returns how long the answer to a failure is delayed. */
function delayAfter(failures: number): number {
  if (failures <= FREE_FAILURES) return 0
  return Math.min(FIRST_DELAY_MS * 2 ** (failures - FREE_FAILURES - 1), MAX_DELAY_MS)
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
/** The maximum number of key ids in a record. */
const MAX_KEY_IDS = 5

function describe(address: string, count: number, keyIds: ReadonlySet<string>): string {
  const times = count === 1 ? 'one failed login' : `${count} failed logins`
  const keys = keyIds.size === 0 ? '' : `, key ids ${[...keyIds].join(' ')}${keyIds.size < MAX_KEY_IDS ? '' : ' …'}`
  return `${address}: ${times}${keys}`
}

const IPV4_IN_IPV6 = /^::ffff:(?=[\d.]+$)/i

/**
 * Returns a client's network: its IPv4 address, or the first half of its IPv6 address. A client can use any address in
 * the second half (RFC 6177).
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
