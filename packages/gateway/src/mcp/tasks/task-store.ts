import { hash, randomBytes } from 'node:crypto'
import { type Cancelling, createEmitter } from '@toolgate/values'
import { isObject, type JsonObject, readOwnJson, toJsonText } from '@toolgate/values/json'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { JsonRpcError } from '@toolgate/mcp'
import { SEALED_MS, SecretSealer } from '../../util/sealer.ts'
import {
  type DatedEnding,
  type NewTask,
  type OpenTask,
  type Task,
  type TaskCall,
  type TaskEnding,
  type TaskKey,
  type TaskOwner,
  type TaskProgress,
  type TaskRoom,
  TooManyTasks,
} from './task.ts'
import { type TaskBounds, TaskRooms } from './task-rooms.ts'

export interface TaskStoreOptions extends TaskBounds {
  readonly state: StateStore
  readonly clock: Pick<Clock, 'wallMs'>
  /** Reads the credential of an owner that only another process may have seen. */
  readonly readOwner?: ((owner: TaskOwner) => Promise<void> | undefined) | undefined
}

const DEFAULT_TTL_MS = 60 * 60_000
const MIN_TTL_MS = 10_000
const MAX_TTL_MS = 24 * 60 * 60_000
const ID = /^[\w-]{22}$/
/** Prefix of tasks as their clients see them, without texts. They are removed when they expire. */
const TASKS = 'gateway/tasks/'
/** Prefix of the texts that clients see. Sealed. */
const SHOWN = 'gateway/task-texts/'
/** Prefix of tasks whose calls have no final record yet. They are kept until they have one. */
const OPEN = 'gateway/task-calls/'
/** Prefix of the data to continue an open task. Sealed. */
const WORK = 'gateway/task-work/'
/** Prefix of the ends of tasks. The first process to add an entry ends the task. */
const ENDS = 'gateway/task-ends/'
/** Prefix of results. Sealed, in parts. */
const RESULTS = 'gateway/task-results/'
/** The maximum size of a result, in characters of JSON. */
const MAX_RESULT_CHARS = 2 * 1024 * 1024
const MAX_PART_CHARS = 512 * 1024
/** The maximum size of an input, and of a server's requests, in bytes of JSON. */
export const MAX_WORK_BYTES = 256 * 1024
const MAX_MESSAGE_CHARS = 1_000
/** The polling interval for tasks that another process ends. */
const POLL_MS = 1_000

/** The stored entries of a task. */
interface StoredTask {
  readonly owner: TaskOwner
  readonly createdAt: number
  readonly updatedAt: number
  readonly ttlMs: number
  readonly status: TaskProgress['status']
}

/** The form in which earlier versions stored the call of a task. */
type EarlierWork = Omit<TaskCall, 'callId'> & { readonly continues: { readonly callId: string } }

/** The entry of an ended task. Its result or error is sealed in separate entries. */
interface TaskEnd {
  readonly status: TaskEnding['status']
  readonly at: number
  readonly ref?: string
}

/**
 * The tasks whose ids clients have. They survive a restart if the state store does.
 *
 * A task is looked up by its owner and its id together, so the id alone is of no use. A task ends once. It stays open
 * until its call has a final record, even if it has expired and its client can no longer see it.
 */
export class TaskStore {
  readonly #state: StateStore
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #readOwner: TaskStoreOptions['readOwner']
  readonly #sealer: SecretSealer
  readonly #rooms: TaskRooms
  readonly #changes = createEmitter()

  constructor({ state, clock, readOwner, ...bounds }: TaskStoreOptions) {
    this.#state = state
    this.#readOwner = readOwner
    this.#clock = clock
    this.#sealer = new SecretSealer({ state, clock })
    this.#rooms = new TaskRooms(bounds)
  }

  /**
   * Reserves room for a task, before the call that may become one begins.
   *
   * @throws {TooManyTasks}
   */
  async reserve(owner: TaskOwner, input?: unknown): Promise<TaskRoom> {
    if (isTooLarge(input)) throw new TooManyTasks(`the input of a task has at most ${MAX_WORK_BYTES} bytes of JSON`)
    const user = userOf(owner)
    const count = async () => {
      const all = await this.#state.list(TASKS)
      return { all: all.length, own: all.filter(({ key }) => key.startsWith(TASKS + user)).length }
    }
    return this.#rooms.reserve(user, count, () => this.#forgetEnded(user))
  }

