import type { Progress } from '@toolgate/core'
import { type Cancelling, createCanceller, toCancelling } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { type McpResult, withoutNulls } from '@toolgate/mcp'
import { clip } from '../transport/json-rpc.ts'
import { type CallMethod, type Upstream, type UpstreamCall, UpstreamError } from '../../model/upstream.ts'

/** The extension for tasks of MCP 2026-07-28. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/**
 * A task that a server has returned for a call. The call continues with `state`, in place of the server's own state.
 */
export interface StartedTask {
  readonly resultType: 'task'
  readonly state: string
  readonly statusMessage: string | undefined
  readonly ttlMs: number | undefined
}

export function isStartedTask(payload: unknown): payload is StartedTask {
  return isObject(payload) && payload['resultType'] === 'task' && typeof payload['state'] === 'string'
}

/** How a call uses tasks. */
export interface TaskWish {
  /** Whether the server lists the tool as one that must, or may, run as a task. */
  readonly support: 'required' | 'optional' | undefined
  /** Whether the client accepts a task instead of the result. */
  readonly isTaskClient: boolean
  /** Aborts when the gateway stops. The task then continues without this call. */
  readonly leave?: Cancelling | undefined
}

/** Prefix of the state of a call that continues a task of its server. */
const STATE = 'toolgate.task:'

/** Whether a state continues a task of its server. */
export function isTaskState(state: unknown): state is string {
  return typeof state === 'string' && state.startsWith(STATE)
}

const MAX_ID_CHARS = 1024
const MIN_POLL_MS = 250
const MAX_POLL_MS = 5_000
const DEFAULT_POLL_MS = 1_000
/** If a server is down for longer than this, its task counts as lost. */
const MAX_DOWN_MS = 30_000
const CANCEL_MS = 2_000
const TRANSIENT: ReadonlySet<string> = new Set(['upstream_down', 'upstream_timeout'])

/**
 * Sends the calls of one tool to its server, as tasks if the server supports them.
 *
 * A client that accepts tasks receives a {@link StartedTask}. For every other client, the task is followed here until
 * it ends.
 */
export class TaskCaller implements Pick<Upstream, 'call'> {
  readonly #upstream: Pick<Upstream, 'call' | 'state' | 'name'>
  readonly #wish: TaskWish
  /** The tasks of this server that calls follow. */
  readonly #followed: Set<string>
  /** The task that waits for input. */
  #waiting: { readonly asked: UpstreamCall; readonly taskId: string } | undefined

  constructor(upstream: Pick<Upstream, 'call' | 'state' | 'name'>, wish: TaskWish, followed: Set<string>) {
    this.#upstream = upstream
    this.#wish = wish
    this.#followed = followed
  }

  /** @throws {UpstreamError} */
  async call(asked: UpstreamCall): Promise<McpResult> {
    const { inputResponses = {}, requestState } = asked.answers ?? {}
    if (isTaskState(requestState)) return this.#goOn(asked, requestState.slice(STATE.length), inputResponses)
    const result = await this.#upstream.call(this.#asTask(asked))
    const created = this.#createdIn(result)
    if (!created) return checkState(result)
    if (this.#followed.has(created.taskId)) throw this.#wrong('answered with the task of another call')
    if (this.#wish.isTaskClient) return { ...toStarted(created) }
    return this.#goOn(asked, created.taskId, {}, pollMsOf(created))
  }

  /** Cancels a task whose question cannot be passed on. */
  abandon(): void {
    if (this.#waiting) this.#cancel(this.#waiting.asked, this.#waiting.taskId)
  }

  #asTask(asked: UpstreamCall): UpstreamCall {
    const { tasks, era } = this.#upstream.state
    const { support, isTaskClient } = this.#wish
    if (tasks !== true) return asked
    if (era === 'modern') return withExtension(asked)
    const isTask = support === 'required' || (support === 'optional' && isTaskClient)
    return isTask ? { ...asked, params: { ...asked.params, task: {} } } : asked
  }

  /** Returns the task in a result: `task` in earlier revisions, the result itself in 2026-07-28. */
  #createdIn(result: McpResult): ServerTask | undefined {
    const isModern = this.#upstream.state.era === 'modern'
    const task = isModern ? (result['resultType'] === 'task' ? result : undefined) : result['task']
    if (task === undefined || (!isModern && result.content !== undefined)) return undefined
    return this.#readTask(task)
  }

  #readTask(task: unknown): ServerTask {
    if (!isObject(task)) throw this.#wrong('answered with an invalid task')
    const { taskId, status } = task
    if (typeof taskId !== 'string' || taskId === '' || taskId.length > MAX_ID_CHARS || !isStatus(status))
      throw this.#wrong('answered with an invalid task')
    return { ...task, taskId, status }
  }

