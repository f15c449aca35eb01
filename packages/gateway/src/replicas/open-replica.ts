import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '@toolgate/core'
import type {
  ApprovalStore,
  ClauseCountStore,
  Clock,
  CounterStore,
  HistoryStore,
  SessionLock,
  StateStore,
} from '@toolgate/core/stores'
import { LEASE_MS, Membership, whyLapsed } from '@toolgate/stores/replica'
import { LeaseEndedError } from '@toolgate/core/call'
import type { MaybePromise } from '@toolgate/core/internal'
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
    readonly state: StateStore
    readonly counters: CounterStore
    readonly history: { readonly store: HistoryStore }
  }
  readonly lock: SessionLock
  readonly clauses: ClauseCountStore
  /** Returns the forwarding to other replicas, and registers this replica's sessions and homes for them. */
  open(here: Here): Elsewhere
  /** Returns the result of `open`. */
  elsewhere(): Elsewhere | undefined
  /** Checks the lease again in the turn in which a call is sent to its server. @throws {LeaseEndedError} */
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
  readonly read: (text?: string, how?: Pick<LoadConfigOptions, 'mayRun'>) => MaybePromise<GatewayConfig>
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

interface Joined extends ReplicaDeps {
  readonly membership: Membership
  readonly engines: Engines
  close(): Promise<void>
}

async function openPublished(local: GatewayConfig, joined: Joined): Promise<OpenedReplica> {
  const { clock, log, onFault, read, membership, engines, close } = joined
  if (local.text === undefined)
    throw new ConfigError('stores', 'need a configuration with its text, as readConfig returns it')
  const publication = new Publication({ state: membership.state, clock })
  await publication.open(local.text)
  const { state } = membership
  const list = () => membership.list()
  const asking = { state, clock, incarnation: membership.self.incarnation, list, onFault }
  const [proposals, restarts] = [new Proposals(asking), new Restarts(asking)]
  let file: string | undefined = local.text
  const readFile = async () => {
    file = undefined
    const config = await read()
    file = config.text
    return config
  }
  const noteOnFile = async () => {
    const problem = await readFile().then(
      () => undefined,
      () => 'the file is invalid, and another configuration is published',
    )
    if (file === publication.running.text) return undefined
    return problem ?? DIFFERS
  }
  const otherFile = () => {
    if (file === publication.running.text) return undefined
    return file === undefined ? 'invalid' : idOfText(file)
  }
  membership.say(() => ({
    configuration: { id: publication.running.id, since: publication.sinceMs },
    file: otherFile(),
  }))
  const readText = async (...given: Parameters<typeof read>) => ({ ...(await read(...given)), ...ownSections(local) })
  const readPublished = () => readText(publication.candidate.text)
  const readFirst = () =>
    readPublished().catch((cause: unknown) => {
      const { id } = publication.running
      throw new ConfigError('stores', `the published configuration ${id} cannot be run here: ${messageOf(cause)}`, {
        cause,
      })
    })
  const isSame = local.text === publication.running.text
  if (!isSame) log({ level: 'warn', message: `runs the published configuration ${publication.running.id}: ${DIFFERS}` })
  const proof = await ForwardProof.open(membership.state)
  let elsewhere: Elsewhere | undefined
  const limits = engines.limits && watchLimits(engines.limits, membership)
  const opened: Omit<OpenedReplica, 'report'> = {
    membership,
    publication,
    proposals,
    restarts,
    config: isSame ? local : await readFirst(),
    otherFile,
    read: readPublished,
    readFile,
    noteOnFile,
    async follow({ reload, check, restart }) {
      publication.follow(({ by }) => reload(by))
      proposals.follow((text) => check((how) => readText(text, how)))
      restarts.follow(restart)
      await membership.begin()
    },
    stores: {
      approvals: engines.approvals,
      state: membership.state,
      counters: engines.counters,
      history: { store: engines.histories },
    },
    lock: engines.lock,
    clauses: engines.clauses,
    open(here) {
      const replicas = () => membership.list()
      const self = membership.self.incarnation
      const made = (elsewhere = new Elsewhere({ self, owners: engines.owners, replicas, proof, onFault }, here))
      membership.onLate(() => made.review())
      return made
    },
    elsewhere: () => elsewhere,
    checkStart() {
      if (membership.lapse()) throw new LeaseEndedError()
    },
    openAudit: ({ preview = true, inputs, checkpoints, witness, path: disk, retainMs }, auditDeps) => {
      const { id: name, incarnation } = membership.self
      const { keyFile, everyMs } = checkpoints || {}
      const signing = {
        ...(keyFile && { key: readKey(keyFile) }),
        ...(everyMs && { everyMs }),
        ...(witness && { witness }),
      }
      const kept = { ...(disk !== undefined && { disk }), ...(retainMs !== undefined && { retainMs }) }
      return engines
        .openAudit({
          replica: name,
          incarnation,
          preview,
          ...(inputs && { inputs }),
          log: signing,
          ...kept,
          ...auditDeps,
        })
        .catch((error: unknown) => {
          const isOfFolder = error instanceof ConfigError && error.path === 'disk'
          throw isOfFolder ? new ConfigError('audit.path', error.problem, { cause: error }) : error
        })
    },
    limits,
    close,
  }
  return { ...opened, report: createReport({ ...opened, clock }) }
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
