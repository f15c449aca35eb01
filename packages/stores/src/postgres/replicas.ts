import { isObject, readOwnJson } from '@toolgate/values/json'
import { numberIn, type Row, textIn } from '../rows.ts'
import { type PostgresDatabase, type Statement, statement } from './database.ts'
import { ownersIn, type PostgresOwners } from './owners.ts'

/** One start of a replica. */
export interface Replica {
  readonly id: string
  /** An id that differs at each start. */
  readonly incarnation: string
  /** The URL for other replicas. */
  readonly url?: string | undefined
  readonly version: string
}

/** The status that a replica publishes with each renewal. */
export interface ReplicaWord {
  /** The configuration that it runs, and the start of that, in wall-clock milliseconds of the replica. */
  readonly configuration?: { readonly id: string; readonly since: number } | undefined
  /** The id of the configuration in its own file, if that is a different one. */
  readonly file?: string | undefined
  /** Why it starts no calls. */
  readonly refuses?: string | undefined
  /** Whether it is about to stop, so that nobody waits for it. */
  readonly isStopping?: true | undefined
}

/** A replica that has joined. Times are wall-clock milliseconds of the database. */
export interface ReplicaRow extends Replica {
  /** The status that it published last. */
  readonly word: ReplicaWord
  /** The revision of the state that it has applied. */
  readonly applied: number
  /** Whether its lease may hold. */
  readonly isLive: boolean
  readonly joinedAt: number
  readonly renewedAt: number
}

/** The revision and the timeline of the shared state, according to the primary. */
export interface SharedPosition {
  /** A number that grows with each change of the state that replicas copy. */
  readonly revision: number
  /** The id of the database and its timeline. It changes after a fail-over to a standby, or a restored backup. */
  readonly timeline: string
  /** Whether the timeline is the first one, or a person has accepted it. */
  readonly isAccepted: boolean
  /** Whether another process has this replica's row. */
  readonly isTaken: boolean
  /** Whether the row was no longer live, so that others may have taken over this replica's resources. */
  readonly wasLate: boolean
}

/** The rows of replicas that share a schema, and the revision that their leases refer to. */
export interface PostgresReplicas {
  /** Takes the row of an id. Returns `false` if a live replica has it. */
  join(replica: Replica): Promise<boolean>
  /**
   * Reads the position, and stores the applied revision and the status in the replica's row. It uses its own
   * connection.
   */
  renew(replica: Replica, applied: number, word?: ReplicaWord): Promise<SharedPosition>
  /** Frees the row. */
  leave(replica: Replica): Promise<void>
  list(): Promise<readonly ReplicaRow[]>
  /** Counts the replicas whose lease may hold: those that have applied a revision, and the others. */
  confirmations(revision: number): Promise<{ readonly applied: number; readonly missing: number }>
  revision(): Promise<number>
  /** Accepts the current timeline, with a revision above the given one. */
  accept(seen: number): Promise<void>
  /** The owners of resources. */
  readonly owners: PostgresOwners
}

interface PostgresReplicasOptions {
  /** The connection for renewals, which must not wait for other statements. */
  readonly renewing: Pick<PostgresDatabase, 'query'>
  readonly database: PostgresDatabase
  /** The duration of a lease, in milliseconds. */
  readonly leaseMs: number
  readonly identity: IdentityRights
}

/** Returns the replicas of a schema. */
export function replicasIn({ renewing, database, leaseMs, identity }: PostgresReplicasOptions): PostgresReplicas {
  const sql = statementsFor(database.schema, identity)
  const owners = ownersIn(database, leaseMs)
  const read = async (of: Statement, values: readonly unknown[] = []) => (await database.query(of, values))[0] ?? {}
  return {
    async join({ id, incarnation, url, version }) {
      return (await read(sql.join, [id, incarnation, url ?? null, version, leaseMs]))['joined'] === true
    },
    async renew({ id, incarnation, url, version }, applied, word = {}) {
      const values = [id, incarnation, url ?? null, version, applied, leaseMs, JSON.stringify(word)]
      const [row = {}] = await renewing.query(sql.renew, values)
      return {
        revision: numberIn(row, 'revision'),
        timeline: textIn(row, 'timeline'),
        isAccepted: row['accepted'] === true,
        isTaken: row['mine'] !== true,
        wasLate: row['late'] !== false,
      }
    },
    async leave({ id, incarnation }) {
      await read(sql.leave, [id, incarnation])
    },
    list: async () => (await database.query(sql.list, [leaseMs])).map(toReplica),
    async confirmations(revision) {
      const row = await read(sql.confirmations, [revision, leaseMs])
      return { applied: numberIn(row, 'applied'), missing: numberIn(row, 'missing') }
    },
    revision: async () => numberIn(await read(sql.revision), 'revision'),
    async accept(seen) {
      await read(sql.accept, [seen])
    },
    owners,
  }
}

