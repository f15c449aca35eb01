import { hash, randomBytes } from 'node:crypto'
import { type Cancelling, createEmitter, isObject, type JsonObject } from '@toolgate/core/internal'
import type { Clock, StateStore } from '@toolgate/core/stores'
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

/** What a task shows while it is not ended. */
export interface TaskProgress {
  readonly status: 'working' | 'input_required'
  readonly statusMessage?: string | undefined
  /** The `inputRequests` of `input_required`, by key. */
  readonly requests?: JsonObject | undefined
  /** What its maker needs to go on with it, also after a restart. Never sent. */
  readonly work?: JsonObject | undefined
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
  readonly ending: TaskEnding | undefined
}

export interface NewTask extends Partial<TaskProgress> {
  /** Default one hour, at most a day. */
  readonly ttlMs?: number | undefined
}

export interface TaskStoreOptions {
  readonly state: StateStore
  readonly clock: Pick<Clock, 'wallMs'>
  /** Of one owner. An ended task makes room for a new one. Default 100. */
  readonly maxOfOwner?: number
  /** Of all owners. Default 1,000. */
  readonly max?: number
}

/** There are as many tasks as there may be. */
export class TooManyTasks extends Error {
  override readonly name = 'TooManyTasks'
}

const DEFAULT_TTL_MS = 60 * 60_000
const MIN_TTL_MS = 10_000
const MAX_TTL_MS = 24 * 60 * 60_000
const ID = /^[\w-]{22}$/
const TASKS = 'gateway/tasks/'
const ENDS = 'gateway/task-ends/'
const RESULTS = 'gateway/task-results/'
/** Characters of JSON. */
const MAX_RESULT_CHARS = 2 * 1024 * 1024
const MAX_MESSAGE_CHARS = 1_000
/** Another process may end a task, which this one does not notice by itself. */
const POLL_MS = 1_000

/** What the store has of a task. Its ending is an entry of its own, which the first one to end it adds. */
interface Kept {
  readonly owner: TaskOwner
  readonly createdAt: number
  readonly updatedAt: number
  readonly ttlMs: number
  readonly progress: TaskProgress
}

/**
 * The tasks that clients have handles of. They outlive a restart as long as the state store does.
 *
 * A task is looked up by its owner and its handle together, so a handle is of no use to anybody else. A task ends once.
 */
export class TaskStore {
  readonly #state: StateStore
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #maxOfOwner: number
  readonly #max: number
  readonly #changes = createEmitter()

  constructor({ state, clock, maxOfOwner = 100, max = 1000 }: TaskStoreOptions) {
    this.#state = state
    this.#clock = clock
    this.#maxOfOwner = maxOfOwner
    this.#max = max
  }

