import { randomUUID } from 'node:crypto'
import { type Caller, callerKey, defineCaller, type RunOfCall, type View } from '@toolgate/core'
import type { RequestContext } from '@mastra/core/request-context'
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
  /** Gives a run one of its own: of several that share a context, each has an id. */
  claim(request: Request): Request
}

export function createRequests(gate: AnyGate, { caller: callerOf, view: narrowing, runId }: GuardOptions): Requests {
  const opened = new WeakMap<RequestContext, Request>()
  const claimed = new WeakSet<Request>()
  const askCaller = async (requestContext: RequestContext) => defineCaller(await callerOf({ requestContext }))

  async function openFor(caller: Caller, requestContext: RequestContext): Promise<Request> {
    const options = typeof narrowing === 'function' ? await narrowing({ requestContext }) : narrowing
    const id = runId?.({ requestContext })
    const run = { id: id ?? randomUUID(), bindsApprovals: id !== undefined }
    const request = { caller, view: await gate.view(caller, options), run }
    opened.set(requestContext, request)
    return request
  }

  return {
    open: async (requestContext) => openFor(await askCaller(requestContext), requestContext),
    async current(requestContext) {
      const caller = await askCaller(requestContext)
      const known = opened.get(requestContext)
      return known && callerKey(known.caller) === callerKey(caller) ? known : openFor(caller, requestContext)
    },
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
