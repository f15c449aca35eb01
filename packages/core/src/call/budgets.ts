import type { CounterStore, MaybePromise } from '../ports/ports.ts'
import type { LimitUseOf } from './costs.ts'
import type { ParsedUnit } from './limit-words.ts'
import type { LimitPart } from './limits.ts'

/** What is left of one budget: a limit with a cost, for one holder. */
export interface Budget {
  /** The selector of its rule. */
  readonly rule: string
  /** The limit as refusals name it: `50000/86400`, or `500.00 EUR in 24 hours`. */
  readonly limit: string
  /** The unit of the limit, if it has one. `places`: how many of the digits of an amount are decimals. */
  readonly unit?: ParsedUnit
  /** The holder: a value for each part, such as the user, that the rule counts separately. */
  readonly holder: Readonly<Partial<Record<LimitPart, string>>>
  readonly max: number
  readonly used: number
  readonly remaining: number
  /** Milliseconds until part of the budget is free again; 0 if nothing is used. */
  readonly resetMs: number
}

const MAX_NOTED = 1000

/** The latest 1,000 budgets that calls of this process used. The store has their counts. */
export class NotedBudgets {
  readonly #counters: Pick<CounterStore, 'peek'>
  readonly #inTime: <T>(answer: MaybePromise<T>) => MaybePromise<T>
  /** Noted uses by key, the latest last. */
  readonly #noted = new Map<string, LimitUseOf>()

  constructor(counters: Pick<CounterStore, 'peek'>, inTime: <T>(answer: MaybePromise<T>) => MaybePromise<T>) {
    this.#counters = counters
    this.#inTime = inTime
  }

  /** Notes the budgets of a call. */
  note(uses: readonly LimitUseOf[]): void {
    for (const use of uses) {
      if (!use.costing) continue
      this.#noted.delete(use.key)
      this.#noted.set(use.key, use)
      const [oldest] = this.#noted.size > MAX_NOTED ? this.#noted.keys() : []
      if (oldest !== undefined) this.#noted.delete(oldest)
    }
  }

  /** Returns what is left of the latest budgets, the least left first. Takes nothing. */
  async list(limit: number): Promise<readonly Budget[]> {
    const uses = [...this.#noted.values()].slice(-limit)
    const rows = await Promise.all(uses.map((use) => this.#read(use)))
    return rows.toSorted((a, b) => a.remaining / a.max - b.remaining / b.max)
  }

  async #read({ key, max, windowMs, rule, label, words, holder = {} }: LimitUseOf): Promise<Budget> {
    const peek = (cost: number) => this.#inTime(this.#counters.peek([{ key, max, windowMs, cost }]))
    const { remaining } = await peek(0)
    const left = Math.max(0, Math.min(max, remaining))
    // A use that does not fit now fits when something is free again.
    const { resetMs } = left < max ? await peek(left + 1) : { resetMs: 0 }
    return {
      rule,
      limit: label,
      ...(words?.unit && { unit: words.unit }),
      holder,
      max,
      used: max - left,
      remaining: left,
      resetMs,
    }
  }
}
