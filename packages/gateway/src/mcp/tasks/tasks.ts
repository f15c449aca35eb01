import type { CallInputRequired, CallOutcome, Caller, Decision, Gate, View } from '@toolgate/core'
import { type Canceller, createCanceller, endsWithin } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Clock } from '@toolgate/core/stores'
import type { Continuation } from '@toolgate/core/toolset'
import { RPC_CODES, toAnswer } from '@toolgate/mcp'
import type { ClientResponses } from '../../servers/asks/answers.ts'
import { isAsked } from '../../servers/asks/asked.ts'
import { type ClientCapabilities, type ClientLink, clientLink } from '../../servers/asks/client-link.ts'
import { endOnRecord, type EndsDeps, withdrawApproval } from './ends.ts'
import type { OpenTask, Task, TaskEnding, TaskKey, TaskOwner, TaskRoom } from './task.ts'
import { WorkLeases } from '../../util/leases.ts'
import { isTooLarge, MAX_WORK_BYTES, type TaskStore } from './task-store.ts'
import { isStartedTask, type StartedTask } from '../../servers/asks/upstream-tasks.ts'

export interface TasksDeps extends EndsDeps {
  readonly store: TaskStore
  readonly leases: WorkLeases
  readonly clock: Pick<Clock, 'wallMs'>
  readonly gate: Pick<Gate, 'apps' | 'view' | 'subscribe' | 'approvals'>
  /** Cancels a server's task that no call continues. */
  readonly cancelUpstream: (server: string, state: string, caller: Caller) => Promise<void>
  /**
   * Whether the instance that runs a caller's tasks of a server belongs to this gateway, if there is one. Default:
   * always.
   */
  readonly isHere?: ((server: string, caller: Caller) => Promise<boolean>) | undefined
  readonly onFault: (error: unknown) => void
  /** Whether the tasks outlive this process. */
  readonly isKept: boolean
}

/** The data to continue a task of a server. */
interface UpstreamWork {
  readonly server: string
  readonly input: JsonObject
  readonly continues: Continuation
  readonly state: string
  readonly client: Pick<ClientLink, 'era' | 'capabilities'>
}

/** A call that its server runs as a task. */
interface StartedCall {
  readonly owner: TaskOwner
  readonly view: View
  readonly tool: string
  readonly input: unknown
  readonly client: Pick<ClientLink, 'era' | 'capabilities'>
  readonly ttlMs: number | undefined
  readonly outcome: CallInputRequired
  readonly room?: TaskRoom | undefined
}

/** How long a client that answered only some requests waits until the server asks for the rest. */
const PARTIAL_MS = 2_000
/** For this long after the gateway's start, a server that is down may still be starting. */
const STARTING_MS = 60_000

/** Why a task is stopped. */
class TaskStopped extends Error {
  override readonly name = 'TaskStopped'
}

/** A round of a task in this process. */
interface RunningRound {
  readonly task: OpenTask
  /** Stops the task. */
  readonly stop: Canceller
  /** Stops only the round; the task continues later. */
  readonly leave: Canceller
  readonly done: Promise<void>
}

/**
 * The tasks that the gateway follows for its clients, whether they poll or not.
 *
 * A task is a further round of the call that started it. It does not use limits or an approval again, and the current
 * policy decides it. Its final record is that of the call. If no round has written the record, the process that holds
 * the task's lease does. When the gateway stops, its tasks keep running at their servers, and the next gateway on the
 * same store continues them.
 */
export class Tasks {
  readonly store: TaskStore
  readonly #deps: TasksDeps
  readonly #leases: WorkLeases
  readonly #startedMs = performance.now()
  readonly #running = new Map<string, RunningRound>()
  readonly #timer: NodeJS.Timeout
  readonly #unsubscribe: () => void
  /** Until the tasks are resumed, servers and policies may not be complete. */
  #isResumed = false
  #isLeaving = false

  constructor(deps: TasksDeps) {
    this.#deps = deps
    this.store = deps.store
    this.#leases = deps.leases
    this.#timer = setInterval(() => this.#safely(this.#tend()), this.#leases.leaseMs / 3).unref()
    this.#unsubscribe = deps.gate.subscribe(() => this.#safely(this.#stopDenied()))
  }

  /** Reserves room for the task of a call, before the call is sent to its server. @throws {TooManyTasks} */
  reserve(owner: TaskOwner, input: unknown): Promise<TaskRoom> {
    return this.store.reserve(owner, input)
  }

