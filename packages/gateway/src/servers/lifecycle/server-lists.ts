import type { Connection } from '../transport/connection.ts'
import { ITEM_KINDS, type ItemOf, LIST_NAMES, type ServerListName } from './item-kinds.ts'
import { EMPTY_LIST, fetchList, type FetchOptions, type ServerItemList, slicesOf } from './item-list.ts'
import { type ParamHeader, paramHeadersOf } from '../transport/param-headers.ts'
import { type McpTool, type Offer, type RejectedItem, UpstreamError, type UpstreamItems } from '../../model/upstream.ts'

type Lists = { readonly [Name in ServerListName]: ServerItemList<ItemOf<Name>> }

/** Lists that were read but are not shown yet. */
export interface ReadLists extends Partial<Lists> {
  /** Why other lists could not be read. Their shown items stay. */
  readonly failed: ReadonlyMap<ServerListName, UpstreamError>
}

/**
 * Reads a server's lists of the offered kinds in parallel.
 *
 * @throws {UpstreamError} if the tools cannot be read, or the connection is lost. A failure of another list is in
 * `failed`
 */
export async function fetchLists(
  connection: Connection,
  offers: readonly Offer[],
  options: FetchOptions,
): Promise<ReadLists> {
  const failed = new Map<ServerListName, UpstreamError>()
  const read = async (name: ServerListName): Promise<Partial<Lists>> => {
    if (!offers.includes(ITEM_KINDS[name].offer)) return {}
    try {
      return { [name]: await fetchList(connection, name, options) }
    } catch (thrown) {
      const error = UpstreamError.from(thrown)
      if (name === 'tools' || FATAL.has(error.code)) throw error
      failed.set(name, error)
      return {}
    }
  }
  return Object.assign({ failed }, ...(await Promise.all(LIST_NAMES.map(read)))) as ReadLists
}

const FATAL: ReadonlySet<UpstreamError['code']> = new Set(['upstream_down', 'aborted'])

/** Returns the shortest TTL of the lists. */
export function ttlOf(read: ReadLists): number | undefined {
  const ttls = LIST_NAMES.flatMap((name) => read[name]?.ttlMs ?? [])
  return ttls.length === 0 ? undefined : Math.min(...ttls)
}

/** The shown lists of one server. They are kept while it is down. */
export class ServerLists {
  #lists: Lists = { tools: EMPTY_LIST, resources: EMPTY_LIST, templates: EMPTY_LIST, prompts: EMPTY_LIST }
  #items: UpstreamItems = { tools: [], resources: [], templates: [], prompts: [] }
  readonly #failed = new Map<ServerListName, string>()
  /** The arguments that tools of MCP 2026-07-28 expect in HTTP headers, by the tool's name. Most tools expect none. */
  paramHeaders: ReadonlyMap<string, readonly ParamHeader[]> = new Map()

  get items(): UpstreamItems {
    return this.#items
  }

  /** Returns the items that cannot be offered, and the lists that cannot be read. */
  get rejected(): readonly RejectedItem[] {
    return LIST_NAMES.flatMap((name) => {
      const reason = this.#failed.get(name)
      const { one: kind, method } = ITEM_KINDS[name]
      return [...(reason === undefined ? [] : [{ kind, name: method, reason }]), ...this.#lists[name].rejected]
    })
  }

  /**
   * Returns the steps that show new items. Each step is a slice that fits into one turn of the event loop, because
   * listeners are slow for many items. The first step removes items that the server no longer lists. `set` performs the
   * last step.
   */
  stepsTo(read: ReadLists): readonly (() => void)[] {
    return LIST_NAMES.flatMap((name) => this.#stepsOf(name, read[name])).slice(0, -1)
  }

  /** Shows lists. Returns the names of the changed ones: an equal list stays the same object. */
  set(read: ReadLists): readonly ServerListName[] {
    const changed = LIST_NAMES.filter((name) => read[name] && read[name].text !== this.#lists[name].text)
    for (const name of changed) this.#show(name, read[name])
    for (const name of LIST_NAMES) if (read[name]) this.#failed.delete(name)
    for (const [name, { message }] of read.failed) this.#failed.set(name, message)
    return changed
  }

  #stepsOf<Name extends ServerListName>(name: Name, list: Lists[Name] | undefined): readonly (() => void)[] {
    if (!list || list.text === this.#lists[name].text) return []
    const show = (items: readonly unknown[]) =>
      this.#show(name, { ...list, items, text: items.length < list.items.length ? '' : list.text })
    return stepsBetween<unknown>(this.#lists[name], list, show)
  }

  #show<Name extends ServerListName>(name: Name, list: Lists[Name] | undefined): void {
    if (!list) return
    this.#lists = { ...this.#lists, [name]: list }
    this.#items = { ...this.#items, [name]: list.items }
    if (name === 'tools') this.paramHeaders = paramHeadersIn(this.#items.tools)
  }
}

function paramHeadersIn(tools: readonly McpTool[]): ReadonlyMap<string, readonly ParamHeader[]> {
  return new Map(
    tools.flatMap(({ name, inputSchema }) => {
      const headers = paramHeadersOf(inputSchema)
      return headers ? [[name, headers] as const] : []
    }),
  )
}

function stepsBetween<Item>(
  { byKey, texts }: ServerItemList<Item>,
  list: ServerItemList<Item>,
  show: (items: readonly Item[]) => void,
): readonly (() => void)[] {
  const kept = new Set<Item>()
  for (const [key, item] of list.byKey) {
    const before = byKey.get(key)
    if (before !== undefined && texts.get(before) === list.texts.get(item)) kept.add(item)
  }
  const added = list.items.filter((item) => !kept.has(item))
  return [...slicesOf(added, (item) => list.texts.get(item)?.length ?? 0)].map((slice) => () => {
    for (const item of slice) kept.add(item)
    show(kept.size < list.items.length ? list.items.filter((item) => kept.has(item)) : list.items)
  })
}
