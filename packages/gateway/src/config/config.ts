import type { Caller, Policy } from '@toolgate/core'
import type { InputHandling } from '@toolgate/core/tools'
import type { AuditInputs } from '@toolgate/core/audit'
import type { UnlockRule } from '@toolgate/core/groups'
import type { ConcurrencyCap, RateLimit } from '@toolgate/core/call'
import type { DefinitionMode, PinMode, PinRules } from '@toolgate/core/pins'
import type { GrantRules } from '@toolgate/core/stores'
import type { TlsFiles } from '../util/certificate.ts'
import type { ProxyRules } from '../util/proxy-rules.ts'
import type { Offer } from '../model/upstream.ts'
import type { ServerMay } from './may.ts'
import type { OAuthConfig } from './oauth.ts'
import type { OidcConfig } from './oidc.ts'
import type { ServerOAuth } from './server-oauth.ts'
import type { ConfigPlaces, PolicySource } from './places.ts'
import type { ConfigProblem, ConfigWarning } from './problems.ts'
import type { secretCommandsSchema } from './schema/secret-commands.ts'
import type { auditSchema } from './schema/audit.ts'
import type { approvalsSchema } from './schema/calls.ts'
import type { receiverSchema } from './schema/notify.ts'
import type { probeSchemas } from './schema/groups.ts'
import type { historySchema } from './schema/policy.ts'
import type { compareSchema, instancesSchema, itemOverlaySchema, namesSchema, overlaySchema } from './schema/servers.ts'
import type { Written } from './schema/values.ts'
import type { ReplicaConfig, StoresConfig } from './sections/stores.ts'

/** A parsed and checked `toolgate.yaml`: paths are absolute, and each `${VAR}` is filled in. */
export interface GatewayConfig {
  /** Absolute path of the file, for messages. */
  readonly file: string
  /** The text that it was parsed from, if it names `stores`. Replicas publish this text. */
  readonly text?: string
  /** SHA-256 of the text that it was parsed from. */
  readonly textHash?: string
  readonly listen: {
    readonly host: string
    readonly port: number
    /** Further accepted origins, such as `https://tools.example.com` of a reverse proxy. */
    readonly origins?: readonly string[]
    /** Origins of web pages that may call the agent endpoints, such as `https://inspector.example.com`. */
    readonly corsOrigins?: readonly string[]
    /** Proxies whose `X-Forwarded-For` is trusted: addresses, and ranges such as `10.0.0.0/8`. */
    readonly proxies?: readonly string[]
    /** Serves HTTPS instead of HTTP. */
    readonly tls?: TlsFiles
  }
  readonly servers: readonly ServerConfig[]
  /** The names for every server without its own `names`. */
  readonly names?: NamesConfig
  /** Instructions for the model. Each client gets them when it connects. */
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
  /** The labels that the output of tools gets, by selector. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
  readonly history?: HistoryConfig
  readonly apps?: readonly AppConfig[]
  readonly policy: readonly Policy[]
  /** Rate limits: text such as `*:100/60` (selector, uses, seconds), or an object. */
  readonly limits: readonly (string | RateLimit)[]
  /** The bounds of grants. Absent: approvers make none. */
  readonly grants?: GrantsConfig
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
  /** Whether a changed file is applied automatically if the change only tightens access. */
  readonly watch?: boolean
  /** How the commands of `${command:…}` run. Read at each reload. */
  readonly secretCommands?: SecretCommandsConfig
  /** The programs of commands that were not run. If there are any, the configuration cannot be used. */
  readonly notRun?: readonly string[]
  /** Ids of the commands that were run. The id depends on the command and on how it runs. */
  readonly ran?: readonly string[]
  /** The values of `${VAR}` and the keys of callers. Never log or show them. Only the length of the list is printed. */
  readonly secrets?: readonly string[]
  /** Whether `/metrics` needs no key. */
  readonly metrics?: { readonly public: boolean }
  /**
   * The origin at which people reach the gateway, such as `https://tools.example.com`. Default: the listening address,
   * if it is loopback.
   */
  readonly publicUrl?: string
  /** Unknown names and likely mistakes in the file, with their lines. */
  readonly warnings?: readonly ConfigWarning[]
  /** The places of policies and clauses in the file. */
  readonly places?: ConfigPlaces
  /** The text of the `policy` section. */
  readonly policySource?: PolicySource | undefined
  /** Default: `auto`, without a threshold. */
  readonly search?: SearchConfig
  /** How servers and authorization servers are reached. Absent: directly. */
  readonly proxy?: ProxyRules | undefined
}

