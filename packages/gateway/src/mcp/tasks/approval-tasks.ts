import { randomUUID } from 'node:crypto'
import type { Approval, CallOutcome, Caller, CallWaiting, Gate, View } from '@toolgate/core'
import { type Cancelling, createCanceller } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { RPC_CODES, toAnswer } from '@toolgate/mcp'
import { clientNames, type NamesInLists } from '../../calls/client-names.ts'
import { endOnRecord, type EndsDeps, withdrawApproval } from './ends.ts'
import { type OpenTask, type Task, type TaskCall, type TaskEnding, type TaskOwner, TooManyTasks } from './task.ts'
import type { WorkLeases } from '../../util/leases.ts'
import { isTooLarge, type TaskStore } from './task-store.ts'

export interface ApprovalTasksDeps extends EndsDeps {
  readonly store: TaskStore
  readonly leases: WorkLeases
  readonly state: Pick<StateStore, 'add' | 'get'>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly gate: Pick<Gate, 'apps' | 'view' | 'subscribe' | 'approvals'>
  readonly names: NamesInLists
  /** Whether an attempt has its final record. */
  readonly hasEnded: (callId: string) => Promise<boolean>
  readonly onFault: (error: unknown) => void
  /** Whether the tasks outlive this process. */
  readonly isKept: boolean
}

/** The data that the task needs to make its call. */
interface ApprovalWork {
  readonly calledAs: string
  readonly input: JsonObject
}

/** A call that waits for approval. */
interface HeldTaskCall {
  readonly owner: TaskOwner
  readonly view: View
  readonly input: unknown
  readonly name: string
  readonly outcome: CallWaiting
  /** The requests that show the client where a person decides; `undefined` for a client that opens no links. */
  readonly requests: JsonObject | undefined
}

/** The polling interval. Other processes also decide and cancel. */
const EVERY_MS = 1_000
/** Prefix of entries for calls that were begun, with the ids of their attempts. */
const RUNS = 'gateway/approval-runs/'
const RUN_MS = 25 * 60 * 60_000

/**
 * The tasks of calls that wait for approval. After an approval the gateway makes the call, which ends the task. The
 * call uses up the approval, and the current credential, policy and definition decide it. It is made at most once.
 */
export class ApprovalTasks {
  readonly #deps: ApprovalTasksDeps
  readonly #timer: NodeJS.Timeout
  readonly #unsubscribe: readonly (() => void)[]
  /** The tasks that are ending in this process. */
  readonly #ending = new Map<string, Promise<void>>()
  #sweeping: Promise<void> | undefined
  /** Until the tasks are resumed, servers and policies may not be complete. */
  #isResumed = false
  #isClosed = false

  constructor(deps: ApprovalTasksDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => this.#sweep(), EVERY_MS).unref()
    this.#unsubscribe = [
      deps.gate.subscribe(({ event }) => {
        if (event === 'approval-decided') this.#sweep()
      }),
      deps.store.subscribe(() => this.#sweep()),
    ]
  }