/** The prefixes of keys that no replica copies. Their entries are read when needed. */
const NOT_COPIED = ['gateway/', 'key-used:', 'pin-definition']

/**
 * Returns the SQL that creates the tables of replicas, for the migrations. Triggers increment the revision in the
 * transaction of each change of the state.
 */
export function replicaTables(schema: string): string {
  const isCopied = (row: string) =>
    NOT_COPIED.map((prefix) => `substring(${row}.key FOR ${prefix.length}) <> '${prefix}'::bytea`).join(' AND ')
  return `
  -- One row. revision: of the state that replicas keep a copy of. timeline: the accepted one; NULL before the first lease.
  CREATE TABLE ${schema}.replica_state (
    id integer PRIMARY KEY CHECK (id = 1),
    revision bigint NOT NULL,
    timeline text
  ) WITH (fillfactor = 10);
  INSERT INTO ${schema}.replica_state VALUES (1, 0, NULL);

  CREATE TABLE ${schema}.replicas (
    id text PRIMARY KEY,
    incarnation text NOT NULL,
    url text,
    version text NOT NULL,
    applied bigint NOT NULL,
    word text NOT NULL DEFAULT '{}',
    joined_at timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL
  ) WITH (fillfactor = 10);

  CREATE FUNCTION ${schema}.count_replica_state() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE ${schema}.replica_state SET revision = revision + 1;
    PERFORM pg_notify('${channelOf(schema)}', '');
    RETURN NULL;
  END $$;
  CREATE TRIGGER count_put AFTER INSERT OR UPDATE ON ${schema}.state FOR EACH ROW
    WHEN (${isCopied('NEW')}) EXECUTE FUNCTION ${schema}.count_replica_state();
  CREATE TRIGGER count_removed AFTER DELETE ON ${schema}.state FOR EACH ROW
    WHEN (${isCopied('OLD')}) EXECUTE FUNCTION ${schema}.count_replica_state();
  `
}

/** Returns the channel for notifications that the copied state has changed. */
export function channelOf(schema: string): string {
  return `${schema}_replicas`
}

/** Whether this role may read the parts of a server's identity. Managed servers may refuse it. */
interface IdentityRights {
  readonly system: boolean
  readonly timeline: boolean
}

/**
 * Returns which parts of the identity may be read. A statement fails as a whole if it may not call one of its
 * functions.
 */
export async function readIdentity(database: PostgresDatabase): Promise<IdentityRights> {
  const [row = {}] = await database.query(IDENTITY, [])
  return { system: row['system'] === true, timeline: row['timeline'] === true }
}

const IDENTITY = statement(`
  SELECT has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') AS system,
    has_function_privilege('pg_catalog.pg_walfile_name(pg_lsn)', 'EXECUTE')
      AND has_function_privilege('pg_catalog.pg_current_wal_lsn()', 'EXECUTE') AS timeline`)

/**
 * Returns the SQL for a timeline. A promotion begins a new one, which WAL file names contain. Another cluster has
 * another identifier.
 */
function timelineFor({ system, timeline }: IdentityRights): string {
  const cluster = system ? '(SELECT system_identifier::text FROM pg_control_system())' : "'unknown'"
  const line = timeline ? 'left(pg_walfile_name(pg_current_wal_lsn()), 8)' : "'unknown'"
  return `${cluster} || '/' || ${line}`
}

