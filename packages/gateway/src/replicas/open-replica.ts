import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '@toolgate/core'
import type {
  ApprovalStore,
  ClauseCountStore,
  Clock,
  CounterStore,
  GrantStore,
  HistoryStore,
  PersonStore,
  SessionLock,
  StateStore,
} from '@toolgate/core/stores'
import { LEASE_MS, Membership, whyLapsed } from '@toolgate/stores/replica'
import { LeaseEndedError } from '@toolgate/core/call'
import { messageOf } from '@toolgate/values'
import type { LoadConfigOptions } from '../config/load-config.ts'
import type { AuditConfig, GatewayConfig } from '../config/config.ts'
import { type SharedAuditDeps, type OpenedAudit, readKey } from '../config/open-stores.ts'
import type { ReplicaConfig } from '../config/sections/stores.ts'
import { VERSION } from '../files.ts'
import { type Engines, openEngines, type SharedLimits, type WatchedLimits } from './engines.ts'
import { ForwardProof } from './forward-proof.ts'
import { Elsewhere, type Here } from './elsewhere.ts'
import { Proposals, Restarts } from './proposals.ts'
import { idOfText, Publication } from './publication.ts'
import { createReport, type ReplicaReport } from './report.ts'

/** This gateway as one of several that share their stores. */
export interface OpenedReplica {
  readonly membership: Membership
  readonly publication: Publication
  readonly proposals: Pick<Proposals, 'ask'>
  readonly restarts: Pick<Restarts, 'ask'>
  /** The published configuration, with the sections of the local file that concern only this process. */
  readonly config: GatewayConfig
  /** The id of the local file if it differed when it was last read, or `invalid`. */
  readonly otherFile: () => string | undefined
  /** Reads the published configuration again, with the current values of its variables. */
  readonly read: () => Promise<GatewayConfig>
  /** Reads a text in place of the published one. */
  readonly readText: (text: string) => Promise<GatewayConfig>
  /** Reads the local file again. */
  readonly readFile: () => Promise<GatewayConfig>
  /** Reads the local file again. Returns a line for the log if it differs from the published configuration. */
  readonly noteOnFile: () => Promise<string | undefined>
  /**
   * Reloads at each publication, before the lease covers it, and checks each proposal. The lease is valid from then on.
   */
  follow(does: FollowsPublication): Promise<void>
  readonly stores: {
    readonly approvals: ApprovalStore
    readonly grantStore: GrantStore
    readonly state: StateStore
    readonly counters: CounterStore
    readonly history: { readonly store: HistoryStore }
  }
  readonly lock: SessionLock
  readonly clauses: ClauseCountStore
  readonly people: PersonStore
  /** Returns the forwarding to other replicas, and registers this replica's sessions and homes for them. */
  open(here: Here): Elsewhere
  /** Returns the result of `open`. */
  elsewhere(): Elsewhere | undefined
  /** Checks the lease once more, synchronously, just before a call is sent to its server. @throws {LeaseEndedError} */
  readonly checkStart: () => void
  /** Begins this replica's chain in the shared audit. */
  openAudit(config: AuditConfig, deps: SharedAuditDeps): Promise<OpenedAudit>
  /** Absent without Redis. */
  readonly limits: WatchedLimits | undefined
  readonly report: ReplicaReport
  close(): Promise<void>
}

/** Handlers for another replica's publications, proposals and restarts of servers. */
export interface FollowsPublication {
  readonly reload: (by: string | undefined) => Promise<unknown>
  /** Rejects with the reason why this replica cannot run the configuration. */
  readonly check: (read: ReadProposed) => Promise<unknown>
  /** Restarts a server at this replica. */
  readonly restart: (server: string) => Promise<void>
}

/** Reads a proposed configuration with this replica's own sections. */
export type ReadProposed = (how: Pick<LoadConfigOptions, 'mayRun'>) => Promise<GatewayConfig>

export interface ReplicaDeps {
  readonly clock: Clock
  readonly log: (line: { readonly level: 'warn'; readonly message: string }) => void
  readonly onFault: (error: unknown) => void
  /** Reads a configuration from a text, or from the file. */
  readonly read: (text?: string, how?: Pick<LoadConfigOptions, 'mayRun'>) => Promise<GatewayConfig>
}

