/**
 * A bounded map that drops entries that were not read recently.
 *
 * Two generations: a hit in the older one moves to the younger; when the younger is full, the
 * older is dropped. So it holds at most `2 × capacity` entries and no operation walks them.
 */
interface BoundedCache<K, V> {
  get(key: K): V | undefined
  set(key: K, value: V): void
}

export function createBoundedCache<K, V>(capacity: number): BoundedCache<K, V> {
  let young = new Map<K, V>()
  let old = new Map<K, V>()
  const set = (key: K, value: V) => {
    if (young.size >= capacity) {
      old = young
      young = new Map()
    }
    young.set(key, value)
  }
  return {
    get(key) {
      const recent = young.get(key)
      if (recent !== undefined) return recent
      const older = old.get(key)
      if (older !== undefined) set(key, older)
      return older
    },
    set,
  }
}