/** The options of `secretCommands`, for every `${command:…}` of a file. */
export type SecretCommandsConfig = Written<typeof secretCommandsSchema>

/** How long calls without a run stay in the history of their caller. */
type HistoryConfig = Written<typeof historySchema>

/** How clients name the tools of a server. */
type NamesConfig = Written<typeof namesSchema>

/** Options for all servers with one instance per user. `path` is absolute. */
type InstancesConfig = Written<typeof instancesSchema>

/** A bundle of groups and tools, served at `/mcp/<name>`. */
export interface AppConfig {
  readonly name: string
  readonly title?: string
  readonly import: readonly AppImportConfig[]
  /** Selectors of tools. */
  readonly tools: readonly string[]
  readonly policy: readonly Policy[]
  readonly instructions?: string
}

/** A group that an app imports: unchanged, or tighter. */
export interface AppImportConfig {
  readonly group: string
  readonly visibility?: 'conditional' | 'hidden'
}

/** An upstream MCP server: a child on stdio, a remote server over HTTP, or a child over HTTP. */
export interface ServerConfig {
  readonly name: string
  readonly command?: string
  readonly args: readonly string[]
  /** An absolute path. Absent: the working folder of each user's instance. */
  readonly cwd?: string
  /** The environment variables of the child, besides its surroundings, with those of `pass`. Values may contain `${port}`. */
  readonly env: Readonly<Record<string, string>>
  /** The URL may contain `${port}`, a free port that is chosen at each start. */
  readonly url?: string
  readonly headers: Readonly<Record<string, string>>
  /** How a server with a URL alone, and its authorization server, are reached. Absent: directly. */
  readonly proxy?: ProxyRules
  /** Certificates (PEM) of authorities that are trusted for it, beside the usual ones. */
  readonly ca?: string
  /** The OAuth client with which each user connects the server to their own account. */
  readonly oauth?: ServerOAuth
  /** The protocol era. `auto` probes over HTTP and means `legacy` on stdio. */
  readonly era: 'auto' | 'legacy' | 'modern'
  /**
   * `user`: one instance per user. `shared`: one instance for all users; the operator asserts that the server keeps no
   * data of its callers.
   */
  readonly per: 'user' | 'shared'
  /** `user`: each user sees the list of their own instance. Default: one list for all. */
  readonly listing?: 'user'
  /** Binds a child's listening sockets to loopback, for servers that have no host option. */
  readonly loopback: boolean
  readonly trustHints: boolean
  /** Decides what happens to inputs that a tool's schema rejects. Default: `checked`. */
  readonly inputs?: InputHandling
  /** The kinds of the server's items that the catalog includes. Resources include resource templates. */
  readonly offers: readonly Offer[]
  /** Set if the entry does not mention `offers`. */
  readonly offersByDefault?: true
  /** The input that it may request from the clients of its calls. Default: none. */
  readonly may?: ServerMay
  /** The labels that its results may raise. Default: none. */
  readonly accepts?: readonly string[]
  readonly startTimeoutMs: number
  /** Lets requests wait for its first list, for at most `startTimeoutMs`. */
  readonly waitForStart?: boolean
  readonly callTimeoutMs: number
  readonly names?: NamesConfig
  /** Instructions that replace the server's own; `false` for none. */
  readonly instructions?: string | false
  /** Overlays by tool name or glob. All that match are combined. */
  readonly tools: ReadonlyMap<string, ReadOverlay>
  /** Overlays of resources and templates, by URI or glob. */
  readonly resources?: ReadonlyMap<string, ItemOverlay>
  /** Overlays of prompts, by name or glob. */
  readonly prompts?: ReadonlyMap<string, ItemOverlay>
  /**
   * The values that this machine lacks: variables, files, and outputs of commands. The server waits until the file is
   * read again with all of them. Absent: it can start.
   */
  readonly absent?: readonly ConfigProblem[]
}

/** The operator's settings for a tool, by name or glob. */
type ReadOverlay = Written<typeof overlaySchema>
/** How to show an approver the difference between the current content and what a call would write. */
export type CompareConfig = Written<typeof compareSchema>
/** The operator's settings for a resource, template or prompt. */
type ItemOverlay = Written<typeof itemOverlaySchema>

