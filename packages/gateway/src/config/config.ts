import type { Caller, Policy } from '@toolgate/core'
import type { AuditInputs } from '@toolgate/core/audit'
import type { UnlockRule } from '@toolgate/core/groups'
import type { ConcurrencyCap, RateLimit } from '@toolgate/core/call'
import type { DefinitionMode, PinMode, PinRules } from '@toolgate/core/pins'
import type { TlsFiles } from '../util/certificate.ts'
import type { Offer } from '../model/upstream.ts'
import type { ServerMay } from './may.ts'
import type { OAuthConfig } from './oauth.ts'
import type { OidcConfig } from './oidc.ts'
import type { ServerOAuth } from './server-oauth.ts'
import type { ConfigPlaces, PolicySource } from './places.ts'
import type { ConfigWarning } from './problems.ts'
import type { secretCommandsSchema } from './schema.ts'
import type { auditSchema } from './schema/audit.ts'
import type { approvalsSchema } from './schema/calls.ts'
import type { probeSchemas } from './schema/groups.ts'
import type { historySchema } from './schema/policy.ts'
import type { compareSchema, instancesSchema, itemOverlaySchema, namesSchema, overlaySchema } from './schema/servers.ts'
import type { Written } from './schema/values.ts'
import type { ReplicaConfig, StoresConfig } from './stores.ts'

/** A parsed and checked `toolgate.yaml`: paths are absolute, and each `${VAR}` is filled in. */
export interface GatewayConfig {
  /** Absolute path of the file, for messages. */
  readonly file: string
  /** The text that it was parsed from, if it names `stores`: this is what replicas publish. */
  readonly text?: string
  /** SHA-256 of the text that it was parsed from. */
  readonly textHash?: string
  readonly listen: {
    readonly host: string
    readonly port: number
    /** Further origins, such as `https://tools.example.com` of a proxy in front. */
    readonly origins?: readonly string[]
    /** Proxies whose `X-Forwarded-For` is read: addresses, and ranges such as `10.0.0.0/8`. */
    readonly proxies?: readonly string[]
    /** Serves HTTPS instead of HTTP. */
    readonly tls?: TlsFiles
  }
  readonly servers: readonly ServerConfig[]
  /** Of every server that has none of its own. */
  readonly names?: NamesConfig
  /** Sent to each client at its start, for the model. */
  readonly instructions?: string
  /** Default: the bounds of `DEFAULT_INSTANCES`, and `.toolgate/instances` beside the file. */
  readonly instances?: InstancesConfig
  readonly callers: readonly CallerConfig[]
  /** Absent: only keys are accepted. */
  readonly oauth?: OAuthConfig
  /** Absent: people log in with console keys. */
  readonly oidc?: OidcConfig
  readonly groups: readonly GroupConfig[]
  /** Other names of tools, for policies, groups and limits. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Which tools give their output which labels, as selectors. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
  readonly history?: HistoryConfig
  readonly apps?: readonly AppConfig[]
  readonly policy: readonly Policy[]
  /** Such as `*:100/60`: selector, uses, seconds; or an object. */
  readonly limits: readonly (string | RateLimit)[]
  readonly calls?: CallsConfig
  /** How long running calls may take when the gateway stops, in milliseconds. Default 30,000. */
  readonly drainMs?: number
  readonly approvals?: ApprovalsConfig
  readonly audit: AuditConfig
  /** Default `warn`. */
  readonly pins?: PinMode | PinRules
  /** Default `warn`. */
  readonly definitions?: DefinitionMode
  /** Absent: in memory, or in `stores`. */
  readonly state?: StateConfig
  /** Absent: this gateway is alone. */
  readonly stores?: StoresConfig
  readonly replica?: ReplicaConfig
  /** What is redacted in addition to the built-in rules: keys, and patterns in RE2 syntax. */
  readonly redact?: { readonly keys: readonly string[]; readonly patterns: readonly string[] }
  /** Whether a change of the file is applied by itself if it only tightens. */
  readonly watch?: boolean
  /** How the commands of `${command:…}` run. Read at each reload. */
  readonly secretCommands?: SecretCommandsConfig
  /** The programs of commands that were not run, so that the configuration cannot be used. */
  readonly notRun?: readonly string[]
  /** Ids of the commands that were run. The same command in another way has another id. */
  readonly ran?: readonly string[]
  /** The values of `${VAR}` and the keys of callers. Never log or show them. Prints as its length. */
  readonly secrets?: readonly string[]
  /** Whether `/metrics` needs no key. */
  readonly metrics?: { readonly public: boolean }
  /** The origin that people reach the gateway by, such as `https://tools.example.com`. Default: where it listens, if that is loopback. */
  readonly publicUrl?: string
  /** Unknown names and likely mistakes in the file, with their lines. */
  readonly warnings?: readonly ConfigWarning[]
  /** Where its policies and clauses are written. */
  readonly places?: ConfigPlaces
  /** Its policy, as it is written. */
  readonly policySource?: PolicySource | undefined
  /** Default: `auto`, without a threshold. */
  readonly search?: SearchConfig
}

