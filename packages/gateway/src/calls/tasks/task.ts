import type { JsonObject } from '@toolgate/values/json'
import type { JsonRpcError } from '@toolgate/mcp'

/** Whose a task is: one client of one user. For everyone else it does not exist. */
export interface TaskOwner {
  readonly tenant: string | undefined
  readonly user: string | undefined
  /** The id of the client's credential. */
  readonly client: string
}

/** The statuses of MCP. The last three are final. */
export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** How a task ended. A result with `isError` is a result. */
export type TaskEnding =
  | { readonly status: 'completed'; readonly result: JsonObject }
  | { readonly status: 'failed'; readonly error: JsonRpcError }
  | { readonly status: 'cancelled' }

export type DatedEnding = TaskEnding & { readonly at: number }

/** What a task shows while it is not ended. */
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
  /** Wall-clock milliseconds. */
  readonly createdAt: number
  readonly updatedAt: number
  /** It is forgotten so long after its creation. */
  readonly ttlMs: number
  readonly progress: TaskProgress
  readonly ending: DatedEnding | undefined
}

export type TaskKey = Pick<Task, 'id' | 'owner'>

/** The call of a task, as far as the record of its end needs it. */
export interface TaskCall {
  readonly kind: 'upstream' | 'approval'
  readonly tool: string
  readonly app?: string | undefined
  readonly session?: string | undefined
  /** The id of its first attempt. */
  readonly callId: string
  readonly approvalId?: string | undefined
}

/** A task whose call has no terminal record yet. */
export interface OpenTask extends TaskKey {
  readonly call: TaskCall
}

export interface NewTask extends Partial<TaskProgress> {
  readonly call: TaskCall
  /** What its maker needs to go on with it, also after a restart. Plain JSON, kept sealed, never sent. */
  readonly work: object
  /** Default one hour, at most a day. */
  readonly ttlMs?: number | undefined
  /** Room that was reserved before the call began. */
  readonly room?: TaskRoom | undefined
}

/** Room for one more task. */
export interface TaskRoom {
  release(): void
}

/** A user or the gateway has as many tasks as may be, or the input is too large for one. */
export class TooManyTasks extends Error {
  override readonly name = 'TooManyTasks'
}
