import type { Owned, OwnerStore } from '../replicas/replica-store.ts'

/** Stores owners in memory, with the same rules as Postgres. */
export function memoryOwners() {
  const rows = new Map<string, { owner: string; content: string; losses: number }>()
  /** Lost replicas, and the URLs of the others. */
  const gone = new Set<string>()
  const urls = new Map<string, string>()
  let pausing: { readonly reached: () => void; readonly until: Promise<void> } | undefined

  const find = (key: string, asker: string): Owned | undefined => {
    const row = rows.get(key)
    if (!row) return undefined
    const isLost = gone.has(row.owner)
    if (row.owner !== '' && !isLost) {
      const url = row.owner === asker ? undefined : urls.get(row.owner)
      return { ...row, ...(url !== undefined && { url }) }
    }
    Object.assign(row, { owner: asker, losses: row.losses + (isLost ? 1 : 0) })
    return { ...row, taken: isLost ? 'lost' : 'free' }
  }
  const owners: OwnerStore = {
    find: async (key, asker) => find(key, asker),
    async look(key) {
      const row = rows.get(key)
      return row && row.owner !== '' && !gone.has(row.owner) ? find(key, '') : undefined
    },
    async claim(key, asker, content) {
      if (!rows.has(key)) rows.set(key, { owner: asker, content, losses: 0 })
      return find(key, asker) as Owned
    },
    async put(key, owner, content) {
      const row = rows.get(key)
      if (row && row.owner !== owner) return false
      rows.set(key, { losses: 0, ...row, owner, content })
      return true
    },
    async move(key, owner) {
      const row = rows.get(key)
      if (row) row.owner = owner
    },
    async remove(key, owner) {
      if (rows.get(key)?.owner === owner) rows.delete(key)
    },
    async free(keys, owner) {
      pausing?.reached()
      await pausing?.until
      for (const key of keys) if (rows.get(key)?.owner === owner) Object.assign(rows.get(key) ?? {}, { owner: '' })
    },
    keysOf: async (owner) => [...rows].flatMap(([key, row]) => (row.owner === owner ? [key] : [])),
  }
  return {
    ...owners,
    gone,
    urls,
    /** Makes the next `free` wait. */
    pause() {
      const [reached, until] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      pausing = { reached: reached.resolve, until: until.promise }
      return { reached: reached.promise, goOn: () => until.resolve() }
    },
  }
}