/** What `secretCommands` says, for every `${command:…}` of a file. */
export type SecretCommandsConfig = Written<typeof secretCommandsSchema>

/** How long what callers without a run have done counts. */
type HistoryConfig = Written<typeof historySchema>

/** How clients name the tools of a server. */
type NamesConfig = Written<typeof namesSchema>

/** The instances of all servers with one for each user. `path` is absolute. */
type InstancesConfig = Written<typeof instancesSchema>

/** A bundle of groups and tools, served at `/mcp/<name>`. */
export interface AppConfig {
  readonly name: string
  readonly title?: string
  readonly import: readonly AppImportConfig[]
  /** Selectors. */
  readonly tools: readonly string[]
  readonly policy: readonly Policy[]
  readonly instructions?: string
}

/** A group in an app: unchanged, or tighter. */
export interface AppImportConfig {
  readonly group: string
  readonly visibility?: 'conditional' | 'hidden'
}

/** An upstream MCP server: a child on stdio, a remote server over HTTP, or a child over HTTP. */
export interface ServerConfig {
  readonly name: string
  readonly command?: string
  readonly args: readonly string[]
  /** Absolute. Absent: the working folder of each user's instance. */
  readonly cwd?: string
  /** The child's variables, besides PATH and HOME. May hold `${port}`. */
  readonly env: Readonly<Record<string, string>>
  /** May hold `${port}`, a free port that is chosen at each start. */
  readonly url?: string
  readonly headers: Readonly<Record<string, string>>
  /** Each user connects it to their own account. */
  readonly oauth?: ServerOAuth
  /** Which protocol era to speak; `auto` probes over HTTP and is `legacy` on stdio. */
  readonly era: 'auto' | 'legacy' | 'modern'
  /**
   * `user`: an instance for each user. `shared`: one serves all, as the operator states that the server keeps nothing of
   * its callers.
   */
  readonly per: 'user' | 'shared'
  /** `user`: each user sees the list of their own instance. Default: one list for all. */
  readonly listing?: 'user'
  /** Binds a child's listening sockets to loopback, for servers that have no host option. */
  readonly loopback: boolean
  readonly trustHints: boolean
  /** The kinds of its items that the catalog takes. Resources include resource templates. */
  readonly offers: readonly Offer[]
  /** The entry says nothing about it. */
  readonly offersByDefault?: true
  /** What it may ask the clients of its calls for. Default: nothing. */
  readonly may?: ServerMay
  /** The labels that its results may raise. Default: none. */
  readonly accepts?: readonly string[]
  readonly startTimeoutMs: number
  readonly callTimeoutMs: number
  readonly names?: NamesConfig
  /** Sent in place of its own; `false` for none. */
  readonly instructions?: string | false
  /** Overlays by tool name or glob. All that match are combined. */
  readonly tools: ReadonlyMap<string, ToolOverlay>
  /** Overlays of resources and templates, by URI or glob. */
  readonly resources?: ReadonlyMap<string, ItemOverlay>
  /** Overlays of prompts, by name or glob. */
  readonly prompts?: ReadonlyMap<string, ItemOverlay>
}

/** What the operator says about a tool, by its name or a glob. */
type ToolOverlay = Written<typeof overlaySchema>
/** How a person who decides a call compares what it would write with what is there. */
export type CompareConfig = Written<typeof compareSchema>
/** What the operator says about a resource, template or prompt. */
type ItemOverlay = Written<typeof itemOverlaySchema>

