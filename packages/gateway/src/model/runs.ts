import type { Budget } from '@toolgate/core/call'

/**
 * The body of `POST /api/runs`: starts a run of a caller in the file. With `parent` it starts the run of a sub-agent,
 * which has the caller of its parent.
 */
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
   * The id of the caller's key whose rights the run has. Required if the caller's keys have different rights.
   *
   * @minLength 1
   * @maxLength 300
   */
  readonly like?: string
  readonly apps?: readonly string[]
  /**
   * The id of the parent run, whose history the new run shares. Such a run has no `userWords` of its own.
   *
   * @minLength 1
   * @maxLength 300
   */
  readonly parent?: string
  /** Selectors of the only tools that the run may use. */
  readonly tools?: readonly string[]
  /** Policies, as in the file. They can only deny more. */
  readonly policy?: readonly object[]
  /** What the user has written, for `origin`. */
  readonly userWords?: readonly string[]
  /** Default: an hour, or until the parent ends. At most a day. */
  readonly ttlMs?: number
}

/** `POST /api/runs`. No other response contains the token. */
export interface StartedRunBody {
  readonly id: string
  readonly token: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
}

/** A run, or the session of a client without a run. It never contains the token. Times are wall-clock milliseconds. */
export interface RunRow {
  readonly id: string
  readonly kind: 'run' | 'session'
  /** The user for whom its agent acts. */
  readonly user?: string | undefined
  readonly tenant?: string | undefined
  /** The OAuth client of its calls. */
  readonly client?: string | undefined
  readonly app?: string | undefined
  /** The user of the host that started it. */
  readonly host?: string | undefined
  /** The run that this one is a sub-agent of. Both share the history of the root. Absent after the end. */
  readonly parent?: string | undefined
  /** The restrictions of the run, for people. Absent after the run has ended. */
  readonly narrows?: string | undefined
  /** When the run began. If that was more than a week ago, the time of its first record in the last week. */
  readonly startedAt: number
  /** Its latest call, or its start. */
  readonly lastAt: number
  readonly expiresAt?: number | undefined
  /** Absent if unknown, as for sessions and for runs in a program. */
  readonly state?: 'open' | 'ended' | undefined
  readonly endedAt?: number
  /** The reason of its end, as in its record `run_ended`. */
  readonly end?: string
  /** The `seq` of its latest record. Absent if it has no record yet. */
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
 * `GET /api/runs?user=&tenant=&label=&text=&state=&since=&until=&before=&limit=`: runs, those with the latest
 * records first. A person sees the runs of their tenant in the last week. A host sees its own open runs.
 */
export interface RunsBody {
  readonly runs: readonly RunRow[]
  /** The number of matches among the 10,000 runs with the latest records. */
  readonly total: number
  /** The `before` of the next page. */
  readonly next?: number
  /** Every label of the runs that may be seen. */
  readonly labels: readonly string[]
  /** `false`: the audit is still being counted. Ask again. */
  readonly isComplete: boolean
  /** The time up to which calls are counted, while they still are. Wall-clock milliseconds. */
  readonly countedTo?: number
}

/** The rest of a budget: a limit with a cost, for one holder. */
export interface LimitRow {
  /** The selector of its rule. */
  readonly rule: string
  /** The limit as refusals name it: `50000/86400`, or `500.00 EUR in 24 hours` if it has a unit. */
  readonly limit: string
  /** The unit of the limit, if it has one. `places`: how many digits of an amount are decimals. */
  readonly unit?: NonNullable<Budget['unit']>
  /** The holder: a value for each part, such as the user, that the rule counts separately. */
  readonly holder: Budget['holder']
  readonly max: number
  readonly used: number
  readonly remaining: number
  /** When part of the budget is free again, in wall-clock milliseconds. Absent if nothing is used. */
  readonly until?: number
}

/** `GET /api/limits?limit=`: the budgets that calls through this gateway used most recently. */
export interface LimitsBody {
  readonly limits: readonly LimitRow[]
}

/** `DELETE /api/runs/<id>` */
export interface EndedRunBody {
  readonly id: string
}