  /** @throws {TooManyTasks} */
  async create(owner: TaskOwner, { ttlMs = DEFAULT_TTL_MS, call, work, room, ...shown }: NewTask): Promise<Task> {
    const own = room ?? (await this.reserve(owner))
    try {
      const id = randomBytes(16).toString('base64url')
      const now = this.#clock.wallMs()
      const ttl = Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, Math.round(ttlMs)))
      const kept: StoredTask = { owner, createdAt: now, updatedAt: now, ttlMs: ttl, status: shown.status ?? 'working' }
      const progress = await this.#show({ owner, id }, kept, { ...shown, status: kept.status })
      await this.setWork({ owner, id }, work)
      // This entry is written last, so that nobody continues an incomplete task.
      await this.#state.set(OPEN + keyOf(owner, id), toJson({ owner, call }))
      return toTask(id, kept, progress, undefined)
    } finally {
      if (!room) own.release()
    }
  }

  /** Returns a task of the owner; `undefined` for a task of another owner, and for an unknown or expired one. */
  async get(owner: TaskOwner, id: unknown): Promise<Task | undefined> {
    if (typeof id !== 'string' || !ID.test(id)) return undefined
    const key = keyOf(owner, id)
    const [kept, end, open] = await Promise.all([TASKS, ENDS, OPEN].map((prefix) => this.#state.get(prefix + key)))
    if (!isKept(kept)) return undefined
    // Its process ended after the record was written and before the result was.
    const ending = end === undefined && open === undefined ? lostAt(kept) : await this.#endingOf(end)
    return toTask(id, kept, await this.#shownOf(key, kept), ending)
  }

  /** Returns the owner's tasks, oldest first. The results of ended ones are left out. */
  async list(owner: TaskOwner): Promise<readonly Task[]> {
    const prefix = prefixOf(owner)
    const [kept, ends] = await Promise.all([this.#state.list(TASKS + prefix), this.#state.list(ENDS + prefix)])
    const endings = new Map(ends.map(({ key, value }) => [key.slice(ENDS.length), value as TaskEnd]))
    const tasks = kept.map(async ({ key, value }) => {
      const path = key.slice(TASKS.length)
      const end = endings.get(path)
      const ending = end && ({ status: end.status, at: end.at } as DatedEnding)
      return isKept(value) ? [toTask(idIn(path), value, await this.#shownOf(path, value), ending)] : []
    })
    return (await Promise.all(tasks)).flat().toSorted((a, b) => a.createdAt - b.createdAt)
  }

  /** Returns the tasks of all owners whose calls have no final record yet. */
  async open(kind: TaskCall['kind']): Promise<readonly OpenTask[]> {
    const entries = await this.#state.list(OPEN)
    const found = entries.flatMap(({ key, value }) => {
      const { owner, call } = value as Omit<OpenTask, 'id'>
      return call.kind === kind ? [{ id: idIn(key.slice(OPEN.length)), owner, call }] : []
    })
    for (const { owner } of found) await this.#readOwner?.(owner)
    return found
  }

  /** Returns a task if its call has no final record yet. */
  async find({ owner, id }: TaskKey): Promise<OpenTask | undefined> {
    const entry = await this.#state.get(OPEN + keyOf(owner, id))
    return isObject(entry) ? { id, owner, call: entry['call'] as TaskCall } : undefined
  }

  /**
   * Converts tasks of earlier versions to open tasks that their clients no longer see, so that their ends are recorded.
   */
  async adopt(): Promise<void> {
    for (const { key, value } of await this.#state.list(TASKS)) {
      const { owner, progress } = value as { owner: TaskOwner; progress?: { work?: Partial<EarlierWork> } }
      if (isKept(value) || !(await this.#state.take(key))) continue
      const { kind = 'upstream', tool, app, session, approvalId, continues, ...work } = progress?.work ?? {}
      if (tool === undefined) continue
      const id = idIn(key)
      await this.setWork({ owner, id }, work)
      const call: TaskCall = { kind, tool, app, session, approvalId, callId: continues?.callId ?? id }
      await this.#state.set(OPEN + keyOf(owner, id), toJson({ owner, call }))
    }
  }

  /** Returns the data to continue an open task; `undefined` if its key is no longer stored. */
  async workOf({ owner, id }: TaskKey): Promise<unknown> {
    const key = keyOf(owner, id)
    const sealed = await this.#state.get(WORK + key)
    const text = typeof sealed === 'string' ? await this.#sealer.open(sealed, ['task-work', key]) : undefined
    return text === undefined ? undefined : readOwnJson(text, 'exact')
  }

  async setWork({ owner, id }: TaskKey, work: object): Promise<void> {
    const key = keyOf(owner, id)
    const expiresAt = this.#clock.wallMs() + SEALED_MS
    await this.#state.set(WORK + key, await this.#sealer.seal(toJsonText(work), ['task-work', key]), { expiresAt })
  }

  /** Closes a task whose call has its final record. */
  async close({ owner, id }: TaskKey): Promise<void> {
    const key = keyOf(owner, id)
    await this.#state.take(OPEN + key)
    await this.#state.take(WORK + key)
  }

  /** Changes the visible state of a task. Returns `false` for an ended or expired task. */
  async update(task: TaskKey, progress: TaskProgress): Promise<boolean> {
    const now = await this.get(task.owner, task.id)
    if (!now || now.ending) return false
    const { owner, createdAt, ttlMs } = now
    await this.#show(
      task,
      { owner, createdAt, updatedAt: this.#clock.wallMs(), ttlMs, status: progress.status },
      progress,
    )
    this.#changes.emit()
    return true
  }

  /** Ends a task. Returns `false` for an ended or expired task: only the first end counts. */
  async end({ owner, id }: TaskKey, ending: TaskEnding): Promise<boolean> {
    const key = keyOf(owner, id)
    const kept = await this.#state.get(TASKS + key)
    if (!isKept(kept) || (await this.#state.get(ENDS + key)) !== undefined) return false
    const expires = { expiresAt: expiryOf(kept) }
    const { status, body } = toEnd(ending)
    const ref = body && (await this.#keepBody(body, expires))
    const end: TaskEnd = { status, at: this.#clock.wallMs(), ...(ref && { ref }) }
    const isFirst = await this.#state.add(ENDS + key, end, expires)
    if (!isFirst && ref) await this.#dropBody(ref)
    await this.#state.take(SHOWN + key)
    this.#changes.emit()
    return isFirst
  }

  /** Calls the listener after a task has changed or ended in this process. */
  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener)
  }

  /** Resolves with the task when it has ended or needs input, or with its current state when the signal aborts. */
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

  async #show({ owner, id }: TaskKey, kept: StoredTask, progress: TaskProgress): Promise<TaskProgress> {
    const key = keyOf(owner, id)
    const expires = { expiresAt: expiryOf(kept) }
    const { status, ...texts } = cutMessage(progress)
    const sealed = await this.#sealer.seal(toJsonText(texts), ['task-texts', key])
    await this.#state.set(SHOWN + key, sealed, expires)
    await this.#state.set(TASKS + key, toJson(kept), expires)
    return { status, ...texts }
  }

  async #shownOf(key: string, { status }: StoredTask): Promise<TaskProgress> {
    const sealed = await this.#state.get(SHOWN + key)
    const text = typeof sealed === 'string' ? await this.#sealer.open(sealed, ['task-texts', key]) : undefined
    return { status, ...(text !== undefined && (readOwnJson(text, 'exact') as Omit<TaskProgress, 'status'>)) }
  }

  /** Removes the user's task that ended first. Returns `false` if none has ended. */
  async #forgetEnded(user: string): Promise<boolean> {
    const ends = await this.#state.list(ENDS + user)
    const oldest = ends.toSorted((a, b) => (a.value as TaskEnd).at - (b.value as TaskEnd).at)[0]
    if (!oldest) return false
    const key = oldest.key.slice(ENDS.length)
    const end = (await this.#state.take(ENDS + key)) as TaskEnd | undefined
    for (const prefix of [TASKS, SHOWN]) await this.#state.take(prefix + key)
    if (end?.ref) await this.#dropBody(end.ref)
    return true
  }

  async #keepBody(body: JsonObject, expires: { readonly expiresAt: number }): Promise<string> {
    const ref = randomBytes(16).toString('base64url')
    const sealed = await this.#sealer.seal(toJsonText(body), ['task-result', ref])
    for (let at = 0; at < sealed.length; at += MAX_PART_CHARS)
      await this.#state.set(
        `${RESULTS}${ref}/${String(at).padStart(8, '0')}`,
        sealed.slice(at, at + MAX_PART_CHARS),
        expires,
      )
    return ref
  }

  async #dropBody(ref: string): Promise<void> {
    for (const { key } of await this.#state.list(`${RESULTS}${ref}/`)) await this.#state.take(key)
  }

  async #endingOf(end: unknown): Promise<DatedEnding | undefined> {
    if (!isObject(end)) return undefined
    const { status, at, ref } = end as unknown as TaskEnd
    if (status === 'cancelled') return { status, at }
    const parts = ref === undefined ? [] : await this.#state.list(`${RESULTS}${ref}/`)
    const text = await this.#sealer.open(parts.map(({ value }) => String(value)).join(''), ['task-result', ref])
    if (text === undefined) return { status: 'failed', at, error: LOST }
    const body = readOwnJson(text, 'exact') as JsonObject
    return status === 'completed'
      ? { status, at, result: body }
      : { status, at, error: body as unknown as JsonRpcError }
  }
}

/** Whether an input, or the requests of a server, are too large to store with a task. */
export function isTooLarge(value: unknown): boolean {
  return Buffer.byteLength(toJsonText(value ?? null)) > MAX_WORK_BYTES
}

const INTERNAL_ERROR = -32_603
const LOST: JsonRpcError = { code: INTERNAL_ERROR, message: 'The result is no longer stored.' }

function lostAt({ updatedAt }: StoredTask): DatedEnding {
  return { status: 'failed', at: updatedAt, error: LOST }
}

function toEnd(ending: TaskEnding): { readonly status: TaskEnding['status']; readonly body?: JsonObject } {
  if (ending.status === 'completed') {
    if (toJsonText(ending.result).length <= MAX_RESULT_CHARS) return { status: ending.status, body: ending.result }
    const message = `The result is larger than the ${MAX_RESULT_CHARS} characters that a task keeps.`
    return { status: 'failed', body: { code: INTERNAL_ERROR, message } }
  }
  if (ending.status === 'cancelled') return ending
  const { code, message, data } = ending.error
  const isSmall = toJsonText(data ?? null).length <= MAX_MESSAGE_CHARS
  const text = message.slice(0, MAX_MESSAGE_CHARS).toWellFormed()
  return { status: 'failed', body: { code, message: text, ...(data !== undefined && isSmall && { data }) } }
}

function toTask(id: string, kept: StoredTask, progress: TaskProgress, ending: DatedEnding | undefined): Task {
  const { owner, createdAt, updatedAt, ttlMs } = kept
  const status = ending?.status ?? progress.status
  return { id, owner, status, createdAt, updatedAt: ending?.at ?? updatedAt, ttlMs, progress, ending }
}

function cutMessage({ statusMessage, ...progress }: TaskProgress): TaskProgress {
  if (statusMessage === undefined) return progress
  return { ...progress, statusMessage: statusMessage.slice(0, MAX_MESSAGE_CHARS).toWellFormed() }
}

function isKept(value: unknown): value is StoredTask & JsonObject {
  return isObject(value) && typeof value['status'] === 'string'
}

/** Removes fields that are `undefined`, which JSON does not have. */
function toJson(value: object): unknown {
  return readOwnJson(toJsonText(value), 'exact')
}

function expiryOf({ createdAt, ttlMs }: Pick<StoredTask, 'createdAt' | 'ttlMs'>): number {
  return createdAt + ttlMs
}

function idIn(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

/** Returns the prefix of a user's entries. */
function userOf({ tenant, user }: TaskOwner): string {
  return `${digest([tenant ?? null, user ?? null])}/`
}

function prefixOf(owner: TaskOwner): string {
  const { tenant, user, client } = owner
  return `${userOf(owner)}${digest([tenant ?? null, user ?? null, client])}/`
}

function keyOf(owner: TaskOwner, id: string): string {
  return prefixOf(owner) + id
}

function digest(parts: readonly (string | null)[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url')
}
