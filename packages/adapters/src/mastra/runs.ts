import { randomUUID } from 'node:crypto'
import type { RequestContext } from '@mastra/core/request-context'
import type { Caller, View } from '@toolgate/core'
import type { RunOfCall } from '@toolgate/core/audit'
import { callerKey, isObject } from '@toolgate/core/internal'
import { createCallerOf, openView } from '../shared/guard-options.ts'
import { RunRegistry } from '../shared/runs.ts'
import type { AnyGate, GuardOptions } from './options.ts'

/** One run or resume of an agent, as far as Mastra lets it be known. */
export interface Request {
  readonly caller: Caller
  readonly view: View
  readonly run: RunOfCall
}

/** The requests under way. One is known by its context; several runs may share that. */
export interface Requests {
  /** Begins one: its view is made anew. */
  open(requestContext: RequestContext): Promise<Request>
  /** Gives the one under way, or a new one where the caller is another by now. */
  current(requestContext: RequestContext): Promise<Request>
  /** The same for the context that a tool is given, which Mastra has made of several where a run was resumed. */
  ofTool(requestContext: RequestContext): Promise<Request>
  /** Gives a run one of its own: of several that share a context, each has an id. */
  claim(request: Request): Request
}

export function createRequests(gate: AnyGate, options: GuardOptions): Requests {
  const opened = new RunRegistry<Request>()
  const claimed = new WeakSet<Request>()
  const contexts = createContextMarks()
  const callerOf = createCallerOf(options.caller)

  async function openFor(caller: Caller, requestContext: RequestContext): Promise<Request> {
    const view = await openView(gate, caller, options, { requestContext })
    const id = options.runId?.({ requestContext })
    return { caller, view, run: { id: id ?? randomUUID(), bindsApprovals: id !== undefined } }
  }

  async function current(requestContext: RequestContext): Promise<Request> {
    const caller = await callerOf({ requestContext })
    return opened.of(requestContext, callerKey(caller), () => openFor(caller, requestContext))
  }

  return {
    async open(requestContext) {
      contexts.mark(requestContext)
      const caller = await callerOf({ requestContext })
      return opened.open(requestContext, callerKey(caller), () => openFor(caller, requestContext))
    },
    current,
    ofTool: (requestContext) => current(contexts.latestIn(requestContext)),
    claim(request) {
      const { run } = request
      const own =
        claimed.has(request) && !run.bindsApprovals ? { ...request, run: { ...run, id: randomUUID() } } : request
      claimed.add(own)
      return own
    },
  }
}

export function isSameCaller(one: Request, other: Request): boolean {
  return one === other || callerKey(one.caller) === callerKey(other.caller)
}

let lastMark = 0

const MARK_PREFIX = 'toolgate:'

/**
 * Knows which contexts another one was made of.
 *
 * Mastra runs a paused tool in the context of that time laid over the one of the resume, so its caller is the old one.
 * Each context therefore gets an entry under a key of its own, which the laying over keeps. An entry that came out of
 * a store or a request is no mark of ours: it only shows that the context was made of several.
 */
function createContextMarks() {
  const marks = new WeakMap<object, { readonly context: RequestContext; readonly order: number }>()
  const marked = new WeakSet<RequestContext>()
  return {
    mark(context: RequestContext): void {
      if (marked.has(context)) return
      marked.add(context)
      const order = ++lastMark
      const mark = {}
      marks.set(mark, { context, order })
      context.set(`${MARK_PREFIX}${randomUUID()}`, mark)
    },
    /** Gives the one that was opened last; the context itself, unless it was made of several. */
    latestIn(context: RequestContext): RequestContext {
      if (marked.has(context)) return context
      const entries = [...context.entries()].filter(([key]) => key.startsWith(MARK_PREFIX))
      const found = entries.flatMap(([, value]) => (isObject(value) && marks.get(value)) || [])
      const [latest] = found.toSorted((one, other) => other.order - one.order)
      return latest && entries.length > 1 ? latest.context : context
    },
  }
}
