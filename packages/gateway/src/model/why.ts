import type { StatedHistory } from '@toolgate/change'
import type { OutcomeWord } from '@toolgate/core'
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
  readonly app?: string
  readonly outcome: OutcomeWord
  readonly visible: boolean
  readonly reasons: readonly PlacedReason[]
  /** The answer of every layer, the deciding one first. */
  readonly answers: readonly LayerAnswer[]
  /** The reasons against some calls. Absent: each call with an input that fits the schema gets this outcome now. */
  readonly mayStill?: readonly PlacedMayStill[]
  /** What the shadows of policies would decide, if there are some. */
  readonly shadow?: { readonly outcome: OutcomeWord; readonly reasons: readonly PlacedReason[] }
  /** What would have to change for it to be visible: ways that have been decided again, the smallest first. Absent if none is known. */
  readonly wouldAllow?: readonly (readonly PlacedChange[])[]
  /** Keywords of the tool's input schema that are not checked, if any. */
  readonly schemaWarnings?: readonly SchemaWarning[]
  /** Whose list of the server it was looked up in. Absent where all users share one. */
  readonly list?: ListRow
}

/** One change of a way, with the place of the rule that it is about. */
export interface PlacedChange extends NeededChange {
  readonly place?: ConfigPlace
}

/** The body of `POST /api/tool/call`: of a configured caller by name, or any other. */
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
  /** Of a resource its URI if absent. Default: `{}`. */
  readonly input?: JsonObject
}

/** The body of `POST /api/why`: a call, and what has happened before it. */
export interface WhyRequestBody extends TrialRequestBody {
  /**
   * What has happened, in the place of what has: what a file of tests has under `history`, as an object or as YAML. Problems
   * of YAML are named with line and column.
   */
  readonly history?: string | StatedHistory
}

/** `POST /api/why`: what a call with an input would get now. Nothing runs, and nothing is recorded. */
export interface WhyInputBody {
  readonly tool: string
  readonly kind: ItemKind
  readonly as: string
  readonly app?: string
  /** `allow` also where a later check may still refuse it, such as a hook. */
  readonly outcome: OutcomeWord
  readonly visible: boolean
  /** The deciding one first; empty for a plain allow. */
  readonly reasons: readonly PlacedReason[]
  /** The answer of every layer that was asked, the deciding one first. */
  readonly answers: readonly LayerAnswer[]
  /** The reasons that may still be against a call with this input: hooks, and rules about its run. */
  readonly mayStill?: readonly PlacedMayStill[]
  /** What the shadows of policies would decide, if there are some. */
  readonly shadow?: { readonly outcome: OutcomeWord; readonly reasons: readonly PlacedReason[] }
  /** What would have to change for this call to go on. As in `WhyBody`. */
  readonly wouldAllow?: readonly (readonly PlacedChange[])[]
  /** The refusal that the agent would get. */
  readonly text?: string
}
