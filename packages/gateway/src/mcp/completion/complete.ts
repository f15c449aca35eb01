import type { CallContext, Gate, Tool, View } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import {
  isNotFound,
  withoutNullEntries,
  promptNotFound,
  type ResourceOwners,
  resourceNotFound,
  serverNameOf,
  toItemAnswer,
} from '@toolgate/mcp'
import { clientNames, type NamesInLists } from '../../calls/client-names.ts'
import { RpcFault } from '../../model/protocol.ts'
import type { McpReply, McpRequest } from '../../calls/request.ts'

interface CompletionDeps {
  readonly gate: Pick<Gate, 'view'>
  readonly names: NamesInLists
  readonly owners: Pick<ResourceOwners, 'idOf' | 'idOfTemplate' | 'mayBeUri'>
  /** Asks a server for the values of an argument. */
  readonly complete: (server: string, params: JsonObject, call: CallContext) => Promise<JsonObject>
}

interface Asked {
  readonly name: string
  readonly value: string
  /** The arguments that already have a value. */
  readonly others: Readonly<Record<string, string>>
}

const NOTHING = { completion: { values: [], total: 0, hasMore: false } }
/** The maximum number of values in a response (MCP, completion). */
const MAX_VALUES = 100

/**
 * Serves `completion/complete`. The gate decides it like a use of the prompt or template, and limits it like a call.
 * Values that name resources are left out unless the caller sees those resources.
 */
export async function completeArgument(deps: CompletionDeps, request: McpRequest): Promise<McpReply> {
  const { gate, names, owners, complete } = deps
  const { params, caller, callerNow, link, signal } = request
  const asked = readArgument(params)
  const view = await gate.view(caller)
  const { ref } = params
  const isPrompt = isObject(ref) && ref['type'] === 'ref/prompt'
  const name = isObject(ref) ? ref[isPrompt ? 'name' : 'uri'] : undefined
  if (!isObject(ref) || typeof name !== 'string' || !(isPrompt || ref['type'] === 'ref/resource'))
    throw new RpcFault('params_invalid', 'params.ref must be a ref/prompt with a name or a ref/resource with a uri.')
  const id = isPrompt
    ? names.promptNames(view).toId(name)
    : (owners.idOfTemplate(name, caller) ?? owners.idOf(name, caller))
  const item = id === undefined ? undefined : view.get(id)
  const outcome = await view.call({
    tool: id,
    input: inputOf(item, asked),
    calledAs: name,
    nameOf: clientNames(names, view, { id, name }),
    signal,
    callerNow,
    as: {
      kind: 'complete',
      run: (_, call) => complete(item?.namespace ?? '', toServerParams(params, item, asked), call),
    },
  })
  // An item that needs an approval returns no values, but its existence is not a secret.
  if (outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'approval_required')
    return { result: NOTHING }
  const answer = isPrompt
    ? toItemAnswer(outcome, promptNotFound(name))
    : toItemAnswer(outcome, resourceNotFound(name, link.era), (rpc) => item?.kind === 'resource' && isNotFound(rpc))
  if ('error' in answer || !item) return answer
  return { result: withVisible(answer.result, valueFilter(view, owners, item, asked)) }
}

/** @throws {RpcFault} `params_invalid` */
function readArgument({ argument, context }: JsonObject): Asked {
  const refuse = (problem: string) => new RpcFault('params_invalid', `params.${problem}.`)
  const { name, value } = isObject(argument) ? argument : {}
  if (typeof name !== 'string' || typeof value !== 'string') throw refuse('argument must have a name and a value')
  const given = isObject(context) ? (context['arguments'] ?? {}) : {}
  const others = isObject(given) ? withoutNullEntries(given) : given
  if (!isObject(others) || Object.values(others).some((one) => typeof one !== 'string'))
    throw refuse('context.arguments must be an object of strings')
  return { name, value, others: others as Asked['others'] }
}

