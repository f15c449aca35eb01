import { type TaskRoom, TooManyTasks } from './task.ts'

export interface TaskBounds {
  /** The maximum for one user, over all keys. Default 100. */
  readonly maxOfUser?: number | undefined
  /** The maximum for all users. Default 1,000. */
  readonly max?: number | undefined
}

/** The number of tasks, including ended ones. */
interface TaskCounts {
  readonly all: number
  readonly own: number
}

/** A user may take at most 1/SHARE of the free room, so that later users find room. */
const SHARE = 4

/** Room for tasks. Each user has a limit, and a fair share of the room for all users. */
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
   * Reserves room for one more task. `count` counts the stored tasks, and `makeRoom` removes an ended one of the user.
   *
   * @throws {TooManyTasks}
   */
  async reserve(user: string, count: () => Promise<TaskCounts>, makeRoom: () => Promise<boolean>): Promise<TaskRoom> {
    // Concurrent reservations count each other.
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
