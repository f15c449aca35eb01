import type { Clock, StateStore } from '@toolgate/core/stores'

/** A message that waits to be sent. It names its approval and has no text, which is made when it leaves. */
export interface Queued {
  readonly key: string
  readonly approval: string
  readonly tool: string
  readonly tenant?: string
  readonly about: 'requested' | 'ended'
  /** When it is no longer sent. Wall-clock milliseconds. */
  readonly untilMs: number
  readonly tries: number
}

/** What a receiver has been told of an approval. */
type ToldState = 'alone' | 'in a group' | 'ended'

/** How a receiver is doing. Only the holder of its lease writes it. */
export interface ReceiverState {
  /** Failures since the last message that was taken. */
  readonly failures: number
  /** Nothing is sent before this time. */
  readonly notBeforeMs: number
  readonly sentAtMs?: number
  readonly failing?: { readonly sinceMs: number; readonly why: string }
  /** The messages that left since a time, for receivers with a bound. */
  readonly window: { readonly atMs: number; readonly count: number }
}

/** The longest time for which a message is tried. */
const MAX_TRIED_MS = 60 * 60_000
/** How long it is known what a receiver was told, after the approval has expired. */
const KEPT_MS = 2 * 60 * 60_000
const STATE_MS = 7 * 24 * 60 * 60_000
/** The most messages that wait for one receiver. */
const MAX_QUEUED = 1_000

const QUEUE = 'gateway/notifications/queue/'
const TOLD = 'gateway/notifications/told/'
const OPEN = 'gateway/notifications/open/'
const STATES = 'gateway/notifications/receivers/'
const FRESH: ReceiverState = { failures: 0, notBeforeMs: 0, window: { atMs: 0, count: 0 } }

/** An approval, as far as the outbox needs it. */
interface ApprovalTimes {
  readonly id: string
  readonly tool: string
  readonly tenant?: string | undefined
  readonly requestedAt: number
  readonly expiresAt: number
}

/** The messages that wait, in the state that replicas share and that outlives a restart. */
export class Outbox {
  readonly #state: StateStore
  readonly #clock: Pick<Clock, 'wallMs'>

  constructor(state: StateStore, clock: Pick<Clock, 'wallMs'>) {
    this.#state = state
    this.#clock = clock
  }

  /**
   * Adds a message, once for all replicas. Returns `false` if the queue of the receiver is full. A request is tried as
   * long as its approval lives, and each message for an hour at most.
   */
  async add(receiver: string, about: Queued['about'], approval: ApprovalTimes): Promise<boolean> {
    const { id, tool, tenant, requestedAt, expiresAt } = approval
    const told = await this.told(receiver, id)
    if (about === 'requested' ? told !== undefined : told === 'ended') return true
    if ((await this.#state.list(`${QUEUE}${receiver}/`)).length >= MAX_QUEUED) return false
    const nowMs = this.#clock.wallMs()
    const untilMs = about === 'requested' ? Math.min(expiresAt, nowMs + MAX_TRIED_MS) : nowMs + MAX_TRIED_MS
    // An end is sent after its request, and both in the order of the requests.
    const key = `${QUEUE}${receiver}/${String(requestedAt).padStart(14, '0')}-${id}-${about === 'ended' ? 2 : 1}`
    const entry = { approval: id, tool, ...(tenant !== undefined && { tenant }), about, untilMs, tries: 0 }
    await this.#state.add(key, entry, { expiresAt: untilMs + KEPT_MS })
    return true
  }

  /** Returns the queued messages of all receivers, by receiver. */
  async queued(): Promise<ReadonlyMap<string, readonly Queued[]>> {
    const all = (await this.#state.list(QUEUE)).map(({ key, value }) => ({ key, ...(value as Omit<Queued, 'key'>) }))
    return Map.groupBy(all, ({ key }) => key.slice(QUEUE.length, key.indexOf('/', QUEUE.length)))
  }

  async queueOf(receiver: string): Promise<readonly Queued[]> {
    const entries = await this.#state.list(`${QUEUE}${receiver}/`)
    return entries.map(({ key, value }) => ({ key, ...(value as Omit<Queued, 'key'>) }))
  }

  async tryAgain({ key, ...entry }: Queued): Promise<void> {
    await this.#state.set(key, { ...entry, tries: entry.tries + 1 }, { expiresAt: entry.untilMs + KEPT_MS })
  }

  async remove({ key }: Queued): Promise<void> {
    await this.#state.take(key)
  }

  async told(receiver: string, approval: string): Promise<ToldState | undefined> {
    return (await this.#state.get(`${TOLD}${receiver}/${approval}`)) as ToldState | undefined
  }

  async setTold(receiver: string, approval: string, told: ToldState, expiresAt: number): Promise<void> {
    await this.#state.set(`${TOLD}${receiver}/${approval}`, told, { expiresAt: expiresAt + KEPT_MS })
  }

  /** Remembers that the end of an approval is to be sent. */
  async open({ id, expiresAt }: ApprovalTimes): Promise<void> {
    await this.#state.add(OPEN + id, expiresAt, { expiresAt: expiresAt + KEPT_MS })
  }

  /** Returns the approvals whose end is to be sent, with the times when they expire. */
  async opened(): Promise<ReadonlyMap<string, number>> {
    return new Map((await this.#state.list(OPEN)).map(({ key, value }) => [key.slice(OPEN.length), Number(value)]))
  }

  async isOpen(id: string): Promise<boolean> {
    return (await this.#state.get(OPEN + id)) !== undefined
  }

  async close(id: string): Promise<void> {
    await this.#state.take(OPEN + id)
  }

  async stateOf(receiver: string): Promise<ReceiverState> {
    return ((await this.#state.get(STATES + receiver)) as ReceiverState | undefined) ?? FRESH
  }

  async states(): Promise<ReadonlyMap<string, ReceiverState>> {
    const entries = await this.#state.list(STATES)
    return new Map(entries.map(({ key, value }) => [key.slice(STATES.length), value as ReceiverState]))
  }

  async setState(receiver: string, state: ReceiverState): Promise<void> {
    await this.#state.set(STATES + receiver, state, { expiresAt: this.#clock.wallMs() + STATE_MS })
  }
}