  /** @throws {TooManyTasks} */
  async create(
    owner: TaskOwner,
    { ttlMs = DEFAULT_TTL_MS, status = 'working', ...progress }: NewTask = {},
  ): Promise<Task> {
    await this.#makeRoom(owner)
    const id = randomBytes(16).toString('base64url')
    const now = this.#clock.wallMs()
    const kept: Kept = {
      owner,
      createdAt: now,
      updatedAt: now,
      ttlMs: Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, Math.round(ttlMs))),
      progress: cutMessage({ ...progress, status }),
    }
    await this.#state.set(TASKS + keyOf(owner, id), toStored(kept), { expiresAt: expiryOf(kept) })
    return toTask(id, kept, undefined)
  }

  /** Returns a task of the owner; `undefined` for one of another owner, and for one that is unknown or forgotten. */
  async get(owner: TaskOwner, id: unknown): Promise<Task | undefined> {
    if (typeof id !== 'string' || !ID.test(id)) return undefined
    const key = keyOf(owner, id)
    const [kept, end] = await Promise.all([this.#state.get(TASKS + key), this.#state.get(ENDS + key)])
    return isObject(kept) ? toTask(id, kept as unknown as Kept, await this.#endingOf(end)) : undefined
  }

  /** Returns the owner's tasks, oldest first. The results of ended ones are left out. */
  async list(owner: TaskOwner): Promise<readonly Task[]> {
    return (await this.#listed(prefixOf(owner))).toSorted((a, b) => a.createdAt - b.createdAt)
  }

  /** Returns the tasks of all owners that are not ended. */
  async unfinished(): Promise<readonly Task[]> {
    return (await this.#listed('')).filter(({ ending }) => ending === undefined)
  }

  /** Changes what a task shows. Returns `false` for one that is ended or forgotten. */
  async update({ owner, id }: Pick<Task, 'owner' | 'id'>, progress: TaskProgress): Promise<boolean> {
    const task = await this.get(owner, id)
    if (!task || task.ending) return false
    const { createdAt, ttlMs } = task
    const work = progress.work ?? task.progress.work
    const kept: Kept = {
      owner,
      createdAt,
      updatedAt: this.#clock.wallMs(),
      ttlMs,
      progress: cutMessage({ ...progress, ...(work && { work }) }),
    }
    await this.#state.set(TASKS + keyOf(owner, id), toStored(kept), { expiresAt: expiryOf(kept) })
    this.#changes.emit()
    return true
  }

  /** Ends a task. Returns `false` for one that is ended or forgotten: the first ending holds. */
  async end({ owner, id }: Pick<Task, 'owner' | 'id'>, ending: TaskEnding): Promise<boolean> {
    const task = await this.get(owner, id)
    if (!task || task.ending) return false
    const expiresAt = expiryOf(task)
    const at = this.#clock.wallMs()
    const { body, ...end } = toEnd(ending)
    const ref = body === undefined ? undefined : randomBytes(16).toString('base64url')
    if (ref !== undefined) await this.#state.set(RESULTS + ref, body, { expiresAt })
    const isFirst = await this.#state.add(ENDS + keyOf(owner, id), { ...end, at, ...(ref && { ref }) }, { expiresAt })
    this.#changes.emit()
    return isFirst
  }

  /** Resolves with the task when it has ended or needs input; with what it is when the signal aborts. */
  async settled(owner: TaskOwner, id: string, signal: Cancelling): Promise<Task | undefined> {
    let wake = () => {}
    const unsubscribe = this.#changes.subscribe(() => wake())
    const unwatch = signal.onAbort(() => wake())
    try {
      for (;;) {
        const changed = new Promise<void>((resolve) => (wake = resolve))
        const task = await this.get(owner, id)
        if (!task || task.status !== 'working' || signal.aborted) return task
        const timer = setTimeout(wake, POLL_MS)
        await changed
        clearTimeout(timer)
      }
    } finally {
      unsubscribe()
      unwatch()
    }
  }

  async #makeRoom(owner: TaskOwner): Promise<void> {
    const own = await this.list(owner)
    if (own.length >= this.#maxOfOwner) {
      const oldest = own.find(({ ending }) => ending)
      if (!oldest) throw new TooManyTasks(`too many of its tasks are running: at most ${this.#maxOfOwner}`)
      await this.#forget(oldest)
    }
    if ((await this.#state.list(TASKS)).length >= this.#max) throw new TooManyTasks('the gateway has too many tasks')
  }

  async #forget({ owner, id }: Task): Promise<void> {
    const key = keyOf(owner, id)
    await this.#state.take(TASKS + key)
    const end = await this.#state.take(ENDS + key)
    if (isObject(end) && typeof end['ref'] === 'string') await this.#state.take(RESULTS + end['ref'])
  }

  async #listed(prefix: string): Promise<readonly Task[]> {
    const [kept, ends] = await Promise.all([this.#state.list(TASKS + prefix), this.#state.list(ENDS + prefix)])
    const endings = new Map(ends.map(({ key, value }) => [key.slice(ENDS.length), value as End]))
    return kept.flatMap(({ key, value }) => {
      const path = key.slice(TASKS.length)
      const id = path.slice(path.indexOf('/') + 1)
      const end = endings.get(path)
      const ending = end && ({ status: end.status, at: end.at } as DatedEnding)
      return isObject(value) ? [toTask(id, value as unknown as Kept, ending)] : []
    })
  }

  async #endingOf(end: unknown): Promise<DatedEnding | undefined> {
    if (!isObject(end)) return undefined
    const { status, at, ref, error } = end as unknown as End
    if (status === 'cancelled') return { status, at }
    if (status === 'failed') return { status, at, error: error ?? LOST }
    const result = ref === undefined ? undefined : await this.#state.get(RESULTS + ref)
    return isObject(result) ? { status, at, result } : { status: 'failed', at, error: LOST }
  }
}

type DatedEnding = TaskEnding & { readonly at: number }

/** The entry of an ended task. Its result is an entry of its own, so that lists stay small. */
interface End {
  readonly status: TaskEnding['status']
  readonly at: number
  readonly ref?: string
  readonly error?: JsonRpcError
}

const INTERNAL_ERROR = -32_603
const LOST: JsonRpcError = { code: INTERNAL_ERROR, message: 'The result is no longer stored.' }

function toEnd(ending: TaskEnding): Pick<End, 'status' | 'error'> & { readonly body?: JsonObject } {
  if (ending.status === 'completed') {
    const text = JSON.stringify(ending.result)
    if (text.length <= MAX_RESULT_CHARS) return { status: ending.status, body: JSON.parse(text) as JsonObject }
    const message = `The result is larger than the ${MAX_RESULT_CHARS} characters that a task keeps.`
    return { status: 'failed', error: { code: INTERNAL_ERROR, message } }
  }
  if (ending.status === 'cancelled') return ending
  const { code, message, data } = ending.error
  const isSmall = JSON.stringify(data ?? null).length <= MAX_MESSAGE_CHARS
  const error = { code, message: message.slice(0, MAX_MESSAGE_CHARS), ...(data !== undefined && isSmall && { data }) }
  return { status: 'failed', error }
}

function toTask(id: string, kept: Kept, ending: DatedEnding | undefined): Task {
  const { owner, createdAt, updatedAt, ttlMs, progress } = kept
  const status = ending?.status ?? progress.status
  return { id, owner, status, createdAt, updatedAt: ending?.at ?? updatedAt, ttlMs, progress, ending }
}

function cutMessage({ statusMessage, ...progress }: TaskProgress): TaskProgress {
  if (statusMessage === undefined) return progress
  return { ...progress, statusMessage: statusMessage.slice(0, MAX_MESSAGE_CHARS).toWellFormed() }
}

/** Fields that are `undefined` are no JSON. */
function toStored(kept: Kept): unknown {
  return JSON.parse(JSON.stringify(kept))
}

function expiryOf({ createdAt, ttlMs }: Pick<Kept, 'createdAt' | 'ttlMs'>): number {
  return createdAt + ttlMs
}

function prefixOf({ tenant, user, client }: TaskOwner): string {
  return `${hash('sha256', JSON.stringify([tenant ?? null, user ?? null, client]), 'base64url')}/`
}

function keyOf(owner: TaskOwner, id: string): string {
  return prefixOf(owner) + id
}
