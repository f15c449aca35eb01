import type { Clock, ClauseCountStore } from '@toolgate/core/stores'
import { FORGET_MS, toClauseCount } from '../clause-rows.ts'
import { type PostgresDatabase, SERVER_MS, statement } from './database.ts'

/** Returns the tables of clause counts, for the migrations. For each writer they store its last added batch. */
export function clauseTables(schema: string): string {
  return `
  CREATE TABLE ${schema}.clause_counts (
    id text PRIMARY KEY,
    hits bigint NOT NULL,
    last_hit_at double precision,
    counted_since double precision NOT NULL,
    named_at double precision NOT NULL
  ) WITH (fillfactor = 50);
  CREATE TABLE ${schema}.clause_writers (
    writer text PRIMARY KEY,
    batch bigint NOT NULL,
    written_at double precision NOT NULL
  ) WITH (fillfactor = 50);
  `
}

/** Returns the counts of clauses in the database, shared by all replicas. */
export function clauseCountsIn(db: PostgresDatabase, clock: Clock | undefined): ClauseCountStore {
  const sql = statementsFor(db.schema)
  return {
    async add(counts, { writer, number }) {
      // All replicas lock rows in the same order, so that two never wait for each other.
      const rows = counts.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      const columns = [
        rows.map(({ id }) => id),
        rows.map(({ hits }) => hits),
        rows.map(({ lastHitAt }) => lastHitAt ?? null),
        rows.map(({ countedSince }) => countedSince),
      ]
      await db.query(sql.add, [clock?.wallMs() ?? null, writer, number, ...columns])
    },
    read: async (ids) => (await db.query(sql.read, [ids])).map(toClauseCount),
  }
}

function statementsFor(schema: string) {
  const [counts, writers] = [`${schema}.clause_counts`, `${schema}.clause_writers`]
  return {
    add: statement(`
      WITH forgotten AS (DELETE FROM ${counts} WHERE named_at < ${SERVER_MS} - ${FORGET_MS} AND id <> ALL ($4::text[])
      ), gone AS (DELETE FROM ${writers} WHERE written_at < ${SERVER_MS} - ${FORGET_MS} AND writer <> $2
      ), first AS (
        INSERT INTO ${writers} AS old (writer, batch, written_at) VALUES ($2, $3, ${SERVER_MS})
        ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, written_at = excluded.written_at
        WHERE old.batch < excluded.batch RETURNING 1)
      INSERT INTO ${counts} AS old (id, hits, last_hit_at, counted_since, named_at)
      SELECT id, hits, last_hit_at, counted_since, ${SERVER_MS}
      FROM unnest($4::text[], $5::bigint[], $6::float8[], $7::float8[]) AS told (id, hits, last_hit_at, counted_since)
      WHERE EXISTS (SELECT FROM first) ORDER BY id
      ON CONFLICT (id) DO UPDATE SET hits = old.hits + excluded.hits, named_at = excluded.named_at,
        last_hit_at = greatest(old.last_hit_at, excluded.last_hit_at),
        counted_since = least(old.counted_since, excluded.counted_since)`),
    read: statement(`SELECT id, hits, last_hit_at, counted_since FROM ${counts} WHERE id = ANY ($1::text[])`),
  }
}
