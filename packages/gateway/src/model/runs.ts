import type { Budget } from '@toolgate/core/call'

/** The body of `POST /api/runs`: of a caller in the file, or with `parent` of a sub-agent, which has the caller of its parent. */
export interface NewRunRequestBody {
  /**
   * @minLength 1
   * @maxLength 300
   */
  readonly user?: string
  /**
   * @minLength 1
   * @maxLength 300
   */
  readonly tenant?: string
  /**
   * The id of the caller's key whose rights the run has, where several differ.
   *
   * @minLength 1
   * @maxLength 300
   */
  readonly like?: string
  readonly apps?: readonly string[]
  /**
   * The id of the run whose history it shares. It brings no words.
   *
   * @minLength 1
   * @maxLength 300
   */
  readonly parent?: string
  /** Selectors: no other tool is allowed. */
  readonly tools?: readonly string[]
  /** Policies, as in the file. They can only narrow. */
  readonly policy?: readonly object[]
  /** What the user has written, for `origin`. */
  readonly userWords?: readonly string[]
  /** Default: an hour, or until the parent ends. At most a day. */
  readonly ttlMs?: number
}

/** `POST /api/runs`. The token is nowhere else. */
export interface StartedRunBody {
  readonly id: string
  readonly token: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
}

/** A run, or the session of a client that has no run. Its token is nowhere. Times are wall-clock milliseconds. */
export interface RunRow {
  readonly id: string
  readonly kind: 'run' | 'session'
  /** For whom its agent acts. */
  readonly user?: string | undefined
  readonly tenant?: string | undefined
  /** The OAuth client of its calls. */
  readonly client?: string | undefined
  readonly app?: string | undefined
  /** The user of the host that started it. */
  readonly host?: string | undefined
  /** While it goes on: the run that it is a sub-agent of. It has the history of the root. */
  readonly parent?: string | undefined
  /** While it goes on: what narrows it, for people. */
  readonly narrows?: string | undefined
  /** Of one that began more than a week ago: its first record since. */
  readonly startedAt: number
  /** Its latest call, or its start. */
  readonly lastAt: number
  readonly expiresAt?: number | undefined
  /** Absent: not known, as of sessions and of runs in a program. */
  readonly state?: 'open' | 'ended' | undefined
  readonly endedAt?: number
  /** Why it ended, as in its record `run_ended`. */
  readonly end?: string
  /** Of its latest record. Absent: it has none yet. */
  readonly seq?: number | undefined
  /** Attempts that ended, in the last week. */
  readonly calls: number
  readonly refused: number
  readonly failed: number
  /** Approvals that wait now. */
  readonly waiting: number
  /** The labels that its records have named. */
  readonly labels: readonly string[]
}

/**
 * `GET /api/runs?user=&tenant=&label=&text=&state=&since=&until=&before=&limit=`: those with the latest records first. For a person
 * those of their tenant, of the last week; for a host its own that go on.
 */
export interface RunsBody {
  readonly runs: readonly RunRow[]
  /** How many match, of the 10,000 with the latest records. */
  readonly total: number
  /** The `before` of the next page. */
  readonly next?: number
  /** Every label of the runs that may be seen. */
  readonly labels: readonly string[]
  /** `false`: the audit is still being counted. Ask again. */
  readonly isComplete: boolean
}

/** What is left of a budget: of a limit with a cost, for one holder. */
export interface LimitRow {
  /** The selector of its rule. */
  readonly rule: string
  /** As `50000/86400`. */
  readonly limit: string
  /** Whose it is, by the parts that the rule counts apart. */
  readonly holder: Budget['holder']
  readonly max: number
  readonly used: number
  readonly remaining: number
  /** When some of it is free again, in wall-clock milliseconds. Absent where nothing is used. */
  readonly until?: number
}

/** `GET /api/limits?limit=`: of budgets that calls through this gateway have asked for lately. */
export interface LimitsBody {
  readonly limits: readonly LimitRow[]
}

/** `DELETE /api/runs/<id>` */
export interface EndedRunBody {
  readonly id: string
}
