import type { Approval, CallOutcome, Caller, CallWaiting, Gate, View } from '@toolgate/core'
import { type Cancelling, createCanceller, isObject, type JsonObject } from '@toolgate/core/internal'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { RPC_CODES, toAnswer } from '@toolgate/mcp'
import type { Task, TaskEnding, TaskOwner, TaskStore } from './task-store.ts'

export interface ApprovalTasksDeps {
  readonly store: TaskStore
  readonly state: Pick<StateStore, 'add' | 'set' | 'take'>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly gate: Pick<Gate, 'view' | 'subscribe' | 'approvals'>
  /** Returns today's caller of a client; `undefined` if its key is no longer accepted. */
  readonly callerOf: (owner: TaskOwner) => Caller | undefined
  readonly onFault: (error: unknown) => void
}

/** What the task needs to make its call. */
interface ApprovalWork {
  readonly kind: 'approval'
  readonly approvalId: string
  readonly tool: string
  readonly calledAs: string
  readonly app: string | undefined
  readonly session: string | undefined
  readonly input: JsonObject
}

/** A call that waits for a person. */
export interface WaitingCall {
  readonly owner: TaskOwner
  readonly view: View
  readonly input: unknown
  readonly name: string
  readonly outcome: CallWaiting
  /** The requests that show the client where a person decides; none for a client that opens no links. */
  readonly requests: JsonObject | undefined
}

/** Other processes decide and cancel too. */
const EVERY_MS = 1_000
/** The calls that were made, or begun. */
const RUNS = 'gateway/approval-runs/'
/** The tasks whose calls run now. A process that ended no longer renews its entries. */
const RUNNERS = 'gateway/approval-runners/'
const LEASE_MS = 10_000

/**
 * The tasks of calls that wait for a person. The decision ends the task: the gateway makes the call, which spends the
 * approval and is decided by the credential, policy and definition of that moment. It is made once, and never again.
 */
export class ApprovalTasks {
  readonly #deps: ApprovalTasksDeps
  readonly #waiting = new Map<string, { readonly task: Task; readonly work: ApprovalWork }>()
  readonly #timer: NodeJS.Timeout
  readonly #unsubscribe: () => void
  #isSweeping = false

