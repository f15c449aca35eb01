import { randomUUID } from 'node:crypto'
import type { CallInputRequired, CallOutcome, Caller, Decision, Gate, View } from '@toolgate/core'
import { type Canceller, createCanceller, isObject, type JsonObject } from '@toolgate/core/internal'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { Continuation } from '@toolgate/core/toolset'
import { RPC_CODES, toAnswer } from '@toolgate/mcp'
import { isAsked } from '../relay/asked.ts'
import { type ClientLink, clientLink } from '../relay/client-link.ts'
import { type Task, type TaskEnding, type TaskOwner, TaskStore } from './task-store.ts'
import { isStartedTask, type StartedTask } from './upstream-tasks.ts'

export interface TasksDeps {
  readonly store: TaskStore
  readonly state: StateStore
  readonly clock: Pick<Clock, 'wallMs'>
  readonly gate: Pick<Gate, 'view' | 'subscribe'>
  /** Returns today's caller of a client; `undefined` if its key is no longer accepted. */
  readonly callerOf: (owner: TaskOwner) => Caller | undefined
  /** Cancels a task of a server that no call follows. */
  readonly cancelUpstream: (server: string, state: string, caller: Caller) => Promise<void>
  readonly onFault: (error: unknown) => void
  /** How long another process of the same store leaves a task alone that nobody seems to follow. Default 10 s. */
  readonly leaseMs?: number
}

/** What a task of a server needs to go on. */
interface UpstreamWork {
  readonly kind: 'upstream'
  readonly tool: string
  readonly server: string
  readonly app: string | undefined
  readonly session: string | undefined
  readonly input: JsonObject
  readonly continues: Continuation
  readonly state: string
  readonly client: Pick<ClientLink, 'era' | 'capabilities'>
}

/** A call that its server runs as a task. */
export interface StartedCall {
  readonly owner: TaskOwner
  readonly view: View
  readonly tool: string
  readonly input: unknown
  readonly client: Pick<ClientLink, 'era' | 'capabilities'>
  readonly ttlMs: number | undefined
  readonly outcome: CallInputRequired
}

const DEFAULT_LEASE_MS = 10_000
const FOLLOWERS = 'gateway/task-followers/'
/** So long after the start of the gateway, a server that is down may still be starting. */
const STARTING_MS = 60_000

/** Why a task is stopped. */
class TaskStopped extends Error {
  override readonly name = 'TaskStopped'
}

/**
 * The tasks that the gateway follows for its clients, whether they poll or not.
 *
 * A task is a further round of the call that started it: its limit and its approval are not taken again, today's policy
 * decides it, and its terminal record is that of the call. A gateway that stops leaves its tasks running at their
 * servers, and the next one on the same store goes on with them.
 */
export class Tasks {
  readonly store: TaskStore
  /** Aborts when the gateway stops. */
  readonly leaving: Canceller = createCanceller()
  readonly #deps: TasksDeps
  readonly #id = randomUUID()
  readonly #leaseMs: number
  readonly #startedMs = performance.now()
  readonly #running = new Map<string, { readonly task: Task; readonly work: UpstreamWork; readonly stop: Canceller }>()
  readonly #timer: NodeJS.Timeout
  readonly #unsubscribe: () => void

  constructor(deps: TasksDeps) {
    this.#deps = deps
    this.store = deps.store
    this.#leaseMs = deps.leaseMs ?? DEFAULT_LEASE_MS
    this.#timer = setInterval(() => this.#safely(this.#tend()), this.#leaseMs / 3).unref()
    this.#unsubscribe = deps.gate.subscribe(() => this.#safely(this.#stopDenied()))
  }

  /** Returns the handle of a call that its server runs as a task. @throws {TooManyTasks} */
  async begin({ owner, view, tool, input, client, ttlMs, outcome }: StartedCall): Promise<Task> {
    const started = outcome.payload as StartedTask
    const { era, capabilities } = client
    const work: UpstreamWork = {
      kind: 'upstream',
      tool,
      server: tool.slice(0, tool.indexOf(':')),
      app: view.app,
      session: view.caller.session,
      input: isObject(input) ? input : {},
      continues: outcome.continues,
      state: started.state,
      client: { era, capabilities },
    }
    try {
      const task = await this.store.create(owner, {
        ttlMs: ttlMs ?? started.ttlMs,
        statusMessage: started.statusMessage,
        work: toJson(work),
      })
      await this.#lease(task.id)
      this.#follow(task, work, {})
      return task
    } catch (error) {
      await this.#deps.cancelUpstream(work.server, work.state, view.caller)
      throw error
    }
  }

