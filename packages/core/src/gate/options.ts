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
import type { AliasesInput } from '../tools/aliases.ts'
import type { Source } from '../tools/catalog.ts'
import type { Group } from '../tools/groups.ts'
import type { REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import type { NativeToolRecord, ToolRecord } from '../tools/record.ts'
import { shapeOf } from '@toolgate/values'
import type { Tool } from '../tools/tool.ts'

/** How the histories of runs are kept. */
export interface HistoryOptions {
  /** Default: in memory. */
  readonly store?: HistoryStore
  /** How long a `called` counts for a caller without a run. Default 1 hour. */
  readonly calledMs?: number
  /** How long a label and a `began` count for a caller without a run. Default 24 hours. */
  readonly labelMs?: number
  /** How long a history is kept after its last use. Default 24 hours. */
  readonly keepMs?: number
  /** Bytes of a history, without texts: beyond it, no call is known. Default 64 kB. */
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
  /** Bundles of groups and of tools of their own, which `view` may be asked for. */
  readonly apps?: AppsInput
  /**
   * Other names of tools, for policies, groups, limits and the environment: `{ exec: 'bash' }`. They are never listed
   * and cannot be called.
   */
  readonly aliases?: AliasesInput
  /** All of them are combined. An empty list allows everything. */
  readonly policy?: Policies
  readonly limits?: LimitInput
  /**
   * Scopes that callers can get while they work. A tool that lacks nothing else is listed, and a call of it is refused with
   * `scope_needed`. Default: none.
   */
  readonly stepUp?: readonly string[]
  /** Called before and after each call. A fork's hooks come before these. */
  readonly hooks?: HooksInput
  /** How many calls may run at once: `browser:*:2`, or objects. */
  readonly concurrency?: CapInput
  /** Takes a place for each call, where callers have resources of their own. Default: none is needed. */
  readonly admission?: Admission
  /** Which conditional groups are available now. Default: the gate asks the groups' own probes. */
  readonly availability?: AvailabilitySource
  /** Holds back the tools of servers that a caller has not connected to their account. Default: none needs that. */
  readonly connections?: ConnectionSource
  /** What callers may do whose token is for one run. A `run` of a caller that it does not know sees nothing. Default: none is known. */
  readonly runs?: RunSource
  readonly counters?: CounterStore
  readonly approvals?: ApprovalStore
  /** Keeps halts, pins and preferences. Default: in memory. */
  readonly state?: StateStore
  /**
   * Which tools give their output which labels: `{ trusted: ['contacts:*'], private: ['crm:*'] }`. The output of a tool that
   * `trusted` does not name is `untrusted`.
   */
  readonly labels?: LabelsInput
  /** What rules need to know of runs. Nothing is kept where no rule asks. */
  readonly history?: HistoryOptions
  /** Refuses calls while this process cannot know what other processes with the same stores have changed. Default: none. */
  readonly lease?: ReplicaLease
  /**
   * The effect of a changed definition of a tool: `suspend` takes it away until a person accepts it. Default
   * `warn`.
   * `{ new: 'suspend' }` also holds tools that were not there before.
   */
  readonly pins?: PinMode | PinRules
  /**
   * The effect of a suspicious definition, such as one with invisible characters. Default `warn`.
   */
  readonly definitions?: DefinitionMode
  /** Takes secrets out of all that is kept or shown. Default: the built-in one. */
  readonly redactor?: Redactor
  /** Default: none. */
  readonly telemetry?: Telemetry
  /** Default: the newest 10,000 records, in memory. */
  readonly audit?: AuditSink
  readonly clock?: Clock
  readonly validateInput?: ValidateInput
  /** Default: the requester as a person, or anyone of the same tenant with the role `approver`. */
  readonly mayApprove?: MayApprove
  /** Ends an execution. Default 60,000 ms. */
  readonly deadlineMs?: number
  /** Ends the wait for a store, which then has failed. Default 5,000 ms. */
  readonly storeDeadlineMs?: number
  /** Ends the wait for a hook, which then has failed. Default 5,000 ms. */
  readonly hookDeadlineMs?: number
  /** Characters of JSON that an output may have; the rest is cut, and says so. Default 10,000,000. */
  readonly maxOutputChars?: number
  /** Ends the wait for a visibility function, which then has failed. Default 10,000 ms. */
  readonly visibilityDeadlineMs?: number
  /** Receives faults that must not change an answer. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
  /**
   * Called once for each name that no tool has, and for each keyword of a tool's schema that is not checked, as soon as
   * the tools are known. `gate.lint()` lists them too.
   * Default: `process.emitWarning`.
   */
  readonly onWarning?: (warning: LintWarning) => void
}

/** The tool that a gate adds by itself where a group opens by request. */
export type OwnToolName = typeof REQUEST_TOOL_ID

/** Tools by their ids: those names are a type, and any other is a compile error. */
export interface NamedGateOptions<Name extends string, Alias extends string = never> extends Omit<
  GateOptions,
  'tools' | 'sources' | 'policy' | 'aliases'
> {
  /** The key is the id of the tool, or names a definition that has no name. */
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

/** Tools by their ids, beside sources whose names nobody knows beforehand: names are texts, checked at run time. */
export interface RecordGateOptions extends Omit<GateOptions, 'tools'> {
  readonly tools: ToolRecord
  readonly sources: readonly Source[]
}

export interface ForkOptions<Name extends string = string> {
  readonly policy?: Policies<Name> | undefined
  /** Asked before those of the gate that is forked, which keep the last word. */
  readonly hooks?: HooksInput | undefined
  /** Default `true`. */
  readonly inherit?: boolean | undefined
}

/** The part of a gate's options that can be replaced while it runs. */
export type GateRules = Pick<
  GateOptions,
  'tools' | 'sources' | 'groups' | 'apps' | 'aliases' | 'policy' | 'limits' | 'labels'
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
