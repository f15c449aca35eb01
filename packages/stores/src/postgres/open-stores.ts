import { ConfigError } from '@toolgate/core'
import { checkShape, errnoOf, shapeOf } from '@toolgate/values'
import type {
  ApprovalStore,
  ClauseCountStore,
  Clock,
  CounterStore,
  GrantStore,
  HistoryStore,
  PersonStore,
  SessionLock,
} from '@toolgate/core/stores'
import { Client, type ClientConfig } from 'pg'
import type { StoredApprovalsOptions } from '../state/approval-rows.ts'
import type { LeasedLockOptions } from '../leased-lock.ts'
import { checkCommonOptions, placeOf } from '../open-options.ts'
import { approvalsIn } from './approvals.ts'
import { type SharedVerdict, verifySharedAudit, type VerifySharedOptions } from '../shared-audit/verify.ts'
import type { AuditSource } from '../shared-audit/source.ts'
import { postgresSource } from './audit/source.ts'
import { clauseCountsIn } from './clause-counts.ts'
import { peopleIn } from './people.ts'
import { countersIn, type PostgresCountersOptions } from './counters.ts'
import { sharedReader, type SharedAuditReader } from './audit/reader.ts'
import { openSharedAudit, type SharedAudit, type SharedAuditOptions } from './audit/open-audit.ts'
import { describeError, openPool, type PostgresDatabase } from './database.ts'
import { type Joined, joinProcesses, type JoinOptions } from './join.ts'
import { openOwnConnection } from './own-connection.ts'
import { channelOf, type PostgresReplicas, readIdentity, replicasIn } from './replicas.ts'
import type { StoredHistoriesOptions } from '../history-items.ts'
import { grantsIn } from './grants.ts'
import { historiesIn } from './histories.ts'
import { lockIn } from './lock.ts'
import { prepareSchema } from './schema.ts'
import { openState, type PostgresState } from './state.ts'