  /** Passes the client's answers on. Returns `false` if they are not what the task asked for. */
  async answer(task: Task, responses: JsonObject): Promise<boolean> {
    const { requests = {} } = task.progress
    const work = toWork(task)
    if (task.status !== 'input_required' || !work) return true
    const isAnswer = ([key, answer]: [string, unknown]) => Object.hasOwn(requests, key) && isObject(answer)
    if (!Object.entries(responses).every(isAnswer)) return false
    if (!(await this.#lease(task.id))) return true
    // Another answer may have come first, and its round may have ended already.
    const now = await this.store.get(task.owner, task.id)
    if (now?.updatedAt !== task.updatedAt || now.status !== task.status) {
      await this.#deps.state.take(FOLLOWERS + task.id)
      return true
    }
    await this.store.update(task, { status: 'working' })
    this.#follow(task, work, responses)
    return true
  }

  /** Cancels a task, at its server too. Returns `false` for one that has ended. */
  async cancel(task: Task): Promise<boolean> {
    if (!(await this.store.end(task, { status: 'cancelled' }))) return false
    const running = this.#running.get(task.id)
    if (running) running.stop.abort(new TaskStopped('the client cancelled the task'))
    else await this.#endElsewhere(task)
    return true
  }

  /** Leaves the running tasks to the next gateway, and resolves when their rounds are recorded. */
  leave(): void {
    this.leaving.abort(new Error('the gateway is stopping'))
    clearInterval(this.#timer)
    this.#unsubscribe()
  }

  /** A task that waits for its client has no round that could record its end. */
  async #endElsewhere(task: Task): Promise<void> {
    const work = toWork(task)
    const caller = work && this.#callerOf(task.owner, work)
    if (!work || !caller) return
    if (task.status !== 'input_required') return
    const view = await this.#deps.gate.view(caller, { app: work.app })
    await this.#deps.cancelUpstream(work.server, work.state, caller)
    await view.call({ tool: work.tool, continues: work.continues, malformed: 'the client cancelled the task' })
  }

  #follow(task: Task, work: UpstreamWork, responses: JsonObject): void {
    const stop = createCanceller()
    this.#running.set(task.id, { task, work, stop })
    this.#safely(this.#runAndRelease(task, work, responses, stop))
  }

  async #runAndRelease(task: Task, work: UpstreamWork, responses: JsonObject, stop: Canceller): Promise<void> {
    try {
      await this.#run(task, work, responses, stop)
    } finally {
      this.#running.delete(task.id)
      await this.#deps.state.take(FOLLOWERS + task.id)
    }
  }

  /** Runs one round, and keeps how it ended. */
  async #run(task: Task, work: UpstreamWork, responses: JsonObject, stop: Canceller): Promise<void> {
    const caller = this.#callerOf(task.owner, work)
    if (!caller) return this.#giveUp(task, work)
    const view = await this.#deps.gate.view(caller, { app: work.app })
    // Nobody has answered anything yet: it is followed when the server is there.
    if (Object.keys(responses).length === 0 && this.#isStarting() && isDown(view.explain(work.tool))) return
    const leftMs = task.createdAt + task.ttlMs - this.#deps.clock.wallMs()
    const outcome = await view.call({
      tool: work.tool,
      input: work.input,
      continues: work.continues,
      signal: stop,
      deadlineMs: Math.max(1, leftMs - END_MS),
      context: clientLink({
        ...work.client,
        ask: undefined,
        log: () => {},
        answers: { responses, state: work.state },
        tasks: { isWanted: true, leave: this.leaving },
      }),
    })
    await this.#settle(task, work, caller, outcome)
  }

