import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError, ToolgateError } from '@toolgate/core'
import type {
  ApprovalStore,
  ClauseCountStore,
  CounterStore,
  GrantStore,
  HistoryStore,
  PersonStore,
  SessionLock,
  StateStore,
} from '@toolgate/core/stores'
import type { PostgresStores } from '@toolgate/stores/postgres'
import type { ApprovalsConfig } from '../config/config.ts'
import { approvalOptions } from '../config/open-stores.ts'
import type { StoresConfig } from '../config/sections/stores.ts'
import { LEASE_MS } from '@toolgate/stores/replica'
import type { OwnerStore, ReplicaStore } from './replica-store.ts'

/** The open databases that replicas share. */
export interface Engines {
  readonly state: StateStore
  readonly approvals: ApprovalStore
  readonly grants: GrantStore
  readonly counters: CounterStore
  readonly histories: HistoryStore
  readonly clauses: ClauseCountStore
  readonly people: PersonStore
  readonly lock: SessionLock
  readonly replicas: ReplicaStore
  readonly owners: OwnerStore
  readonly openAudit: PostgresStores['openAudit']
  /** The limits in Redis, which can be restarted after it has lost its counts. Absent without Redis. */
  readonly limits: SharedLimits | undefined
  close(): Promise<void>
}

/** The limits that Redis counts. */
export interface SharedLimits {
  /** Returns why no limited call can run now. */
  problem(): Promise<string | undefined>
  /** Continues with limits that start counting now. */
  reopen(): Promise<void>
}

/** The limits, which are checked periodically. */
export interface WatchedLimits extends Pick<SharedLimits, 'reopen'> {
  /** Why no limited call could run at the last check. */
  readonly problem: string | undefined
}

/** The time limit of a renewal. A later answer could hardly renew anything. */
const ANSWER_MS = 1000
/** The key of the id of the Redis data, which shows whether Redis has lost its counts. */
const EPOCH = 'gateway/limits-epoch'
/** At the start: how long a Redis that is too slow for calls may take, and the time between two attempts. */
const BEGIN_MS = { most: 10_000, step: 50 }

/**
 * Opens the databases and checks them. `onNotice` is called when another replica has changed something.
 *
 * @throws {ConfigError} for a database that cannot be used; nothing stays open
 */
export async function openEngines(
  { postgres: url, redis }: StoresConfig,
  forApprovals: ApprovalsConfig | undefined,
  onNotice: () => void,
): Promise<Engines> {
  const { openPostgresStores } = await import('@toolgate/stores/postgres')
  const postgres = await openPostgresStores({
    url,
    ...(forApprovals && { approvals: approvalOptions(forApprovals) }),
  }).catch(toProblem('postgres'))
  const { approvals, grants, state } = postgres
  try {
    const replicas = postgres.openReplicas({ leaseMs: LEASE_MS, answerMs: ANSWER_MS, onNotice })
    const opened = redis === undefined ? undefined : await openLimits(redis, state)
    return {
      state,
      approvals,
      grants,
      counters: opened?.counters ?? postgres.counters,
      histories: postgres.histories,
      clauses: postgres.clauses,
      people: postgres.people,
      lock: postgres.lock,
      limits: opened?.limits,
      replicas,
      owners: replicas.owners,
      openAudit: postgres.openAudit,
      async close() {
        opened?.close()
        await postgres.close()
      },
    }
  } catch (error) {
    await postgres.close()
    throw error
  }
}

/** Opens the limits. If Postgres knows of no earlier Redis, the Redis counts as new. */
async function openLimits(url: string, state: StateStore) {
  const { openRedisCounters } = await import('@toolgate/stores/redis')
  const counters = await openRedisCounters({ url }).catch(toProblem('redis'))
  const reopen = async () => state.set(EPOCH, await counters.reopen())
  try {
    await patiently(async () => {
      // Another replica may have begun meanwhile. If Redis has lost its counts since then, a person must decide.
      if ((await state.get(EPOCH)) === undefined) await reopen()
    })
  } catch (error) {
    counters.close()
    throw error
  }
  const problem = async () => {
    try {
      return (await counters.readEpoch()) === undefined ? 'Redis has lost its counts' : undefined
    } catch {
      return 'Redis does not answer'
    }
  }
  return { counters, limits: { problem, reopen }, close: () => counters.close() }
}

/** Repeats a call while a store is slower than a call would wait. */
async function patiently(begin: () => Promise<void>): Promise<void> {
  for (const until = performance.now() + BEGIN_MS.most; ; await sleep(BEGIN_MS.step)) {
    try {
      return await begin()
    } catch (error) {
      const isLate = error instanceof ToolgateError && error.code === 'state_unavailable'
      if (!isLate || performance.now() > until) throw error
    }
  }
}

/** Returns a problem that names the key of the file instead of the function's option. */
function toProblem(engine: 'postgres' | 'redis') {
  return (error: unknown): never => {
    if (error instanceof ConfigError) throw new ConfigError(`stores.${engine}`, error.problem, { cause: error })
    throw error
  }
}