  /** Returns the task of a waiting call. @throws {TooManyTasks} */
  async begin({ owner, view, input, name, outcome, requests }: HeldTaskCall): Promise<Task> {
    const { approval, text, callId } = outcome
    const work: ApprovalWork = { calledAs: name, input: isObject(input) ? input : {} }
    if (isTooLarge(work)) throw new TooManyTasks('the input is too large for a task')
    const { app, caller } = view
    return this.#deps.store.create(owner, {
      status: requests ? 'input_required' : 'working',
      statusMessage: text,
      ...(requests && { requests }),
      call: { kind: 'approval', tool: approval.tool, app, session: caller.session, callId, approvalId: approval.id },
      work,
      ttlMs: approval.expiresAt - this.#deps.clock.wallMs() + KEPT_MS,
    })
  }

  /** Continues the tasks of an earlier process. */
  resume(): void {
    this.#isResumed = true
    this.#sweep()
  }

  /** Leaves stored tasks to the next gateway, and ends other tasks. Resolves after the running calls. */
  async leave(): Promise<void> {
    clearInterval(this.#timer)
    for (const each of this.#unsubscribe) each()
    await this.#sweeping
    this.#isClosed = true
    if (!this.#deps.isKept)
      for (const open of await this.#deps.store.open('approval'))
        if (!this.#ending.has(open.id) && (await this.#deps.leases.take(open.id))) await this.#giveUp(open, STOPPING)
    await Promise.all(this.#ending.values())
  }

  #sweep(): void {
    if (this.#isClosed || !this.#isResumed) return
    this.#sweeping ??= this.#sweepOnce()
      .catch(this.#deps.onFault)
      .finally(() => (this.#sweeping = undefined))
  }

  async #sweepOnce(): Promise<void> {
    for (const open of await this.#deps.store.open('approval'))
      try {
        if (!this.#ending.has(open.id)) await this.#tend(open)
      } catch (error) {
        // Other tasks must not wait for this one.
        this.#deps.onFault(error)
      }
  }

  async #tend(open: OpenTask): Promise<void> {
    const { store, gate, leases } = this.#deps
    const { id, owner, call } = open
    const task = await store.get(owner, id)
    const isWaiting = task !== undefined && task.ending === undefined
    if (isWaiting && (await gate.approvals.get(call.approvalId ?? ''))?.status === 'pending') return
    // Another process that holds the task may end before its call does.
    if (this.#isClosed || !(await leases.take(id))) return
    // Not awaited, since a long call must not delay other tasks.
    const ending = this.#endAndRelease(open).catch(this.#deps.onFault)
    this.#ending.set(id, ending)
  }

  /** Ends a task while this process holds its lease. */
  async #endAndRelease(open: OpenTask): Promise<void> {
    const { store, leases, onFault } = this.#deps
    const { id, owner } = open
    const stop = createCanceller()
    const hold = async () => {
      await leases.renew(id)
      if ((await store.get(owner, id))?.status === 'cancelled') stop.abort(new Error(CANCELLED))
    }
    const timer = setInterval(() => void hold().catch(onFault), EVERY_MS).unref()
    try {
      // The task may have ended before the lease was taken.
      if (await store.find(open)) await this.#end(open, stop)
    } finally {
      clearInterval(timer)
      this.#ending.delete(id)
      await leases.release(id)
    }
  }

  async #end(open: OpenTask, stop: Cancelling): Promise<void> {
    const { store, state, gate, clock } = this.#deps
    const { id, owner, call } = open
    const task = await store.get(owner, id)
    const begun = await state.get(RUNS + id)
    if (typeof begun === 'string') return this.#endBegun(open, begun)
    if (!task) return this.#giveUp(open, EXPIRED)
    if (task.ending) return this.#giveUp(open, CANCELLED)
    const approval = await gate.approvals.get(call.approvalId ?? '')
    if (approval?.status === 'pending') return
    const work = (await store.workOf(open)) as ApprovalWork | undefined
    const caller = this.#callerOf(owner, call)
    if (!work || !caller) return this.#giveUp(open, work ? NO_KEY : 'The gateway no longer has the call of this task.')
    const runId = randomUUID()
    if (!(await state.add(RUNS + id, runId, { expiresAt: clock.wallMs() + RUN_MS }))) return
    // Its client may have cancelled it meanwhile.
    if (!(await store.update(task, { status: 'working' }))) return this.#giveUp(open, CANCELLED)
    const outcome = await this.#run(open, work, { caller, callId: runId, stop })
    await store.close(open)
    await store.end(task, endingOf(approval, outcome))
  }

  /** Ends a task whose call has begun. The call is not repeated, as the process that made it has ended. */
  async #endBegun(open: OpenTask, runId: string): Promise<void> {
    const { store, hasEnded } = this.#deps
    const why = 'The gateway ended while the call ran. Whether it has run to its end is not known.'
    if (!(await hasEnded(runId))) await endOnRecord(this.#deps, open, why)
    await store.close(open)
    await store.end(open, failed(why))
  }

  /** Makes the call. If the approval cannot be used, the call is refused, so it has a final record in either case. */
  async #run(
    { owner, call }: OpenTask,
    { calledAs, input }: ApprovalWork,
    { caller, callId, stop }: { readonly caller: Caller; readonly callId: string; readonly stop: Cancelling },
  ): Promise<CallOutcome> {
    const { tool, app, approvalId = '', callId: first } = call
    const callerNow = () => this.#callerOf(owner, call)
    const view = await this.#deps.gate.view(caller, { app })
    // The call is linked to the attempt that asked, but separate: it counts towards limits and uses up the approval.
    const continues = { callId: first, round: 0, binding: '' }
    const spends = approvalId
    const nameOf = clientNames(this.#deps.names, view, { id: tool, name: calledAs })
    const how = { continues, spends, callId, signal: stop, callerNow, edits: true }
    return view.call({ tool, calledAs, nameOf, input, ...how })
  }

  /** Ends a task whose call has no final record, and withdraws its request. This process holds the lease. */
  async #giveUp(open: OpenTask, why: string): Promise<void> {
    const { store, gate } = this.#deps
    const { call, owner } = open
    const caller = this.#callerOf(owner, call)
    if (caller && call.approvalId !== undefined) await withdrawApproval(gate, caller, call.approvalId, why)
    await endOnRecord(this.#deps, open, why)
    await store.close(open)
    await store.end(open, failed(why))
  }

  #callerOf(owner: TaskOwner, { app, session }: TaskCall): Caller | undefined {
    const caller = this.#deps.callerOf(owner, app)
    return caller && session !== undefined ? { ...caller, session } : caller
  }
}

const CANCELLED = 'The client cancelled the task.'
const EXPIRED = 'The time of the task was over.'
const STOPPING = 'The gateway is stopping, and keeps no tasks.'
const NO_KEY = 'The key of this client is no longer accepted here.'
/** How long the end of a task is stored after its approval has expired. */
const KEPT_MS = 10 * 60_000
/** A person's rejection is a result; any other refusal means that the call could not be made. */
const REJECTIONS: ReadonlySet<string> = new Set(['approval_rejected', 'approval_revoked'])

function endingOf(approval: Approval | undefined, outcome: CallOutcome): TaskEnding {
  if (approval?.status === 'consumed') return failed('Another call has used the approval.')
  if (approval === undefined || approval.status === 'expired') return failed('Nobody has decided in time.')
  const isRejected = outcome.status === 'refused' && REJECTIONS.has(outcome.decision.reasons[0]?.code ?? '')
  if (outcome.status !== 'done' && outcome.status !== 'failed' && !isRejected) return failed(outcome.text)
  const answer = toAnswer(outcome)
  return 'error' in answer ? { status: 'failed', error: answer.error } : { status: 'completed', result: answer.result }
}

function failed(message: string): TaskEnding {
  return { status: 'failed', error: { code: RPC_CODES.internalError, message } }
}