  async #settle(task: Task, work: UpstreamWork, caller: Caller, outcome: CallOutcome): Promise<void> {
    switch (outcome.status) {
      case 'input_required': {
        const { payload, continues } = outcome
        const next = toJson({ ...work, continues })
        if (isStartedTask(payload)) await this.store.update(task, { ...task.progress, status: 'working', work: next })
        else if (isAsked(payload))
          await this.store.update(task, { status: 'input_required', requests: payload.requests, work: next })
        else await this.#give(task, work, caller, failed(outcome.text))
        return
      }
      case 'refused':
      case 'waiting':
        return this.#give(task, work, caller, failed(outcome.text))
      default: {
        // It was stopped, or its time is over: there is no result.
        if (outcome.status === 'failed' && outcome.code !== 'tool_failed') {
          await this.store.end(task, failed(outcome.text))
          return
        }
        const answer = toAnswer(outcome)
        const ending: TaskEnding =
          'error' in answer ? { status: 'failed', error: answer.error } : { status: 'completed', result: answer.result }
        await this.store.end(task, ending)
      }
    }
  }

  /** Ends the task of a client whose key is no longer accepted, and records it. */
  async #giveUp(task: Task, work: UpstreamWork): Promise<void> {
    const { tenant, user } = task.owner
    const caller: Caller = { ...(tenant !== undefined && { tenant }), ...(user !== undefined && { user }) }
    const problem = 'The key of this client is no longer accepted.'
    const view = await this.#deps.gate.view(caller, { app: work.app })
    await view.call({ tool: work.tool, continues: work.continues, malformed: problem })
    await this.#give(task, work, caller, failed(problem))
  }

  /** Ends a task that its server may still run. */
  async #give(task: Task, work: UpstreamWork, caller: Caller, ending: TaskEnding): Promise<void> {
    await this.store.end(task, ending)
    await this.#deps.cancelUpstream(work.server, work.state, caller)
  }

  /** Renews the leases, stops what was cancelled elsewhere, and goes on with what nobody follows. */
  async #tend(): Promise<void> {
    for (const { task, stop } of this.#running.values()) {
      const now = await this.store.get(task.owner, task.id)
      if (!now || now.status === 'cancelled') stop.abort(new TaskStopped('the client cancelled the task'))
      await this.#renew(task.id)
    }
    for (const task of await this.store.unfinished()) {
      const work = toWork(task)
      if (!work || task.status !== 'working' || this.#running.has(task.id) || this.leaving.aborted) continue
      if (await this.#lease(task.id)) this.#follow(task, work, {})
    }
  }

  /** Goes on with the tasks that an earlier process has left. */
  resume(): void {
    this.#safely(this.#tend())
  }

  /** Stops tasks whose tools their callers may no longer call. */
  async #stopDenied(): Promise<void> {
    for (const { task, work, stop } of this.#running.values()) {
      const caller = this.#callerOf(task.owner, work)
      const view = caller && (await this.#deps.gate.view(caller, { app: work.app }))
      const decision = view?.explain(work.tool)
      // Its server may come back: the call that follows the task knows how long to wait.
      if (!decision || !(mayGoOn(decision) || isDown(decision)))
        stop.abort(new TaskStopped('its policy no longer allows the call'))
    }
  }

  #callerOf(owner: TaskOwner, { session }: UpstreamWork): Caller | undefined {
    const caller = this.#deps.callerOf(owner)
    return caller && session !== undefined ? { ...caller, session } : caller
  }

  /** Whether servers may still be starting with the gateway. */
  #isStarting(): boolean {
    return performance.now() - this.#startedMs < STARTING_MS
  }

  async #lease(id: string): Promise<boolean> {
    const expiresAt = this.#deps.clock.wallMs() + this.#leaseMs
    return this.#deps.state.add(FOLLOWERS + id, this.#id, { expiresAt })
  }

  async #renew(id: string): Promise<void> {
    const expiresAt = this.#deps.clock.wallMs() + this.#leaseMs
    await this.#deps.state.set(FOLLOWERS + id, this.#id, { expiresAt })
  }

  #safely(work: Promise<void>): void {
    work.catch(this.#deps.onFault)
  }
}

function mayGoOn({ outcome }: Decision): boolean {
  return outcome === 'allow' || outcome === 'ask'
}

/** Whether nothing but the state of its server holds a tool back. */
function isDown({ outcome, reasons }: Decision): boolean {
  return (
    outcome === 'wait' && reasons.every((reason) => reason.outcome !== 'wait' || reason.code === 'group_unavailable')
  )
}

/** A task ends a moment before it is forgotten, so that its end is kept. */
const END_MS = 1_000

function toWork({ progress: { work } }: Task): UpstreamWork | undefined {
  return work?.['kind'] === 'upstream' ? (work as unknown as UpstreamWork) : undefined
}

function toJson(work: UpstreamWork): JsonObject {
  return JSON.parse(JSON.stringify(work)) as JsonObject
}

function failed(message: string): TaskEnding {
  return { status: 'failed', error: { code: RPC_CODES.internalError, message } }
}