export interface CallerConfig {
  /** SHA-256 of the key, 32 bytes. The key itself is not kept. */
  readonly keyHash: Uint8Array
  /** The key in plain text, if the file has it. `toolgate try` prints it. */
  readonly demoKey?: string
  readonly for: 'mcp' | 'console' | 'host'
  readonly caller: Caller
  /** The name of the key. Default: the start of its hash. */
  readonly id?: string
  /** The apps that the key opens. Absent: all apps, and `/mcp`. */
  readonly apps?: readonly string[]
  /** When the key expires, in wall-clock milliseconds. */
  readonly expiresAtMs?: number
}

export interface GroupConfig {
  readonly name: string
  readonly tools: readonly string[]
  readonly visibility: 'always' | 'conditional'
  readonly title?: string
  readonly suggestion?: string
  /** The purpose of the group, as a sentence. Models see it while the group is locked. */
  readonly hint?: string
  /** How a session opens the group. The group is locked until then. */
  readonly unlock?: UnlockRule
  readonly dependsOn: readonly string[]
  readonly availableWhen: readonly ProbeConfig[]
  /** How long the result of its probes is cached. Default: 10,000 ms. */
  readonly ttlMs?: number
}

type ReadProbe = { readonly [K in keyof typeof probeSchemas]: Written<(typeof probeSchemas)[K]> }
/** The probe succeeds if something listens at an address. */
type TcpProbeConfig = ReadProbe['tcp']
/** The probe succeeds if a URL answers. */
type HttpProbeConfig = ReadProbe['http']

/** A probe: one dependency that must work. */
export type ProbeConfig = ReadProbe['env'] | TcpProbeConfig | HttpProbeConfig | CommandProbeConfig | ReadProbe['server']

/** The probe succeeds if a command exits with code 0. */
interface CommandProbeConfig extends Omit<ReadProbe['command'], 'command'> {
  readonly command: readonly [string, ...string[]]
  /** The working folder of the command. Absolute. */
  readonly cwd: string
}

/** When `search_tools`, `get_tool_details` and `call_tool` are offered. */
interface SearchConfig {
  /** `auto`: to callers with locked groups, or with a list longer than `above`. */
  readonly offer: 'auto' | 'always' | 'never'
  /** The number of tools above which `auto` offers search. */
  readonly above?: number
}

/** The limits of each call. */
interface CallsConfig {
  /** The deadline of a call. Default: ten times the longest `callTimeoutMs` of the servers. */
  readonly deadlineMs?: number
  /**
   * The maximum length of an output in characters of JSON. A longer output is cut, with a note. Default: the gate's.
   */
  readonly maxOutputChars?: number
  /** How many calls may run at once. */
  readonly concurrency: readonly (string | ConcurrencyCap)[]
}

/** The bounds of grants, with their defaults. */
export type GrantsConfig = GrantRules & { readonly maxUses: number }

/** A receiver of notifications about approvals. */
export interface ReceiverConfig extends Written<typeof receiverSchema> {
  /** Unique in the file. Logs and metrics have it, so it contains no secret. */
  readonly name: string
  /** How the URL is reached. Absent: directly. */
  readonly proxy?: ProxyRules
}

export interface ApprovalsConfig extends Omit<Written<typeof approvalsSchema>, 'notify'> {
  /** Default: nobody is told. */
  readonly notify?: readonly ReceiverConfig[]
}

/** Where signed checkpoints are stored, and how often they are made. */
export interface CheckpointConfig {
  /** An absolute path. Default: a folder beside the audit. */
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
  /** For `postgres`: the witness that receives each signed checkpoint. */
  readonly witness?: NonNullable<Written<typeof auditSchema>['witness']>
  /** `postgres`: the audit that all replicas share, in `stores.postgres`. */
  readonly store: 'postgres' | 'sqlite' | 'jsonl' | 'memory'
  /** An absolute path. Absent for `memory`, and for `postgres` unless `durable` is `disk`: then it is the folder. */
  readonly path?: string
  /**
   * For `postgres`: whether a call waits until its record is in the database (`shared`) or on this replica's disk
   * (`disk`). Default `shared`.
   */
  readonly durable?: 'shared' | 'disk'
  /**
   * `required`: each record is durable before the call continues. `batched`: each record is durable within a second.
   */
  readonly mode: 'required' | 'batched'
  /** The minimum time for which records are kept. Default: forever. */
  readonly retainMs?: number
  readonly rotate?: RotationConfig
}

/** When to close a file of JSON lines and start another. */
export interface RotationConfig {
  readonly bytes?: number
  readonly everyMs?: number
}

/** Where approvals, halts and pins are stored. */
export interface StateConfig {
  readonly store: 'sqlite' | 'memory'
  /** An absolute path; absent for `memory`. */
  readonly path?: string
}
