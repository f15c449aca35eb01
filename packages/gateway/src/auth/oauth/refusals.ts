import type { Clock } from '@toolgate/core/stores'
import type { LogLine } from '../../model/log-line.ts'
import type { TokenReason } from './token-problem.ts'

/** The number of refused tokens for one issuer and reason. */
export interface RefusedTokens {
  /** The name of a configured issuer, or `unknown`. */
  readonly issuer: string
  readonly reason: TokenReason
  readonly count: number
}

interface RefusalTally {
  readonly issuer: string
  readonly reason: TokenReason
  count: number
  /** The number of refusals since the last line of the log. */
  unlogged: number
  loggedMs: number
}

const LINE_MS = 60_000
const NOTE_MS = 60 * 60_000
/** Reasons that are normal, as every token meets one in the end. */
const USUAL: ReadonlySet<TokenReason> = new Set(['expired', 'early', 'inactive', 'logged_out'])
const MAX_DETAIL = 500

/**
 * Counts refused tokens, and logs the reasons: at most one line a minute for each issuer and reason, so that no client
 * can flood the log.
 */
export class TokenRefusals {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #log: (line: LogLine) => void
  readonly #notedMs = new Map<string, number>()
  readonly #tallies = new Map<string, RefusalTally>()

  constructor(clock: Pick<Clock, 'monotonicMs'>, log: (line: LogLine) => void) {
    this.#clock = clock
    this.#log = log
  }

  /** Logs what a token of an issuer lacks, at most once an hour for each issuer. The token is accepted. */
  note(issuer: string, detail: string): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - (this.#notedMs.get(issuer) ?? Number.NEGATIVE_INFINITY) < NOTE_MS) return
    this.#notedMs.set(issuer, nowMs)
    const message = `a token of the issuer ${issuer} brings no roles`
    this.#log({ level: 'warn', message, detail: detail.slice(0, MAX_DETAIL) })
  }

  get list(): readonly RefusedTokens[] {
    return [...this.#tallies.values()].map(({ issuer, reason, count }) => ({ issuer, reason, count }))
  }

  /** `detail` is for the log, not for the client. It contains no token. */
  add(issuer: string, reason: TokenReason, detail: string): void {
    const key = `${reason} ${issuer}`
    const tally = this.#tallies.get(key) ?? { issuer, reason, count: 0, unlogged: 0, loggedMs: -LINE_MS }
    this.#tallies.set(key, tally)
    tally.count++
    tally.unlogged++
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - tally.loggedMs < LINE_MS) return
    const more = tally.unlogged === 1 ? '' : `, and ${tally.unlogged - 1} others since the last line`
    const message = `a token of the issuer ${issuer} was refused (${reason})${more}`
    tally.unlogged = 0
    tally.loggedMs = nowMs
    this.#log({ level: USUAL.has(reason) ? 'debug' : 'warn', message, detail: detail.slice(0, MAX_DETAIL) })
  }
}