export interface PostgresStoresOptions {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`. Errors never contain the password. */
  readonly url: string
  /** The schema's name. It is created if it does not exist. Default `toolgate`. */
  readonly schema?: string
  /** The name in `pg_stat_activity`. Default `toolgate`. */
  readonly applicationName?: string
  /** The maximum number of connections of the pool. Default 10. */
  readonly maxConnections?: number
  /** The longest wait for a connection, from the pool or a new one. Default 2,000 ms. */
  readonly connectTimeoutMs?: number
  /** The longest time for a statement. The server ends it too. Default 5,000 ms. */
  readonly statementTimeoutMs?: number
  /**
   * Set it if the URL points to a pooler in transaction mode, such as PgBouncer. Statements are then not prepared,
   * changes are polled for, and the server does not end slow statements. Default: the URL points to the server.
   */
  readonly pooler?: 'transaction'
  /** A clock whose time is the same for all replicas. Default: the server's. */
  readonly clock?: Clock
  readonly approvals?: StoredApprovalsOptions
  readonly counters?: PostgresCountersOptions
  readonly histories?: StoredHistoriesOptions
  readonly lock?: LeasedLockOptions
  /** Default: 100,000. */
  readonly people?: { readonly max?: number }
}

const OPTIONS = shapeOf<PostgresStoresOptions>({
  url: true,
  schema: true,
  applicationName: true,
  maxConnections: true,
  connectTimeoutMs: true,
  statementTimeoutMs: true,
  pooler: true,
  clock: true,
  approvals: true,
  counters: true,
  histories: true,
  lock: true,
  people: true,
})
const COUNTERS = shapeOf<PostgresCountersOptions>({ survives: true })
const JOIN = shapeOf<JoinOptions>({ onFault: true })

/** The stores of one schema. Any number of replicas may open it. */
export interface PostgresStores {
  readonly approvals: ApprovalStore
  readonly grants: GrantStore
  readonly counters: CounterStore
  /** The histories of runs. */
  readonly histories: HistoryStore
  /** The number of times that each policy clause has matched. */
  readonly clauses: ClauseCountStore
  /** The people whom gateways have seen. */
  readonly people: PersonStore
  readonly lock: SessionLock
  readonly state: PostgresState
  /** Verifies the chains of all replicas against the signed log. */
  verifyAudit(options?: VerifySharedOptions): Promise<SharedVerdict>
  /** The audit of all replicas, for exports and proofs of records: see `@toolgate/stores/verify`. */
  readonly auditSource: AuditSource
  /** Reads the records of all replicas, and their sealed inputs. Writes nothing. */
  readonly auditReader: SharedAuditReader
  /** Runs the host's own statements, prepared, with the pool and the errors of the stores. */
  readonly database: PostgresDatabase
  /** Opens the rows of replicas with leases on the state. `close` closes them too. */
  openReplicas(options: OpenReplicas): PostgresReplicas
  /** Joins the processes that share the stores, and returns the lease for a gate. `close` also leaves them. */
  join(options?: JoinOptions): Promise<Joined>
  /** Opens the audit that replicas share, to write the records of one replica. `close` closes the audit too. */
  openAudit(options: SharedAuditOptions): Promise<SharedAudit>
  /** Closes the stores. Later requests are refused with `state_unavailable`. */
  close(): Promise<void>
}

export interface OpenReplicas {
  /** The duration of a lease, in milliseconds. */
  readonly leaseMs: number
  /** The longest time for a renewal, in milliseconds. */
  readonly answerMs: number
  /** Called when another replica has made a change. A pooler may drop notifications, so polling alone must suffice. */
  readonly onNotice: () => void
}

/**
 * Opens the stores in a Postgres database, which any number of replicas may share. Before the promise resolves, the
 * database is checked, and the schema is created or upgraded.
 *
 * @throws {ConfigError} for an unknown option, and for an unusable URL, password, database, server or schema
 * @example
 * const { approvals, state, close } = await openPostgresStores({ url: 'postgres://toolgate@db.example/toolgate' })
 */
export async function openPostgresStores(options: PostgresStoresOptions): Promise<PostgresStores> {
  checkShape(NAME, options, OPTIONS)
  checkCommonOptions(NAME, options)
  checkCounters(options.counters)
  if (options.pooler !== undefined && options.pooler !== 'transaction')
    throw new ConfigError(`${NAME}.pooler`, 'must be "transaction"')
  const { url, schema = 'toolgate', maxConnections = 10, clock, pooler } = options
  const prepares = pooler === undefined
  const place = placeOf(NAME, url, ['postgres:', 'postgresql:'], 'postgres://user:password@host:5432/database')
  if (!/^[a-z_][a-z0-9_]{0,40}$/.test(schema))
    throw new ConfigError(`${NAME}.schema`, 'must be 1 to 41 lower-case letters, digits and underscores')
  const config = toConfig(options)
  await prepare(config, schema, place)
  const database = openPool({ config, place, schema, maxConnections, prepares })
  const state = await openState(database, clock)
  const identity = await readIdentity(database)
  const lock = lockIn(database, clock, options.lock)
  const connections: Pick<PostgresDatabase, 'close'>[] = [database]
  const opened: { close(): Promise<void> }[] = []
  const auditSource = postgresSource(database)
  const stores: PostgresStores = {
    approvals: approvalsIn(database, options.approvals),
    grants: grantsIn(database),
    counters: countersIn(database, clock, options.counters),
    histories: historiesIn(database, options.histories),
    clauses: clauseCountsIn(database, clock),
    people: peopleIn(database, clock, options.people?.max),
    lock,
    state,
    database,
    openReplicas({ leaseMs, answerMs, onNotice }) {
      const bounded = { ...config, connectionTimeoutMillis: answerMs, query_timeout: answerMs }
      const first = prepares ? [`LISTEN ${channelOf(schema)}`] : []
      const renewing = openOwnConnection({ config: bounded, place, first, onNotice, prepares })
      connections.push(renewing)
      return replicasIn({ renewing, database, leaseMs, identity })
    },
    auditSource,
    auditReader: sharedReader(database),
    verifyAudit: (given) => verifySharedAudit(auditSource, given),
    async openAudit(given) {
      const audit = await openSharedAudit(database, state, given)
      opened.push(audit)
      return audit
    },
    async join(given = {}) {
      checkShape(`${NAME}.join`, given, JOIN)
      const joined = await joinProcesses(stores, clock, given)
      opened.push(joined)
      return joined
    },
    async close() {
      await Promise.all(opened.map((each) => each.close()))
      state.close()
      await lock.close()
      await Promise.all(connections.map((each) => each.close()))
    },
  }
  return stores
}

const NAME = 'openPostgresStores'

function checkCounters(counters: PostgresCountersOptions | undefined): void {
  if (counters === undefined) return
  checkShape(`${NAME}.counters`, counters, COUNTERS)
  const { survives = 'disk' } = counters
  if (survives !== 'disk' && survives !== 'process')
    throw new ConfigError(`${NAME}.counters.survives`, 'must be "disk" or "process"')
}

function toConfig(options: PostgresStoresOptions): ClientConfig {
  const { url, applicationName = 'toolgate', connectTimeoutMs = 2000, statementTimeoutMs = 5000, pooler } = options
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    // A pooler accepts no settings of a session.
    ...(pooler === undefined && { statement_timeout: statementTimeoutMs }),
    // The server's timeout comes first, unless the server is silent.
    query_timeout: statementTimeoutMs + 500,
    keepAlive: true,
  }
}

async function prepare(config: ClientConfig, schema: string, place: string): Promise<void> {
  let client: Client | undefined
  try {
    client = new Client(config)
    // The waiting statement reports the loss.
    client.on('error', () => undefined)
    await client.connect()
    await prepareSchema(client, schema)
  } catch (error) {
    throw new ConfigError(`${NAME}.url`, `${place}: ${problemOf(error)}`)
  } finally {
    await client?.end().catch(() => undefined)
  }
}

const PROBLEMS: ReadonlyMap<string, string> = new Map([
  ['28P01', 'the password is wrong'],
  ['ECONNREFUSED', 'nothing listens there'],
  ['ENOTFOUND', 'the host is unknown'],
  ...['SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'].map(
    (code) => [code, 'no trusted authority has signed the certificate of the server'] as const,
  ),
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'the certificate of the server is signed by itself'],
  ['CERT_HAS_EXPIRED', 'the certificate of the server has expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'the certificate of the server is for another host'],
])

function problemOf(error: unknown): string {
  return PROBLEMS.get(errnoOf(error) ?? '') ?? describeError(error)
}
