import type { Progress, View } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import {
  type ItemLists,
  type JsonRpcError,
  type ListedKind,
  type McpResult,
  pageOf,
  RPC_CODES,
  toItemAnswer,
} from '@toolgate/mcp'
import { RpcFault } from '../model/protocol.ts'
import { isLargeResult, nextTurn } from '../util/next-turn.ts'
import { clientNames, type NamesInLists } from './client-names.ts'
import type { Method, Serving } from './method.ts'
import type { McpReply, McpRequest, McpResultReply } from './request.ts'

/** Returns the pages of a list. They are cached with the view, as their bytes are. */
export function listOf(lists: Pick<ItemLists, 'listed' | 'of'>, kind: ListedKind, field: string): Method['serve'] {
  const kept = new WeakMap<View, Map<number, McpResultReply>>()
  return async ({ params, caller }, { gate, listTtlMs }) => {
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

/** Records an attempt whose parameters are invalid. @throws {RpcFault} `params_invalid` */
export async function refuseParams(view: View, calledAs: string, problem: string): Promise<never> {
  await view.call({ tool: undefined, calledAs, malformed: problem })
  throw new RpcFault('params_invalid', problem)
}

interface ItemCall {
  readonly id: string | undefined
  /** The item's name or URI, as the client spelled it. */
  readonly name: string
  readonly names: NamesInLists
  readonly input: JsonObject
  readonly notFound: JsonRpcError
  readonly isMissing?: (error: JsonRpcError) => boolean
}

/** Calls a resource or a prompt, in as many rounds as it needs. */
export function callItem(
  { rounds, listProblemOf }: Pick<Serving, 'rounds' | 'listProblemOf'>,
  request: McpRequest,
  view: View,
  { id, name, names, input, notFound, isMissing }: ItemCall,
): Promise<McpReply> {
  const { signal, callerNow } = request
  const onProgress = progressOf(request)
  const nameOf = clientNames(names, view, { id, name })
  return rounds.serve(request, {
    view,
    tool: id === undefined ? undefined : view.get(id),
    input,
    name,
    onProgress,
    call: (round) => view.call({ tool: id, input, calledAs: name, nameOf, signal, onProgress, callerNow, ...round }),
    toFailure: (message) => ({ error: { code: RPC_CODES.internalError, message } }),
    toReply: async (outcome) => {
      // A large text is written in a later turn than the one in which it was read.
      if (outcome.status === 'done' && isLargeResult(outcome.output as McpResult)) await nextTurn()
      const answer = toItemAnswer(outcome, notFound, isMissing)
      // Whether an item exists or is hidden makes no difference here.
      const problem =
        outcome.status === 'refused' &&
        'error' in answer &&
        answer.error === notFound &&
        listProblemOf?.(request.caller)
      return problem ? { error: { ...notFound, message: `${notFound.message}. ${problem}` } } : answer
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
