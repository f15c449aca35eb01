import { type Clock, MAX_PEOPLE, type PersonStore } from '@toolgate/core/stores'
import { OVERLAP_MS, toKeys, toPerson, toRecord, toWho } from '../person-rows.ts'
import { numberIn } from '../rows.ts'
import { type PostgresDatabase, SERVER_MS, statement } from './database.ts'

/** Returns the table of people, for the migrations. */
export function peopleTable(schema: string): string {
  return `
  CREATE TABLE ${schema}.people (
    id text PRIMARY KEY,
    who text NOT NULL,
    first_seen_at double precision NOT NULL,
    last_seen_at double precision NOT NULL,
    noted_at double precision NOT NULL,
    record text NOT NULL
  );
  CREATE INDEX people_who ON ${schema}.people (who);
  CREATE INDEX people_last ON ${schema}.people (last_seen_at);
  CREATE INDEX people_noted ON ${schema}.people (noted_at);
  `
}

/** Returns the people in the database, shared by all replicas. */
export function peopleIn(db: PostgresDatabase, clock: Clock | undefined, max: number = MAX_PEOPLE): PersonStore {
  const sql = statementsFor(`${db.schema}.people`)
  const now = () => clock?.wallMs() ?? null
  return {
    async note(people) {
      // All replicas lock rows in the same order, so that two never wait for each other.
      const rows = people.map((one) => ({ ...toKeys(one), one })).toSorted((a, b) => (a.id < b.id ? -1 : 1))
      const columns = [
        rows.map(({ id }) => id),
        rows.map(({ who }) => who),
        rows.map(({ one }) => one.firstSeenAt),
        rows.map(({ one }) => one.lastSeenAt),
        rows.map(({ one }) => toRecord(one)),
      ]
      await db.query(sql.note, [now(), ...columns])
      await db.query(sql.trim, [max])
    },
    async read(since = 0) {
      const rows = await db.query(sql.read, [now(), since - OVERLAP_MS])
      const people = rows.filter((row) => row['record'] !== null).map(toPerson)
      return { people, at: numberIn(rows[0] ?? {}, 'at'), count: numberIn(rows[0] ?? {}, 'n') }
    },
    forget: async (who) => (await db.query(sql.forget, [toWho(who)])).length,
  }
}

function statementsFor(people: string) {
  return {
    note: statement(`
      INSERT INTO ${people} AS old (id, who, first_seen_at, last_seen_at, noted_at, record)
      SELECT id, who, first_seen_at, last_seen_at, ${SERVER_MS}, record
      FROM unnest($2::text[], $3::text[], $4::float8[], $5::float8[], $6::text[])
        AS told (id, who, first_seen_at, last_seen_at, record) ORDER BY id
      ON CONFLICT (id) DO UPDATE SET noted_at = excluded.noted_at,
        record = CASE WHEN excluded.last_seen_at >= old.last_seen_at THEN excluded.record ELSE old.record END,
        first_seen_at = least(old.first_seen_at, excluded.first_seen_at),
        last_seen_at = greatest(old.last_seen_at, excluded.last_seen_at)`),
    trim: statement(`
      DELETE FROM ${people} WHERE id IN (SELECT id FROM ${people} ORDER BY last_seen_at DESC OFFSET $1)`),
    // One row comes even if nothing changed: the time and the number of all.
    read: statement(`
      WITH whole AS (SELECT ${SERVER_MS} AS at, count(*) AS n FROM ${people})
      SELECT at, n, first_seen_at, last_seen_at, record FROM whole
      LEFT JOIN ${people} ON noted_at >= $2::float8`),
    forget: statement(`DELETE FROM ${people} WHERE who = $1 RETURNING 1 AS gone`),
  }
}
