import type { RolesFrom } from './people.ts'
import type { OutcomeWord, Reason } from '@toolgate/core'
import type { ItemKind } from '@toolgate/core/toolset'
import type { DefinitionDiff, DefinitionFinding, PinStatus } from '@toolgate/core/pins'
import type { ServerRow, GroupRow } from './servers.ts'
import type { MayStillRow, PlacedMayStill } from './reasons.ts'

/** `GET /api/tools?as=<user>&app=<app>&kind=<kind>`: the items of one kind; without `kind`, the tools. */
export interface ToolsBody {
  readonly as: string
  /** Present if `as` signed in: the roles that decide are those of their latest token. */
  readonly rolesFrom?: RolesFrom
  readonly app?: string
  readonly policyRevision: number
  readonly catalogRevision: number
  readonly kind: ItemKind
  readonly tools: readonly ToolRow[]
  readonly servers: readonly ServerRow[]
  readonly groups: readonly GroupRow[]
  /** For each server with a list per user, the user whose list is shown. Absent if there is no such server. */
  readonly lists?: readonly ListRow[]
}

/** `GET /api/tools/columns`: a `ToolsBody` in columns. It is half as long and is parsed four times as fast. */
export interface ToolColumnsBody extends Omit<ToolsBody, 'tools'> {
  readonly columns: ToolColumns
}

/** The fields of `ToolRow`s as columns, in the order of the items. A column is absent if no item has the field. */
export interface ToolColumns {
  /** The distinct decisions. */
  readonly decisions: readonly Pick<ToolRow, 'outcome' | 'visible' | 'reasons' | 'mayStill'>[]
  /** The distinct lists of tags. */
  readonly tagSets: readonly (readonly string[])[]
  readonly id: readonly string[]
  readonly description: readonly string[]
  /** For each tool, the index of its decision in `decisions`. */
  readonly decision: readonly number[]
  /** For each tool, the index of its tags in `tagSets`. */
  readonly tags: readonly number[]
  /** Absent if every name is the id with `__` instead of `:`. */
  readonly wireName?: readonly string[]
  /** Empty for none. */
  readonly title?: readonly string[]
  /** Empty for none. */
  readonly hash?: readonly string[]
}

/** What a caller sees of the tools of a row. */
export interface MatrixCell {
  readonly visible: number
  readonly total: number
  /** The number of visible tools that need a person's approval. */
  readonly asks: number
  /** The number of visible tools where the input, the run or a hook may change the outcome of a call. */
  readonly depends: number
  /** The most common reason of the hidden tools; empty for none. */
  readonly why: string
}

/** A group, or the tools of a server that are in no group. */
export interface MatrixRow {
  readonly key: string
  readonly name: string
  readonly title?: string
  readonly group?: Omit<GroupRow, 'tools'>
  /** How many tools it has. */
  readonly tools: number
}

/** `GET /api/matrix` */
export interface MatrixBody {
  /** The number of groups of people with equal rights that match, and the place of the first column among them. */
  readonly total: number
  readonly from: number
  /** The number of people and callers that match. */
  readonly people: number
  /** Every tenant and every role of the people that this person may see. */
  readonly tenants: readonly string[]
  readonly roles: readonly string[]
  readonly rows: readonly MatrixRow[]
  /** People who see the same tools share a column. */
  readonly columns: readonly {
    /** The value of `as` of the first of them. */
    readonly user: string
    /** The number of people and callers in this column. */
    readonly people: number
    /** The values of `as` of up to 5 of them. */
    readonly names: readonly string[]
    readonly tenant?: string
    readonly roles: readonly string[]
    readonly for: 'mcp' | 'console' | 'host'
    /** In the order of the rows. */
    readonly cells: readonly MatrixCell[]
    /** In the order of the tools of the open row. */
    readonly tools?: readonly {
      readonly outcome: OutcomeWord
      readonly visible: boolean
      /** The deciding reason; empty for a plain allow. */
      readonly why: string
      readonly mayStill?: readonly MayStillRow[]
    }[]
  }[]
  /** The row whose tools are listed: their ids, and the number of its other tools. */
  readonly open?: { readonly key: string; readonly tools: readonly string[]; readonly more: number }
}

/**
 * The user whose list of a server is shown. `known`: the list is part of the answer. `unknown`: no instance of this
 * user has sent a list yet. `no_user`: the caller has no user. `withheld`: only approvers and the user may see it.
 */
