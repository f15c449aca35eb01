import type { Caller } from '../ports/caller.ts'
import type { MaybePromise } from '../ports/ports.ts'
import { ConfigError, messageOf, safely, TimeoutError } from '@toolgate/values'

/** A search of your own, such as one over embeddings. It orders tools and decides nothing: only visible tools are shown. */
export interface Searcher {
  /**
   * Returns the ids of the matching tools, best first.
   *
   * An exception, an invalid answer and one that takes longer than the deadline are warned of, and the built-in search
   * answers instead.
   */
  search(query: string, about: SearchAbout): MaybePromise<readonly string[]>
}

export interface SearchAbout {
  readonly caller: Caller
  /** The ids that the caller can find now. Ids that are not among them are left out of the answer. */
  readonly among: readonly string[]
  /** How many ids are of use. */
  readonly limit: number
  /** Aborts at the deadline, and when the caller goes away. */
  readonly signal: AbortSignal
}

/** A checked searcher, with its deadline and the receiver of its warnings. */
export interface CheckedSearcher {
  /** Returns the ids; `undefined` if the searcher failed, which was warned of. */
  find(query: string, about: SearchAbout): Promise<readonly string[] | undefined>
}

export interface SearcherOptions {
  /** A search of your own that orders the tools, in place of the search by words. */
  readonly searcher?: Searcher | undefined
  /** The longest time to wait for `searcher`, in milliseconds. Default 2,000. */
  readonly searchDeadlineMs?: number | undefined
  /** Receives a warning about each failure of `searcher`. Default: `process.emitWarning`, once for each distinct text. */
  readonly onWarning?: ((text: string) => void) | undefined
}

const DEADLINE_MS = 2000
const MAX_DEADLINE_MS = 60_000
/** An answer is read up to here. */
const MAX_IDS = 10_000

/** @throws {ConfigError} naming the invalid option */
export function checkSearcher(path: string, options: SearcherOptions): CheckedSearcher | undefined {
  const { searcher, searchDeadlineMs: ms = DEADLINE_MS, onWarning = warnOnce() } = options
  if (searcher === undefined) return undefined
  if (typeof searcher !== 'object' || searcher === null || typeof searcher.search !== 'function')
    throw new ConfigError(`${path}.searcher`, 'must be an object with search()')
  if (!(typeof ms === 'number' && ms >= 1 && ms <= MAX_DEADLINE_MS))
    throw new ConfigError(`${path}.searchDeadlineMs`, `must be 1 to ${MAX_DEADLINE_MS} milliseconds`)
  const warn = safely(onWarning, () => {})
  return {
    async find(query, about) {
      try {
        return checkAnswer(
          await answerWithin(ms, about.signal, (signal) => searcher.search(query, { ...about, signal })),
        )
      } catch (error) {
        if (!about.signal.aborted) warn(`The searcher failed, so the built-in search answers: ${messageOf(error)}`)
        return undefined
      }
    },
  }
}

function answerWithin<T>(ms: number, caller: AbortSignal, ask: (signal: AbortSignal) => MaybePromise<T>): Promise<T> {
  const late = new AbortController()
  const signal = AbortSignal.any([late.signal, caller])
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => late.abort(new TimeoutError(ms)), ms)
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    // Inside a promise, because the host's code may throw at once.
    new Promise<T>((answered) => answered(ask(signal))).then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

function checkAnswer(answer: unknown): readonly string[] {
  if (!Array.isArray(answer) || !answer.every((id) => typeof id === 'string'))
    throw new TypeError('it must return a list of tool ids')
  return [...new Set(answer.slice(0, MAX_IDS))]
}

function warnOnce(): (text: string) => void {
  const seen = new Set<string>()
  return (text) => {
    if (seen.has(text) || seen.size >= MAX_WARNINGS) return
    seen.add(text)
    process.emitWarning(text, { type: 'ToolgateWarning', code: 'search_failed' })
  }
}

const MAX_WARNINGS = 100
