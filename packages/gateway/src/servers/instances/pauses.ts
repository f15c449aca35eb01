import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import type { McpResult } from '@toolgate/mcp'
import { ROUND_MS } from '../transport/limits.ts'
import { type UpstreamCall, UpstreamError } from '../../model/upstream.ts'

/** How long to hold an instance for a task whose server states no time. */
const TASK_MS = 60 * 60_000
const MAX_TASK_MS = 24 * 60 * 60_000
/** The maximum number of pauses of one instance. Beyond it, the oldest pause is released. */
const MAX_KEPT = 64

/** A task or a pause that begins with a result, by the key of the requests that continue it. */
interface Pause {
  readonly key: string
  readonly ms: number
}

interface KeptPause {
  readonly key: string
  readonly release: () => void
  readonly timer: NodeJS.Timeout
}

/**
 * Keeps instances in use between requests: while a server waits for the next round of a call, and while it runs a task.
 *
 * Each hold ends with the retry, with the end of the task, or at its time limit.
 */
export class Pauses {
  readonly #kept = new Map<string, KeptPause[]>()

  /** Sends an owner's request. If its result is not final, it keeps the hold that `take` returns. */
  async follow(
    owner: string,
    asked: UpstreamCall,
    take: () => (() => void) | undefined,
    send: () => Promise<McpResult>,
  ): Promise<McpResult> {
    const before = keyOfRequest(asked)
    const end = () => before !== undefined && this.#end(owner, before)
    try {
      const result = await send()
      const pause = pauseIn(result, asked)
      const release = pause && take()
      if (release) this.#keep(owner, pause, release)
      if (isLast(asked, result)) end()
      return result
    } catch (error) {
      if (isGone(asked, error)) end()
      throw error
    }
  }

  /** Releases all holds. */
  close(): void {
    for (const owner of this.#kept.keys()) while (this.#kept.has(owner)) this.#drop(owner, 0)
  }

  #keep(owner: string, { key, ms }: Pause, release: () => void): void {
    const kept = this.#kept.get(owner) ?? []
    this.#kept.set(owner, kept)
    const one: KeptPause = { key, release, timer: setTimeout(() => this.#drop(owner, kept.indexOf(one)), ms).unref() }
    kept.push(one)
    if (kept.length > MAX_KEPT) this.#drop(owner, 0)
  }

  /** Ends the oldest pause of a key. */
  #end(owner: string, key: string): void {
    this.#drop(owner, this.#kept.get(owner)?.findIndex((one) => one.key === key) ?? -1)
  }

  #drop(owner: string, at: number): void {
    const kept = this.#kept.get(owner)
    const [one] = at === -1 ? [] : (kept?.splice(at, 1) ?? [])
    if (kept?.length === 0) this.#kept.delete(owner)
    clearTimeout(one?.timer)
    one?.release()
  }
}

function pauseIn(result: McpResult, asked: UpstreamCall): Pause | undefined {
  const { resultType, requestState } = result
  if (resultType === 'input_required') return { key: keyOfRound(asked, requestState), ms: ROUND_MS }
  const task = resultType === 'task' ? result : asked.params['task'] === undefined ? undefined : result['task']
  if (!isObject(task) || typeof task['taskId'] !== 'string') return undefined
  const { taskId, ttl, ttlMs = ttl } = task
  const wanted = typeof ttlMs === 'number' && ttlMs >= 0 ? ttlMs : TASK_MS
  return { key: keyOfTask(taskId), ms: Math.min(wanted, MAX_TASK_MS) }
}

/** Returns the key of the pause that a request continues. */
function keyOfRequest(asked: UpstreamCall): string | undefined {
  if (asked.method.startsWith('tasks/')) return keyOfTask(asked.params['taskId'])
  return asked.answers && keyOfRound(asked, asked.answers.requestState)
}

/** Whether the result of a request ends its pause. */
function isLast({ method }: UpstreamCall, result: McpResult): boolean {
  return method === 'tasks/get' ? isEnded(result) : method !== 'tasks/update'
}

/** Whether a task has ended. In earlier revisions its result needs another request. */
function isEnded({ status, result, error }: JsonObject): boolean {
  return status === 'cancelled' || ((status === 'completed' || status === 'failed') && (result ?? error) !== undefined)
}

/** Whether a failed request ends its pause. A task continues while its server is unreachable. */
function isGone({ method }: UpstreamCall, error: unknown): boolean {
  const isOfTask = method === 'tasks/get' || method === 'tasks/update'
  return !isOfTask || (error instanceof UpstreamError && error.code === 'upstream_rpc')
}

function keyOfTask(taskId: unknown): string {
  return `task ${String(taskId)}`
}

function keyOfRound({ method, params }: UpstreamCall, state: unknown): string {
  return `round ${toJsonText([method, params['name'] ?? params['uri'] ?? null, state ?? null])}`
}
