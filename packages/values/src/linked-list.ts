/** A place in a list, by which its item leaves. */
export interface Link<Item extends object> {
  /** `undefined` once it was removed. */
  item: Item | undefined
  before: Link<Item> | undefined
  after: Link<Item> | undefined
}

/**
 * Items that come and go often, in the order in which they came.
 *
 * A long-lived `Set` or `Map` would keep them in memory for long: it makes a new table when its old one has no room, and
 * the old table, which only a full garbage collection frees, still holds what it held and links to the new one.
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

  /** Removing twice is as removing once. */
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
