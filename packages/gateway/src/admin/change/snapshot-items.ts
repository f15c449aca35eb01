import type { Tool } from '@toolgate/core'
import { type CatalogSnapshot, type FindUnlisted, itemsOfSnapshot, type SnapshotItem } from '@toolgate/change'
import type { ItemKind } from '@toolgate/core/toolset'
import { ServerItems, ServerTools } from '@toolgate/mcp'
import type { ServerConfig } from '../../config/config.ts'
import type { Offer } from '../../model/upstream.ts'

/** The items of a snapshot, as the servers of a configuration would offer them. */
interface ConfiguredItems {
  readonly items: readonly Tool[]
  readonly findUnlisted: FindUnlisted
}

/** The list that contains a server's items of each kind. */
export const OFFER_OF: Readonly<Record<ItemKind, Offer>> = {
  tool: 'tools',
  resource: 'resources',
  template: 'resources',
  prompt: 'prompts',
}

/**
 * Returns the items that the servers of a configuration would offer if they listed the items of a snapshot. The items
 * have the current tags, scopes and labels. Items of removed servers are left out.
 *
 * @throws {ConfigError} for a snapshot that cannot be used
 */
export function configuredItems(snapshot: CatalogSnapshot, servers: readonly ServerConfig[]): ConfiguredItems {
  // The snapshot itself is checked first, so that a broken one is not treated as empty.
  itemsOfSnapshot(snapshot)
  const byServer = Map.groupBy(snapshot.items, ({ namespace }) => namespace)
  const parts = new Map(servers.map((server) => [server.name, openServer(server, byServer.get(server.name) ?? [])]))
  return {
    items: [...parts.values()].flatMap(({ items }) => items),
    findUnlisted: (server, uri) => parts.get(server)?.unlisted(uri),
  }
}

function openServer(
  { name: namespace, tools: overlays, trustHints, inputs, offers, resources, prompts }: ServerConfig,
  listed: readonly SnapshotItem[],
): { readonly items: readonly Tool[]; unlisted(uri: string): Tool | undefined } {
  const nothing = () => null
  const ofTools = new ServerTools({
    namespace,
    overlays,
    trustHints,
    inputs,
    runsTasks: () => true,
    executeOf: () => nothing,
  })
  const others = new ServerItems({ namespace, resources, prompts, read: nothing, getPrompt: nothing })
  const offered = listed.filter(({ kind }) => offers.includes(OFFER_OF[kind ?? 'tool']))
  const listOf = (wanted: SnapshotItem['kind']) => offered.filter(({ kind }) => kind === wanted).map(toListed)
  ofTools.read(listOf(undefined))
  others.read({
    resources: listOf('resource'),
    templates: listOf('template').map(({ uri, ...rest }) => ({ ...rest, uriTemplate: uri })),
    prompts: listOf('prompt'),
  })
  return {
    items: [...ofTools.tools, ...others.items],
    unlisted: (uri) => (offers.includes('resources') ? others.unlisted(uri) : undefined),
  }
}

/** Returns an item as its server lists it: with its own texts, and without the operator's additions. */
function toListed({ kind, original, fields, ...item }: SnapshotItem): Readonly<Record<string, unknown>> {
  const { name, title, description, annotations, outputSchema, uri, mimeType, size, arguments: taken } = item
  const inputSchema = kind === undefined ? (item.inputSchema ?? { type: 'object' }) : undefined
  const own = { title, description, annotations, ...original }
  const all = { ...fields, ...own, name, inputSchema, outputSchema, uri, mimeType, size, arguments: taken }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}