export interface ListRow {
  readonly server: string
  readonly user?: string
  readonly tenant?: string
  readonly state: 'known' | 'unknown' | 'no_user' | 'withheld'
  /** The reason why the list is unknown. Absent if nobody has asked for the list yet. */
  readonly reason?: string
}

/** A tool, or an item of another kind. */
export interface ToolRow {
  readonly id: string
  readonly kind: ItemKind
  /** The name that clients see: `namespace__name`, or the URI of a resource, or the URI template of a template. */
  readonly wireName: string
  readonly title?: string
  readonly description: string
  /** The hash of its definition, as in its pin. Only for a server with a list per user. */
  readonly hash?: string
  readonly tags: readonly string[]
  readonly outcome: OutcomeWord
  /** Whether the caller sees it. */
  readonly visible: boolean
  /** The deciding reason first. Empty if the item is allowed and no reason is needed. */
  readonly reasons: readonly Reason[]
  /**
   * The distinct outcomes that a call may still get because of its input, its run, a hook or the current state, such as
   * a used-up limit. Absent: each call with an input that fits the schema gets this outcome now. `/api/why` says by
   * which rules.
   */
  readonly mayStill?: readonly MayStillRow[]
}

/** `GET /api/preferences?as=<user>`, and `PUT` with its body: the groups and tools that a user has switched off. */
export interface PreferencesBody {
  readonly groups: readonly string[]
  readonly tools: readonly string[]
}

/** `GET /api/tool?tool=<id>&as=<user>`: one tool in full. */
export interface ToolBody {
  readonly tool: ToolRow
  /** As in `WhyBody`. */
  readonly mayStill?: readonly PlacedMayStill[]
  /** A JSON Schema. */
  readonly inputSchema: unknown
  /** A JSON Schema. */
  readonly outputSchema?: unknown
  /** As the server sent them, such as MCP's `ToolAnnotations`. */
  readonly annotations: unknown
  /** The input fields that name recipients, as the operator configured them. */
  readonly addressees?: readonly string[]
  readonly groups: readonly string[]
  /** The limits with their selectors, such as `20/60`. */
  readonly limits: readonly string[]
  readonly exports: readonly ToolExport[]
}

export interface ToolExport {
  readonly target: string
  /** The definition in the form that this provider or framework expects. */
  readonly definition: unknown
  readonly warnings: readonly string[]
  readonly errors: readonly string[]
  readonly tokens?: number
}

/** `GET /api/callers`: the callers that `as` may name, without their keys. */
export interface CallersBody {
  readonly callers: readonly {
    readonly user: string
    readonly tenant?: string
    readonly roles: readonly string[]
    readonly for: 'mcp' | 'console' | 'host'
    /** Whether this person may make calls as this caller, because it is an agent of their own user. */
    readonly mayCall?: true
    readonly visible: number
  }[]
  /** The number of callers that match. */
  readonly total: number
}

/** `GET /api/pins?status=`: every tool of the catalog. Empty if neither pins nor the definition check are on. */
export interface PinsBody {
  readonly pins: readonly PinRow[]
}

/** The state of one tool's definition. `POST /api/pins/accept` returns it, too. */
export interface PinRow {
  readonly tool: string
  readonly status: PinStatus
  /** A new tool of a known server that nobody has accepted yet. Only with `pins: { new: suspend }`. */
  readonly isNew?: boolean
  /** The hash of the current definition, which `accept` would pin. */
  readonly hash: string
  readonly pinnedHash?: string
  readonly since?: number
  /** The person who accepted the pinned definition. Absent if it was pinned when first seen. */
  readonly by?: string
  /** From the pinned definition to the current one. */
  readonly diff?: DefinitionDiff
  readonly findings: readonly DefinitionFinding[]
  readonly quarantined: boolean
  /** The users whose own lists have this definition. Absent if all callers share it. Only approvers get such rows. */
  readonly users?: readonly { readonly user: string; readonly tenant?: string | undefined }[]
}

/** `POST /api/pins/accept` */
export interface AcceptPinBody {
  /**
   * @minLength 1
   * @maxLength 300
   */
  readonly tool: string
  /**
   * The hash of the reviewed definition. Any other hash is refused with `pin_unknown`.
   *
   * @pattern ^[0-9a-f]{64}$
   */
  readonly hash: string
}
