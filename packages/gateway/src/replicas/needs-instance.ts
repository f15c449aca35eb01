import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Fleet } from '../servers/fleet.ts'

const OF_LISTS = new Set([
  'server/discover',
  'tools/list',
  'resources/list',
  'resources/templates/list',
  'prompts/list',
])
const OF_ITEMS = new Set([
  'initialize',
  'tools/call',
  'resources/read',
  'resources/subscribe',
  'prompts/get',
  'completion/complete',
  'subscriptions/listen',
  'tasks/update',
  'tasks/cancel',
])

/** Returns whether a request may need an instance of its user; without a method, whether any request may. */
export function needsInstance(
  fleet: Pick<Fleet, 'hasUserLists' | 'needsInstance'>,
  names: { toId(name: string): string | undefined },
  method: string | undefined,
  params: JsonObject | undefined,
): boolean {
  if (method === undefined) return fleet.needsInstance()
  if (OF_LISTS.has(method)) return fleet.hasUserLists
  if (!OF_ITEMS.has(method)) return false
  const name = method === 'tools/call' && isObject(params) ? params['name'] : undefined
  const [server, tool] = (typeof name === 'string' && names.toId(name)?.split(':')) || []
  // The gateway's own tools call other tools.
  return tool === undefined ? fleet.needsInstance() : fleet.needsInstance(server)
}
