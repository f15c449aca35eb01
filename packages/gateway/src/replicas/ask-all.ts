import { randomUUID } from 'node:crypto'
import type { JsonObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { LIBRARY } from '@toolgate/stores/replica'
import type { ReplicaRow } from './replica-store.ts'

export interface AskAllOptions {
  readonly state: StateStore
  readonly clock: Clock
  /** One start of this replica. */
  readonly incarnation: string
  readonly list: () => Promise<readonly ReplicaRow[]>
  readonly onFault: (error: unknown) => void
}

/** What a live replica says to a question. `undefined`: nothing in time. */
export interface ReplicaSays {
  readonly id: string
  readonly answer: unknown
}

/** Nobody keeps a copy of answers. */
const ANSWERS = 'gateway/answers/'
/** The longest wait for an answer of a replica that renews its lease. */
const ANSWER_MS = 10_000
/** Questions and answers of a process that was killed are gone after this. */
const KEPT_MS = 60_000
const POLL_MS = 25
const MAX_WHY = 1000

/** Asks every live replica, this one too, and answers when one asks. */
export class AskAll {
  readonly #options: AskAllOptions
  /** The prefix of the keys of questions, which every replica hears of. */
  readonly #prefix: string
  #answered: ReadonlySet<string> = new Set()

  constructor(what: string, options: AskAllOptions) {
    this.#prefix = `${what}:`
    this.#options = options
  }

  /** Returns what each live replica answers, when all have answered or 10 s have passed. */
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

  /** Answers each question once: `{}`, or with why `work` rejects. The lease does not wait for it. */
  follow(work: (question: unknown) => Promise<unknown>): () => void {
    const { state, onFault } = this.#options
    return state.subscribe(() => void this.#answer(work).catch(onFault))
  }

  async #readAnswers(name: string): Promise<readonly ReplicaSays[]> {
    const { state, list } = this.#options
    const prefix = `${ANSWERS}${name}/`
    const [rows, entries] = await Promise.all([list(), state.list(prefix)])
    const answers = new Map(entries.map(({ key, value }) => [key.slice(prefix.length), value]))
    // Processes of the library are no gateways, and one that is about to end does nothing that is asked later.
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
