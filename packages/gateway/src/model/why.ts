import type { RolesFrom } from './people.ts'
import type { StatedHistory } from '@toolgate/change'
import type { OutcomeWord } from '@toolgate/core'
import type { Grant } from '@toolgate/core/stores'
import type { JsonObject } from '@toolgate/values/json'
import type { SchemaWarning } from '@toolgate/values/json-schema'
import type { LayerAnswer } from '@toolgate/core/decide'
import type { NeededChange } from '@toolgate/change/internal'
import type { ConfigPlace } from './config-place.ts'
import type { ItemKind } from '@toolgate/core/toolset'
import type { PlacedMayStill, PlacedReason } from './reasons.ts'
import type { ListRow } from './tools.ts'

/** `GET /api/why?tool=<id>&as=<user>&app=<app>` */
export interface WhyBody {
  /** The id of an item of any kind. A resource need not be listed. */
  readonly tool: string
  readonly kind: ItemKind
  readonly as: string
  /** Present if `as` signed in: the roles that decide are those of their latest token. */
  readonly rolesFrom?: RolesFrom
  readonly app?: string
  readonly outcome: OutcomeWord
  readonly visible: boolean
  readonly reasons: readonly PlacedReason[]
  /** The answer of every layer, the deciding one first. */
  readonly answers: readonly LayerAnswer[]
  /** The reasons that refuse some calls. If absent, each call with a valid input gets this outcome now. */
  readonly mayStill?: readonly PlacedMayStill[]
  /** The decision of the shadows of policies, if there are any. */
  readonly shadow?: { readonly outcome: OutcomeWord; readonly reasons: readonly PlacedReason[] }
  /**
   * Changes that would make the item visible, the smallest first. Each was checked by another decision. Absent if none
   * is known.
   */
  readonly wouldAllow?: readonly (readonly PlacedChange[])[]
  /** Keywords of the tool's input schema that are not checked, if any. */
  readonly schemaWarnings?: readonly SchemaWarning[]
  /** Which invalid part of the item is left out, with the reason. */
  readonly leftOut?: string
  /** The user whose list of the server has the item. Absent if all users share one list. */
  readonly list?: ListRow
  /** What the item's server may ask the client of a call for, as in `GET /api/servers`. Absent for nothing. */
  readonly may?: readonly string[]
}

/** One needed change, with the place of the rule that it is about. */
export interface PlacedChange extends NeededChange {
  readonly place?: ConfigPlace
}

/** The body of `POST /api/tool/call`: a call by a configured caller, by name, or by any other caller. */
export interface TrialRequestBody {
  /**
   * @minLength 1
   * @maxLength 2304
   */
  readonly tool: string
  /**
   * @minLength 1
   * @maxLength 256
   */
  readonly as?: string
  /** Instead of `as`: a caller as JSON. */
  readonly caller?: string
  /**
   * @minLength 1
   * @maxLength 256
   */
  readonly app?: string
  /** Default: `{}`, or `{ uri }` for a resource. */
  readonly input?: JsonObject
}

/** The body of `POST /api/why`: a call, and the history before it. */
export interface WhyRequestBody extends TrialRequestBody {
  /**
   * A stated history that replaces the real one, as an object or as YAML. It has the form of `history` in a file of
   * tests. Problems of the YAML are reported with line and column.
   */
  readonly history?: string | StatedHistory
}

/** `POST /api/why`: the decision that a call with an input would get now. Nothing runs, and nothing is recorded. */
export interface WhyInputBody {
  readonly tool: string
  readonly kind: ItemKind
  readonly as: string
  /** Present if `as` signed in, as in `WhyBody`. */
  readonly rolesFrom?: RolesFrom
  readonly app?: string
  /** `allow` does not exclude that a later check, such as a hook, refuses the call. */
  readonly outcome: OutcomeWord
  /** The grant that covers the call, although a rule asks about it. */
  readonly grant?: Pick<Grant, 'id' | 'grantedBy' | 'expiresAt' | 'uses' | 'used'>
  readonly visible: boolean
  /** The deciding one first; empty for a plain allow. */
  readonly reasons: readonly PlacedReason[]
  /** The answer of every layer that was asked, the deciding one first. */
  readonly answers: readonly LayerAnswer[]
  /** The reasons that may still refuse a call with this input: hooks, and rules about its run. */
  readonly mayStill?: readonly PlacedMayStill[]
  /** The decision of the shadows of policies, if there are any. */
  readonly shadow?: { readonly outcome: OutcomeWord; readonly reasons: readonly PlacedReason[] }
  /** Changes that would let this call pass, as in `WhyBody`. */
  readonly wouldAllow?: readonly (readonly PlacedChange[])[]
  /** The refusal that the agent would get. */
  readonly text?: string
}
