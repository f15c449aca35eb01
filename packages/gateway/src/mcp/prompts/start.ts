import { type ItemLists, promptNotFound, withoutNullEntries } from '@toolgate/mcp'
import { isObject } from '@toolgate/values/json'
import type { NamesInLists } from '../../calls/client-names.ts'
import { callItem, listOf, refuseParams } from '../../calls/items.ts'
import type { Method, Serving } from '../../calls/method.ts'
import type { McpReply, McpRequest } from '../../calls/request.ts'
import type { Room } from '../../heart/room.ts'
import { isOffered } from '../../model/upstream.ts'

/** Serves the prompts of the servers that offer them. */
export const prompts: Room = {
  name: 'prompts',
  open({ revisions, catalog: { lists: names, items } }) {
    const isServed = () => isOffered(revisions.current.servers, 'prompts')
    return {
      methods: () => (isServed() ? promptMethods(names, items) : []),
      capabilities: () => (isServed() ? { prompts: { listChanged: true } } : {}),
    }
  },
}

export function promptMethods(names: NamesInLists, lists: Pick<ItemLists, 'listed' | 'of'>): readonly Method[] {
  return [
    { name: 'prompts/list', serve: listOf(lists, 'prompt', 'prompts') },
    { name: 'prompts/get', serve: (request, at) => getPrompt(names, request, at) },
  ]
}

async function getPrompt(names: NamesInLists, request: McpRequest, at: Serving): Promise<McpReply> {
  const { name, arguments: given = {} } = request.params
  // An argument of a prompt is a string, so `null` means that it is absent.
  const input = isObject(given) ? withoutNullEntries(given) : given
  const view = await at.gate.view(request.caller)
  if (typeof name !== 'string') return refuseParams(view, '(no name)', 'params.name must be a string.')
  if (!isObject(input) || Object.values(input).some((value) => typeof value !== 'string'))
    return refuseParams(view, name, 'params.arguments must be an object of strings.')
  const id = names.promptNames(view).toId(name)
  return callItem(at, request, view, { id, name, names, input, notFound: promptNotFound(name) })
}
