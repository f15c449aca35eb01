import { type TaskRoom, TooManyTasks } from './task.ts'

export interface TaskBounds {
  /** Of one user, over all keys. Default 100. */
  readonly maxOfUser?: number | undefined
  /** Of all users. Default 1,000. */
  readonly max?: number | undefined
}

/** How many tasks there are, ended ones among them. */
export interface TaskCounts {
  readonly all: number
  readonly own: number
}

/** A user may have this part of what is left, so that those who come later find room. */
const SHARE = 4

/** Room for tasks: each user's own bound, and a fair share of what all users have together. */
export class TaskRooms {
  readonly #maxOfUser: number
  readonly #max: number
  readonly #reserved = new Map<string, number>()
  #allReserved = 0

  constructor({ maxOfUser = 100, max = 1000 }: TaskBounds) {
    this.#maxOfUser = maxOfUser
    this.#max = max
  }

  /**
   * Reserves room for one more task. `count` counts the kept ones, and `makeRoom` removes an ended one of the user.
   *
   * @throws {TooManyTasks}
   */
  async reserve(user: string, count: () => Promise<TaskCounts>, makeRoom: () => Promise<boolean>): Promise<TaskRoom> {
    // Those who come at the same moment see each other.
    const before = { all: this.#allReserved, own: this.#reserved.get(user) ?? 0 }
    this.#change(user, 1)
    try {
      const kept = await count()
      const own = kept.own + before.own
      const free = Math.max(0, this.#max - kept.all - before.all)
      const most = Math.min(this.#maxOfUser, Math.ceil((own + free) / SHARE))
      if ((own >= most || free === 0) && !(await makeRoom())) throw this.#tooMany(most)
    } catch (error) {
      this.#change(user, -1)
      throw error
    }
    let isHeld = true
    return {
      release: () => {
        if (isHeld) this.#change(user, -1)
        isHeld = false
      },
    }
  }

  #tooMany(most: number): TooManyTasks {
    const share =
      most < this.#maxOfUser
        ? `, and the gateway, which keeps ${this.#max} for all users, has room for ${most} now`
        : ''
    return new TooManyTasks(`too many tasks: a user may have ${this.#maxOfUser} at once${share}`)
  }

  #change(user: string, by: number): void {
    const own = (this.#reserved.get(user) ?? 0) + by
    if (own > 0) this.#reserved.set(user, own)
    else this.#reserved.delete(user)
    this.#allReserved += by
  }
}
