import type { CallContext } from '@toolgate/core'
import type { Cancelling, JsonObject } from '@toolgate/core/internal'
import { InputRequired } from '@toolgate/core/toolset'
import { type McpResult, RPC_CODES, RpcError } from '@toolgate/mcp'
import { type CallMethod, type Upstream, type UpstreamCall, UpstreamError } from '../upstream/upstream.ts'
import type { Asked } from './asked.ts'
import type { ClientLink } from './client-link.ts'
import { type CallAsks, MAX_ASKS } from './server-asks.ts'

export interface ServerRequest {
  readonly method: CallMethod
  readonly params: JsonObject
}

/**
 * Sends a call to its server, and passes on what the server asks the client in between.
 *
 * A server of an earlier revision asks over the stream of its client. A server of MCP 2026-07-28 answers that it needs
 * input: a client of the same revision gets an {@link InputRequired}, and one of an earlier revision is asked at once.
 *
 * @throws {McpError}
 */
export async function relayCall(
  upstream: Pick<Upstream, 'call'>,
  request: ServerRequest,
  call: CallContext,
  asks: CallAsks,
): Promise<McpResult | InputRequired> {
  const { link } = asks
  const onAsk = (method: string, params: JsonObject, signal: Cancelling) => askNow(asks, method, params, signal)
  const asked: UpstreamCall = {
    ...request,
    caller: call.caller,
    signal: call,
    onProgress: call.onProgress,
    onAsk,
    onLog: asks.mayLog ? asks.log : undefined,
    logLevel: asks.mayLog ? link?.logLevel : undefined,
    capabilities: asks.capabilities,
    answers: answersOf(link),
  }
  try {
    return await finish(upstream, asked, asks, call)
  } catch (error) {
    throw asks.admitError(error)
  }
}

async function finish(
  upstream: Pick<Upstream, 'call'>,
  asked: UpstreamCall,
  asks: CallAsks,
  signal: Cancelling,
): Promise<McpResult | InputRequired> {
  let next = asked
  for (let rounds = 0; rounds < MAX_ASKS; rounds++) {
    const result = await upstream.call(next)
    if (result['resultType'] !== 'input_required') return result
    const { inputRequests = {}, requestState } = result as { inputRequests?: JsonObject; requestState?: string }
    const requests = asks.admitAll(inputRequests)
    if (asks.link?.era === 'modern') return new InputRequired({ requests, state: requestState } satisfies Asked)
    next = { ...asked, answers: { inputResponses: await askAll(asks, requests, signal), requestState } }
  }
  throw new UpstreamError('upstream_protocol', `asked for more input more than ${MAX_ASKS} times`)
}

function answersOf(link: ClientLink | undefined): UpstreamCall['answers'] {
  const answers = link?.answers
  if (!answers) return undefined
  const { responses, state } = answers
  return { inputResponses: responses, ...(typeof state === 'string' ? { requestState: state } : {}) }
}

/** Asks a client of an earlier revision one after the other, as people answer. */
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
  return ask(method, params, signal)
}
