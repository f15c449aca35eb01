import { randomUUID } from 'node:crypto'
import type { JsonObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { LIBRARY } from '@toolgate/stores/replica'
import type { ReplicaRow } from './replica-store.ts'

export interface AskAllOptions {
  readonly state: StateStore
  readonly clock: Clock
  /** The id of this replica's current process. */
  readonly incarnation: string
  readonly list: () => Promise<readonly ReplicaRow[]>
  readonly onFault: (error: unknown) => void
}

/** The answer of a live replica to a question. `undefined`: it did not answer in time. */
export interface ReplicaSays {
  readonly id: string
  readonly answer: unknown
}

/** The prefix of answers, which are not cached. */
const ANSWERS = 'gateway/answers/'
/** The maximum time to wait for an answer from a replica that renews its lease. */
const ANSWER_MS = 10_000
/** Questions and answers of a killed process are removed after this time. */
const KEPT_MS = 60_000
const POLL_MS = 25
const MAX_WHY = 1000

/** Asks every live replica, including this one, and answers the questions of others. */
export class AskAll {
  readonly #options: AskAllOptions
  /** The key prefix of questions, which every replica follows. */
  readonly #prefix: string
  #answered: ReadonlySet<string> = new Set()

  constructor(what: string, options: AskAllOptions) {
    this.#prefix = `${what}:`
    this.#options = options
  }

  /** Returns the answer of each live replica, when all have answered or 10 s have passed. */
  async ask(question: JsonObject): Promise<readonly ReplicaSays[]> {
    const { state, clock } = this.#options
    const name = randomUUID()
    await state.set(this.#prefix + name, question, { expiresAt: clock.wallMs() + KEPT_MS })
    try {
      const endsMs = clock.monotonicMs() + ANSWER_MS
      for (;;) {
        const said = await this.#readAnswers(name)
        if (clock.monotonicMs() >= endsMs || said.every(({ answer }) => answer !== undefined)) return said
        await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      }
    } finally {
      await state.take(this.#prefix + name)
    }
  }

  /** Answers each question once: `{}`, or the reason why `work` rejects. The lease does not wait for the answer. */
  follow(work: (question: unknown) => Promise<unknown>): () => void {
    const { state, onFault } = this.#options
    return state.subscribe(() => void this.#answer(work).catch(onFault))
  }

  async #readAnswers(name: string): Promise<readonly ReplicaSays[]> {
    const { state, list } = this.#options
    const prefix = `${ANSWERS}${name}/`
    const [rows, entries] = await Promise.all([list(), state.list(prefix)])
    const answers = new Map(entries.map(({ key, value }) => [key.slice(prefix.length), value]))
    // Processes that use only the library are not gateways. A replica that is about to end handles no further
    // questions.
    const live = rows.filter(({ isLive, version, word }) => isLive && version !== LIBRARY && !word.isStopping)
    return live.map(({ id, incarnation }) => ({ id, answer: answers.get(incarnation) }))
  }

  async #answer(work: (question: unknown) => Promise<unknown>): Promise<void> {
    const { state, clock, incarnation } = this.#options
    const asked = await state.list(this.#prefix)
    const unanswered = asked.filter(({ key }) => !this.#answered.has(key))
    this.#answered = new Set(asked.map(({ key }) => key))
    for (const { key, value } of unanswered) {
      const answer = await toAnswer(() => work(value))
      const at = `${ANSWERS}${key.slice(this.#prefix.length)}/${incarnation}`
      await state.set(at, answer, { expiresAt: clock.wallMs() + KEPT_MS })
    }
  }
}

async function toAnswer(work: () => Promise<unknown>): Promise<{ why?: string }> {
  try {
    await work()
    return {}
  } catch (error) {
    return { why: messageOf(error).slice(0, MAX_WHY) }
  }
}