const TRY_MS = 500

/**
 * Opens the databases and joins the replicas that share them. Resolves with the configuration that all of them run.
 *
 * @throws {ConfigError} for databases that cannot be used, and for an id that a live replica has; nothing stays open
 */
export async function openReplica(local: GatewayConfig, deps: ReplicaDeps): Promise<OpenedReplica> {
  const { clock, onFault } = deps
  if (!local.stores) throw new ConfigError('stores', 'are missing')
  const engines = await openEngines(local.stores, local.approvals, () => membership.hint())
  const { state, replicas } = engines
  const membership = new Membership({ ...withUrl(local), version: VERSION, state, replicas, clock, onFault })
  let hasJoined = false
  const close = async () => {
    await membership.close()
    await engines.close()
  }
  try {
    hasJoined = await joinInTime(membership)
    if (!hasJoined) throw new ConfigError('replica.id', `a live replica has the id "${membership.self.id}" already`)
    const { lease } = membership
    if (!lease.holds && lease.problem?.kind === 'silent') throw new ConfigError('stores.postgres', whyLapsed(lease))
    return await openPublished(local, { ...deps, membership, engines, close })
  } catch (error) {
    await close()
    throw error
  }
}

interface JoinedReplica extends ReplicaDeps {
  readonly membership: Membership
  readonly engines: Engines
  close(): Promise<void>
}

async function openPublished(local: GatewayConfig, joined: JoinedReplica): Promise<OpenedReplica> {
  const { clock, log, onFault, membership, engines, close } = joined
  if (local.text === undefined)
    throw new ConfigError('stores', 'need a configuration with its text, as readConfig returns it')
  const { state } = membership
  const publication = new Publication(state, clock)
  await publication.open(local.text)
  const list = () => membership.list()
  const asking = { state, clock, incarnation: membership.self.incarnation, list, onFault }
  const [proposals, restarts] = [new Proposals(asking), new Restarts(asking)]
  const file = new LocalFile(local.text, publication, joined.read)
  membership.say(() => ({
    configuration: { id: publication.running.id, since: publication.sinceMs },
    file: file.otherId(),
  }))
  const read: ReplicaDeps['read'] = async (...given) => ({ ...(await joined.read(...given)), ...ownSections(local) })
  const isSame = local.text === publication.running.text
  if (!isSame) log({ level: 'warn', message: `runs the published configuration ${publication.running.id}: ${DIFFERS}` })
  const forwarding = createForwarding(joined, await ForwardProof.open(state))
  const opened: Omit<OpenedReplica, 'report'> = {
    membership,
    publication,
    proposals,
    restarts,
    config: isSame ? local : await readFirst(publication, read),
    otherFile: () => file.otherId(),
    read: async () => read(publication.candidate.text),
    readText: (text) => read(text),
    readFile: () => file.read(),
    noteOnFile: () => file.note(),
    async follow({ reload, check, restart }) {
      publication.follow(({ by }) => reload(by))
      proposals.follow((text) => check(async (how) => read(text, how)))
      restarts.follow(restart)
      await membership.begin()
    },
    stores: {
      approvals: engines.approvals,
      grantStore: engines.grants,
      state,
      counters: engines.counters,
      history: { store: engines.histories },
    },
    lock: engines.lock,
    clauses: engines.clauses,
    people: engines.people,
    ...forwarding,
    checkStart() {
      if (membership.lapse()) throw new LeaseEndedError()
    },
    openAudit: (config, deps) => openSharedAudit(joined, config, deps),
    limits: engines.limits && watchLimits(engines.limits, membership),
    close,
  }
  return { ...opened, report: createReport({ ...opened, clock }) }
}

/** The configuration file of this replica, compared with the published configuration. */
class LocalFile {
  /** Absent if the file could not be read. */
  #text: string | undefined
  readonly #publication: Publication
  readonly #read: ReplicaDeps['read']

  constructor(text: string, publication: Publication, read: ReplicaDeps['read']) {
    this.#text = text
    this.#publication = publication
    this.#read = read
  }

