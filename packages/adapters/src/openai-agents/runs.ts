import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Caller,
  type CallRefused,
  callerKey,
  ConfigError,
  defineCaller,
  type ExposedNames,
  type Gate,
  type View,
  type ViewOptions,
} from '@toolgate/core'
import { createRun, type GuardedCall, type GuardedRun } from '../shared/run.ts'
import type { AnyContext, AnyRunContext } from './sdk-types.ts'
import type { GuardOptions } from './options.ts'
import { watchSpan } from './span-errors.ts'

/** The runs of one guard, which any number of callers may have under way on one shared agent. */
export interface Runs {
  /** Gives the run that a context belongs to: always the same one, for as long as its caller is the same. */
  of(runContext: AnyRunContext): Promise<OpenRun>
  /** Answers whether the step sees a tool. Who runs the agent is asked once for all tools of a step. */
  sees(runContext: AnyRunContext, agent: object, id: string): boolean | Promise<boolean>
}

type AnyGate = Pick<Gate, 'catalog' | 'view'>
type RunOptions = GuardOptions<string, AnyContext>

export function createRuns(gate: AnyGate, names: ExposedNames, options: RunOptions): Runs {
  const opened = new WeakMap<AnyRunContext, { readonly key: string | undefined; readonly run: Promise<OpenRun> }>()
  const listing = new WeakMap<AnyRunContext, OpenRun>()
  const remember = (runContext: AnyRunContext, key: string | undefined, run: Promise<OpenRun>) => {
    opened.set(runContext, { key, run })
    // What could not be opened is tried anew at the next question.
    run.catch(() => opened.delete(runContext))
    return run
  }
  const runs: Runs = {
    async of(runContext) {
      const known = opened.get(runContext)
      const parent = subAgents.getStore()
      if (known && known.key === undefined) return known.run
      if (!known && parent?.gate === gate)
        return remember(runContext, undefined, openWithin(parent, names, viewOptions(options)))
      const caller = await callerOf(options.caller, runContext)
      const key = callerKey(caller)
      const current = opened.get(runContext)
      if (current?.key === key) return current.run
      return remember(runContext, key, openRun(gate, names, caller, options, runContext))
    },
    sees(runContext, agent, id) {
      return listing.get(runContext)?.stillSees(id, agent) ?? listAnew(runContext, agent, id)
    },
  }
  async function listAnew(runContext: AnyRunContext, agent: object, id: string): Promise<boolean> {
    const run = await runs.of(runContext)
    watchSpan(run)
    listing.set(runContext, run)
    return run.sees(id, agent)
  }
  return runs
}

/** The run within which a sub-agent runs, whatever context and options it was given. */
const subAgents = new AsyncLocalStorage<OpenRun>()

async function openRun(
  gate: AnyGate,
  names: ExposedNames,
  caller: Caller,
  options: RunOptions,
  runContext: AnyRunContext,
): Promise<OpenRun> {
  const view = await gate.view(caller, viewOptions(options))
  const id = options.runId?.(runContext)
  return new OpenRun(gate, createRun(gate, view, names, id), id !== undefined)
}

/** A sub-agent sees at most what the run sees that called it. */
async function openWithin(parent: OpenRun, names: ExposedNames, options: ViewOptions | undefined): Promise<OpenRun> {
  const { gate, guarded, bindsApprovals } = parent
  const { view, id } = guarded
  const own = options && (await gate.view(view.caller, options))
  const narrowed = own ? own.narrow({ activeTools: view.narrow({}).ids }) : view
  return new OpenRun(gate, createRun(gate, narrowed, names, id, bindsApprovals), bindsApprovals)
}

/** One run, or that of a sub-agent within it. */
export class OpenRun {
  readonly gate: AnyGate
  readonly guarded: GuardedRun
  readonly bindsApprovals: boolean
  readonly #refused = new Map<string, CallRefused>()
  #listing: Listing | undefined
  #step = -1

  constructor(gate: AnyGate, guarded: GuardedRun, bindsApprovals: boolean) {
    this.gate = gate
    this.guarded = guarded
    this.bindsApprovals = bindsApprovals
  }

  /** Answers for the step that an agent prepares already; `undefined` where this question begins another one. */
  stillSees(id: string, agent: object): boolean | undefined {
    return this.#listing?.isOpenFor(agent, id) ? this.#listing.has(id) : undefined
  }

  /** Answers whether the step that an agent prepares sees a tool: availability and locks are as they are now. */
  sees(id: string, agent: object): boolean {
    if (this.#listing === undefined || !this.#listing.isOpenFor(agent, id)) {
      this.#listing = new Listing(this.guarded.view.narrow({}), agent)
      this.#step += 1
    }
    return this.#listing.has(id)
  }

  call(call: GuardedCall): ReturnType<GuardedRun['call']> {
    return subAgents.run(this, () => this.guarded.call(this.#within(call)))
  }

  requestApproval(call: GuardedCall): ReturnType<GuardedRun['requestApproval']> {
    return this.guarded.requestApproval(this.#within(call))
  }

  #within(call: GuardedCall): GuardedCall {
    return { ...call, step: Math.max(0, this.#step) }
  }

  /** The SDK asks for approvals first and calls then: what was refused at the first is not asked again at the second. */
  keepRefusal(key: string, refused: CallRefused): void {
    this.#refused.set(key, refused)
  }

  takeRefusal(key: string): CallRefused | undefined {
    const refused = this.#refused.get(key)
    this.#refused.delete(key)
    return refused
  }
}

/** What an agent asks for before one request of its model: each tool once. */
class Listing {
  readonly #view: View
  readonly #agent: object
  readonly #asked = new Set<string>()

  constructor(view: View, agent: object) {
    this.#view = view
    this.#agent = agent
  }

  /** The SDK does not say when a step begins: it is when another agent asks, or the same one for the same tool again. */
  isOpenFor(agent: object, id: string): boolean {
    return this.#agent === agent && !this.#asked.has(id)
  }

  has(id: string): boolean {
    this.#asked.add(id)
    return this.#view.has(id)
  }
}

function viewOptions({ activeTools, visibility, app }: RunOptions): ViewOptions | undefined {
  if (activeTools === undefined && visibility === undefined && app === undefined) return undefined
  return { activeTools, visibility, app }
}

async function callerOf(caller: RunOptions['caller'], runContext: AnyRunContext): Promise<Caller> {
  const answer = typeof caller === 'function' ? await caller(runContext) : caller
  if (typeof answer !== 'object' || answer === null)
    throw new ConfigError('guard.caller', 'gave no caller for this run: what has no caller sees and runs nothing')
  return defineCaller(answer)
}
