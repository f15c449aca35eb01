import { nearestOf } from '@toolgate/values'
import type { Caller, Tool } from '@toolgate/core'
import { isItemId } from '@toolgate/core/tools'
import type { Heart } from '../../heart/heart.ts'
import { ApiFault } from '../../model/faults.ts'
import type { ListRow } from '../../model/rows.ts'
import { describeRejected } from '../../servers/catalog/rejected.ts'
import { maySeeListsOf } from '../http/callers.ts'
import { wireNameOf } from '../http/wire-name.ts'

/** The parts of the heart with the callers' catalogs. */
type ShownHeart = Pick<Heart, 'gate' | 'servers' | 'catalog' | 'redact'>

/** The part of a caller's catalog that a person may see. */
export interface ShownItems {
  readonly tools: readonly Tool[]
  readonly items: readonly Tool[]
  readonly lists: readonly ListRow[]
}

/** Returns the catalog of a caller. Their own lists are left out if the person may not see them. */
export function shownTo(person: Caller, caller: Caller, { gate, servers }: ShownHeart): ShownItems {
  const lists = servers.fleet.listsOf(caller)
  if (lists.length === 0 || maySeeListsOf(person, caller)) return { ...itemsOf(gate.catalog.of(caller)), lists }
  const withheld = lists.map(({ server }): ListRow => ({ server, state: 'withheld' }))
  const { catalog } = gate
  return { tools: catalog.snapshot().tools, items: catalog.items().tools, lists: withheld }
}

function itemsOf({ snapshot, items }: ReturnType<Heart['gate']['catalog']['of']>): Pick<ShownItems, 'tools' | 'items'> {
  return { tools: snapshot.tools, items: items.tools }
}

/** Returns the user's own list of the server that an item belongs to, if that server has a list per user. */
export function listOf(id: string, { lists }: ShownItems): ListRow | undefined {
  const server = serverOf(id)
  return lists.find((list) => list.server === server)
}

/** Returns the name of the server in an id. */
function serverOf(id: string): string {
  const [first = '', second = ''] = id.split(':', 2)
  return isItemId(id) ? second : first
}

/**
 * Checks that an item exists and that the person may see it. Returns the same list as {@link listOf}.
 *
 * @throws {ApiFault} `tool_unknown` for an item that the person may not see, or that does not exist
 */
export function checkKnown(
  id: string,
  { person, caller }: { readonly person: Caller; readonly caller: Caller },
  heart: ShownHeart,
): ListRow | undefined {
  const shown = shownTo(person, caller, heart)
  const list = listOf(id, shown)
  // A resource can be decided without being listed.
  const isListed = itemsIn(id, shown).some((known) => known.id === id)
  const isKnown = isListed || (isItemId(id) && list?.state !== 'withheld')
  if (!isKnown || (!isListed && rejectionOf(id, person, heart))) throw unknownTool(id, shown, heart, person)
  return list
}

/**
 * Returns the reason why a listed item is not offered, or which part of it is left out, for people without a tenant: a
 * list may name other tenants.
 */
export function rejectionOf(id: string, person: Caller, { servers }: Pick<Heart, 'servers'>): string | undefined {
  const rejected = person.tenant === undefined ? servers.fleet.rejected(id) : undefined
  return rejected && describeRejected(rejected)
}

export function itemsIn(id: string, { tools, items }: ShownItems): readonly Tool[] {
  return isItemId(id) ? items : tools
}

/** Returns every item of a caller's catalog that a person may see. */
export function knownItems(person: Caller, caller: Caller, heart: ShownHeart): readonly Tool[] {
  const { tools, items } = shownTo(person, caller, heart)
  return [...tools, ...items]
}

/**
 * Returns the error for an unknown tool. It suggests an id, as people copy the wire name from their client, or misspell
 * an id.
 */
export function unknownTool(id: string, shown: ShownItems, heart: ShownHeart, person: Caller): ApiFault {
  const rejection = rejectionOf(id, person, heart)
  if (rejection !== undefined) {
    const text = heart.redact.redactText(rejection)
    return new ApiFault('tool_unknown', `No tool has the id ${JSON.stringify(id)}: the server lists it, but ${text}.`)
  }
  const tools = itemsIn(id, shown)
  const suggestion =
    tools.find((tool) => wireNameOf(heart, tool.id) === id || tool.name === id)?.id ??
    nearestOf(
      id,
      tools.map((tool) => tool.id),
    )
  const server = serverOf(id)
  const { status, reason } = heart.servers.fleet.unlistedServer(server) ?? {}
  if (status === 'starting' || status === 'down')
    return new ApiFault(
      'tool_unknown',
      `No tool has the id ${JSON.stringify(id)} yet: the server ${JSON.stringify(server)} ${status === 'down' ? 'is down' : 'is still starting'}${reason ? ` (${reason})` : ''}.`,
    )
  const list = listOf(id, shown)
  if (list?.state === 'unknown')
    return new ApiFault(
      'tool_unknown',
      `No tool has the id ${JSON.stringify(id)}: the server "${list.server}" has not listed for ${JSON.stringify(list.user)} yet${list.reason ? ` (${list.reason})` : ''}.`,
    )
  const hint = suggestion ? ` Did you mean ${JSON.stringify(suggestion)}?` : ' GET /api/tools lists the known ones.'
  return new ApiFault('tool_unknown', `No tool has the id ${JSON.stringify(id)}.${hint}`)
}
