import type { AccessDifference, Suggestion, TallyState } from '@toolgate/change'
import type { ConfigComparison } from './config-comparison.ts'
import type { FileResults, TestedClauseRow } from './test-rows.ts'
import type { Reload } from './reload.ts'
import type { ClauseRef } from '@toolgate/core/policy'
import type { ConfigPlace } from './config-place.ts'

/** The body of `POST /api/reload`. */
export interface ReloadRequestBody {
  /** Only says what would change. */
  readonly dryRun?: boolean
  /** Has all replicas run the file of this one. Refused with `config_invalid` if a live one cannot. */
  readonly publish?: boolean
  /** Publishes it also then. A replica that cannot run it starts no call. */
  readonly force?: boolean
  /**
   * The `preview` of a dry run. Without it, what the file says now is applied; with it, `reload_outdated` if that is something
   * else.
   */
  readonly preview?: string
}

/** The body of `POST /api/what-if`. */
export interface WhatIfRequestBody {
  /** The text of a configuration, used instead of the gateway's file. */
  readonly config?: string
  /** Instead of `config`: a section `policy`, as in `GET /api/policy`, that replaces the one in the gateway's file. */
  readonly policy?: string
  /** Only calls since this time are judged. RFC 3339, or milliseconds since 1970. Default: seven days ago. */
  readonly since?: string | number
}

/** `POST /api/what-if`: what would change with the rules of another configuration. */
export interface WhatIfBody extends TallyState {
  /** Whether all records were read. A gateway reads for a minute at most, the oldest first. */
  readonly isWhole: boolean
  /** The callers who gain or lose access: at most 1,000 callers, and 100 ids of each kind. */
  readonly access: readonly WhatIfAccessRow[]
  /** How many callers gain or lose something. */
  readonly callers: number
}

export interface WhatIfAccessRow extends AccessDifference {
  readonly counts: { readonly gains: number; readonly loses: number; readonly unknown: number }
}

/** The body of `POST /api/compare`: either `config` or `policy`. */
export type CompareRequestBody = Pick<WhatIfRequestBody, 'config' | 'policy'>

/** `POST /api/compare`: whether another configuration grants no more than the one in force. */
export type CompareBody = ConfigComparison

/** The body of `POST /api/test`. */
export interface PolicyTestsRequestBody extends CompareRequestBody {
  /**
   * The text of a file of tests, without `config` and `catalog`. If the request has no `config` or `policy`, the rules
   * in force are tested.
   */
  readonly tests: string
}

/** `POST /api/test`: the results of a policy's tests. */
export interface PolicyTestsBody {
  /** One file, named `tests`. */
  readonly files: readonly FileResults[]
  /** Every clause, with the number of expected calls that it matched. */
  readonly clauses: readonly TestedClauseRow[]
  readonly warnings: readonly string[]
}

/** The body of `POST /api/suggest`. */
export interface SuggestRequestBody extends Pick<WhatIfRequestBody, 'since'> {
  /**
   * Only calls of callers with this role.
   *
   * @minLength 1
   */
  readonly role?: string
}

export interface SuggestedClause {
  readonly match: string
  readonly when?: string
  readonly input?: string
}

/** `POST /api/suggest`: the least that recorded calls show to be needed. */
export interface SuggestBody extends Omit<Suggestion, 'policy'> {
  readonly policy: {
    readonly name: string
    readonly allow: readonly SuggestedClause[]
    readonly ask?: readonly SuggestedClause[]
  }
  /** What it would mean for the same calls. */
  readonly whatIf: WhatIfBody
}

/** `POST /api/reload`: what has changed, or would. */
export type ReloadBody = Reload

/** `GET /api/policy`. For a person of a tenant, only the revision: the rest is of all tenants. */
export interface PolicyBody {
  /** Grows with each reload. */
  readonly revision: number
  /** As it was named when the gateway started. For approvers without a tenant, as `text` and `line` are. */
  readonly file?: string
  /** The section `policy`, as it is written. */
  readonly text?: string
  /** The line of the file in which the text begins. */
  readonly line?: number
  /** Something in the text is redacted, so that it cannot be sent back changed. */
  readonly isRedacted?: boolean
  /** Of the gateway's policies and its apps, in their order. */
  readonly clauses: readonly ClauseRow[]
  /** The state store did not answer: the counts are those of this process since its start. */
  readonly countsAreOwn?: true
}

/** A clause, and how often it held when a call was decided, at any replica. */
export interface ClauseRow {
  /** A hash of what it says: equal wherever it stands in the file, and at every replica. */
  readonly id: string
  /** As in records: `baseline#deny[2]`. */
  readonly clause: string
  readonly ref: ClauseRef
  /** Such as `policy[0].deny[2]`. */
  readonly path: string
  readonly place?: ConfigPlace
  readonly shadow?: true
  readonly hits: number
  /** Calls that a shadow could not judge, as it was unknown what their runs had done. Absent: none. */
  readonly unjudged?: number
  /** Wall-clock milliseconds. Absent: none since `countedSince`. */
  readonly lastHitAt?: number
  /** Wall-clock milliseconds. */
  readonly countedSince: number
  /** How many tools and other items its selectors match now. */
  readonly matchesTools: number
}

/** `GET /api/warnings`: likely mistakes in the configuration, as of now */
export interface WarningsBody {
  readonly warnings: readonly WarningRow[]
}

export interface WarningRow {
  /** Such as `selector_unmatched`. */
  readonly code: string
  /** Where it was written, such as `policy[0].deny[1]`. */
  readonly path: string
  /** For people. */
  readonly text: string
  /** The tools concerned, if any. */
  readonly tools?: readonly string[]
}
