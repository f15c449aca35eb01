import type { Tool, View } from '@toolgate/core'
import type { WireNames } from '@toolgate/expose'
import type { JsonObject } from '@toolgate/values/json'
import { sha256Hex } from '@toolgate/values'
import { definitionHash } from '@toolgate/core/pins'
import type { ItemKind } from '@toolgate/core/toolset'
import { toListedItem } from './listed-item.ts'
import type { ResourceOwners } from './resource-owners.ts'
import type { ToolLists } from './tool-lists.ts'

/** The kinds of items, other than tools, that have lists of their own. */
export type ListedKind = Exclude<ItemKind, 'tool'>

/** The lists whose changes are sent to clients, named by MCP capability. */
export const LIST_NAMES = ['tools', 'resources', 'prompts'] as const
export type ListName = (typeof LIST_NAMES)[number]

/** The items of one kind that a caller's list shows. */
export interface ItemList {
  /** Sorted by id. */
  readonly items: readonly Tool[]
  /** Equal lists have equal keys. */
  readonly key: string
}

type ListsByKind = Partial<Record<ListedKind, ItemList>>

/** The lists of resources, templates and prompts that callers get. */
export class ItemLists {
  readonly #names: (view: View) => WireNames
  readonly #owners: Pick<ResourceOwners, 'isOwned'>
  readonly #lists = new WeakMap<View, ListsByKind>()

  /** Prompts have the names that `promptNames` returns for a view. */
  constructor(names: Pick<ToolLists, 'promptNames'>, owners: Pick<ResourceOwners, 'isOwned'>) {
    this.#names = (view) => names.promptNames(view)
    this.#owners = owners
  }

  of(view: View, kind: ListedKind): ItemList {
    let lists = this.#lists.get(view)
    if (!lists) this.#lists.set(view, (lists = {}))
    return (lists[kind] ??= this.#make(view, kind))
  }

  /** Returns the key of a list. Resources and their templates share one key. */
  keyOf(view: View, list: Exclude<ListName, 'tools'>): string {
    if (list === 'prompts') return this.of(view, 'prompt').key
    return `${this.of(view, 'resource').key} ${this.of(view, 'template').key}`
  }

  /** Returns some items of a view as they are sent. */
  listed(view: View, items: readonly Tool[]): readonly JsonObject[] {
    const names = this.#names(view)
    return items.map((item) => toListedItem(item, nameOf(item, names)))
  }

  #make(view: View, kind: ListedKind): ItemList {
    const names = this.#names(view)
    const items = view
      .items(kind)
      .filter(
        (item) => this.#owners.isOwned(item, view.caller) && (kind !== 'prompt' || names.toName(item.id) !== undefined),
      )
    return { items, key: sha256Hex(items.map((item) => `${nameOf(item, names)} ${definitionHash(item)}`).join('\n')) }
  }
}

/** Prompts have names like tools. The `name` of a resource or a template is a text for people. */
function nameOf({ kind, id, name }: Tool, names: WireNames): string {
  return kind === 'prompt' ? (names.toName(id) ?? name) : name
}
