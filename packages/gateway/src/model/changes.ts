import type { AccessDifference, Suggestion, TallyState } from '@toolgate/change'
import type { ConfigComparison } from './config-comparison.ts'
import type { FileResults, TestedClauseRow } from './test-rows.ts'
import type { Reload } from './reload.ts'
import type { ClauseRef } from '@toolgate/core/policy'
import type { ConfigPlace } from './config-place.ts'

/** The body of `POST /api/reload`. */
export interface ReloadRequestBody {
  /** Only returns what would change. */
  readonly dryRun?: boolean
  /** Makes all replicas run the file of this one. Refused with `config_invalid` if a live replica cannot run it. */
  readonly publish?: boolean
  /** Publishes the file even if a replica cannot run it. Such a replica starts no call. */
  readonly force?: boolean
  /**
   * The `preview` of a dry run. If the file would now change something else, nothing is applied, and the error is
   * `reload_outdated`. Without a preview, the current file is applied.
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
  /** The callers who gain or lose access: at most 1,000 rows, and 100 ids of each kind. */
  readonly access: readonly WhatIfAccessRow[]
  /** The number of callers and people who gain or lose something. */
  readonly callers: number
  /** The number of people who may gain or lose more, because there are too many to compare. */
  readonly notCompared?: number
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

/** `GET /api/catalog`: the items that all callers share, as data for tests of policies. */
export interface CatalogBody {
  /** A snapshot, as `toolgate snapshot` writes it. */
  readonly catalog: { readonly version: 1; readonly items: readonly object[] }
  /** The servers that are not ready. Their items may be missing. */
  readonly down: readonly { readonly name: string; readonly reason: string }[]
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

/** `POST /api/suggest`: the smallest policy that allows what recorded calls needed. */
export interface SuggestBody extends Omit<Suggestion, 'policy'> {
  readonly policy: {
    readonly name: string
    readonly allow: readonly SuggestedClause[]
    readonly ask?: readonly SuggestedClause[]
  }
  /** The effect of the suggested policy on the same calls. */
  readonly whatIf: WhatIfBody
}

/** `POST /api/reload`: what has changed, or would change in a dry run. */
export type ReloadBody = Reload

/** `GET /api/policy`. A person with a tenant gets only the revision, because the rest is about all tenants. */
export interface PolicyBody {
  /** Grows with each reload. */
  readonly revision: number
  /**
   * The name of the file when the gateway started. Only approvers without a tenant get `file`, `text` and `line`.
   */
  readonly file?: string
  /** The section `policy` of the file. */
  readonly text?: string
  /** The line of the file in which the text begins. */
  readonly line?: number
  /** Part of the text is redacted, so you cannot edit it and send it back. */
  readonly isRedacted?: boolean
  /** The clauses of the gateway's policies and of its apps, in their order. */
  readonly clauses: readonly ClauseRow[]
  /** The state store did not answer, so the counts are only those of this process since its start. */
  readonly countsAreOwn?: true
}

/** A clause, and how often it matched a decided call, on all replicas together. */
export interface ClauseRow {
  /** A hash of the clause. It does not depend on the place in the file and is equal on all replicas. */
  readonly id: string
  /** The name of the clause in audit records, such as `baseline#deny[2]`. */
  readonly clause: string
  readonly ref: ClauseRef
  /** Such as `policy[0].deny[2]`. */
  readonly path: string
  readonly place?: ConfigPlace
  readonly shadow?: true
  readonly hits: number
  /** The number of calls that a shadow could not judge, because the history of their run was unknown. Absent for 0. */
  readonly unjudged?: number
  /** Wall-clock milliseconds. Absent if the clause has not matched since `countedSince`. */
  readonly lastHitAt?: number
  /** Wall-clock milliseconds. */
  readonly countedSince: number
  /** The number of tools and other items that its selectors match now. */
  readonly matchesTools: number
}

/** `GET /api/warnings`: likely mistakes in the configuration, as of now */
export interface WarningsBody {
  readonly warnings: readonly WarningRow[]
}

export interface WarningRow {
  /** Such as `selector_unmatched`. */
  readonly code: string
  /** The place in the configuration, such as `policy[0].deny[1]`. */
  readonly path: string
  /** For people. */
  readonly text: string
  /** The tools concerned, if any. */
  readonly tools?: readonly string[]
}
