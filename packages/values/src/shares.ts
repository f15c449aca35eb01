/** The items of each owner, for stores that make room by evicting from the owner with the most. Every operation takes constant time. */
interface Shares<Item> {
  add(owner: string, item: Item): void
  delete(owner: string, item: Item): void
  sizeOf(owner: string): number
  /** The owner's oldest item. */
  oldestOf(owner: string): Item | undefined
  /** The owner with the most items; of several, the one that has had that many the longest. */
  largest(): string | undefined
}

/** Returns shares without owners. */
export function createShares<Item>(): Shares<Item> {
  const items = new Map<string, Set<Item>>()
  /** The owners by their number of items, so that the largest is found without a search. */
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
    // Sizes change by one, so the next largest size is the one below.
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
