import { type Caller, createGate, defineTool, type Gate, memoryAudit } from '@toolgate/core'
import { TERMINAL_EVENTS } from '@toolgate/core/audit'
import { memoryAvailability } from '@toolgate/core/groups'
import type { JsonObject } from '@toolgate/values/json'
import { type Clock, memoryApprovals, memoryState, type StateStore, systemClock } from '@toolgate/core/stores'
import { InputRequired, type Source } from '@toolgate/core/toolset'
import { ToolLists } from '@toolgate/mcp'
import { toClientLink } from '../servers/asks/client-link.ts'
import { ApprovalTasks } from '../mcp/tasks/approval-tasks.ts'
import type { Task, TaskOwner } from '../mcp/tasks/task.ts'
import { WorkLeases } from '../util/leases.ts'
import { TaskStore } from '../mcp/tasks/task-store.ts'
import { Tasks } from '../mcp/tasks/tasks.ts'

export const VERA: TaskOwner = { tenant: undefined, user: 'vera', client: 'k1' }
const STARTED = { resultType: 'task', state: 'toolgate.task:a', statusMessage: undefined, ttlMs: undefined } as const
const ASKED = { requests: { a: { method: 'elicitation/create' } }, state: 'toolgate.task:a' }
const INPUT = { n: 1 }

/** One process of a gateway. */
export interface TaskProcess {
  readonly store: TaskStore
  readonly tasks: Tasks
  readonly approvals: ApprovalTasks
  leave(): Promise<void>
}

/** The next step of the server of `up:work` with its task. */
type ServerMove = 'work' | 'ask' | 'finish' | 'fail'

/** Gateways over one store, with a tool `up:work` that runs as a task, and `up:pay`, which needs an approval. */
export class TaskWorld {
  readonly audit = memoryAudit()
  readonly cancelled: string[] = []
  readonly clock: Clock & { now: number }
  readonly gate: Gate
  readonly state: StateStore
  /** The number of rounds of the task. */
  follows = 0
  isKnown = true
  isListed = true
  readonly faults: unknown[] = []
  readonly #rules: Parameters<Gate['setRules']>[0]
  readonly #availability = memoryAvailability({ server: { available: true } })
  readonly #waiters = new Set<() => void>()
  readonly #listeners = new Set<() => void>()
  #move: ServerMove = 'work'

  constructor({ limits = [] }: { readonly limits?: readonly string[] } = {}) {
    this.clock = { now: systemClock.wallMs(), wallMs: () => this.clock.now, monotonicMs: systemClock.monotonicMs }
    this.state = memoryState({ clock: this.clock })
    const tools = [
      defineTool({
        namespace: 'up',
        name: 'work',
        execute: (_input: unknown, call) => this.#work(toClientLink(call.context), call),
      }),
      defineTool({ namespace: 'up', name: 'pay', execute: () => ({ content: [] }) }),
    ]
    const source: Source = {
      name: 'up',
      namespaces: ['up'],
      tools: () => (this.isListed ? tools : []),
      subscribe: (listener) => {
        this.#listeners.add(listener)
        return () => this.#listeners.delete(listener)
      },
    }
    const groups = { server: { tools: ['up:work'], visibility: 'conditional' as const } }
    this.#rules = { sources: [source], limits: [...limits], groups, policy: { ask: ['up:pay'] } }
    this.gate = createGate({
      ...this.#rules,
      apps: { desk: { tools: ['up:*'] } },
      audit: this.audit,
      approvals: memoryApprovals(),
      availability: this.#availability,
      clock: this.clock,
    })
  }

