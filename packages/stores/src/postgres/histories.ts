import { randomUUID } from 'node:crypto'
import type { HistoryAddition, HistoryAnswer, HistoryMark, HistoryPart, HistoryStore } from '@toolgate/core/stores'
import {
  bytesOf,
  bytesOfHistory,
  historyBounds,
  historyFull,
  isChanged,
  isDue,
  keyOf,
  needRoom,
  type StoredHistoriesOptions,
  toItem,
  toPart,
} from '../history-items.ts'
import type { Row } from '../rows.ts'
import { type PostgresDatabase, statement } from './database.ts'

/**
 * The tables of histories, for the migrations. Names and owners are bytes, because a text in Postgres cannot contain a
 * NUL. Items are JSON.
 *
 * An addition locks the row of its history, so additions to one history run one after another, and other histories do
 * not wait.
 */
export function historyTables(schema: string): string {
  return `
  CREATE TABLE ${schema}.histories (
    name bytea PRIMARY KEY,
    id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    owner bytea NOT NULL,
    generation text NOT NULL,
    version bigint NOT NULL,
    kept text NOT NULL,
    bytes bigint NOT NULL,
    expires_at double precision NOT NULL
  ) WITH (fillfactor = 50);
  CREATE INDEX histories_owner ON ${schema}.histories (owner) INCLUDE (bytes);
  CREATE INDEX histories_expiry ON ${schema}.histories (expires_at);
  CREATE TABLE ${schema}.history_items (
    history bigint NOT NULL,
    version bigint NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    key bytea,
    bytes bigint NOT NULL,
    item text NOT NULL
  );
  CREATE INDEX history_items_order ON ${schema}.history_items (history, version, number);
  CREATE UNIQUE INDEX history_items_key ON ${schema}.history_items (history, key) WHERE key IS NOT NULL;

  CREATE FUNCTION ${schema}.end_history(asked bytea) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE gone bigint;
  BEGIN
    DELETE FROM ${schema}.histories h WHERE h.name = asked RETURNING h.id INTO gone;
    DELETE FROM ${schema}.history_items i WHERE i.history = gone;
  END $$;
  `
}

/**
 * Counts histories for shadows separately, for the migrations. They take no room from those that enforced rules read.
 *
 * Replicas of the previous version create none for shadows, and call the functions without the parameter for shadows.
 */
export function shadowHistories(schema: string): string {
  return `
  ALTER TABLE ${schema}.histories ADD COLUMN shadow boolean NOT NULL DEFAULT false;
  DROP INDEX ${schema}.histories_owner;
  CREATE INDEX histories_owner ON ${schema}.histories (shadow, owner) INCLUDE (bytes);

  -- Returns whose histories are full, 'all' or 'owner', if there is no room for more.
  DROP FUNCTION IF EXISTS ${schema}.history_room(bytea, bigint, bigint, bigint);
  CREATE FUNCTION ${schema}.history_room(
    of_owner bytea, more bigint, max_all bigint, max_owner bigint, of_shadows boolean DEFAULT false
  ) RETURNS text LANGUAGE sql AS $$
    SELECT CASE
      WHEN more + (SELECT coalesce(sum(h.bytes), 0) FROM ${schema}.histories h WHERE h.shadow = of_shadows) > max_all
        THEN 'all'
      WHEN more + (SELECT coalesce(sum(h.bytes), 0) FROM ${schema}.histories h
        WHERE h.shadow = of_shadows AND h.owner = of_owner) > max_owner THEN 'owner' END
  $$;
${openHistory(schema)}
${addToHistory(schema)}
  `
}

/** Creates a history that is unknown or has expired. */
function openHistory(schema: string): string {
  return `
  DROP FUNCTION IF EXISTS ${schema}.open_history(
    bytea, bytea, text, text, bigint, double precision, double precision, bigint, bigint);
  CREATE FUNCTION ${schema}.open_history(
    asked bytea, of_owner bytea, its_generation text, its_kept text, size bigint, now_ms double precision,
    until_ms double precision, max_all bigint, max_owner bigint, of_shadows boolean DEFAULT false
  ) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    lacking text;
    expired bytea;
  BEGIN
    IF EXISTS (SELECT FROM ${schema}.histories h WHERE h.name = asked AND h.expires_at > now_ms) THEN RETURN NULL; END IF;
    -- Each opening adds one at most, so expired ones are removed faster than others come.
    FOR expired IN SELECT h.name FROM ${schema}.histories h WHERE h.expires_at <= now_ms
      ORDER BY h.name = asked DESC, h.expires_at LIMIT 3 FOR UPDATE SKIP LOCKED
    LOOP PERFORM ${schema}.end_history(expired); END LOOP;
    lacking := ${schema}.history_room(of_owner, size, max_all, max_owner, of_shadows);
    IF lacking IS NOT NULL THEN RETURN lacking; END IF;
    INSERT INTO ${schema}.histories (name, owner, shadow, generation, version, kept, bytes, expires_at)
      VALUES (asked, of_owner, of_shadows, its_generation, 0, its_kept, size, until_ms) ON CONFLICT DO NOTHING;
    RETURN NULL;
  END $$;
  `
}

