/** The position of an item in a list. Use it to remove the item. */
export interface Link<Item extends object> {
  /** `undefined` once it was removed. */
  item: Item | undefined
  before: Link<Item> | undefined
  after: Link<Item> | undefined
}

/**
 * A list of items that are added and removed often, in order of arrival.
 *
 * A long-lived `Set` or `Map` would keep removed items in memory: when its table is full it makes a new one, and the old
 * table, which only a full garbage collection frees, still references its items and the new table.
 */
export class LinkedList<Item extends object> {
  #first: Link<Item> | undefined
  #last: Link<Item> | undefined

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  add(item: Item): Link<Item> {
    const link: Link<Item> = { item, before: this.#last, after: undefined }
    if (this.#last) this.#last.after = link
    else this.#first = link
    this.#last = link
    return link
  }

  /** Removes an item. A second call does nothing. */
  remove(link: Link<Item>): void {
    const { before, after } = link
    if (link.item === undefined) return
    if (before) before.after = after
    else this.#first = after
    if (after) after.before = before
    else this.#last = before
    link.item = undefined
    link.before = undefined
    link.after = undefined
  }

  /** Returns the current items, oldest first. */
  items(): Item[] {
    const items: Item[] = []
    for (let link = this.#first; link; link = link.after) if (link.item !== undefined) items.push(link.item)
    return items
  }
}
