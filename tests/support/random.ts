/** Returns numbers from 0 to 1, which are the same for the same seed. */
export type Random = () => number

/** Returns the numbers of a seed, by Mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Returns the item at a random place. */
export function pick<T>(from: readonly T[], random: number): T {
  return from[Math.floor(random * from.length)] as T
}

/** Returns the items in a random order. */
export function shuffle<T>(items: readonly T[], random: Random): readonly T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