/** Adds items to a history, and returns the items that others added. */
function addToHistory(schema: string): string {
  return `
  CREATE OR REPLACE FUNCTION ${schema}.add_to_history(
    asked bytea, now_ms double precision, since_generation text, since_version bigint, unless_changed boolean,
    items text[], keys bytea[], sizes bigint[], until_ms double precision, max_all bigint, max_owner bigint,
    OUT lacking text, OUT added boolean, OUT generation text, OUT version bigint, OUT kept text,
    OUT expires_at double precision, OUT others text[]
  ) LANGUAGE plpgsql AS $$
  DECLARE
    h ${schema}.histories%ROWTYPE;
    size bigint;
    replaced bigint;
    total bigint := 0;
  BEGIN
    SELECT o.* INTO h FROM ${schema}.histories o WHERE o.name = asked AND o.expires_at > now_ms FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    generation := h.generation; version := h.version; kept := h.kept; expires_at := h.expires_at; added := false;
    others := ARRAY(SELECT i.item FROM ${schema}.history_items i
      WHERE i.history = h.id AND i.version > CASE WHEN h.generation = since_generation THEN since_version ELSE -1 END
      ORDER BY i.number);
    IF unless_changed AND (h.version <> since_version OR h.generation <> since_generation) THEN RETURN; END IF;
    IF cardinality(items) > 0 THEN
      SELECT sum(s) INTO size FROM unnest(sizes) s;
      lacking := ${schema}.history_room(h.owner, size, max_all, max_owner, h.shadow);
      IF lacking IS NOT NULL THEN RETURN; END IF;
      version := h.version + 1;
    END IF;
    FOR i IN 1 .. cardinality(items) LOOP
      replaced := NULL;
      IF keys[i] IS NOT NULL THEN
        DELETE FROM ${schema}.history_items o WHERE o.history = h.id AND o.key = keys[i] RETURNING o.bytes INTO replaced;
      END IF;
      INSERT INTO ${schema}.history_items (history, version, key, bytes, item)
        VALUES (h.id, add_to_history.version, keys[i], sizes[i], items[i]);
      total := total + sizes[i] - coalesce(replaced, 0);
    END LOOP;
    expires_at := greatest(h.expires_at, until_ms);
    added := true;
    UPDATE ${schema}.histories o SET version = add_to_history.version, bytes = o.bytes + total,
      expires_at = add_to_history.expires_at WHERE o.name = asked;
  END $$;
  `
}

/** Returns the histories in the database, shared by all replicas. No history is deleted to make room. */
export function historiesIn(db: PostgresDatabase, options?: StoredHistoriesOptions): HistoryStore {
  const { maxBytes, maxBytesOfOwner } = historyBounds('openPostgresStores.histories', options)
  const sql = statementsFor(db.schema)

  async function read(name: string, since: HistoryMark | undefined, nowMs: number): Promise<HistoryPart | undefined> {
    const values = [Buffer.from(name), since?.generation ?? null, since?.version ?? 0, nowMs]
    const [row] = await db.query(sql.read, values)
    return row && partOf(row)
  }

  async function write(name: string, addition: HistoryAddition): Promise<HistoryAnswer | undefined> {
    const { items, since, unlessChanged, nowMs, expiresAt } = addition
    const texts = items.map((item) => JSON.stringify(item))
    const keys = items.map(keyOf).map((key) => (key === null ? null : Buffer.from(key)))
    const asked = [Buffer.from(name), nowMs, since.generation, since.version, unlessChanged]
    const room = needRoom(items) ? [maxBytes, maxBytesOfOwner] : [UNBOUNDED, UNBOUNDED]
    const values = [...asked, texts, keys, items.map(bytesOf), expiresAt, ...room]
    const [row = {}] = await db.query(sql.add, values)
    if (row['generation'] === null) return undefined
    if (row['lacking'] !== null) throw historyFull(row['lacking'] === 'all' ? undefined : name)
    return { ...partOf(row), added: row['added'] === true }
  }

  return {
    read,
    async open(name, { owner, isShadow = false, kept, nowMs, expiresAt }) {
      const keptText = JSON.stringify(kept)
      const times = [nowMs, expiresAt]
      const bounds = [maxBytes, maxBytesOfOwner, isShadow]
      const made = [randomUUID(), keptText, bytesOfHistory(name, keptText), ...times, ...bounds]
      for (;;) {
        const [row = {}] = await db.query(sql.open, [Buffer.from(name), Buffer.from(owner), ...made])
        if (row['lacking'] !== null) throw historyFull(row['lacking'] === 'all' ? undefined : owner)
        const part = await read(name, undefined, nowMs)
        // Another replica may have ended the history meanwhile.
        if (part) return part
      }
    },
    async add(name, addition) {
      const { items, since, unlessChanged, nowMs } = addition
      // Most calls add nothing, and reading needs no write.
      if (items.length > 0) return write(name, addition)
      const part = await read(name, since, nowMs)
      if (part === undefined || isDue(part, addition)) return part && write(name, addition)
      return { ...part, added: !(unlessChanged && isChanged(part, since)) }
    },
    async end(name) {
      await db.query(sql.end, [Buffer.from(name)])
    },
  }
}

const UNBOUNDED = Number.MAX_SAFE_INTEGER

function statementsFor(schema: string) {
  return {
    read: statement(`
      SELECT h.generation, h.version, h.kept, h.expires_at, ARRAY(
        SELECT i.item FROM ${schema}.history_items i
        WHERE i.history = h.id AND i.version > CASE WHEN h.generation = $2::text THEN $3::bigint ELSE -1 END
        ORDER BY i.number) AS others
      FROM ${schema}.histories h WHERE h.name = $1 AND h.expires_at > $4::float8`),
    open: statement(`SELECT ${schema}.open_history($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS lacking`),
    add: statement(`SELECT * FROM ${schema}.add_to_history($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`),
    end: statement(`SELECT ${schema}.end_history($1)`),
  }
}

function partOf(row: Row): HistoryPart {
  return toPart(
    row,
    (row['others'] as readonly string[]).map((item) => toItem({ item })),
  )
}