  async read(): Promise<GatewayConfig> {
    this.#text = undefined
    const config = await this.#read()
    this.#text = config.text
    return config
  }

  async note(): Promise<string | undefined> {
    const problem = await this.read().then(
      () => undefined,
      () => 'the file is invalid, and another configuration is published',
    )
    return this.#isPublished() ? undefined : (problem ?? DIFFERS)
  }

  otherId(): string | undefined {
    if (this.#isPublished()) return undefined
    return this.#text === undefined ? 'invalid' : idOfText(this.#text)
  }

  #isPublished(): boolean {
    return this.#text === this.#publication.running.text
  }
}

/** Reads the configuration with which a replica starts. @throws {ConfigError} if it cannot run here */
async function readFirst({ candidate, running }: Publication, read: ReplicaDeps['read']): Promise<GatewayConfig> {
  try {
    return await read(candidate.text)
  } catch (cause) {
    const problem = `the published configuration ${running.id} cannot be run here: ${messageOf(cause)}`
    throw new ConfigError('stores', problem, { cause })
  }
}

/** Opens the forwarding to other replicas at most once, when this replica's sessions are known. */
function createForwarding(
  { membership, engines, onFault }: JoinedReplica,
  proof: ForwardProof,
): Pick<OpenedReplica, 'open' | 'elsewhere'> {
  let elsewhere: Elsewhere | undefined
  return {
    open(here) {
      const replicas = () => membership.list()
      const self = membership.self.incarnation
      const made = (elsewhere = new Elsewhere({ self, owners: engines.owners, replicas, proof, onFault }, here))
      membership.onLate(() => made.review())
      return made
    },
    elsewhere: () => elsewhere,
  }
}

async function openSharedAudit(
  { membership, engines }: JoinedReplica,
  { preview = true, inputs, checkpoints, witness, path: disk, retainMs }: AuditConfig,
  deps: SharedAuditDeps,
): Promise<OpenedAudit> {
  const { id: replica, incarnation } = membership.self
  const { keyFile, everyMs } = checkpoints || {}
  const log = {
    ...(keyFile && { key: readKey(keyFile) }),
    ...(everyMs && { everyMs }),
    ...(witness && { witness }),
  }
  const kept = {
    ...(inputs && { inputs }),
    ...(disk !== undefined && { disk }),
    ...(retainMs !== undefined && { retainMs }),
  }
  try {
    return await engines.openAudit({ replica, incarnation, preview, log, ...kept, ...deps })
  } catch (error) {
    const isOfFolder = error instanceof ConfigError && error.path === 'disk'
    throw isOfFolder ? new ConfigError('audit.path', error.problem, { cause: error }) : error
  }
}

/** Checks the limits as often as the lease is renewed. */
function watchLimits({ problem, reopen }: SharedLimits, membership: Membership): WatchedLimits {
  let latest: string | undefined
  const look = async () => void (latest = await problem())
  membership.onRenewal(() => void look())
  return {
    get problem() {
      return latest
    },
    async reopen() {
      await reopen()
      await look()
    },
  }
}

const DIFFERS = 'the file differs, and "toolgate reload --publish" publishes it'

/** Returns the sections that concern only this process, and do not come from the published configuration. */
function ownSections({ listen, stores, replica }: GatewayConfig): Pick<GatewayConfig, 'listen' | 'stores' | 'replica'> {
  return { listen, ...(stores && { stores }), ...(replica && { replica }) }
}

/** Adds a URL to a replica without one: its listening address, unless it listens on all addresses. */
function withUrl({ listen: { host, port, tls }, replica }: GatewayConfig): ReplicaConfig {
  const isKnown = port !== 0 && host !== '0.0.0.0' && host !== '::'
  const url = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
  return { ...(isKnown && { url }), ...replica }
}

/** Joins the replicas. It waits if a killed replica with the same id still has a lease. */
async function joinInTime(membership: Membership): Promise<boolean> {
  for (let leftMs = LEASE_MS + TRY_MS; leftMs >= 0; leftMs -= TRY_MS) {
    if (await membership.join()) return true
    await sleep(TRY_MS)
  }
  return false
}
