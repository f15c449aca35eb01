import { resolve } from 'node:path'
import { checkShape, shapeOf } from '@toolgate/values'
import type {
  ApprovalStore,
  ClauseCountStore,
  Clock,
  CounterStore,
  GrantStore,
  HistoryStore,
  PersonStore,
  SessionLock,
  StateStore,
} from '@toolgate/core/stores'
import type { StoredApprovalsOptions } from './approval-rows.ts'
import { checkCommonOptions } from '../open-options.ts'
import { approvalsIn } from './approvals.ts'
import { clauseCountsIn } from './clause-counts.ts'
import { countersIn, type SqliteCountersOptions } from './counters.ts'
import { openDatabase } from './database.ts'
import type { StoredHistoriesOptions } from '../history-items.ts'
import { grantsIn } from './grants.ts'
import { historiesIn } from './histories.ts'
import type { LeasedLockOptions } from '../leased-lock.ts'
import { lockIn } from './lock.ts'
import { peopleIn } from './people.ts'
import { machineClock, readBootId } from './machine.ts'
import { stateIn } from './state.ts'

export interface SqliteStoresOptions {
  readonly path: string
  /** A clock whose monotonic time is the same for all processes. Default: the machine's. */
  readonly clock?: Clock
  /** An id of this boot of the machine. Default: the system's. */
  readonly bootId?: string | undefined
  /** The maximum number of pages of 4 KiB of the file. Writes that need more are refused. Default: no bound. */
  readonly maxPages?: number
  readonly approvals?: StoredApprovalsOptions
  readonly counters?: SqliteCountersOptions
  readonly lock?: LeasedLockOptions
  readonly histories?: StoredHistoriesOptions
  /** Default: 100,000. */
  readonly people?: { readonly max?: number }
}

const OPTIONS = shapeOf<SqliteStoresOptions>({
  path: true,
  clock: true,
  bootId: true,
  maxPages: true,
  approvals: true,
  counters: true,
  lock: true,
  histories: true,
  people: true,
})
const COUNTERS = shapeOf<SqliteCountersOptions>({ maxKeys: true })

/** The stores of one database file. Any number of processes of one machine may open it. */
export interface SqliteStores {
  readonly approvals: ApprovalStore
  readonly grants: GrantStore
  readonly counters: CounterStore
  readonly lock: SessionLock
  readonly state: StateStore
  readonly histories: HistoryStore
  /** The number of times that each policy clause has matched. */
  readonly clauses: ClauseCountStore
  /** The people whom gateways have seen. */
  readonly people: PersonStore
  /** Checks that the database can be written now. @throws {ToolgateError} `state_unavailable` */
  checkWritable(): void
  /** Ends the turns that this process holds. Later requests are refused with `state_unavailable`. */
  close(): void
}

/**
 * Opens the stores in an SQLite database, which several processes of one machine may share. Acknowledged writes survive
 * the end of the process and a power cut, except the last seconds of counters and clauses.
 *
 * @throws {ConfigError} for an unknown option
 * @throws {ToolgateError} `state_unavailable` for a file that cannot be opened or is not a state
 * @example
 * const { approvals, state, lock, counters } = openSqliteStores({ path: './.toolgate/state.db' })
 */
export function openSqliteStores(options: SqliteStoresOptions): SqliteStores {
  checkShape('openSqliteStores', options, OPTIONS)
  checkCommonOptions('openSqliteStores', options)
  if (options.counters !== undefined) checkShape('openSqliteStores.counters', options.counters, COUNTERS)
  const { path, clock = machineClock, maxPages } = options
  const bootId = 'bootId' in options ? options.bootId : readBootId()
  const place = { path: resolve(path), clock, bootId, maxPages }
  const db = openDatabase(place)
  // Limits are counted for each call, and a power cut may lose the last counts. A separate connection avoids the wait
  // for the disk.
  const counting = openDatabase({ ...place, survives: 'process' })
  const state = stateIn(db)
  const lock = lockIn(db, options.lock)
  let isOpen = true
  return {
    approvals: approvalsIn(db, options.approvals),
    grants: grantsIn(db),
    counters: countersIn(counting, options.counters),
    lock,
    state,
    histories: historiesIn(db, options.histories),
    clauses: clauseCountsIn(counting),
    people: peopleIn(counting, options.people?.max),
    checkWritable: () => db.checkWritable(),
    close() {
      if (!isOpen) return
      isOpen = false
      state.close()
      void lock.close()
      counting.close()
      db.close()
    },
  }
}
