import type { ViewOptions } from '@toolgate/core'
import type { ExposedNames } from '@toolgate/core/expose'
import { callerKey } from '@toolgate/core/internal'
import { createCallerOf } from '../shared/caller.ts'
import { createRun } from '../shared/run.ts'
import { callingRun, OpenRun, type Origin } from './open-run.ts'
import type { GuardOptions } from './options.ts'
import type { AnyContext, AnyRunContext } from './sdk-types.ts'
import { watchSpan } from './span-errors.ts'

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
  const runsOf = createPerParent<{ readonly key: string; readonly run: Promise<OpenRun> }>()
  const listings = createPerParent<OpenRun>()

  /** Gives the run that this one is a sub-agent's of, unless it is that run itself, going on in a sub-agent. */
  const parentOf = (runContext: AnyRunContext): OpenRun | undefined => {
    const parent = callingRun()
    if (parent?.origin.gate !== gate) return undefined
    return parent.origin.guard === guard && parent.origin.runContext === runContext ? undefined : parent
  }

  const opened = (
    parent: OpenRun | undefined,
    runContext: AnyRunContext,
    key: string,
    open: () => Promise<OpenRun>,
  ): Promise<OpenRun> => {
    const runs = runsOf(parent)
    const known = runs.get(runContext)
    if (known?.key === key) return known.run
    const run = open()
    runs.set(runContext, { key, run })
    // What could not be opened is tried anew at the next question.
    run.catch(() => runs.delete(runContext))
    return run
  }

  const ownRun = async (runContext: AnyRunContext): Promise<OpenRun> => {
    const caller = await callerOf(runContext)
    return opened(undefined, runContext, callerKey(caller), async () => {
      const view = await gate.view(caller, viewOptions(options))
      const id = options.runId?.(runContext)
      const bindsApprovals = id !== undefined
      const current = () => ownRun(runContext)
      return new OpenRun(createRun(gate, view, names, id), { gate, runContext, guard, bindsApprovals, current })
    })
  }

  /** A sub-agent sees at most what the run sees that called it, whatever context and options it was given. */
  const runWithin = (parent: OpenRun, runContext: AnyRunContext): Promise<OpenRun> =>
    opened(parent, runContext, SUB_AGENT, async () => {
      const { bindsApprovals } = parent.origin
      const { view, id } = parent.guarded
      const narrowing = viewOptions(options)
      const own = narrowing && (await gate.view(view.caller, narrowing))
      const narrowed = own ? own.narrow({ activeTools: view.narrow({}).ids }) : view
      const current = async () => runWithin(await parent.origin.current(), runContext)
      const origin = { gate, runContext, guard: undefined, bindsApprovals, current }
      return new OpenRun(createRun(gate, narrowed, names, id, bindsApprovals), origin)
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
function createPerParent<T>(): (parent: OpenRun | undefined) => WeakMap<AnyRunContext, T> {
  const own = new WeakMap<AnyRunContext, T>()
  const ofParents = new WeakMap<OpenRun, WeakMap<AnyRunContext, T>>()
  return (parent) => {
    if (!parent) return own
    const known = ofParents.get(parent) ?? new WeakMap<AnyRunContext, T>()
    ofParents.set(parent, known)
    return known
  }
}

function viewOptions({ activeTools, visibility, app }: RunOptions): ViewOptions | undefined {
  if (activeTools === undefined && visibility === undefined && app === undefined) return undefined
  return { activeTools, visibility, app }
}
