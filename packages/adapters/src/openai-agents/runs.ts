import { AsyncLocalStorage } from 'node:async_hooks'
import { getCurrentSpan } from '@openai/agents'
import type { CallRefused, Gate, View } from '@toolgate/core'
import type { ExposedNames } from '@toolgate/core/expose'
import { callerKey } from '@toolgate/core/internal'
import { createCallerOf, openView } from '../shared/guard-options.ts'
import { createOnCall, createWarn, type GuardedCall, GuardedRun, RunRegistry } from '../shared/runs.ts'
import type { GuardOptions } from './options.ts'
import type { AnyContext, AnyRunContext } from './sdk.ts'

/** The runs of one guard, which any number of callers may have under way on one shared agent. */
export interface Runs {
  /** Gives the run that a context belongs to: always the same one, for as long as its caller is the same. */
  of(runContext: AnyRunContext): Promise<OpenRun>
  /** Answers whether the step sees a tool. Who runs the agent is asked once for all tools of a step. */
  sees(runContext: AnyRunContext, agent: object, id: string): boolean | Promise<boolean>
}

type RunOptions = GuardOptions<string, AnyContext>

export function createRuns(gate: Origin['gate'], names: ExposedNames, options: RunOptions): Runs {
  const guard = {}
  const callerOf = createCallerOf(options.caller)
  const onCall = createOnCall(options.onCall, createWarn(options.onWarning))
  const runsOf = createPerParent(() => new RunRegistry<OpenRun>())
  const listings = createPerParent(() => new WeakMap<AnyRunContext, OpenRun>())

  /** Gives the run that this one is a sub-agent's of, unless it is that run itself, going on in a sub-agent. */
  const parentOf = (runContext: AnyRunContext): OpenRun | undefined => {
    const parent = callingRun()
    if (parent?.origin.gate !== gate) return undefined
    return parent.origin.guard === guard && parent.origin.runContext === runContext ? undefined : parent
  }

  const ownRun = async (runContext: AnyRunContext): Promise<OpenRun> => {
    const caller = await callerOf(runContext)
    return runsOf(undefined).of(runContext, callerKey(caller), async () => {
      const view = await openView(gate, caller, options, runContext)
      const id = options.runId?.(runContext)
      const bindsApprovals = id !== undefined
      const current = () => ownRun(runContext)
      const guarded = new GuardedRun({ gate, view, names, id, onCall })
      return new OpenRun(guarded, { gate, runContext, guard, bindsApprovals, current })
    })
  }

  /** A sub-agent sees at most what the run sees that called it, whatever context and options it was given. */
  const runWithin = (parent: OpenRun, runContext: AnyRunContext): Promise<OpenRun> =>
    runsOf(parent).of(runContext, SUB_AGENT, async () => {
      const { bindsApprovals } = parent.origin
      const { view: outer, id } = parent.guarded
      const own = narrows(options) ? await openView(gate, outer.caller, options, runContext) : undefined
      const view = own ? own.narrow({ activeTools: outer.narrow({}).ids }) : outer
      const current = async () => runWithin(await parent.origin.current(), runContext)
      const guarded = new GuardedRun({ gate, view, names, id, bindsApprovals, onCall })
      return new OpenRun(guarded, { gate, runContext, guard: undefined, bindsApprovals, current })
    })

  const of: Runs['of'] = async (runContext) => {
    const parent = parentOf(runContext)
    return parent ? runWithin(await parent.origin.current(), runContext) : ownRun(runContext)
  }

  const listAnew = async (runContext: AnyRunContext, agent: object, id: string): Promise<boolean> => {
    const run = await of(runContext)
    watchSpan(run)
    listings(parentOf(runContext)).set(runContext, run)
    return run.sees(id, agent)
  }

  return {
    of,
    sees: (runContext, agent, id) =>
      listings(parentOf(runContext)).get(runContext)?.stillSees(id, agent) ?? listAnew(runContext, agent, id),
  }
}

/** Of a run that is no caller's of its own. No key of a caller is empty. */
const SUB_AGENT = ''

/** Contexts may be shared by the sub-agents of different runs, and each of those is a run of its own. */
function createPerParent<T>(create: () => T): (parent: OpenRun | undefined) => T {
  const own = create()
  const ofParents = new WeakMap<OpenRun, T>()
  return (parent) => {
    if (!parent) return own
    let known = ofParents.get(parent)
    if (known === undefined) ofParents.set(parent, (known = create()))
    return known
  }
}

function narrows({ activeTools, visibility, app, view }: RunOptions): boolean {
  return activeTools !== undefined || visibility !== undefined || app !== undefined || view !== undefined
}

/** Where a run comes from. */
interface Origin {
  readonly gate: Pick<Gate, 'catalog' | 'view'>
  readonly runContext: AnyRunContext
  /** The guard whose run it is; none of a sub-agent's, which is its caller's. */
  readonly guard: object | undefined
  readonly bindsApprovals: boolean
  /** The run as of now: another one, where it is another who runs the agent by now. */
  current(): Promise<OpenRun>
}

const calling = new AsyncLocalStorage<OpenRun>()

/** Gives the run whose call is under way, of whatever guard: what begins within it is a sub-agent's. */
function callingRun(): OpenRun | undefined {
  return calling.getStore()
}

/** One run, or that of a sub-agent within it. */
export class OpenRun {
  readonly guarded: GuardedRun
  readonly origin: Origin
  readonly #refused = new Map<string, CallRefused>()
  #listing: Listing | undefined
  #step = -1

  constructor(guarded: GuardedRun, origin: Origin) {
    this.guarded = guarded
    this.origin = origin
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
    return calling.run(this, () => this.guarded.call(this.#within(call)))
  }

  requestApproval(call: GuardedCall): ReturnType<GuardedRun['requestApproval']> {
    return this.guarded.requestApproval(this.#within(call))
  }

  /** What was opened since the run began is in the view of the step only. */
  #within(call: GuardedCall): GuardedCall {
    return { ...call, view: this.#listing?.view, step: Math.max(0, this.#step) }
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
  readonly view: View
  readonly #agent: object
  readonly #asked = new Set<string>()

  constructor(view: View, agent: object) {
    this.view = view
    this.#agent = agent
  }

  /** The SDK does not say when a step begins: it is when another agent asks, or the same one for the same tool again. */
  isOpenFor(agent: object, id: string): boolean {
    return this.#agent === agent && !this.#asked.has(id)
  }

  has(id: string): boolean {
    this.#asked.add(id)
    return this.view.has(id)
  }
}

const watched = new WeakSet<object>()

/**
 * Records the calls of unknown tools for which the SDK ends the run at once, as it does by default: the error that it
 * writes into the agent's span is the only trace of them, and there is a span also where tracing is switched off.
 */
function watchSpan(run: Pick<GuardedRun, 'call'>): void {
  const span = getCurrentSpan()
  if (!span || watched.has(span)) return
  watched.add(span)
  const setError = span.setError.bind(span)
  span.setError = (error) => {
    const name: unknown = error.data?.['tool_name']
    // Only what the agent does not have is told with the agent's name.
    if (typeof name === 'string' && 'agent_name' in (error.data ?? {}))
      void run.call({ name, input: undefined, malformed: error.message })
    setError(error)
  }
}