/** Returns the input that is decided. Rules about URIs see the template; each completed URI is decided separately. */
function inputOf(item: Tool | undefined, { name, value, others }: Asked): JsonObject {
  return { ...others, [name]: value, ...(item?.kind === 'prompt' ? {} : { uri: item?.uri }) }
}

/** Returns the parameters for the server, with the server's own name of the prompt, or the URI that was decided. */
function toServerParams({ ref, argument, context }: JsonObject, item: Tool | undefined, { others }: Asked): JsonObject {
  const own =
    item?.kind === 'prompt'
      ? { type: 'ref/prompt', name: serverNameOf(item) }
      : { ...(ref as JsonObject), uri: item?.uri }
  return { ref: own, argument, ...(isObject(context) ? { context: { ...context, arguments: others } } : {}) }
}

interface ValueFilter {
  readonly isShown: (value: string) => boolean
  /** Whether a value may name a resource. If so, other values may too, and hidden ones must not be counted. */
  readonly mayName: (value: string) => boolean
}

/**
 * Returns the filter for values. A template's value makes a URI together with the other arguments; a prompt's value may
 * be a URI itself.
 */
function valueFilter(view: View, owners: CompletionDeps['owners'], item: Tool, asked: Asked): ValueFilter {
  const isVisible = (uri: string): boolean => {
    const id = owners.idOf(uri, view.caller)
    return id !== undefined && view.has(id)
  }
  if (item.kind === 'prompt') {
    const mayName = (value: string) => owners.mayBeUri(value, view.caller)
    return { isShown: (value) => !mayName(value) || isVisible(value), mayName }
  }
  const isShown = (value: string) => {
    const uri = expand(item.uri ?? '', { ...asked.others, [asked.name]: value })
    return uri !== undefined && isVisible(uri)
  }
  return { isShown, mayName: () => true }
}

/** A variable name (RFC 6570, section 2.3). */
const VARIABLE = /^(?:[\w.]|%[0-9A-Fa-f]{2})+$/

/** Returns the URI of a template that has only `{var}` and `{+var}`, if all variables are given (RFC 6570, level 2). */
export function expand(template: string, given: Readonly<Record<string, string>>): string | undefined {
  let isWhole = true
  const uri = template.replaceAll(/\{([^{}]*)\}/g, (_, expression: string) => {
    const isReserved = expression.startsWith('+')
    const name = isReserved ? expression.slice(1) : expression
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === undefined || !VARIABLE.test(name) || !value.isWellFormed()) isWhole = false
    else return isReserved ? encodeReserved(value) : encodeStrictly(value)
    return ''
  })
  return isWhole ? uri : undefined
}

/** Encodes a value, except reserved characters and encoded triplets (RFC 6570, section 3.2.3). */
function encodeReserved(value: string): string {
  return encodeURI(value)
    .replaceAll(/%25([0-9A-Fa-f]{2})/g, '%$1')
    .replaceAll('%5B', '[')
    .replaceAll('%5D', ']')
}

/** Encodes all characters that are not unreserved, including those that `encodeURIComponent` leaves. */
function encodeStrictly(value: string): string {
  return encodeURIComponent(value).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function withVisible(result: JsonObject, { isShown, mayName }: ValueFilter): JsonObject {
  const { values, total, hasMore } = result['completion'] as {
    readonly values: readonly string[]
    readonly total?: unknown
    readonly hasMore?: unknown
  }
  const shown = values.filter(isShown)
  const isHidden = shown.length === 0 && values.length > 0
  const isMore = (hasMore === true && !isHidden) || shown.length > MAX_VALUES
  const isTold = !values.some(mayName)
  const known = isTold ? total : isMore ? undefined : shown.length
  const completion = {
    values: shown.slice(0, MAX_VALUES),
    ...(typeof known === 'number' ? { total: known } : {}),
    ...(typeof hasMore === 'boolean' || isMore ? { hasMore: isMore } : {}),
  }
  return { ...result, completion }
}
