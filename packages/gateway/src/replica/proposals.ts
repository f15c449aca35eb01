import { randomUUID } from 'node:crypto'
import { isObject, messageOf } from '@toolgate/core/internal'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { LIBRARY } from '@toolgate/stores/replica'
import type { ReplicaRow } from './replica-store.ts'

export interface ProposalsOptions {
  readonly state: StateStore
  readonly clock: Clock
  /** One start of this replica. */
  readonly incarnation: string
  readonly list: () => Promise<readonly ReplicaRow[]>
  readonly onFault: (error: unknown) => void
}

/** A replica that cannot run a text, and why. */
export interface Objection {
  readonly id: string
  readonly why: string
}

const PROPOSED = 'proposed:'
/** Nobody keeps a copy of answers. */
const ANSWERS = 'gateway/proposed-answer:'
/** The longest wait for an answer of a replica that renews its lease. */
const ANSWER_MS = 10_000
/** Proposals and answers of a process that was killed are gone after this. */
const KEPT_MS = 60_000
const POLL_MS = 25
const MAX_WHY = 1000

/** Asks every live replica whether it could run a configuration, and answers when another one asks. */
export class Proposals {
  readonly #options: ProposalsOptions
  #answered: ReadonlySet<string> = new Set()

  constructor(options: ProposalsOptions) {
    this.#options = options
  }

  /** Returns the live replicas that cannot run a text, or do not answer. Every replica runs on as it is. */
  async ask(text: string): Promise<readonly Objection[]> {
    const { state, clock } = this.#options
    const name = randomUUID()
    await state.set(PROPOSED + name, { text }, { expiresAt: clock.wallMs() + KEPT_MS })
    try {
      const endsMs = clock.monotonicMs() + ANSWER_MS
      for (;;) {
        const asked = await this.#readAnswers(name)
        const isOver = clock.monotonicMs() >= endsMs || asked.every(({ answer }) => answer !== undefined)
        if (isOver) return asked.flatMap(toObjection)
        await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      }
    } finally {
      await state.take(PROPOSED + name)
    }
  }

  /** Answers each proposal once: `check` rejects with why this replica cannot run it. The lease does not wait for it. */
  follow(check: (text: string) => Promise<unknown>): () => void {
    const { state, onFault } = this.#options
    return state.subscribe(() => void this.#answer(check).catch(onFault))
  }

  async #readAnswers(name: string) {
    const { state, list } = this.#options
    const prefix = `${ANSWERS}${name}/`
    const [rows, entries] = await Promise.all([list(), state.list(prefix)])
    const answers = new Map(entries.map(({ key, value }) => [key.slice(prefix.length), value]))
    // Processes of the library have no configuration, and one that is about to end runs nothing that is published later.
    const live = rows.filter(({ isLive, version, word }) => isLive && version !== LIBRARY && !word.isStopping)
    return live.map(({ id, incarnation }) => ({ id, answer: answers.get(incarnation) }))
  }

  async #answer(check: (text: string) => Promise<unknown>): Promise<void> {
    const { state, clock, incarnation } = this.#options
    const proposed = await state.list(PROPOSED)
    const unanswered = proposed.filter(({ key }) => !this.#answered.has(key))
    this.#answered = new Set(proposed.map(({ key }) => key))
    for (const { key, value } of unanswered) {
      const answer = await toAnswer(value, check)
      const at = `${ANSWERS}${key.slice(PROPOSED.length)}/${incarnation}`
      await state.set(at, answer, { expiresAt: clock.wallMs() + KEPT_MS })
    }
  }
}

async function toAnswer(proposed: unknown, check: (text: string) => Promise<unknown>): Promise<{ why?: string }> {
  if (!isObject(proposed) || typeof proposed['text'] !== 'string') return { why: 'the proposal cannot be read' }
  try {
    await check(proposed['text'])
    return {}
  } catch (error) {
    return { why: messageOf(error).slice(0, MAX_WHY) }
  }
}

function toObjection({ id, answer }: { readonly id: string; readonly answer: unknown }): readonly Objection[] {
  if (answer === undefined) return [{ id, why: 'it does not answer' }]
  const why = isObject(answer) ? answer['why'] : 'its answer cannot be read'
  return typeof why === 'string' ? [{ id, why }] : []
}
