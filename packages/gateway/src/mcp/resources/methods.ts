import type { Caller, Gate } from '@toolgate/core'
import { toPlainUri } from '@toolgate/core/toolset'
import { isNotFound, type ItemLists, type ResourceOwners, resourceNotFound } from '@toolgate/mcp'
import type { JsonObject } from '@toolgate/values/json'
import type { NamesInLists } from '../../calls/client-names.ts'
import { callItem, listOf, refuseParams } from '../../calls/items.ts'
import type { Method, Serving } from '../../calls/method.ts'
import type { McpReply, McpRequest } from '../../calls/request.ts'
import type { Session } from '../../calls/sessions.ts'
import { RpcFault } from '../../model/protocol.ts'
import { RESOURCE_UPDATED } from '../../servers/transport/announcements.ts'
import type { ResourceSubscriptions } from './subscriptions.ts'

interface ResourceMethodDeps {
  readonly names: NamesInLists
  readonly owners: Pick<ResourceOwners, 'idOf'>
  readonly lists: Pick<ItemLists, 'listed' | 'of'>
  readonly subscriptionsOf: (gate: Pick<Gate, 'view'>) => Pick<ResourceSubscriptions, 'subscribe'>
}

export function resourceMethods(deps: ResourceMethodDeps): readonly Method[] {
  const { lists } = deps
  return [
    { name: 'resources/list', serve: listOf(lists, 'resource', 'resources') },
    { name: 'resources/templates/list', serve: listOf(lists, 'template', 'resourceTemplates') },
    { name: 'resources/read', serve: (request, at) => readResource(deps, request, at) },
    { name: 'resources/subscribe', era: 'legacy', serve: (request, at) => subscribe(deps, request, at) },
    { name: 'resources/unsubscribe', era: 'legacy', serve: unsubscribe },
  ]
}

/** Every read is decided and recorded, so a client must not cache the result. */
const READ_TTL_MS = 0

async function readResource(
  { owners, names }: ResourceMethodDeps,
  request: McpRequest,
  at: Serving,
): Promise<McpReply> {
  const { uri } = request.params
  const view = await at.gate.view(request.caller)
  if (typeof uri !== 'string') return refuseParams(view, '(no URI)', 'params.uri must be a string.')
  const id = owners.idOf(uri, request.caller)
  const reply = await callItem(at, request, view, {
    id,
    name: uri,
    names,
    // The URI has the spelling that is decided and sent.
    input: { uri: (id === undefined ? undefined : view.get(id)?.uri) ?? uri },
    notFound: resourceNotFound(uri, request.link.era),
    isMissing: isNotFound,
  })
  return 'result' in reply ? { ...reply, ttlMs: READ_TTL_MS } : reply
}

async function subscribe(
  { subscriptionsOf }: ResourceMethodDeps,
  { params, session, owner }: McpRequest,
  { gate, streams, sessions }: Serving,
): Promise<McpReply> {
  const uri = uriOf(params)
  if (!session) throw new RpcFault('params_invalid', 'Subscriptions need a session.')
  const answer = await subscribeSession({ session, uri, owner, subscriptions: subscriptionsOf(gate), streams })
  if ('error' in answer) return answer
  if (session.isEnded) throw new RpcFault('session_unknown', 'Session not found.')
  await sessions.keep(session)
  return { result: {} }
}

interface SessionSubscription {
  readonly session: Session
  readonly uri: string
  /** The caller of the credential, without the session. */
  readonly owner: Caller
  readonly subscriptions: Pick<ResourceSubscriptions, 'subscribe'>
  readonly streams: Serving['streams']
}

/** Subscribes a session to a resource, until the session ends. */
export async function subscribeSession({
  session,
  uri,
  owner,
  subscriptions,
  streams,
}: SessionSubscription): ReturnType<ResourceSubscriptions['subscribe']> {
  const caller = session.callerOf(owner)
  const answer = await subscriptions.subscribe({
    uri,
    caller,
    owner,
    era: 'legacy',
    isIdle: () => session.uses.size === 0,
    updated: () => streams.notify(caller.session ?? '', RESOURCE_UPDATED, { uri }),
  })
  if ('error' in answer) return answer
  session.subscriptions.get(uri)?.()
  session.subscriptions.set(uri, answer.end)
  session.unresumed.delete(uri)
  if (session.isEnded) answer.end()
  return answer
}

/** Ends the subscription under any spelling of its resource. The answer does not reveal whether it existed. */
async function unsubscribe({ params, session }: McpRequest, { sessions }: Serving): Promise<McpReply> {
  const plain = toPlainUri(uriOf(params))
  const ended = [...(session?.subscriptions ?? [])].filter(([uri]) => toPlainUri(uri) === plain)
  for (const [uri, end] of ended) {
    end()
    session?.subscriptions.delete(uri)
  }
  for (const uri of session?.unresumed ?? []) if (toPlainUri(uri) === plain) session?.unresumed.delete(uri)
  if (session && ended.length > 0) await sessions.keep(session)
  return { result: {} }
}

/** @throws {RpcFault} `params_invalid` */
function uriOf({ uri }: JsonObject): string {
  if (typeof uri !== 'string') throw new RpcFault('params_invalid', 'params.uri must be a string.')
  return uri
}
