import { numberIn, type Row, textIn } from '../rows.ts'
import { type PostgresDatabase, statement } from './database.ts'

/** A thing that lives in one replica, such as a session, and what the others need to take it over. */
export interface Owned {
  /** The incarnation of its replica. */
  readonly owner: string
  /** Where that replica is reached. */
  readonly url?: string | undefined
  /** As it was given. */
  readonly content: string
  /** `lost`: its replica is gone, and the asker owns it now. `free`: it was given up, and the asker owns it now. */
  readonly taken?: 'lost' | 'free' | undefined
  /** How often it was lost with its replica. The same as before: whoever had it in between has given it up. */
  readonly losses: number
}

/**
 * Which replica has what. An owner keeps what it has for as long as its row in `replicas` is live. Whoever asks for a thing
 * whose owner is gone gets it, in one transaction that locks the row of the owner, so that a thing never has two.
 */
export interface PostgresOwners {
  /** Returns who has a thing. The asker gets it if nobody live has it; `undefined` if it does not exist. */
  find(key: string, asker: string): Promise<Owned | undefined>
  /** Returns who has a thing, if its replica is live. The asker gets nothing. */
  look(key: string): Promise<Owned | undefined>
  /** As `find`, and makes the thing if it does not exist. */
  claim(key: string, asker: string, content: string): Promise<Owned>
  /** Makes a thing, or replaces what is kept of it. Returns `false` if another replica has it. */
  put(key: string, owner: string, content: string): Promise<boolean>
  /** Forgets a thing of this owner. */
  remove(key: string, owner: string): Promise<void>
  /** Gives things up: the next replica that asks for one gets it. */
  free(keys: readonly string[], owner: string): Promise<void>
  /** Returns the keys of an owner. */
  keysOf(owner: string): Promise<readonly string[]>
}

/** Things that nobody has asked for so long are forgotten. */
const KEPT = "interval '1 day'"

/** The table of owners, for the migrations. An owner of `''` is nobody. */
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

  CREATE FUNCTION ${schema}.find_owner(
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
      // Another replica may forget it between its two statements.
      for (;;) {
        const owned = await ask(key, asker, content)
        if (owned) return owned
      }
    },
    put: async (key, owner, content) => (await database.query(put, [key, owner, content])).length > 0,
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
