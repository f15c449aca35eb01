import type { Hooks } from '@toolgate/core'
import { type TaskRoom, TooManyTasks } from './task.ts'

/** Refuses a call that may become a task before it is sent, if there is no room for the task. */
export class RoomHook implements Hooks {
  readonly name = 'tasks'
  readonly #reserve: () => Promise<TaskRoom>
  #room: TaskRoom | undefined

  constructor(reserve: () => Promise<TaskRoom>) {
    this.#reserve = reserve
  }

  get room(): TaskRoom | undefined {
    return this.#room
  }

  readonly beforeToolCall: NonNullable<Hooks['beforeToolCall']> = async () => {
    try {
      this.#room ??= await this.#reserve()
      return undefined
    } catch (error) {
      if (error instanceof TooManyTasks) return { allow: false, reason: error.message }
      throw error
    }
  }
}
