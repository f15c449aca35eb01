import { checkShape, shapeOf } from '@toolgate/values'
import { MAX_PEOPLE, type PersonStore, type SeenPerson } from '../ports/people.ts'

interface MemoryPeopleOptions {
  /** The most people that are kept. Default: 100,000. */
  readonly max?: number
}

const OPTIONS = shapeOf<MemoryPeopleOptions>({ max: true })

/**
 * Keeps people in the memory of this process.
 *
 * @example
 * const people = memoryPeople()
 * people.note([{ user: 'vera', issuer: 'key', by: 'key', roles: [], scopes: [], clients: [], firstSeenAt: 1, lastSeenAt: 1 }])
 */
export function memoryPeople(options: MemoryPeopleOptions = {}): PersonStore {
  checkShape('memoryPeople', options, OPTIONS)
  const { max = MAX_PEOPLE } = options
  const kept = new Map<string, { readonly person: SeenPerson; readonly number: number }>()
  /** The number of notes. It stands for the time. */
  let number = 0
  return {
    note(people) {
      for (const person of people) {
        const key = toPersonKey(person)
        kept.set(key, { person: joinedPerson(kept.get(key)?.person, person), number: ++number })
      }
      if (kept.size <= max) return
      const oldestFirst = [...kept].toSorted(([, a], [, b]) => a.person.lastSeenAt - b.person.lastSeenAt)
      for (const [key] of oldestFirst.slice(0, kept.size - max)) kept.delete(key)
    },
    read(since = 0) {
      const changed = [...kept.values()].filter((one) => one.number > since)
      return { people: changed.map(({ person }) => person), at: number, count: kept.size }
    },
    forget({ user, tenant }) {
      const before = kept.size
      for (const [key, { person }] of kept) if (person.user === user && person.tenant === tenant) kept.delete(key)
      return before - kept.size
    },
  }
}

/** Returns a key of the issuer, the tenant and the user, which together identify a person. */
export function toPersonKey({ issuer, tenant, user }: Pick<SeenPerson, 'issuer' | 'tenant' | 'user'>): string {
  return JSON.stringify([issuer, tenant ?? null, user])
}

/** Returns a person after another note: the earliest first time, and the rest of the latest. */
export function joinedPerson(known: SeenPerson | undefined, noted: SeenPerson): SeenPerson {
  if (!known) return noted
  const latest = noted.lastSeenAt >= known.lastSeenAt ? noted : known
  return { ...latest, firstSeenAt: Math.min(known.firstSeenAt, noted.firstSeenAt) }
}
