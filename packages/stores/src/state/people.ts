import { MAX_PEOPLE, type PersonStore } from '@toolgate/core/stores'
import { OVERLAP_MS, toKeys, toPerson, toRecord, toWho } from '../person-rows.ts'
import { numberIn } from '../rows.ts'
import type { StoresDatabase } from './database.ts'

/** Returns the people in the database, shared by every process that opens it. */
export function peopleIn(db: StoresDatabase, max: number = MAX_PEOPLE): PersonStore {
  const upsert = db.prepare(
    'INSERT INTO people (id, who, first_seen_at, last_seen_at, noted_at, record) VALUES (?, ?, ?, ?, ?, ?) ' +
      'ON CONFLICT (id) DO UPDATE SET noted_at = excluded.noted_at, ' +
      'record = iif(excluded.last_seen_at >= last_seen_at, excluded.record, record), ' +
      'first_seen_at = min(first_seen_at, excluded.first_seen_at), ' +
      'last_seen_at = max(last_seen_at, excluded.last_seen_at)',
  )
  const trim = db.prepare(
    'DELETE FROM people WHERE id IN (SELECT id FROM people ORDER BY last_seen_at DESC LIMIT -1 OFFSET ?)',
  )
  const select = db.prepare('SELECT first_seen_at, last_seen_at, record FROM people WHERE noted_at >= ?')
  const count = db.prepare('SELECT count(*) AS n FROM people')
  const remove = db.prepare('DELETE FROM people WHERE who = ?')
  return {
    note: (people) =>
      db.write(() => {
        const at = db.clock.wallMs()
        for (const person of people) {
          const { id, who } = toKeys(person)
          upsert.run(id, who, person.firstSeenAt, person.lastSeenAt, at, toRecord(person))
        }
        trim.run(max)
      }),
    read: (since = -Infinity) =>
      db.read(() => ({
        people: select.all(Math.max(since - OVERLAP_MS, -1)).map(toPerson),
        at: db.clock.wallMs(),
        count: numberIn(count.get() ?? {}, 'n'),
      })),
    forget: (who) => db.write(() => Number(remove.run(toWho(who)).changes)),
  }
}