  /** Follows a task to its end. Cancels it if the call is aborted. */
  async #goOn(asked: UpstreamCall, taskId: string, responses: JsonObject, pollMs = 0): Promise<McpResult> {
    if (this.#followed.has(taskId)) throw this.#wrong('answered with the task of another call')
    this.#followed.add(taskId)
    try {
      if (Object.keys(responses).length > 0)
        await this.#ask(asked, 'tasks/update', { taskId, inputResponses: responses })
      const result = await this.#follow(asked, taskId, pollMs)
      if (result['resultType'] === 'input_required') this.#waiting = { asked, taskId }
      return result
    } catch (error) {
      if (toCancelling(asked.signal).aborted) this.#cancel(asked, taskId)
      throw error
    } finally {
      this.#followed.delete(taskId)
    }
  }

  async #follow(asked: UpstreamCall, taskId: string, firstMs: number): Promise<McpResult> {
    const { leave } = this.#wish
    const signal = toCancelling(asked.signal)
    let downMs = 0
    let progress = 0
    let said: string | undefined
    for (let waitMs = firstMs; ;) {
      await pause(waitMs, [signal, leave])
      if (signal.aborted) throw new UpstreamError('aborted', 'was aborted by its caller', { cause: signal.reason })
      if (leave?.aborted) return { ...toStarted({ taskId, status: 'working' }) }
      const task = await unlessLeft(this.#poll(asked, taskId), leave)
      if (leave?.aborted) continue
      if (!task) {
        downMs += waitMs
        if (downMs >= MAX_DOWN_MS) throw new UpstreamError('upstream_down', 'is not running: its task is lost')
        waitMs = DEFAULT_POLL_MS
        continue
      }
      downMs = 0
      if (task.taskId !== taskId) throw this.#wrong('answered with another task than it was asked for')
      const ended = await unlessLeft(this.#endOf(asked, task), leave)
      if (ended) return ended
      const { statusMessage: message } = task
      if (typeof message === 'string' && message !== said) report(asked.onProgress, ++progress, (said = message))
      waitMs = pollMsOf(task)
    }
  }

  /** Returns `undefined` if the server cannot be reached now. */
  async #poll(asked: UpstreamCall, taskId: string): Promise<ServerTask | undefined> {
    try {
      return this.#readTask(await this.#ask(asked, 'tasks/get', { taskId }))
    } catch (error) {
      if (error instanceof UpstreamError && TRANSIENT.has(error.code) && !toCancelling(asked.signal).aborted)
        return undefined
      throw error
    }
  }

  /** Returns the answer to the call if the task has ended or needs input. */
  async #endOf(asked: UpstreamCall, task: ServerTask): Promise<McpResult | undefined> {
    const { taskId, status } = task
    if (status === 'working') return undefined
    if (status === 'cancelled') throw this.#wrong('cancelled the task')
    // In earlier revisions the server sends its requests while `tasks/result` waits, which also returns the result of a
    // failed task.
    if (this.#upstream.state.era !== 'modern') return this.#ask(asked, 'tasks/result', { taskId })
    const { result, error, inputRequests } = task
    if (status === 'input_required')
      return {
        resultType: 'input_required',
        inputRequests: isObject(inputRequests) ? inputRequests : {},
        requestState: STATE + taskId,
      }
    if (status === 'completed' && isObject(result)) return checkResult(result)
    if (status === 'failed' && isObject(error) && typeof error['code'] === 'number') {
      const { code, message, data } = error
      const rpc = { code, message: clip(String(message), 1000), ...(data === undefined ? {} : { data }) }
      throw new UpstreamError('upstream_rpc', rpc.message, { rpc })
    }
    throw this.#wrong('ended the task without a result')
  }