  constructor(deps: ApprovalTasksDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => void this.#sweep(), EVERY_MS).unref()
    this.#unsubscribe = deps.gate.subscribe(({ event }) => {
      if (event === 'approval-decided') void this.#sweep()
    })
  }

  /** Returns the handle of a call that waits. @throws {TooManyTasks} */
  async begin({ owner, view, input, name, outcome, requests }: WaitingCall): Promise<Task> {
    const { approval, text } = outcome
    const work: ApprovalWork = {
      kind: 'approval',
      approvalId: approval.id,
      tool: approval.tool,
      calledAs: name,
      app: view.app,
      session: view.caller.session,
      input: isObject(input) ? input : {},
    }
    const task = await this.#deps.store.create(owner, {
      status: requests ? 'input_required' : 'working',
      statusMessage: text,
      ...(requests && { requests }),
      work: JSON.parse(JSON.stringify(work)) as JsonObject,
      ttlMs: approval.expiresAt - this.#deps.clock.wallMs() + KEPT_MS,
    })
    this.#waiting.set(task.id, { task, work })
    return task
  }

  /** Goes on with the tasks that an earlier process has left. */
  async resume(): Promise<void> {
    for (const task of await this.#deps.store.unfinished()) {
      const { work } = task.progress
      if (work?.['kind'] === 'approval') this.#waiting.set(task.id, { task, work: work as unknown as ApprovalWork })
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#unsubscribe()
  }

  async #sweep(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    for (const [id, { task, work }] of this.#waiting)
      try {
        if (await this.#tend(task, work)) this.#waiting.delete(id)
      } catch (error) {
        // The other tasks must not wait for it.
        this.#deps.onFault(error)
      }
    this.#isSweeping = false
  }

  /** Returns whether nothing more is to be done for a task. */
  async #tend(task: Task, work: ApprovalWork): Promise<boolean> {
    const { store, gate, state } = this.#deps
    const now = await store.get(task.owner, task.id)
    if (now?.status === 'cancelled') await this.#withdraw(task, work)
    if (!now || now.ending) return true
    const approval = await gate.approvals.get(work.approvalId)
    if (approval?.status === 'pending') return false
    // Another process that has it may end before its call does.
    if (!(await state.add(RUNNERS + task.id, true, this.#lease()))) return false
    // Not awaited: a long call must not keep the other tasks waiting.
    this.#conclude(task, work, approval).catch(this.#deps.onFault)
    return true
  }

  #lease(): { readonly expiresAt: number } {
    return { expiresAt: this.#deps.clock.wallMs() + LEASE_MS }
  }

  /** Ends a task while it holds its lease. */
  async #conclude(task: Task, work: ApprovalWork, approval: Approval | undefined): Promise<void> {
    const { store, state, onFault } = this.#deps
    const { id, owner, createdAt, ttlMs } = task
    const stop = createCanceller()
    const hold = async () => {
      await state.set(RUNNERS + id, true, this.#lease())
      if ((await store.get(owner, id))?.status === 'cancelled') stop.abort(new Error('the client cancelled the task'))
    }
    const timer = setInterval(() => void hold().catch(onFault), EVERY_MS).unref()
    try {
      const isFirst = await state.add(RUNS + id, true, { expiresAt: createdAt + ttlMs })
      if (isFirst) await store.update(task, { status: 'working' })
      const ending = isFirst
        ? await this.#endingOf(task, work, approval, stop)
        : failed('The gateway ended while the call ran. Whether it has run to its end is not known.')
      await store.end(task, ending)
    } finally {
      clearInterval(timer)
      await state.take(RUNNERS + id)
    }
  }

  async #endingOf(
    task: Task,
    work: ApprovalWork,
    approval: Approval | undefined,
    stop: Cancelling,
  ): Promise<TaskEnding> {
    if (approval?.status === 'consumed') return failed('Another call has used the approval.')
    if (approval === undefined || approval.status === 'expired') return failed('Nobody has decided in time.')
    return this.#run(task, work, stop)
  }

  async #run(
    { owner }: Task,
    { approvalId, tool, calledAs, app, session, input }: ApprovalWork,
    signal: Cancelling,
  ): Promise<TaskEnding> {
    const found = this.#deps.callerOf(owner)
    if (!found) return failed('The key of this client is no longer accepted.')
    const caller = session === undefined ? found : { ...found, session }
    const view = await this.#deps.gate.view(caller, { app })
    return toEnding(await view.call({ tool, calledAs, nameOf: () => calledAs, input, spends: approvalId, signal }))
  }

  async #withdraw({ owner }: Task, { approvalId }: ApprovalWork): Promise<void> {
    const { gate, callerOf } = this.#deps
    const caller = callerOf(owner)
    const approval = await gate.approvals.get(approvalId)
    const decision = approval?.status === 'pending' ? 'reject' : approval?.status === 'approved' ? 'revoke' : undefined
    if (caller && decision)
      await gate.approvals.decide(caller, approvalId, { decision, reason: 'the client cancelled the task' })
  }
}

/** How long the end of a task is kept after its approval could have been used. */
const KEPT_MS = 10 * 60_000
/** A person's no is an answer; any other refusal means that the call could not be made. */
const REJECTIONS: ReadonlySet<string> = new Set(['approval_rejected', 'approval_revoked'])

function toEnding(outcome: CallOutcome): TaskEnding {
  const isRejected = outcome.status === 'refused' && REJECTIONS.has(outcome.decision.reasons[0]?.code ?? '')
  if (outcome.status !== 'done' && outcome.status !== 'failed' && !isRejected) return failed(outcome.text)
  const answer = toAnswer(outcome)
  return 'error' in answer ? { status: 'failed', error: answer.error } : { status: 'completed', result: answer.result }
}

function failed(message: string): TaskEnding {
  return { status: 'failed', error: { code: RPC_CODES.internalError, message } }
}