export interface CallerConfig {
  /** SHA-256 of the key, 32 bytes. The key itself is not kept. */
  readonly keyHash: Uint8Array
  /** The key in plain text, if the file has it. `toolgate try` prints it. */
  readonly demoKey?: string
  readonly for: 'mcp' | 'console' | 'host'
  readonly caller: Caller
  /** The name of the key. Absent: the start of its hash. */
  readonly id?: string
  /** The apps that it opens. Absent: all, and `/mcp`. */
  readonly apps?: readonly string[]
  /** Wall-clock milliseconds. */
  readonly expiresAtMs?: number
}

export interface GroupConfig {
  readonly name: string
  readonly tools: readonly string[]
  readonly visibility: 'always' | 'conditional'
  readonly title?: string
  readonly suggestion?: string
  /** Its purpose, as a sentence. Shown to models while it is locked. */
  readonly hint?: string
  /** How a session opens it. It is locked until then. */
  readonly unlock?: UnlockRule
  readonly dependsOn: readonly string[]
  readonly availableWhen: readonly ProbeConfig[]
  /** How long an answer of its probes is kept. Default: 10,000 ms. */
  readonly ttlMs?: number
}

type Probe = { readonly [K in keyof typeof probeSchemas]: Written<(typeof probeSchemas)[K]> }
/** Something listens at an address. */
type TcpProbeConfig = Probe['tcp']
/** A URL answers. */
type HttpProbeConfig = Probe['http']

/** A probe: one dependency that must work. */
export type ProbeConfig = Probe['env'] | TcpProbeConfig | HttpProbeConfig | CommandProbeConfig | Probe['server']

/** A command exits with code 0. */
interface CommandProbeConfig extends Omit<Probe['command'], 'command'> {
  readonly command: readonly [string, ...string[]]
  /** Absolute. */
  readonly cwd: string
}

/** When `search_tools`, `get_tool_details` and `call_tool` are offered. */
interface SearchConfig {
  /** `auto`: to callers with locked groups, or with a list longer than `above`. */
  readonly offer: 'auto' | 'always' | 'never'
  /** A number of tools. */
  readonly above?: number
}

/** The limits of each call. */
interface CallsConfig {
  /** The deadline of a call. Default: ten times the longest `callTimeoutMs` of the servers. */
  readonly deadlineMs?: number
  /** Characters of JSON. A longer output is cut, with a note. Default: that of the gate. */
  readonly maxOutputChars?: number
  /** How many calls run at once. */
  readonly concurrency: readonly (string | ConcurrencyCap)[]
}

export type ApprovalsConfig = Written<typeof approvalsSchema>

/** Where signed checkpoints go, and how often. */
export interface CheckpointConfig {
  /** Absolute. Default: a folder beside the audit. */
  readonly path?: string
  /** Absolute path of a private key in PEM. */
  readonly keyFile?: string
  readonly everyRecords?: number
  readonly everyMs?: number
}

export interface AuditConfig {
  /** Default `true`. */
  readonly preview?: boolean
  /** Default `redacted`. */
  readonly inputs?: AuditInputs
  readonly checkpoints?: CheckpointConfig | false
  /** Of `postgres`: who sees each signed checkpoint. */
  readonly witness?: NonNullable<Written<typeof auditSchema>['witness']>
  /** `postgres`: that of all replicas, in `stores.postgres`. */
  readonly store: 'postgres' | 'sqlite' | 'jsonl' | 'memory'
  /** Absolute. Absent for `memory`, and for `postgres` unless `durable` is `disk`: then it is the folder. */
  readonly path?: string
  /** Of `postgres`: whether a call waits until the record is in the database, or on this replica's disk. Default `shared`. */
  readonly durable?: 'shared' | 'disk'
  /** `required`: each record is durable before the call continues. `batched`: within a second. */
  readonly mode: 'required' | 'batched'
  /** How long records are kept at least. Default: for ever. */
  readonly retainMs?: number
  readonly rotate?: RotationConfig
}

/** When a file of JSON lines is closed and another begun. */
export interface RotationConfig {
  readonly bytes?: number
  readonly everyMs?: number
}

/** Where approvals, halts and the pins of tools are kept. */
export interface StateConfig {
  readonly store: 'sqlite' | 'memory'
  /** Absolute; absent for `memory`. */
  readonly path?: string
}
