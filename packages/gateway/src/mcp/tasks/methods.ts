import { isObject, type JsonObject } from '@toolgate/values/json'
import type { McpResult } from '@toolgate/mcp'
import type { Method } from '../../calls/method.ts'
import type { McpReply, McpRequest } from '../../calls/request.ts'
import { RpcFault } from '../../model/protocol.ts'
import { type ClientResponses, readResponses, ResponsesInvalid } from '../../servers/asks/answers.ts'
import type { Task, TaskOwner } from './task.ts'
import type { Tasks } from './tasks.ts'

/** The interval at which a client should poll. */
const POLL_MS = 1_000
const RELATED_TASK = 'io.modelcontextprotocol/related-task'

interface TaskMethodDeps {
  readonly tasks: Pick<Tasks, 'store' | 'answer' | 'cancel'>
}

/**
 * Returns the methods of tasks. Each client can use them only for its own tasks. Clients poll them often, and the lists
 * were already loaded for their calls.
 */
export function taskMethods(deps: TaskMethodDeps): readonly Method[] {
  const rows: readonly Method[] = [
    { name: 'tasks/get', serve: async (request) => ({ result: toShown(request, await find(deps, request)) }) },
    { name: 'tasks/cancel', serve: (request) => cancel(deps, request) },
    { name: 'tasks/update', era: 'modern', serve: (request) => update(deps, request) },
    { name: 'tasks/result', era: 'legacy', serve: (request) => resultOf(deps, request) },
    { name: 'tasks/list', era: 'legacy', serve: (request) => list(deps, request) },
  ]
  return rows.map((row) => ({ ...row, needsLists: false }))
}

export function ownerOf({ caller: { tenant, user }, client }: McpRequest): TaskOwner {
  return { tenant, user, client }
}

/** Returns the answer to a call that runs as a task. */
export function toCreated(request: McpRequest, task: Task): JsonObject {
  const shown = toState(request, task)
  return request.link.era === 'modern' ? { resultType: 'task', ...shown } : { task: shown }
}

/** @throws {RpcFault} the same error for a task of another owner, and for an unknown or expired task */
async function find({ tasks }: TaskMethodDeps, request: McpRequest): Promise<Task> {
  const task = await tasks.store.get(ownerOf(request), request.params['taskId'])
  if (!task) throw new RpcFault('params_invalid', 'params.taskId is not a task of this client.')
  return task
}

async function cancel(deps: TaskMethodDeps, request: McpRequest): Promise<McpReply> {
  const task = await find(deps, request)
  const isCancelled = await deps.tasks.cancel(task)
  if (request.link.era === 'modern') return { result: {} }
  if (!isCancelled) throw new RpcFault('params_invalid', `The task has ended: it is ${task.status}.`)
  return { result: toShown(request, await find(deps, request)) }
}

async function update(deps: TaskMethodDeps, request: McpRequest): Promise<McpReply> {
  const task = await find(deps, request)
  await deps.tasks.answer(task, responsesIn(request))
  return { result: {} }
}

/** @throws {RpcFault} */
function responsesIn({ params: { inputResponses } }: McpRequest): ClientResponses {
  try {
    // They are required here, so an absent field is as invalid as a list.
    return readResponses(inputResponses ?? [])
  } catch (error) {
    throw error instanceof ResponsesInvalid ? new RpcFault('params_invalid', error.message) : error
  }
}

/** Waits until the task ends, and returns its result. */
async function resultOf(deps: TaskMethodDeps, request: McpRequest): Promise<McpReply> {
  const { owner, id } = await find(deps, request)
  const task = await deps.tasks.store.settled(owner, id, request.signal)
  const ending = task?.ending
  if (ending?.status === 'failed') return { error: ending.error }
  if (ending?.status !== 'completed') throw new RpcFault('params_invalid', 'The task has no result.')
  const { _meta: meta, ...result } = ending.result
  return { result: { ...result, _meta: { ...(isObject(meta) && meta), [RELATED_TASK]: { taskId: id } } } }
}

async function list({ tasks }: TaskMethodDeps, request: McpRequest): Promise<McpReply> {
  if (request.params['cursor'] !== undefined)
    throw new RpcFault('params_invalid', 'params.cursor is not a cursor of this server: its list has one page.')
  const all = await tasks.store.list(ownerOf(request))
  return { result: { tasks: all.map((task) => toState(request, task)) } }
}

function toShown(request: McpRequest, task: Task): JsonObject {
  const { ending, progress } = task
  const shown = toState(request, task)
  if (request.link.era === 'legacy') return shown
  if (!ending) return task.status === 'input_required' ? { ...shown, inputRequests: progress.requests ?? {} } : shown
  if (ending.status === 'completed') return { ...shown, result: { resultType: 'complete', ...ending.result } }
  return ending.status === 'failed' ? { ...shown, error: ending.error } : shown
}

function toState(
  { link }: McpRequest,
  { id, status, progress, createdAt, updatedAt, ttlMs, ending }: Task,
): JsonObject {
  const { statusMessage } = progress
  const common = {
    taskId: id,
    status,
    ...(statusMessage === undefined || ending ? {} : { statusMessage }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
  }
  if (link.era === 'modern') return { ...common, ttlMs, pollIntervalMs: POLL_MS }
  // In earlier revisions, a task whose tool reports an error has the status `failed`.
  const isToolError = ending?.status === 'completed' && (ending.result as McpResult | undefined)?.isError === true
  return { ...common, ...(isToolError && { status: 'failed' }), ttl: ttlMs, pollInterval: POLL_MS }
}
