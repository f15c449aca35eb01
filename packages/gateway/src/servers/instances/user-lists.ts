import { createEmitter } from '@toolgate/values'
import type { Owner } from '../../model/owner.ts'
import { NO_ITEMS, type Upstream, type UpstreamItems, type UpstreamState } from '../../model/upstream.ts'

const NOT_STARTED: UpstreamState = { status: 'starting', since: 0, restarts: 0, rejected: [] }

/**
 * The list from one user's own instance. It stays when the instance ends, so that a client's list does not change, and
 * is read again at the next start.
 */
export class UserList implements Pick<Upstream, 'state' | 'items'> {
  readonly owner: Owner
  #items: UpstreamItems = NO_ITEMS
  #state: UpstreamState = NOT_STARTED
  #unfollow: (() => void) | undefined

  constructor(owner: Owner) {
    this.owner = owner
  }

  /** Whether an instance of the user has been ready. */
  get isKnown(): boolean {
    return this.#state !== NOT_STARTED
  }

  /** The items from the last time that an instance was ready. */
  get items(): UpstreamItems {
    return this.#items
  }

  get state(): UpstreamState {
    return this.#state
  }

  /** Follows the lists of an instance from now on, and calls `changed` when they differ. */
  follow(upstream: Upstream, changed: () => void): void {
    this.#unfollow?.()
    this.#unfollow = upstream.subscribe(() => {
      const { state, items } = upstream
      if (state.status !== 'ready') return
      const isOther = !this.isKnown || items !== this.#items || state.tasks !== this.#state.tasks
      this.#items = items
      this.#state = state
      if (isOther) changed()
    })
  }
}

/** The lists of one server's users, if each user has their own. */
export class UserLists {
  readonly #max: number
  /** The list whose instance started longest ago comes first. */
  readonly #lists = new Map<string, UserList>()
  readonly #changes: ReturnType<typeof createEmitter<[UserList]>>

  /** Keeps the lists of at most `max` users. */
  constructor(max: number, onFault: (error: unknown) => void) {
    this.#max = max
    this.#changes = createEmitter<[UserList]>(onFault)
  }

  /** Returns the list of a user, if it is known. */
  of({ key }: Owner): UserList | undefined {
    const list = this.#lists.get(key)
    return list?.isKnown ? list : undefined
  }

  /** The lists that are known. */
  get all(): readonly UserList[] {
    return [...this.#lists.values()].filter(({ isKnown }) => isKnown)
  }

  /** Calls the listener when a list was added, changed or removed. */
  subscribe(listener: (list: UserList) => void): () => void {
    return this.#changes.subscribe(listener)
  }

  /** Follows the list of a user in their new instance. */
  follow(owner: Owner, upstream: Upstream): void {
    const list = this.#lists.get(owner.key) ?? new UserList(owner)
    this.#lists.delete(owner.key)
    this.#lists.set(owner.key, list)
    list.follow(upstream, () => {
      // A list that was dropped meanwhile belongs to nobody.
      if (this.#lists.get(owner.key) === list) this.#changes.emit(list)
    })
    for (const [key, oldest] of this.#lists) {
      if (this.#lists.size <= this.#max) return
      this.#lists.delete(key)
      this.#changes.emit(oldest)
    }
  }
}