  open({ isKept = true } = {}): TaskProcess {
    const { state, clock, gate } = this
    const store = new TaskStore({ state, clock })
    const deps = {
      store,
      state,
      clock,
      gate,
      names: new ToolLists(gate),
      isKept,
      callerOf: (_: TaskOwner, app: string | undefined): Caller | undefined => {
        const isServed = app === undefined || gate.apps.list.some(({ name }) => name === app)
        return this.isKnown && isServed ? { user: 'vera' } : undefined
      },
      cancelUpstream: async (server: string, id: string) => void this.cancelled.push(`${server} ${id}`),
      hasEnded: async (id: string) =>
        this.audit.records.some(({ event, tool_call_id: call }) => call === id && TERMINAL_EVENTS.has(event)),
      onFault: (error: unknown) => void this.faults.push(error),
    }
    const tasks = new Tasks({ ...deps, leases: new WorkLeases({ state, clock, prefix: 'gateway/task-followers/' }) })
    const approvals = new ApprovalTasks({
      ...deps,
      leases: new WorkLeases({ state, clock, prefix: 'gateway/task-followers/' }),
    })
    return { store, tasks, approvals, leave: async () => void (await Promise.all([tasks.leave(), approvals.leave()])) }
  }

  /** Starts a call of `up:work`, which its server runs as a task. */
  async begin({ tasks }: TaskProcess, app?: string): Promise<Task> {
    const view = await this.gate.view({ user: 'vera' }, { app })
    const outcome = await view.call({ tool: 'up:work', input: INPUT })
    if (outcome.status !== 'input_required') throw new Error(outcome.text)
    const client = { era: 'modern', capabilities: {} } as const
    return tasks.begin({ owner: VERA, view, tool: 'up:work', input: INPUT, client, ttlMs: undefined, outcome })
  }

  /** Starts a call of `up:pay`, which waits for approval. */
  async beginWaiting({ approvals }: TaskProcess, input: JsonObject = INPUT, app?: string): Promise<Task> {
    const view = await this.gate.view({ user: 'vera' }, { app })
    const outcome = await view.call({ tool: 'up:pay', input })
    if (outcome.status !== 'waiting') throw new Error(outcome.text)
    return approvals.begin({ owner: VERA, view, input, name: 'up__pay', outcome, requests: {} })
  }

  /** Moves the server's task to its next state. */
  move(to: ServerMove): void {
    this.#move = to
    for (const wake of this.#waiters) wake()
  }

  setServer(available: boolean): void {
    this.#availability.set('server', { available })
  }

  setListed(isListed: boolean): void {
    this.isListed = isListed
    for (const listener of this.#listeners) listener()
  }

  /** Removes the app `desk` from the configuration. */
  removeApp(): void {
    this.gate.setRules(this.#rules)
  }

  /** Returns the events of a call over all of its attempts, and whether each attempt has ended exactly once. */
  chainOf(callId: string): { readonly events: readonly string[]; readonly isWhole: boolean } {
    const chain = this.audit.records.filter(({ tool_call_id: id, continues }) => id === callId || continues === callId)
    const attempts = Map.groupBy(chain, ({ tool_call_id: id }) => id)
    const isWhole = [...attempts.values()].every(
      (records) => records.filter(({ event }) => TERMINAL_EVENTS.has(event)).length === 1,
    )
    return { events: chain.map(({ event }) => event), isWhole }
  }

  async #work(
    link: ReturnType<typeof toClientLink>,
    call: { readonly onAbort: (listener: () => void) => () => void; readonly aborted: boolean },
  ): Promise<unknown> {
    if (!link?.answers) return new InputRequired(STARTED)
    this.follows++
    if (Object.keys(link.answers.responses).length > 0 && this.#move === 'ask') this.#move = 'work'
    const { promise, resolve } = Promise.withResolvers<void>()
    const leave = link.tasks?.leave
    leave?.onAbort(resolve)
    call.onAbort(resolve)
    const wake = () => this.#move !== 'work' && resolve()
    this.#waiters.add(wake)
    wake()
    if (leave?.aborted || call.aborted) resolve()
    await promise
    this.#waiters.delete(wake)
    if (leave?.aborted || call.aborted) return new InputRequired(STARTED)
    if (this.#move === 'ask') return new InputRequired(ASKED)
    if (this.#move === 'fail') throw new Error('it broke')
    return { content: [{ type: 'text', text: 'done' }] }
  }
}
