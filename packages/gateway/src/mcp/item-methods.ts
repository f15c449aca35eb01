import type { Progress, View } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import {
  isNotFound,
  type ItemLists,
  type JsonRpcError,
  type ListedKind,
  type McpResult,
  pageOf,
  promptNotFound,
  resourceNotFound,
  RPC_CODES,
  toItemAnswer,
} from '@toolgate/mcp'
import { isLargeResult, nextTurn } from '../util/next-turn.ts'
import type { CallRounds } from '../calls/rounds.ts'
import type { TracedMethod } from '../telemetry/tracing.ts'
import type { Offer } from '../model/upstream.ts'
import { clientNames } from '../calls/client-names.ts'
import { completeArgument, type CompletionDeps } from './completion.ts'
import { RpcFault } from '../model/protocol.ts'
import type { ResourceSubscriptionsDeps } from './resource-subscriptions.ts'
import type { McpMethod, McpReply, McpRequest, McpResultReply } from '../calls/request.ts'

export interface ItemMethodDeps extends CompletionDeps {
  /** The capabilities that at least one server offers. */
  readonly offers: readonly Offer[]
  readonly lists: Pick<ItemLists, 'keyOf' | 'listed' | 'of'>
  readonly rounds: Pick<CallRounds, 'serve'>
  readonly watchResource: ResourceSubscriptionsDeps['watchResource']
  readonly listTtlMs: number
}

/**
 * Returns the methods for the items that servers offer. Other methods are unknown, in agreement with the capabilities.
 */
export function itemMethods(deps: ItemMethodDeps): readonly (readonly [TracedMethod, McpMethod])[] {
  const resources: readonly (readonly [TracedMethod, McpMethod])[] = [
    ['resources/list', listOf(deps, 'resource', 'resources')],
    ['resources/templates/list', listOf(deps, 'template', 'resourceTemplates')],
    ['resources/read', (request) => readResource(deps, request)],
  ]
  const prompts: typeof resources = [
    ['prompts/list', listOf(deps, 'prompt', 'prompts')],
    ['prompts/get', (request) => getPrompt(deps, request)],
  ]
  const offered = [
    ...(deps.offers.includes('resources') ? resources : []),
    ...(deps.offers.includes('prompts') ? prompts : []),
  ]
  if (offered.length === 0) return offered
  return [...offered, ['completion/complete', (request) => completeArgument(deps, request)]]
}

/** Returns the pages of a list. They are cached with the view, as their bytes are. */
function listOf({ gate, lists, listTtlMs }: ItemMethodDeps, kind: ListedKind, field: string): McpMethod {
  const kept = new WeakMap<View, Map<number, McpResultReply>>()
  return async ({ params, caller }) => {
    const view = await gate.view(caller)
    const list = lists.of(view, kind)
    const page = pageOf(list, params['cursor'])
    if (!page) throw new RpcFault('params_invalid', 'params.cursor is not a cursor of this list. It may have changed.')
    let pages = kept.get(view)
    if (!pages) kept.set(view, (pages = new Map()))
    let reply = pages.get(page.start)
    if (!reply) {
      const listed = lists.listed(view, list.items.slice(page.start, page.end))
      const { nextCursor } = page
      const result = { [field]: listed, ...(nextCursor === undefined ? {} : { nextCursor }) }
      pages.set(page.start, (reply = { result, ttlMs: listTtlMs, isKept: true }))
    }
    return reply
  }
}

/** Every read is decided and recorded, so a client must not cache the result. */
const READ_TTL_MS = 0

async function readResource(deps: ItemMethodDeps, request: McpRequest): Promise<McpReply> {
  const { uri } = request.params
  const view = await deps.gate.view(request.caller)
  if (typeof uri !== 'string') return refuseParams(view, '(no URI)', 'params.uri must be a string.')
  const id = deps.owners.idOf(uri, request.caller)
  const reply = await callItem(deps, request, view, {
    id,
    name: uri,
    // The URI has the spelling that is decided and sent.
    input: { uri: (id === undefined ? undefined : view.get(id)?.uri) ?? uri },
    notFound: resourceNotFound(uri, request.link.era),
    isMissing: isNotFound,
  })
  return 'result' in reply ? { ...reply, ttlMs: READ_TTL_MS } : reply
}

async function getPrompt(deps: ItemMethodDeps, request: McpRequest): Promise<McpReply> {
  const { name, arguments: input = {} } = request.params
  const view = await deps.gate.view(request.caller)
  if (typeof name !== 'string') return refuseParams(view, '(no name)', 'params.name must be a string.')
  if (!isObject(input) || Object.values(input).some((value) => typeof value !== 'string'))
    return refuseParams(view, name, 'params.arguments must be an object of strings.')
  const id = deps.names.promptNames(view).toId(name)
  return callItem(deps, request, view, { id, name, input, notFound: promptNotFound(name) })
}

/** Records an attempt whose parameters are invalid. @throws {RpcFault} `params_invalid` */
async function refuseParams(view: View, calledAs: string, problem: string): Promise<never> {
  await view.call({ tool: undefined, calledAs, malformed: problem })
  throw new RpcFault('params_invalid', problem)
}

interface ItemCall {
  readonly id: string | undefined
  /** The item's name or URI, as the client spelled it. */
  readonly name: string
  readonly input: JsonObject
  readonly notFound: JsonRpcError
  readonly isMissing?: (error: JsonRpcError) => boolean
}

function callItem(
  { rounds, names }: ItemMethodDeps,
  request: McpRequest,
  view: View,
  { id, name, input, notFound, isMissing }: ItemCall,
): Promise<McpReply> {
  const { signal, callerNow } = request
  const onProgress = progressOf(request)
  const nameOf = clientNames(names, view, { id, name })
  return rounds.serve(request, {
    view,
    tool: id === undefined ? undefined : view.get(id),
    input,
    name,
    call: (round) => view.call({ tool: id, input, calledAs: name, nameOf, signal, onProgress, callerNow, ...round }),
    toFailure: (message) => ({ error: { code: RPC_CODES.internalError, message } }),
    toReply: async (outcome) => {
      // A large text is written in a later turn than the one in which it was read.
      if (outcome.status === 'done' && isLargeResult(outcome.output as McpResult)) await nextTurn()
      return toItemAnswer(outcome, notFound, isMissing)
    },
  })
}

function progressOf(request: McpRequest): ((progress: Progress) => void) | undefined {
  const { _meta: meta } = request.params
  const progressToken = isObject(meta) ? meta['progressToken'] : undefined
  return ['string', 'number', 'bigint'].includes(typeof progressToken)
    ? (progress) => request.notify('notifications/progress', { ...progress, progressToken })
    : undefined
}