  /** Returns the task of a call that its server runs as a task. @throws {TooManyTasks} */
  async begin({ owner, view, tool, input, client, ttlMs, outcome, room }: StartedCall): Promise<Task> {
    const started = outcome.payload as StartedTask
    const server = serverOf(tool)
    const { continues } = outcome
    const work: UpstreamWork = {
      server,
      input: isObject(input) ? input : {},
      continues,
      state: started.state,
      client: { era: client.era, capabilities: neededOf(client.capabilities) },
    }
    const call = {
      kind: 'upstream',
      tool,
      app: view.app,
      session: view.caller.session,
      callId: continues.callId,
    } as const
    try {
      const { statusMessage } = started
      const task = await this.store.create(owner, { ttlMs: ttlMs ?? started.ttlMs, statusMessage, call, work, room })
      await this.#leases.take(task.id)
      this.#follow({ id: task.id, owner, call }, {})
      return task
    } catch (error) {
      await this.#deps.cancelUpstream(server, started.state, view.caller)
      throw error
    }
  }

  /** Passes the client's answers on. Answers to anything that the task has not asked are ignored. */
  async answer(task: Task, sent: ClientResponses): Promise<void> {
    const { requests = {} } = task.progress
    const responses = Object.fromEntries(Object.entries(sent).filter(([key]) => Object.hasOwn(requests, key)))
    if (task.status !== 'input_required' || Object.keys(responses).length === 0) return
    const open = await this.store.find(task)
    if (open?.call.kind !== 'upstream' || !(await this.#leases.take(task.id))) return
    // Another answer may have come first, and its round may already have ended.
    const now = await this.store.get(task.owner, task.id)
    if (now?.updatedAt !== task.updatedAt || now.status !== task.status) {
      await this.#leases.release(task.id)
      return
    }
    await this.store.update(task, { status: 'working' })
    this.#follow(open, responses)
    // The server still waits for the rest, so the client must not see the status `working`.
    const isPartial = Object.keys(requests).some((key) => !Object.hasOwn(responses, key))
    if (isPartial) await endsWithin(this.#running.get(task.id)?.done ?? Promise.resolve(), PARTIAL_MS)
  }

  /** Cancels a task, also at its server. Returns `false` for an ended task. */
  async cancel(task: Task): Promise<boolean> {
    if (!(await this.store.end(task, { status: 'cancelled' }))) return false
    const running = this.#running.get(task.id)
    if (running) running.stop.abort(new TaskStopped(CANCELLED))
    else await this.#tendOne(await this.store.find(task))
    return true
  }

  /** Continues the tasks of an earlier process, and ends expired ones. */
  async resume(): Promise<void> {
    await this.store.adopt()
    this.#isResumed = true
    await this.#tend()
  }

  /** Leaves stored tasks to the next gateway, and ends other tasks. Resolves when this is recorded. */
  async leave(): Promise<void> {
    clearInterval(this.#timer)
    this.#unsubscribe()
    const rounds = [...this.#running.values()]
    if (this.#deps.isKept) {
      this.#isLeaving = true
      for (const { leave } of rounds) leave.abort(new Error(STOPPING))
    } else {
      for (const { stop } of rounds) stop.abort(new TaskStopped(STOPPING))
      for (const open of await this.store.open('upstream'))
        if (await this.#leases.take(open.id)) await this.#giveUp(open, STOPPING)
      this.#isLeaving = true
    }
    await Promise.all(rounds.map(({ done }) => done))
  }

  /** Starts a round. This process holds the lease, and releases it after the round. */
  #follow(task: OpenTask, responses: JsonObject): void {
    const [stop, leave] = [createCanceller(), createCanceller()]
    const done = this.#runAndRelease(task, responses, { stop, leave }).catch(this.#deps.onFault)
    this.#running.set(task.id, { task, stop, leave, done })
  }

  async #runAndRelease(
    task: OpenTask,
    responses: JsonObject,
    signals: Pick<RunningRound, 'stop' | 'leave'>,
  ): Promise<void> {
    try {
      await this.#run(task, responses, signals)
      if (!this.#isLeaving) await this.#endIfOver(task)
    } finally {
      this.#running.delete(task.id)
      await this.#leases.release(task.id)
    }
  }

  /** Runs one round, and stores its end. */
  async #run(
    task: OpenTask,
    responses: JsonObject,
    { stop, leave }: Pick<RunningRound, 'stop' | 'leave'>,
  ): Promise<void> {
    const { call } = task
    const caller = this.#callerOf(task)
    if (!caller) return this.#giveUp(task, NO_KEY)
    const now = await this.store.get(task.owner, task.id)
    const work = (await this.store.workOf(task)) as UpstreamWork | undefined
    if (!now || now.ending) return
    if (!work) return this.#giveUp(task, 'The gateway no longer has the call of this task.')
    const view = await this.#deps.gate.view(caller, { app: call.app })
    // There are no answers to lose, so the task continues when the server is back.
    if (Object.keys(responses).length === 0 && this.#mayComeBack(view.explain(call.tool))) return
    const leftMs = now.createdAt + now.ttlMs - this.#deps.clock.wallMs()
    const outcome = await view.call({
      tool: call.tool,
      input: work.input,
      continues: work.continues,
      signal: stop,
      callerNow: () => this.#callerOf(task),
      deadlineMs: Math.max(1, leftMs - END_MS),
      context: clientLink({
        ...work.client,
        ask: undefined,
        log: () => {},
        answers: { responses, state: work.state },
        tasks: { isWanted: true, leave },
      }),
    })
    await this.#settle(task, work, outcome, now)
  }

  async #settle(task: OpenTask, work: UpstreamWork, outcome: CallOutcome, before: Task): Promise<void> {
    switch (outcome.status) {
      case 'input_required':
        return this.#pause(task, work, outcome, before)
      case 'waiting': {
        // The approval of the call is already used; a new request would be useless.
        const caller = this.#callerOf(task)
        if (caller) await withdrawApproval(this.#deps.gate, caller, outcome.approval.id, 'its task has ended')
        return this.#giveUp(task, outcome.text)
      }
      case 'refused':
        await this.#conclude(task, failed(outcome.text))
        return this.#cancelUpstream(task, work)
      default: {
        const answer = toAnswer(outcome)
        // The task was stopped or has expired, so there is no result.
        if (outcome.status === 'failed' && outcome.code !== 'tool_failed')
          return this.#conclude(task, failed(outcome.text))
        if ('error' in answer) return this.#conclude(task, { status: 'failed', error: answer.error })
        return this.#conclude(task, { status: 'completed', result: answer.result })
      }
    }
  }

  /** Stores a paused task. It continues after a restart, or when the client's answers arrive. */
  async #pause(task: OpenTask, work: UpstreamWork, outcome: CallInputRequired, before: Task): Promise<void> {
    const { payload, continues } = outcome
    if (isStartedTask(payload)) {
      await this.store.setWork(task, { ...work, continues })
      return void (await this.store.update(task, { ...before.progress, status: 'working', requests: undefined }))
    }
    const requests = isAsked(payload) ? payload.requests : undefined
    if (!requests) return this.#giveUp(task, outcome.text)
    if (isTooLarge(requests))
      return this.#giveUp(task, `The server asked for more input in more than ${MAX_WORK_BYTES} bytes.`)
    await this.store.setWork(task, { ...work, continues })
    await this.store.update(task, { status: 'input_required', requests })
  }

  /** Stores the end of a task whose round has written the final record. */
  async #conclude(task: TaskKey, ending: TaskEnding): Promise<void> {
    await this.store.close(task)
    await this.store.end(task, ending)
  }

  /** Ends a task whose call has no final record, in the audit and at its server. This process holds the lease. */
  async #giveUp(task: OpenTask, why: string): Promise<void> {
    const work = (await this.store.workOf(task)) as UpstreamWork | undefined
    await endOnRecord(this.#deps, task, why)
    await this.#conclude(task, failed(why))
    if (work) await this.#cancelUpstream(task, work)
  }

  async #cancelUpstream({ owner }: OpenTask, { server, state }: UpstreamWork): Promise<void> {
    const { tenant, user } = owner
    const caller = { ...(tenant !== undefined && { tenant }), ...(user !== undefined && { user }) }
    await this.#deps.cancelUpstream(server, state, caller)
  }

  /** Ends a task that its client has cancelled or that has expired. This process holds the lease. */
  async #endIfOver(task: OpenTask): Promise<void> {
    if (!(await this.store.find(task))) return
    const now = await this.store.get(task.owner, task.id)
    if (!now) await this.#giveUp(task, EXPIRED)
    else if (now.ending) await this.#giveUp(task, CANCELLED)
  }

  /**
   * Renews leases, stops tasks that other processes cancelled, continues tasks without a process, and ends expired
   * tasks.
   */
  async #tend(): Promise<void> {
    for (const { task, stop, leave } of this.#running.values()) {
      const now = await this.store.get(task.owner, task.id)
      if (now?.status === 'cancelled') stop.abort(new TaskStopped(CANCELLED))
      if (!this.#callerOf(task)) stop.abort(new TaskStopped(NO_KEY))
      if (!(await this.#leases.renew(task.id))) leave.abort(new Error('another gateway follows the task'))
    }
    if (!this.#isResumed) return
    // A task that cannot be handled must not delay the others.
    for (const open of await this.store.open('upstream')) await this.#tendOne(open).catch(this.#deps.onFault)
  }

  async #tendOne(open: OpenTask | undefined): Promise<void> {
    if (open?.call.kind !== 'upstream' || this.#running.has(open.id) || this.#isLeaving) return
    if (!(await this.#isHere(open))) return
    const seen = await this.store.get(open.owner, open.id)
    const waits = seen?.status === 'input_required' && this.#callerOf(open) !== undefined
    if (waits || !(await this.#leases.take(open.id))) return
    // The task may have ended before the lease was taken.
    const now = await this.store.get(open.owner, open.id)
    if (now?.status === 'working') return this.#follow(open, {})
    try {
      if (now?.status === 'input_required') await this.#giveUp(open, NO_KEY)
      else await this.#endIfOver(open)
    } finally {
      await this.#leases.release(open.id)
    }
  }

  /** Stops tasks whose tools their callers may no longer call. */
  async #stopDenied(): Promise<void> {
    for (const { task, stop } of this.#running.values())
      if (!(await this.#mayGoOn(task))) stop.abort(new TaskStopped('its policy no longer allows the call'))
    if (!this.#isResumed) return
    for (const open of await this.store.open('upstream')) {
      if (this.#running.has(open.id) || this.#isLeaving || (await this.#mayGoOn(open))) continue
      if (!(await this.#isHere(open))) continue
      // The round is refused, which ends the task.
      if (await this.#leases.take(open.id)) this.#follow(open, {})
    }
  }

  async #isHere(task: OpenTask): Promise<boolean> {
    const caller = this.#callerOf(task)
    return !caller || (await this.#deps.isHere?.(serverOf(task.call.tool), caller)) !== false
  }

  async #mayGoOn(task: OpenTask): Promise<boolean> {
    const caller = this.#callerOf(task)
    const view = caller && (await this.#deps.gate.view(caller, { app: task.call.app }))
    const decision = view?.explain(task.call.tool)
    // The server may come back. The call that continues the task has its own time limit for that.
    return decision !== undefined && (mayGoOn(decision) || isDown(decision) || this.#mayComeBack(decision))
  }

  #callerOf({ owner, call: { app, session } }: OpenTask): Caller | undefined {
    const caller = this.#deps.callerOf(owner, app)
    return caller && session !== undefined ? { ...caller, session } : caller
  }

  /**
   * Whether the server of a tool may still be starting with the gateway: it is down, or has not listed the tool yet.
   */
  #mayComeBack(decision: Decision): boolean {
    const isUnlisted = decision.reasons[0]?.code === 'tool_not_found'
    return (isUnlisted || isDown(decision)) && performance.now() - this.#startedMs < STARTING_MS
  }

  #safely(work: Promise<void>): void {
    work.catch(this.#deps.onFault)
  }
}

function serverOf(tool: string): string {
  return tool.slice(0, tool.indexOf(':'))
}

const CANCELLED = 'The client cancelled the task.'
const EXPIRED = 'The time of the task was over.'
const STOPPING = 'The gateway is stopping, and keeps no tasks.'
const NO_KEY = 'The key of this client is no longer accepted here.'

function mayGoOn({ outcome }: Decision): boolean {
  return outcome === 'allow' || outcome === 'ask'
}

/** Whether only the state of its server makes a tool unavailable. */
function isDown({ outcome, reasons }: Decision): boolean {
  return (
    outcome === 'wait' && reasons.every((reason) => reason.outcome !== 'wait' || reason.code === 'group_unavailable')
  )
}

/** A task ends this long before it expires, so that its end can be stored. */
const END_MS = 1_000

/** Returns the capabilities that decide what a server may ask, without the client's other ones. */
function neededOf({ elicitation, sampling, roots }: ClientCapabilities): ClientCapabilities {
  return {
    ...(isObject(elicitation) && { elicitation: partsOf(elicitation, ['form', 'url']) }),
    ...(isObject(sampling) && { sampling: partsOf(sampling, ['tools']) }),
    ...(isObject(roots) && { roots: {} }),
  }
}

function partsOf(capability: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.filter((name) => isObject(capability[name])).map((name) => [name, {}]))
}

function failed(message: string): TaskEnding {
  return { status: 'failed', error: { code: RPC_CODES.internalError, message } }
}
