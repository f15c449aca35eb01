import { AsyncLocalStorage } from 'node:async_hooks'
import { getCurrentSpan } from '@openai/agents'
import type { CallRefused, Gate, View } from '@toolgate/core'
import type { ExposedNames } from '@toolgate/expose'
import { callerKey } from '@toolgate/core/internal'
import { createCallerOf, openView, wordsOf } from '../shared/guard-options.ts'
import { createOnCall, createWarn, type GuardedCall, GuardedRun, RunRegistry } from '../shared/runs.ts'
import type { GuardOptions } from './options.ts'
import type { AnyContext, AnyRunContext } from './sdk.ts'

/** The runs of one guard. Any number of callers may run one shared agent at once. */
export interface AgentRuns {
  /** Returns the run of a context. A context keeps its run until its caller changes. */
  of(runContext: AnyRunContext): Promise<OpenRun>
  /** Returns whether the current step may see a tool. The caller is looked up once for all tools of a step. */
  sees(runContext: AnyRunContext, agent: object, id: string): boolean | Promise<boolean>
}

type AgentRunOptions = GuardOptions<string, AnyContext>

export function createRuns(gate: RunOrigin['gate'], names: ExposedNames, options: AgentRunOptions): AgentRuns {
  const guard = {}
  const callerOf = createCallerOf(options.caller)
  const onCall = createOnCall(options.onCall, createWarn(options.onWarning))
  const runsOf = createPerParent(() => new RunRegistry<OpenRun>())
  const listings = createPerParent(() => new WeakMap<AnyRunContext, OpenRun>())

  /** Returns the run whose call started this one as a sub-agent. A run is not its own parent. */
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
      const words = wordsOf(options, runContext)
      const guarded = new GuardedRun({ gate, view, names, id, words, onCall })
      return new OpenRun(guarded, { gate, runContext, guard, bindsApprovals, current })
    })
  }

  /** Returns the run of a sub-agent. It sees at most what its calling run sees, with any context and options. */
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

  const of: AgentRuns['of'] = async (runContext) => {
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

/** The key of a run without its own caller. A caller's key is never empty. */
const SUB_AGENT = ''

/**
 * Creates a value for each parent run. Sub-agents of different runs may share a context, but each has a run of its own.
 */
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

function narrows({ activeTools, visibility, app, view }: AgentRunOptions): boolean {
  return activeTools !== undefined || visibility !== undefined || app !== undefined || view !== undefined
}

/** The origin of a run. */
interface RunOrigin {
  readonly gate: Pick<Gate, 'catalog' | 'view'>
  readonly runContext: AnyRunContext
  /** The guard of the run. `undefined` for a sub-agent, whose calling run has one. */
  readonly guard: object | undefined
  readonly bindsApprovals: boolean
  /** Returns the current run, or a new one if the caller has changed. */
  current(): Promise<OpenRun>
}

const calling = new AsyncLocalStorage<OpenRun>()

/** Returns the run of the current call, for any guard. A run that begins within this call is a sub-agent's. */
function callingRun(): OpenRun | undefined {
  return calling.getStore()
}

/** One run, or a sub-agent's run within it. */
export class OpenRun {
  readonly guarded: GuardedRun
  readonly origin: RunOrigin
  readonly #refused = new Map<string, CallRefused>()
  #listing: Listing | undefined
  #step = -1

  constructor(guarded: GuardedRun, origin: RunOrigin) {
    this.guarded = guarded
    this.origin = origin
  }

  /** Whether the step that an agent is preparing sees a tool. `undefined` if this question begins another step. */
  stillSees(id: string, agent: object): boolean | undefined {
    return this.#listing?.isOpenFor(agent, id) ? this.#listing.has(id) : undefined
  }

  /** Whether the step that an agent is preparing sees a tool. Availability and locks are read again. */
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

  /** Returns the call with the step's view, which alone has the tools that were opened since the run began. */
  #within(call: GuardedCall): GuardedCall {
    return { ...call, view: this.#listing?.view, step: Math.max(0, this.#step) }
  }

  /** Stores a refusal. The SDK asks for approval before it makes a call, so the call gets the same refusal. */
  keepRefusal(key: string, refused: CallRefused): void {
    this.#refused.set(key, refused)
  }

  takeRefusal(key: string): CallRefused | undefined {
    const refused = this.#refused.get(key)
    this.#refused.delete(key)
    return refused
  }
}

/** The tools that an agent asks about before one model request. It asks about each once. */
class Listing {
  readonly view: View
  readonly #agent: object
  readonly #asked = new Set<string>()

  constructor(view: View, agent: object) {
    this.view = view
    this.#agent = agent
  }

  /**
   * Whether a question belongs to this step. The SDK does not announce a step, so it begins when another agent asks, or
   * when the same agent asks about a tool again.
   */
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
 * Records the calls of unknown tools for which the SDK ends the run at once, its default. The error in the agent's span is
 * the only trace of them. There is a span even if tracing is off.
 */
function watchSpan(run: Pick<GuardedRun, 'call'>): void {
  const span = getCurrentSpan()
  if (!span || watched.has(span)) return
  watched.add(span)
  const setError = span.setError.bind(span)
  span.setError = (error) => {
    const name: unknown = error.data?.['tool_name']
    // The message contains the agent's name only if the agent does not have the tool.
    if (typeof name === 'string' && 'agent_name' in (error.data ?? {}))
      void run.call({ name, input: undefined, malformed: error.message })
    setError(error)
  }
}
