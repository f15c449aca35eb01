import { numberIn, type Row, textIn } from '../rows.ts'
import { type PostgresDatabase, statement } from './database.ts'

/** A resource that one replica owns, such as a session, with the data that another replica needs to take it over. */
export interface Owned {
  /** The incarnation of the owning replica. */
  readonly owner: string
  /** The URL of that replica. */
  readonly url?: string | undefined
  /** The stored data, unchanged. */
  readonly content: string
  /** Why the asker now owns it. `lost`: its replica is gone. `free`: its owner gave it up. */
  readonly taken?: 'lost' | 'free' | undefined
  /**
   * The number of times that it was lost with its replica. If the number is unchanged, each owner in between gave it
   * up.
   */
  readonly losses: number
}

/**
 * Records which replica owns which resource. An owner keeps a resource while its row in `replicas` is live. If the
 * owner is gone, the next asker becomes the owner, in one transaction that locks the owner's row, so that a resource
 * never has two owners.
 */
export interface PostgresOwners {
  /**
   * Returns the owner of a resource. The asker becomes the owner if no live replica owns it. `undefined` if it does not
   * exist.
   */
  find(key: string, asker: string): Promise<Owned | undefined>
  /** Returns the owner of a resource if its replica is live. Never changes the owner. */
  look(key: string): Promise<Owned | undefined>
  /** Does the same as `find`, and creates the resource if it does not exist. */
  claim(key: string, asker: string, content: string): Promise<Owned>
  /** Creates a resource, or replaces its data. Returns `false` if another replica owns it. */
  put(key: string, owner: string, content: string): Promise<boolean>
  /** Makes a replica the owner of a resource, although a live replica owns it. */
  move(key: string, owner: string): Promise<void>
  /** Deletes a resource of this owner. */
  remove(key: string, owner: string): Promise<void>
  /** Gives up resources: the next replica that asks for one becomes its owner. */
  free(keys: readonly string[], owner: string): Promise<void>
  /** Returns the keys of an owner. */
  keysOf(owner: string): Promise<readonly string[]>
}

/** Resources that no replica has, and that nobody has asked for in this time, are deleted. It is longer than a weekend. */
const KEPT = "interval '7 days'"

/** Returns the table of owners, for the migrations. The owner `''` means nobody. */
export function ownerTables(schema: string): string {
  return `
  CREATE TABLE ${schema}.owners (
    key text PRIMARY KEY,
    owner text NOT NULL,
    content text NOT NULL,
    used_at timestamptz NOT NULL,
    losses integer NOT NULL DEFAULT 0
  );
  CREATE INDEX owners_owner ON ${schema}.owners (owner);
  CREATE INDEX owners_used ON ${schema}.owners (used_at);
${findOwner(schema)}
  `
}

/** Returns the function that finds an owner, for the migrations. A later version replaces it. */
export function findOwner(schema: string): string {
  return `
  CREATE OR REPLACE FUNCTION ${schema}.find_owner(
    asked text, asker text, lease_ms double precision, made text,
    OUT owner text, OUT url text, OUT content text, OUT taken text, OUT losses integer
  ) LANGUAGE plpgsql AS $$
  DECLARE
    renewed timestamptz;
  BEGIN
    IF made IS NOT NULL THEN
      INSERT INTO ${schema}.owners AS o VALUES (asked, asker, made, clock_timestamp()) ON CONFLICT (key) DO NOTHING;
    END IF;
    SELECT o.owner, o.content, o.losses INTO owner, content, losses FROM ${schema}.owners o WHERE o.key = asked FOR UPDATE;
    IF owner IS NULL OR owner = asker THEN RETURN; END IF;
    -- Its renewal waits for this lock, so the answer stays true until this transaction has ended.
    SELECT r.renewed_at, r.url INTO renewed, url FROM ${schema}.replicas r WHERE r.incarnation = owner FOR SHARE;
    IF renewed > clock_timestamp() - lease_ms * interval '1 millisecond' THEN RETURN; END IF;
    taken := CASE WHEN owner = '' THEN 'free' ELSE 'lost' END;
    losses := losses + (owner <> '')::integer;
    owner := asker;
    url := NULL;
    UPDATE ${schema}.owners o SET owner = asker, used_at = clock_timestamp(), losses = find_owner.losses WHERE o.key = asked;
    DELETE FROM ${schema}.owners o WHERE o.key IN (
      SELECT p.key FROM ${schema}.owners p WHERE p.used_at < clock_timestamp() - ${KEPT} AND NOT EXISTS (
        SELECT FROM ${schema}.replicas r WHERE r.incarnation = p.owner) LIMIT 10 FOR UPDATE SKIP LOCKED);
  END $$;
  `
}

/** Returns the owners of a schema. */
export function ownersIn(database: PostgresDatabase, leaseMs: number): PostgresOwners {
  const { schema } = database
  const find = statement(`SELECT * FROM ${schema}.find_owner($1, $2, $3, $4)`)
  const look = statement(`
    SELECT o.owner, r.url, o.content, o.losses FROM ${schema}.owners o JOIN ${schema}.replicas r ON r.incarnation = o.owner
    WHERE o.key = $1 AND r.renewed_at > clock_timestamp() - $2::float8 * interval '1 millisecond'`)
  const put = statement(`
    INSERT INTO ${schema}.owners AS old VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (key) DO UPDATE SET content = excluded.content, used_at = excluded.used_at
    WHERE old.owner = excluded.owner RETURNING 1`)
  const move = statement(`UPDATE ${schema}.owners SET owner = $2, used_at = clock_timestamp() WHERE key = $1`)
  const remove = statement(`DELETE FROM ${schema}.owners WHERE key = $1 AND owner = $2`)
  const free = statement(
    `UPDATE ${schema}.owners SET owner = '', used_at = clock_timestamp() WHERE key = ANY($1) AND owner = $2`,
  )
  const keys = statement(`SELECT key FROM ${schema}.owners WHERE owner = $1 ORDER BY key`)
  const ask = async (key: string, asker: string, made: string | null): Promise<Owned | undefined> => {
    const [row] = await database.query(find, [key, asker, leaseMs, made])
    return row?.['owner'] === null || row === undefined ? undefined : toOwned(row)
  }
  return {
    find: (key, asker) => ask(key, asker, null),
    async look(key) {
      const [row] = await database.query(look, [key, leaseMs])
      return row && toOwned(row)
    },
    async claim(key, asker, content) {
      // Another replica may delete the resource between these two statements.
      for (;;) {
        const owned = await ask(key, asker, content)
        if (owned) return owned
      }
    },
    put: async (key, owner, content) => (await database.query(put, [key, owner, content])).length > 0,
    move: async (key, owner) => void (await database.query(move, [key, owner])),
    remove: async (key, owner) => void (await database.query(remove, [key, owner])),
    free: async (given, owner) => void (await database.query(free, [given, owner])),
    keysOf: async (owner) => (await database.query(keys, [owner])).map((row) => textIn(row, 'key')),
  }
}

function toOwned(row: Row): Owned {
  const { url, taken } = row
  return {
    owner: textIn(row, 'owner'),
    content: textIn(row, 'content'),
    losses: numberIn(row, 'losses'),
    ...(typeof url === 'string' ? { url } : {}),
    ...(taken === 'lost' || taken === 'free' ? { taken } : {}),
  }
}
