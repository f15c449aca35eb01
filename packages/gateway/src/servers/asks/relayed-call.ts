import type { CallContext } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import { canonicalize, type JsonObject } from '@toolgate/values/json'
import { InputRequired } from '@toolgate/core/toolset'
import { type McpResult, RPC_CODES, RpcError } from '@toolgate/mcp'
import { type CallMethod, type Upstream, type UpstreamCall, UpstreamError } from '../../model/upstream.ts'
import type { Asked } from './asked.ts'
import { type ClientLink, toClientLink } from './client-link.ts'
import { heldIn } from './held-calls.ts'
import { withRaised } from './raised-labels.ts'
import { type CallAsks, MAX_ASKS, type ServerAsks } from './server-asks.ts'

interface RelayedRequest {
  readonly method: CallMethod
  readonly params: JsonObject
}

/** The parts that the calls of all sources of a server share. */
export interface CallParts {
  readonly asks: Pick<ServerAsks, 'isSilent' | 'ofCall'>
  readonly running: Pick<RunningCalls, 'count'>
}

/** Counts the running calls of a server, over all of its users' lists. */
export class RunningCalls {
  #running = 0
  #idle: PromiseWithResolvers<void> | undefined

  /** Resolves when no call runs. */
  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : (this.#idle ??= Promise.withResolvers()).promise
  }

  async count<T>(running: Promise<T>): Promise<T> {
    this.#running++
    try {
      return await running
    } finally {
      this.#running--
      if (this.#running === 0) {
        this.#idle?.resolve()
        this.#idle = undefined
      }
    }
  }
}

type Send = (request: RelayedRequest, call: CallContext, through?: Pick<Upstream, 'call'>) => Relayed

/** Returns a function that sends calls to a server. `accepts`: the labels that its results may raise. */
export function senderTo(
  upstream: Pick<Upstream, 'call'>,
  { asks, running }: CallParts,
  accepts: readonly string[],
): Send {
  return (request, call, through = upstream) => {
    const relayed = relayCall(through, request, call, asks)
    return running.count(accepts.length === 0 ? relayed : withRaised(relayed, call, accepts))
  }
}

/**
 * Sends a call to its server, and passes the server's requests on to the client.
 *
 * A server of an earlier revision sends its requests over the stream of its client. A server of MCP 2026-07-28 answers
 * that it needs input: then a client of the same revision receives an {@link InputRequired}, and a client of an earlier
 * revision is asked at once. If a server of an earlier revision asks a client of 2026-07-28, the client receives an
 * {@link InputRequired} and the call is held.
 *
 * @throws {McpError}
 */
async function relayCall(
  upstream: Pick<Upstream, 'call'>,
  request: RelayedRequest,
  call: CallContext,
  server: CallParts['asks'],
): Relayed {
  const { caller, onProgress, context } = call
  let made: CallAsks | undefined
  const asksOf = () => (made ??= server.ofCall(call))
  try {
    if (!server.isSilent || toClientLink(context)?.answers)
      return await (isHeld(asksOf()) ? relayHeld : relayAtOnce)(upstream, request, call, asksOf())
    const onAsk: UpstreamCall['onAsk'] = (method, params, signal) => askNow(asksOf(), method, params, signal)
    return await finish(upstream, { ...request, caller, signal: call, onProgress, onAsk }, asksOf, call)
  } catch (error) {
    throw asksOf().admitError(error)
  }
}

type Relayed = Promise<McpResult | InputRequired>

function relayAtOnce(
  upstream: Pick<Upstream, 'call'>,
  request: RelayedRequest,
  call: CallContext,
  asks: CallAsks,
): Relayed {
  const asked = toCall(request, call, asks, {
    signal: call,
    onProgress: call.onProgress,
    onAsk: (method, params, signal) => askNow(asks, method, params, signal),
    onLog: asks.log,
  })
  return finish(upstream, asked, () => asks, call)
}

/**
 * Whether the call is held when the server asks: a client of 2026-07-28 has no stream for requests. The retry resumes
 * it.
 */
function isHeld({ link, capabilities }: CallAsks): boolean {
  if (link?.era !== 'modern') return false
  return capabilities !== undefined || (link.answers !== undefined && heldIn(link.answers.state) !== undefined)
}

