/** What each owner has, for stores that make room at the cost of whoever has most. Each operation takes constant time. */
export interface Shares<Item> {
  add(owner: string, item: Item): void
  delete(owner: string, item: Item): void
  sizeOf(owner: string): number
  /** The item that the owner was given first. */
  oldestOf(owner: string): Item | undefined
  /** One of those who have most: the one who has had so many for the longest time. */
  largest(): string | undefined
}

/** Returns the shares of no owner yet. */
export function createShares<Item>(): Shares<Item> {
  const items = new Map<string, Set<Item>>()
  /** The owners by how many items they have, so that the one who has most is found without asking all. */
  const owners = new Map<number, Set<string>>()
  let most = 0

  const move = (owner: string, from: number, to: number): void => {
    const before = owners.get(from)
    before?.delete(owner)
    if (before?.size === 0) owners.delete(from)
    if (to > 0) {
      const after = owners.get(to) ?? new Set()
      owners.set(to, after)
      after.add(owner)
    }
    // By one at a time, so nobody is between.
    if (to > most) most = to
    else if (from === most && !owners.has(from)) most = to
  }

  return {
    add(owner, item) {
      const own = items.get(owner) ?? new Set()
      items.set(owner, own)
      if (own.has(item)) return
      own.add(item)
      move(owner, own.size - 1, own.size)
    },
    delete(owner, item) {
      const own = items.get(owner)
      if (!own?.delete(item)) return
      if (own.size === 0) items.delete(owner)
      move(owner, own.size + 1, own.size)
    },
    sizeOf: (owner) => items.get(owner)?.size ?? 0,
    oldestOf: (owner) => items.get(owner)?.values().next().value,
    largest: () => owners.get(most)?.values().next().value,
  }
}
