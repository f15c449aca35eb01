import type { RunSource } from '../call/run-source.ts'
import type { AppsInput } from '../groups/app.ts'
import type { HooksInput } from '../call/hooks.ts'
import type { LabelsInput } from '../history/labels.ts'
import type { HistoryStore } from '../ports/history.ts'
import type { CapInput } from '../call/slots.ts'
import type { LimitInput } from '../call/limits.ts'
import type { DefinitionMode, PinMode, PinRules } from '../state/pins/pin-rules.ts'
import type { Redactor } from '@toolgate/values/redact'
import type { LintWarning } from '../policy/lint.ts'
import type { Policies } from '../policy/policy.ts'
import type {
  Approval,
  Admission,
  ApprovalStore,
  AuditSink,
  AvailabilitySource,
  Clock,
  ConnectionSource,
  CounterStore,
  MayApprove,
  ReplicaLease,
  StateStore,
  Telemetry,
  ValidateInput,
} from '../ports/ports.ts'
import type { GrantRules, GrantStore } from '../ports/grants.ts'
import type { AliasesInput } from '../tools/aliases.ts'
import type { Source } from '../tools/catalog.ts'
import type { Group } from '../tools/groups.ts'
import type { REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import type { NativeToolRecord, RecordTool, ToolRecord } from '../tools/record.ts'
import { shapeOf } from '@toolgate/values'
import type { Tool } from '../tools/tool.ts'

/** Options for the histories of runs. */
export interface HistoryOptions {
  /** Default: in memory. */
  readonly store?: HistoryStore
  /** How long `called` counts for a caller without a run, in milliseconds. Default 1 hour. */
  readonly calledMs?: number
  /** How long a label and `began` count for a caller without a run, in milliseconds. Default 24 hours. */
  readonly labelMs?: number
  /** How long a history is kept after its last use, in milliseconds. Default 24 hours. */
  readonly keepMs?: number
  /** The most bytes of a history, without texts. Beyond it, calls count as unknown. Default 64 kB. */
  readonly maxBytes?: number
}

export const HISTORY = shapeOf<HistoryOptions>({
  store: true,
  calledMs: true,
  labelMs: true,
  keepMs: true,
  maxBytes: true,
})

export interface GateOptions {
  readonly tools?: Iterable<Tool>
  /** Dynamic sources, such as MCP servers. */
  readonly sources?: readonly Source[]
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
  /** Bundles of groups and of their own tools. Open one with the `app` option of `view`. */
  readonly apps?: AppsInput
  /**
   * Other names of tools, for policies, groups, limits and the environment: `{ exec: 'bash' }`. Aliases are never listed
   * and cannot be called.
   */
  readonly aliases?: AliasesInput
  /** All policies are combined. An empty list allows everything. */
  readonly policy?: Policies
  readonly limits?: LimitInput
  /**
   * Scopes that callers can get while they work. A tool that lacks only these scopes is listed, and a call of it is refused
   * with `scope_needed`. Default: none.
   */
  readonly stepUp?: readonly string[]
  /** Called before and after each call. A fork's hooks come before these. */
  readonly hooks?: HooksInput
  /** How many calls may run at once: `browser:*:2`, or objects. */
  readonly concurrency?: CapInput
  /** Takes a place for each call, where each caller has resources of their own. Default: calls need no place. */
  readonly admission?: Admission
  /** Which conditional groups are available now. Default: the gate asks the groups' own probes. */
  readonly availability?: AvailabilitySource
  /** Hides the tools of servers that a caller has not connected to their account. Default: no connection is needed. */
  readonly connections?: ConnectionSource
  /** What callers with a token for one run may do. Callers with an unknown run see nothing. Default: no run is known. */
  readonly runs?: RunSource
  readonly counters?: CounterStore
  readonly approvals?: ApprovalStore
  /** Lets approvers grant further calls like an approved one, within these bounds. Default: no grants. */
  readonly grants?: GrantRules
  /** Keeps grants. Default: in memory. */
  readonly grantStore?: GrantStore
  /** Keeps halts, pins and preferences. Default: in memory. */
  readonly state?: StateStore
  /**
   * The labels of tool outputs: `{ trusted: ['contacts:*'], private: ['crm:*'] }`. The output of a tool that `trusted` does
   * not match is `untrusted`.
   */
  readonly labels?: LabelsInput
  /** How histories of runs are kept. Nothing is kept if no rule reads them. */
  readonly history?: HistoryOptions
  /** Refuses calls while this process cannot see the changes of other processes that share its stores. Default: none. */
  readonly lease?: ReplicaLease
  /**
   * The effect of a changed tool definition: `suspend` hides the tool until a person accepts it. Default `warn`. `{ new:
   * 'suspend' }` also hides new tools.
   */
  readonly pins?: PinMode | PinRules
  /**
   * The effect of a suspicious definition, such as one with invisible characters. Default `warn`.
   */
  readonly definitions?: DefinitionMode
  /** Masks secrets in all that is stored or shown. Default: the built-in redactor. */
  readonly redactor?: Redactor
  /** Default: none. */
  readonly telemetry?: Telemetry
  /** Default: the newest 10,000 records, in memory. */
  readonly audit?: AuditSink
  readonly clock?: Clock
  readonly validateInput?: ValidateInput
  /** Who may approve. Default: the person who made the request, or anyone of the same tenant with the role `approver`. */
  readonly mayApprove?: MayApprove
  /**
   * Returns who can decide an approval, and where, as a sentence that the text of a waiting call ends with. It must not name
   * anybody whom the caller may not know. Default: the text says only that the call waits.
   */
  readonly whoDecides?: (approval: Approval) => string | undefined
  /** Milliseconds after which an execution is ended. Default 60,000. */
  readonly deadlineMs?: number
  /** Milliseconds to wait for a store before it counts as failed. Default 5,000. */
  readonly storeDeadlineMs?: number
  /** Milliseconds to wait for a hook before it counts as failed. Default 5,000. */
  readonly hookDeadlineMs?: number
  /** The most characters of JSON in an output. The rest is cut, and a note says so. Default 10,000,000. */
  readonly maxOutputChars?: number
  /** Milliseconds to wait for a visibility function before it counts as failed. Default 10,000. */
  readonly visibilityDeadlineMs?: number
  /** Receives errors that do not change an answer. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
  /**
   * Called once the tools are known, for each selector that matches no tool and each unchecked keyword of a tool's schema.
   * `gate.lint()` also lists these. Default: `process.emitWarning`.
   */
  readonly onWarning?: (warning: LintWarning) => void
}

/** The id of the tool that a gate adds if a group opens by request. */
export type OwnToolName = typeof REQUEST_TOOL_ID

/** A key that every list has, and no record of tools. */
export type ListKey = typeof Symbol.iterator

/**
 * The ids of a gate's tools if the compiler knows all of them; else any text. `Key`: the keys of `tools`. `SourceKey`: those
 * of `sources`, which there are if other tools can come.
 */
export type NamesOf<Key extends PropertyKey, SourceKey extends PropertyKey> = [SourceKey] extends [never]
  ? ListKey extends Key
    ? string
    : Exclude<Extract<Key, string>, '~native'>
  : string

/** Tools by id. `~native` is the framework's map that they come from. */
type KeyedTools<Key extends PropertyKey, Native> = {
  readonly [K in Key]: K extends '~native' ? unknown : RecordTool
} & { readonly '~native'?: Native }

/**
 * The options of a gate. If its tools are a record without sources, the compiler rejects other names in its policy. One
 * type for all kinds of tools lets its error point at the wrong name.
 */
export interface CheckedGateOptions<
  Key extends PropertyKey,
  Native,
  Alias extends string,
  SourceKey extends PropertyKey,
> extends Omit<GateOptions, 'tools' | 'sources' | 'policy' | 'aliases'> {
  /** Each key of a record is the tool's id, or the name of a definition that has none. */
  readonly tools?: Iterable<Tool> | KeyedTools<Key, Native>
  readonly sources?: (readonly Source[] & { readonly [K in SourceKey]?: unknown }) | undefined
  readonly aliases?: Readonly<Record<Alias, string>> | ReadonlyMap<Alias, string>
  readonly policy?: Policies<NoInfer<`${NamesOf<Key, SourceKey> | Alias | OwnToolName}`>>
}

/** Options with tools by their ids. The ids are a type, so the compiler rejects any other name. */
export interface NamedGateOptions<Name extends string, Alias extends string = never> extends Omit<
  GateOptions,
  'tools' | 'sources' | 'policy' | 'aliases'
> {
  /** The key is the tool's id, or the name of a definition that has none. */
  readonly tools: ToolRecord<Name>
  readonly sources?: undefined
  readonly aliases?: Readonly<Record<Alias, string>> | ReadonlyMap<Alias, string>
  readonly policy?: Policies<NoInfer<Name | Alias | OwnToolName>>
}

/** Tools that an adapter imported. They keep the framework's own types. */
export interface NativeGateOptions<Native, Alias extends string = never> extends Omit<
  NamedGateOptions<keyof Native & string, Alias>,
  'tools'
> {
  readonly tools: NativeToolRecord<Native>
}

/**
 * Options with tools by their ids, and sources whose names are not known beforehand: names are strings, checked at run
 * time.
 */
export interface RecordGateOptions extends Omit<GateOptions, 'tools'> {
  readonly tools: ToolRecord
  readonly sources: readonly Source[]
}

export interface ForkOptions<Name extends string = string> {
  readonly policy?: Policies<Name> | undefined
  /** Called before the hooks of the parent gate, which keep the last word. */
  readonly hooks?: HooksInput | undefined
  /** Default `true`. */
  readonly inherit?: boolean | undefined
}

/** The part of a gate's options that can be replaced while it runs. */
export type GateRules = Pick<
  GateOptions,
  'tools' | 'sources' | 'groups' | 'apps' | 'aliases' | 'policy' | 'limits' | 'labels' | 'grants'
>

export const GATE_RULES = shapeOf<GateRules>({
  tools: true,
  sources: true,
  groups: true,
  apps: true,
  aliases: true,
  policy: true,
  limits: true,
  labels: true,
  grants: true,
})

export const GATE = shapeOf<GateOptions>({
  tools: true,
  sources: true,
  groups: true,
  apps: true,
  policy: true,
  limits: true,
  labels: true,
  history: true,
  stepUp: true,
  hooks: true,
  concurrency: true,
  admission: true,
  availability: true,
  connections: true,
  runs: true,
  counters: true,
  approvals: true,
  grants: true,
  grantStore: true,
  state: true,
  lease: true,
  pins: true,
  definitions: true,
  redactor: true,
  telemetry: true,
  audit: true,
  clock: true,
  validateInput: true,
  mayApprove: true,
  whoDecides: true,
  deadlineMs: true,
  storeDeadlineMs: true,
  hookDeadlineMs: true,
  maxOutputChars: true,
  visibilityDeadlineMs: true,
  onFault: true,
  onWarning: true,
  aliases: true,
})
export const FORK = shapeOf<ForkOptions>({ policy: true, hooks: true, inherit: true })