function relayHeld(
  upstream: Pick<Upstream, 'call'>,
  request: RelayedRequest,
  call: CallContext,
  asks: CallAsks,
): Relayed {
  const owner = { caller: call.caller, tool: call.tool.id, key: canonicalize(request) }
  const { answers } = asks.link ?? {}
  const id = heldIn(answers?.state)
  if (id !== undefined) return asks.held.resume(id, owner).next(call, asks.log, answers?.responses)
  const held = asks.held.begin(owner, ({ signal, onProgress, onLog, ask }) => {
    const onAsk: UpstreamCall['onAsk'] = (method, params, withdrawn) =>
      ask(method, asks.admit(method, params), withdrawn)
    return finish(upstream, toCall(request, call, asks, { signal, onProgress, onAsk, onLog }), () => asks, signal)
  })
  return held.next(call, asks.log)
}

function toCall(
  request: RelayedRequest,
  { caller }: CallContext,
  { link, mayLog, capabilities }: CallAsks,
  { onLog, ...ports }: Pick<UpstreamCall, 'signal' | 'onProgress' | 'onAsk' | 'onLog'>,
): UpstreamCall {
  return {
    ...request,
    ...ports,
    caller,
    onLog: mayLog ? onLog : undefined,
    logLevel: mayLog ? link?.logLevel : undefined,
    capabilities,
    answers: answersOf(link),
  }
}

async function finish(
  upstream: Pick<Upstream, 'call'>,
  asked: UpstreamCall,
  asksOf: () => CallAsks,
  signal: Cancelling,
): Relayed {
  let next = asked
  for (let rounds = 0; rounds < MAX_ASKS; rounds++) {
    const result = await upstream.call(next)
    if (result['resultType'] !== 'input_required') return result
    const { inputRequests = {}, requestState } = result as { inputRequests?: JsonObject; requestState?: string }
    const asks = asksOf()
    const requests = asks.admitAll(inputRequests)
    const ahead = rounds === 0 ? answersAhead(asks.link, requests) : undefined
    if (asks.link?.era === 'modern' && !ahead)
      return new InputRequired({ requests, state: requestState } satisfies Asked)
    next = { ...asked, answers: { inputResponses: ahead ?? (await askAll(asks, requests, signal)), requestState } }
  }
  throw new UpstreamError('upstream_protocol', `asked for more input more than ${MAX_ASKS} times`)
}

function answersOf(link: ClientLink | undefined): UpstreamCall['answers'] {
  const answers = link?.answers
  if (!answers) return undefined
  const { responses, state } = answers
  return { inputResponses: responses, ...(typeof state === 'string' ? { requestState: state } : {}) }
}

/**
 * Returns the answers to all requests of the server, if the client has sent them without waiting for the requests. Its
 * other answers are ignored (MCP 2026-07-28, multi round-trip requests, "error handling").
 */
function answersAhead(link: ClientLink | undefined, requests: JsonObject): JsonObject | undefined {
  const sent = link?.answersAhead
  const keys = Object.keys(requests)
  if (!sent || keys.length === 0 || !keys.every((key) => Object.hasOwn(sent, key))) return undefined
  return Object.fromEntries(keys.map((key) => [key, sent[key]]))
}

/** Sends requests to a client of an earlier revision, one after another, because a person answers them. */
async function askAll(asks: CallAsks, requests: JsonObject, signal: Cancelling): Promise<JsonObject> {
  const answers: [string, JsonObject][] = []
  for (const [key, request] of Object.entries(requests)) {
    const { method, params } = request as { readonly method: string; readonly params: JsonObject }
    answers.push([key, await askLink(asks, method, params, signal)])
  }
  return Object.fromEntries(answers)
}

function askNow(asks: CallAsks, method: string, params: JsonObject, signal: Cancelling): Promise<JsonObject> {
  return askLink(asks, method, asks.admit(method, params), signal)
}

async function askLink(asks: CallAsks, method: string, params: JsonObject, signal: Cancelling): Promise<JsonObject> {
  const ask = asks.link?.ask
  if (!ask) throw new RpcError(RPC_CODES.methodNotFound, 'The client of this call cannot be asked.')
  await asks.enter(params)
  return ask(method, params, signal)
}