  #ask(asked: UpstreamCall, method: CallMethod, params: JsonObject): Promise<McpResult> {
    const { answers: _, onProgress: __, ...rest } = asked
    const own = { ...rest, method, params }
    return this.#upstream.call(this.#upstream.state.era === 'modern' ? withExtension(own) : own)
  }

  /** Cancels a task without waiting, as the call has ended. */
  #cancel(asked: UpstreamCall, taskId: string): void {
    const timeout = createCanceller()
    const timer = setTimeout(() => timeout.abort(new Error('nobody waits')), CANCEL_MS)
    this.#ask({ ...asked, signal: timeout }, 'tasks/cancel', { taskId })
      .catch(() => undefined)
      .finally(() => clearTimeout(timer))
  }

  #wrong(problem: string): UpstreamError {
    return new UpstreamError('upstream_protocol', `server "${this.#upstream.name}" ${problem}`)
  }
}

/** Cancels a server's task that no call continues. Never rejects. */
export async function cancelTask(
  upstream: Pick<Upstream, 'call' | 'state'>,
  state: string,
  caller: UpstreamCall['caller'],
): Promise<void> {
  const params = { taskId: state.slice(STATE.length) }
  const call: UpstreamCall = { method: 'tasks/cancel', params, caller, signal: AbortSignal.timeout(CANCEL_MS) }
  await upstream.call(upstream.state.era === 'modern' ? withExtension(call) : call).catch(() => undefined)
}

interface ServerTask extends JsonObject {
  readonly taskId: string
  readonly status: string
}

const STATUSES: ReadonlySet<unknown> = new Set(['working', 'input_required', 'completed', 'failed', 'cancelled'])

function isStatus(status: unknown): status is string {
  return STATUSES.has(status)
}

function withExtension(asked: UpstreamCall): UpstreamCall {
  const { capabilities = {} } = asked
  const extensions = { ...(isObject(capabilities['extensions']) && capabilities['extensions']), [TASKS_EXTENSION]: {} }
  return { ...asked, capabilities: { ...capabilities, extensions } }
}

function toStarted({ taskId, statusMessage, ttl, ttlMs = ttl }: ServerTask): StartedTask {
  return {
    resultType: 'task',
    state: STATE + taskId,
    statusMessage: typeof statusMessage === 'string' ? clip(statusMessage, 1000) : undefined,
    ttlMs: typeof ttlMs === 'number' ? ttlMs : undefined,
  }
}

/** Rejects a server's own state that looks like the state of a task. */
function checkState(result: McpResult): McpResult {
  const { requestState } = result
  if (!isTaskState(requestState)) return result
  throw new UpstreamError('upstream_protocol', 'answered an input_required that is invalid')
}

function checkResult(given: JsonObject): McpResult {
  const result = withoutNulls(given)
  const { content, isError } = result
  const fits =
    (content === undefined || Array.isArray(content)) && (isError === undefined || typeof isError === 'boolean')
  if (fits) return { resultType: 'complete', ...result }
  throw new UpstreamError('upstream_protocol', 'ended a task with something that is no result of tools/call')
}

function pollMsOf({ pollInterval, pollIntervalMs = pollInterval }: ServerTask): number {
  return typeof pollIntervalMs === 'number'
    ? Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, pollIntervalMs))
    : DEFAULT_POLL_MS
}

function report(onProgress: ((progress: Progress) => void) | undefined, progress: number, message: string): void {
  onProgress?.({ progress, message: clip(message, 1000) })
}

/** Settles like the work, or resolves with `undefined` as soon as the signal aborts. */
async function unlessLeft<T>(work: Promise<T>, leave: Cancelling | undefined): Promise<T | undefined> {
  if (!leave) return work
  const left = Promise.withResolvers<undefined>()
  const unwatch = leave.onAbort(() => left.resolve(undefined))
  if (leave.aborted) left.resolve(undefined)
  try {
    return await Promise.race([work, left.promise])
  } finally {
    unwatch()
  }
}

/** Waits until the time is over or one of the signals aborts. */
async function pause(ms: number, signals: readonly (Cancelling | undefined)[]): Promise<void> {
  if (ms <= 0 || signals.some((signal) => signal?.aborted)) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const unwatch = signals.map((signal) => signal?.onAbort(resolve))
  await promise
  clearTimeout(timer)
  for (const each of unwatch) each?.()
}

/** Returns the `taskSupport` of a tool's `execution` (MCP 2025-11-25). */
export function taskSupportOf(execution: unknown): TaskWish['support'] {
  const support = isObject(execution) ? execution['taskSupport'] : undefined
  return support === 'required' || support === 'optional' ? support : undefined
}
