import { randomUUID } from 'node:crypto'
import type { RequestContext } from '@mastra/core/request-context'
import type { Caller, View } from '@toolgate/core'
import type { RunOfCall } from '@toolgate/core/audit'
import { callerKey } from '@toolgate/core/internal'
import { isObject } from '@toolgate/values/json'
import { createCallerOf, openView, wordsOf } from '../shared/guard-options.ts'
import { RunRegistry } from '../shared/runs.ts'
import type { AnyGate, GuardOptions } from './options.ts'

/** One run or resume of an agent, as far as Mastra identifies it. */
export interface Request {
  readonly caller: Caller
  readonly view: View
  readonly run: RunOfCall
}

/** The current requests by context. Several runs may share one context. */
export interface Requests {
  /** Begins a request with a new view. */
  open(requestContext: RequestContext): Promise<Request>
  /** Returns the current request, or a new one if the caller has changed. */
  current(requestContext: RequestContext): Promise<Request>
  /** As `current`, for the context that a tool receives. On a resume, Mastra merges several contexts into it. */
  ofTool(requestContext: RequestContext): Promise<Request>
  /** Gives a run its own request, so that runs with a shared context get different ids. */
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
    const words = wordsOf(options, { requestContext })
    return { caller, view, run: { id: id ?? randomUUID(), bindsApprovals: id !== undefined, ...words } }
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
 * Finds the contexts that another one was merged from.
 *
 * Mastra runs a paused tool in a merge of the resuming context and the old one, and the old caller wins. So each
 * context gets an entry under a key of its own, which the merge keeps. An entry from a store or a request only shows
 * that the context was merged.
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
    /** Returns the context that was opened last, or the given one if it was not merged. */
    latestIn(context: RequestContext): RequestContext {
      if (marked.has(context)) return context
      const entries = [...context.entries()].filter(([key]) => key.startsWith(MARK_PREFIX))
      const found = entries.flatMap(([, value]) => (isObject(value) && marks.get(value)) || [])
      const [latest] = found.toSorted((one, other) => other.order - one.order)
      return latest && entries.length > 1 ? latest.context : context
    },
  }
}
