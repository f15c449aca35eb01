import { ConfigError } from '@toolgate/core'
import type { Client } from 'pg'
import { numberIn, type Row } from '../rows.ts'
import { askLease, limitTables } from './functions.ts'
import { clauseTables } from './clause-counts.ts'
import { grantTables } from './grants.ts'
import { historyTables, shadowHistories } from './histories.ts'
import { findOwner, ownerTables } from './owners.ts'
import { peopleTable } from './people.ts'
import { inputTables } from './audit/input-tables.ts'
import { auditTables } from './audit/tables.ts'
import { replicaTables } from './replicas.ts'

/** The oldest tested version that PostgreSQL still supports, in the server's number format. */
const MIN_SERVER = 130_000
/** The longest wait for other processes that migrate at the same time, in milliseconds. */
const MIGRATION_MS = 60_000

/**
 * The statements that upgrade a schema to the next version; the first creates it. A version only adds, so that replicas
 * of the previous version continue while others are replaced.
 *
 * Texts from outside are stored as bytes or as JSON, because a text in Postgres can contain neither NUL nor a lone
 * surrogate.
 */
const MIGRATIONS: readonly ((schema: string) => string)[] = [
  (schema) => `
  CREATE TABLE ${schema}.state (
    key bytea PRIMARY KEY,
    value text NOT NULL,
    expires_at double precision
  );
  CREATE INDEX state_expiry ON ${schema}.state (expires_at) WHERE expires_at IS NOT NULL;

  -- One row, which every change of the state counts up in its own transaction: who has seen a revision has seen all before it.
  CREATE TABLE ${schema}.state_revision (
    id integer PRIMARY KEY CHECK (id = 1),
    revision bigint NOT NULL
  ) WITH (fillfactor = 10);
  INSERT INTO ${schema}.state_revision VALUES (1, 0);

  -- follows: the newest approval of the same asker when this one was made. It is unique, so of two at once one tries again.
  CREATE TABLE ${schema}.approvals (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    binding bytea NOT NULL,
    asker bytea NOT NULL,
    follows bigint NOT NULL,
    tenant text,
    "user" text,
    tool text NOT NULL,
    chat text,
    status text NOT NULL,
    requested_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    decided_at double precision,
    decided_by text,
    reason text,
    spend text,
    characters bigint NOT NULL,
    request text NOT NULL
  );
  CREATE INDEX approvals_binding ON ${schema}.approvals (binding, seq);
  CREATE INDEX approvals_asker ON ${schema}.approvals (asker, seq);
  CREATE INDEX approvals_pending ON ${schema}.approvals (asker, seq) WHERE status = 'pending';
  CREATE UNIQUE INDEX approvals_follows ON ${schema}.approvals (asker, follows);
  CREATE INDEX approvals_expiry ON ${schema}.approvals (expires_at);
  CREATE INDEX approvals_size ON ${schema}.approvals (characters);

  CREATE SEQUENCE ${schema}.tickets;
  CREATE TABLE ${schema}.leases (
    session bytea PRIMARY KEY,
    token bigint NOT NULL UNIQUE,
    expires_at double precision NOT NULL
  );
  CREATE INDEX leases_expiry ON ${schema}.leases (expires_at);
  CREATE TABLE ${schema}.lease_waiters (
    session bytea NOT NULL,
    ticket bigint NOT NULL,
    expires_at double precision NOT NULL,
    PRIMARY KEY (session, ticket)
  );
  CREATE INDEX lease_waiters_expiry ON ${schema}.lease_waiters (expires_at);
${askLease(schema)}
${limitTables(schema)}
  `,
  replicaTables,
  ownerTables,
  auditTables,
  historyTables,
  clauseTables,
  inputTables,
  shadowHistories,
  findOwner,
  (schema) => `ALTER TABLE ${schema}.approvals ADD COLUMN votes text`,
  peopleTable,
  grantTables,
]

/** The version that this program creates and supports. */
export const SCHEMA_VERSION = MIGRATIONS.length

/**
 * Checks the server, and creates or upgrades the schema in one transaction. Any number of replicas may do so at once.
 *
 * @throws {ConfigError} for a server or a schema that cannot be used
 */
export async function prepareSchema(client: Client, schema: string): Promise<void> {
  await checkServer(client)
  if ((await versionOf(client, schema)) === SCHEMA_VERSION) return
  await client.query('BEGIN')
  await client.query(`SET LOCAL statement_timeout = ${MIGRATION_MS}`)
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended('toolgate:' || $1, 0))", [schema])
  const version = (await versionOf(client, schema)) ?? (await createVersion(client, schema))
  for (const migrate of MIGRATIONS.slice(version)) await client.query(migrate(schema))
  await client.query(`UPDATE ${schema}.schema_version SET version = $1`, [SCHEMA_VERSION])
  await client.query('COMMIT')
}

async function checkServer(client: Client): Promise<void> {
  const [row] = await rowsOf(
    client,
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
      current_setting('server_encoding') AS encoding, current_setting('transaction_read_only') AS read_only`,
  )
  checkServerSettings(row ?? {})
}

/** @throws {ConfigError} for a server that is too old, has another encoding or is read-only */
export function checkServerSettings(row: Row): void {
  if (numberIn(row, 'number') < MIN_SERVER)
    throw unusable(`the server has version ${String(row['version'])}; Toolgate needs ${MIN_SERVER / 10_000} or later`)
  if (row['encoding'] !== 'UTF8')
    throw unusable(`the database has the encoding ${String(row['encoding'])}; Toolgate needs UTF8`)
  if (row['read_only'] === 'on') throw unusable('the server is read-only: a standby, or a role that may not write')
}

/**
 * SQL on the catalog tables. `to_regclass` does not serve here, because a connection caches a missing result even after
 * another creates the table.
 */
const SCHEMA_EXISTS = 'SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1) AS found'
const TABLE_EXISTS = `
  SELECT EXISTS (SELECT FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS space ON space.oid = relnamespace
    WHERE nspname = $1 AND relname = 'schema_version') AS found`

/** Returns the version of a schema, or `undefined` if Toolgate has created none. */
async function versionOf(client: Client, schema: string): Promise<number | undefined> {
  const [found] = await rowsOf(client, TABLE_EXISTS, [schema])
  if (found?.['found'] !== true) return undefined
  const [row] = await rowsOf(client, `SELECT version FROM ${schema}.schema_version`)
  const version = numberIn(row ?? {}, 'version')
  if (!(version <= SCHEMA_VERSION))
    throw unusable(`the schema ${schema} has version ${version}; this program knows ${SCHEMA_VERSION}`)
  return version
}

async function createVersion(client: Client, schema: string): Promise<number> {
  const [found] = await rowsOf(client, SCHEMA_EXISTS, [schema])
  // A role without the right to create schemas may use an existing one.
  if (found?.['found'] !== true) await client.query(`CREATE SCHEMA ${schema}`)
  await client.query(`CREATE TABLE ${schema}.schema_version (version integer NOT NULL)`)
  await client.query(`INSERT INTO ${schema}.schema_version VALUES (0)`)
  return 0
}

async function rowsOf(client: Client, sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
  return (await client.query<Row>(sql, [...values])).rows
}

function unusable(problem: string): ConfigError {
  return new ConfigError('', problem)
}