function statementsFor(schema: string, identity: IdentityRights) {
  const timeline = timelineFor(identity)
  const replicas = `${schema}.replicas`
  const isLive = (ms: string) => `renewed_at > clock_timestamp() - ${ms}::float8 * interval '1 millisecond'`
  return {
    join: statement(`
      WITH forgotten AS (
        DELETE FROM ${replicas} WHERE renewed_at < clock_timestamp() - interval '1 day' AND id <> $1
      ), joined AS (
        INSERT INTO ${replicas} AS old (id, incarnation, url, version, applied, joined_at, renewed_at)
        VALUES ($1, $2, $3, $4, 0, clock_timestamp(), clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET incarnation = excluded.incarnation, url = excluded.url, version = excluded.version,
          applied = 0, word = excluded.word, joined_at = excluded.joined_at, renewed_at = excluded.renewed_at
        WHERE old.incarnation = excluded.incarnation OR NOT (old.${isLive('$5')}) RETURNING 1)
      SELECT EXISTS (SELECT FROM joined) AS joined`),
    renew: statement(`
      WITH before AS (
        SELECT NOT (${isLive('$6')}) AS late FROM ${replicas} WHERE id = $1 AND incarnation = $2 FOR UPDATE
      ), mine AS (
        INSERT INTO ${replicas} AS old (id, incarnation, url, version, applied, word, joined_at, renewed_at)
        -- The count has the row read, and locked, before it is written.
        SELECT $1, $2, $3, $4, $5, $7, clock_timestamp(), clock_timestamp() FROM (SELECT count(*) FROM before) AS first
        ON CONFLICT (id) DO UPDATE SET applied = excluded.applied, word = excluded.word, renewed_at = excluded.renewed_at
        WHERE old.incarnation = excluded.incarnation RETURNING 1
      ), present AS (SELECT ${timeline} AS timeline
      ), first AS (
        UPDATE ${schema}.replica_state SET timeline = present.timeline FROM present
        WHERE replica_state.timeline IS NULL RETURNING 1)
      SELECT revision, present.timeline, coalesce(kept.timeline = present.timeline, true) AS accepted,
        EXISTS (SELECT FROM mine) AS mine, coalesce((SELECT late FROM before), true) AS late,
        -- Losing a renewal in a crash costs nothing, so no disk and no standby is waited for. Of this transaction only.
        set_config('synchronous_commit', 'off', true)
      FROM ${schema}.replica_state AS kept, present`),
    leave: statement(`DELETE FROM ${replicas} WHERE id = $1 AND incarnation = $2`),
    list: statement(`
      SELECT id, incarnation, url, version, applied, word, ${isLive('$1')} AS live,
        extract(epoch FROM joined_at) * 1000 AS joined_ms, extract(epoch FROM renewed_at) * 1000 AS renewed_ms
      FROM ${replicas} ORDER BY id`),
    confirmations: statement(`
      SELECT count(*) FILTER (WHERE applied >= $1) AS applied, count(*) FILTER (WHERE applied < $1) AS missing
      FROM ${replicas} WHERE ${isLive('$2')}`),
    revision: statement(`SELECT revision FROM ${schema}.replica_state`),
    accept: statement(`
      UPDATE ${schema}.replica_state SET timeline = ${timeline}, revision = greatest(revision, $1) + 1`),
  }
}

function toReplica(row: Row): ReplicaRow {
  const url = row['url']
  return {
    id: textIn(row, 'id'),
    incarnation: textIn(row, 'incarnation'),
    ...(typeof url === 'string' ? { url } : {}),
    version: textIn(row, 'version'),
    applied: numberIn(row, 'applied'),
    word: toWord(textIn(row, 'word')),
    isLive: row['live'] === true,
    joinedAt: Math.round(numberIn(row, 'joined_ms')),
    renewedAt: Math.round(numberIn(row, 'renewed_ms')),
  }
}

function toWord(text: string): ReplicaWord {
  try {
    const { configuration, file, refuses, isStopping } = readOwnJson(text) as Readonly<Record<string, unknown>>
    const { id, since } = isObject(configuration) ? configuration : {}
    return {
      ...(typeof id === 'string' && typeof since === 'number' && { configuration: { id, since } }),
      ...(typeof file === 'string' && { file }),
      ...(typeof refuses === 'string' && { refuses }),
      ...(isStopping === true && { isStopping }),
    }
  } catch {
    return {}
  }
}
