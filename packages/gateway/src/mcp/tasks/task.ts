import type { JsonObject } from '@toolgate/values/json'
import type { JsonRpcError } from '@toolgate/mcp'

/** The owner of a task: one client of one user. Nobody else can see the task. */
export interface TaskOwner {
  readonly tenant: string | undefined
  readonly user: string | undefined
  /** The id of the client's credential. */
  readonly client: string
}

/** The statuses of MCP. The last three are final. */
type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** How a task ended. A result with `isError` counts as a result. */
export type TaskEnding =
  | { readonly status: 'completed'; readonly result: JsonObject }
  | { readonly status: 'failed'; readonly error: JsonRpcError }
  | { readonly status: 'cancelled' }

export type DatedEnding = TaskEnding & { readonly at: number }

/** The visible state of a running task. */
export interface TaskProgress {
  readonly status: 'working' | 'input_required'
  readonly statusMessage?: string | undefined
  /** The `inputRequests` of `input_required`, by key. */
  readonly requests?: JsonObject | undefined
}

export interface Task {
  readonly id: string
  readonly owner: TaskOwner
  readonly status: TaskStatus
  /** When the task was created, in wall-clock milliseconds. */
  readonly createdAt: number
  readonly updatedAt: number
  /** How long after its creation the task expires. */
  readonly ttlMs: number
  readonly progress: TaskProgress
  readonly ending: DatedEnding | undefined
}

export type TaskKey = Pick<Task, 'id' | 'owner'>

/** The fields of a task's call that its final record needs. */
export interface TaskCall {
  readonly kind: 'upstream' | 'approval'
  readonly tool: string
  readonly app?: string | undefined
  readonly session?: string | undefined
  /** The id of the first attempt. */
  readonly callId: string
  readonly approvalId?: string | undefined
}

/** A task whose call has no final record yet. */
export interface OpenTask extends TaskKey {
  readonly call: TaskCall
}

export interface NewTask extends Partial<TaskProgress> {
  readonly call: TaskCall
  /** The data with which its maker continues the task, also after a restart. Plain JSON, stored sealed, never sent. */
  readonly work: object
  /** Default one hour, at most one day. */
  readonly ttlMs?: number | undefined
  /** Room that was reserved before the call began. */
  readonly room?: TaskRoom | undefined
}

/** Reserved room for one task. */
export interface TaskRoom {
  release(): void
}

/** A user or the gateway has reached the maximum number of tasks, or the input is too large for a task. */
export class TooManyTasks extends Error {
  override readonly name = 'TooManyTasks'
}
