import type { Caller } from '@toolgate/core'
import type { AuditEntry } from '@toolgate/core/audit'
import type { ConnectionSource, MissingConnection } from '@toolgate/core/groups'
import { createEmitter, messageOf } from '@toolgate/values'
import type { Clock, SessionLock, StateStore } from '@toolgate/core/stores'
import type { ServerConfig } from '../../config/config.ts'
import { once } from '../../util/lifecycle.ts'
import { SecretSealer } from '../../util/sealer.ts'
import type { RequestCredential } from '../transport/credential.ts'
import type { Authority } from './authority.ts'
import { type UserConnection, type ConnectionKey, ConnectionStore, keyOf } from './connection-store.ts'
import { ConnectionCredential } from './credential.ts'
import { clientDocument, fingerprintOf, type OAuthServer } from './oauth-server.ts'
import { ConnectProblem } from './problem.ts'

interface ConnectionsDeps {
  readonly state: StateStore
  /** Ensures that only one process at a time changes a connection. */
  readonly lock: SessionLock
  readonly clock: Clock
  /** The origin at which people reach the gateway, if it is known. */
  readonly publicUrl: string | undefined
  /** Returns the servers of the current revision. */
  readonly servers: () => readonly ServerConfig[]
  readonly record: (entry: ConnectionRecord) => void
  readonly log: (line: { readonly level: 'info' | 'warn'; readonly message: string; readonly server: string }) => void
  readonly onFault: (error: unknown) => void
}

export type ConnectionRecord = Pick<AuditEntry, 'user_id' | 'tenant' | 'actor' | 'detail' | 'reason'> & {
  readonly event: 'connection_made' | 'connection_ended'
}

/** Why a connection ended. `revoked`: an approver ended it for its user. */
type EndReason = 'disconnected' | 'revoked' | 'refused' | 'replaced' | 'config_changed'

/** A server that needs a connection, for one person. */
export interface UserConnectionRow {
  readonly server: string
  /** Absent if the server is not connected. */
  readonly connection?: UserConnection
}

type ConnectedServer = ServerConfig & OAuthServer

/** The path of the page of a server's connection. */
export const CONNECT_PATH = '/connect/'
const LOCK_MS = 45_000
const NOTHING: readonly MissingConnection[] = []

/** The connections of users' own accounts to servers, and their credentials. */
export class Connections implements ConnectionSource {
  readonly #deps: ConnectionsDeps
  readonly #store: ConnectionStore
  readonly #changes: ReturnType<typeof createEmitter>
  readonly #missing = new WeakMap<
    ServerConfig,
    { readonly user: MissingConnection; readonly nobody: MissingConnection }
  >()
  readonly #authority: () => Promise<Authority>
  #seen: readonly ServerConfig[] = []

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps
    const { state, clock, onFault, publicUrl } = deps
    const sealer = new SecretSealer({ state, clock, isLasting: true })
    this.#store = new ConnectionStore({ state, sealer, onFault })
    this.#changes = createEmitter(onFault)
    this.#store.subscribe(() => this.#changes.emit())
    this.#authority = once(async () => {
      if (publicUrl === undefined) throw new ConnectProblem('the gateway has no "publicUrl" to come back to')
      const { Authority: Loaded } = await import('./authority.ts')
      return new Loaded({ state, sealer, clock, publicUrl })
    })
  }

  start(): void {
    this.#seen = this.#deps.servers()
    this.#follow()
  }

  /** Follows the store once a server needs connections. Most gateways have no such server. */
  #follow(): void {
    if (!this.#store.isStarted && this.#servers.length > 0) this.#store.start()
  }

  /** Returns the servers that a caller has not connected. Equal entries are the same objects for all callers. */
  missing(caller: Caller): readonly MissingConnection[] {
    const servers = this.#servers
    if (servers.length === 0) return NOTHING
    return servers.flatMap((server) => (this.#find(server, caller) ? [] : [this.#whyMissing(server, caller)]))
  }

  /** Returns how to connect a server; `undefined` if it is connected or needs no connection. */
  missingOf(server: string, caller: Caller): MissingConnection | undefined {
    const found = this.#servers.find(({ name }) => name === server)
    return found && !this.#find(found, caller) ? this.#whyMissing(found, caller) : undefined
  }

  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener)
  }

  /** Calls the listener with the connections that are no longer valid. */
  onEnded(listener: (ended: readonly UserConnection[]) => void): () => void {
    return this.#store.subscribe(listener)
  }

  /** Returns the servers that need a connection, with the connections that a person has. */
  rowsOf(person: Caller): readonly UserConnectionRow[] {
    return this.#servers.map((server) => {
      const connection = this.#find(server, person)
      return { server: server.name, ...(connection ? { connection } : {}) }
    })
  }

  /**
   * Returns the credential for the requests of a user's instance; `undefined` if the user has not connected the server.
   */
  credentialOf(server: ServerConfig, user: Pick<Caller, 'user' | 'tenant'>): RequestCredential | undefined {
    if (!isOAuth(server)) return undefined
    const connection = this.#find(server, user)
    if (!connection) return undefined
    const { clock } = this.#deps
    return new ConnectionCredential(connection, {
      store: this.#store,
      clock,
      refresh: async (of, secret) => (await this.#authority()).refresh(server, of, secret),
      exclusively: (of, work) => this.#exclusively(of, work),
      end: (of) => this.#end(of, 'refused'),
    })
  }

  /** The origin at which people reach the gateway, if it is known. */
  get publicUrl(): string | undefined {
    return this.#deps.publicUrl
  }

  /** Returns the host of a server, for people. */
  hostOf(name: string): string {
    return URL.parse(this.#serverOf(name).url ?? '')?.host ?? ''
  }

  /** Returns the client ID metadata document of the gateway. `undefined` without a public URL. */
  clientDocument(): object | undefined {
    const { publicUrl } = this.#deps
    return publicUrl === undefined ? undefined : clientDocument(publicUrl)
  }

  /** Begins to connect a server. @throws {ConnectProblem} */
  async begin(name: string, person: Caller): Promise<{ readonly url: string; readonly secret: string }> {
    const server = this.#serverOf(name)
    const { user, tenant } = person
    if (user === undefined) throw new ConnectProblem('a connection belongs to a user, and this key has none')
    const authority = await this.#authority()
    return authority.begin(server, { user, tenant }, fingerprintOf(server))
  }

  /** Ends an attempt with the URL at which the authorization server's answer arrived. @throws {ConnectProblem} */
  async finish(answer: URL, secret: string, person: Caller): Promise<UserConnection> {
    const { user, tenant } = person
    if (user === undefined) throw new ConnectProblem('a connection belongs to a user, and this key has none')
    const authority = await this.#authority()
    const made = await authority.finish(answer, secret, { user, tenant }, ({ server, of }) => {
      const found = this.#servers.find(({ name }) => name === server)
      return found && fingerprintOf(found) === of ? found : undefined
    })
    const { connection } = made
    const before = this.#store.find(connection)
    await this.#exclusively(connection, () => this.#store.write(connection, made.secret))
    if (before) this.#record('connection_ended', before, 'replaced')
    this.#record('connection_made', connection)
    return connection
  }

  /**
   * Ends a user's connection, and revokes its tokens if the authorization server supports it. Returns whether there was
   * one. `by`: the person who did it for the user.
   */
  async disconnect(name: string, person: Caller, by?: string): Promise<boolean> {
    const server = this.#serverOf(name)
    const connection = this.#find(server, person)
    if (!connection) return false
    return this.#endAndRevoke(server, connection, by === undefined ? 'disconnected' : 'revoked', by)
  }

  /** Ends the connections whose fingerprint no longer matches the configuration. */
  renew(): void {
    const before = this.#seen.filter(isOAuth)
    this.#seen = this.#deps.servers()
    this.#follow()
    const now = new Set(this.#servers.map((server) => toPlace(server.name, fingerprintOf(server))))
    const gone = new Map(before.map((server) => [toPlace(server.name, fingerprintOf(server)), server]))
    for (const connection of this.#store.all) {
      const place = toPlace(connection.server, connection.of)
      const server = now.has(place) ? undefined : gone.get(place)
      if (server) void this.#endAndRevoke(server, connection, 'config_changed').catch(this.#deps.onFault)
    }
  }

  close(): void {
    this.#store.close()
  }

  get #servers(): readonly ConnectedServer[] {
    return this.#deps.servers().filter(isOAuth)
  }

  #serverOf(name: string): OAuthServer {
    const server = this.#servers.find((one) => one.name === name)
    if (!server) throw new ConnectProblem('no server of this name wants a connection')
    return server
  }

  #find(server: OAuthServer, { user, tenant }: Pick<Caller, 'user' | 'tenant'>): UserConnection | undefined {
    if (user === undefined) return undefined
    const found = this.#store.find({ server: server.name, user, tenant })
    return found?.of === fingerprintOf(server) ? found : undefined
  }

  #whyMissing(server: ConnectedServer, { user }: Caller): MissingConnection {
    let known = this.#missing.get(server)
    if (!known) this.#missing.set(server, (known = whyMissing(server.name, this.#deps.publicUrl)))
    return user === undefined ? known.nobody : known.user
  }

  async #endAndRevoke(
    server: OAuthServer,
    connection: UserConnection,
    reason: EndReason,
    by?: string,
  ): Promise<boolean> {
    const { log } = this.#deps
    const secret = await this.#exclusively(connection, async () => {
      const opened = await this.#store.open(connection)
      return (await this.#store.remove(connection)) ? { opened } : undefined
    })
    if (!secret) return false
    this.#record('connection_ended', connection, reason, by)
    if (!secret.opened) return true
    try {
      await (await this.#authority()).revoke(server, connection, secret.opened)
    } catch (error) {
      const message = `the tokens of a connection that ended could not be withdrawn: ${messageOf(error)}`
      log({ level: 'warn', server: server.name, message })
    }
    return true
  }

  /** Ends a connection whose tokens are no longer accepted. The caller holds the connection's lock. */
  async #end(connection: UserConnection, reason: EndReason): Promise<void> {
    if (await this.#store.remove(connection)) this.#record('connection_ended', connection, reason)
  }

  async #exclusively<T>(connection: ConnectionKey, work: () => Promise<T>): Promise<T> {
    const lease = await this.#deps.lock.acquire(keyOf(connection), { deadlineMs: LOCK_MS })
    try {
      return await work()
    } finally {
      await lease.release()
    }
  }

  #record(
    event: ConnectionRecord['event'],
    { server, user, tenant, scopes, account, issuer }: UserConnection,
    reason?: EndReason,
    actor?: string,
  ) {
    const as = account === undefined ? '' : ` as ${account}`
    const asked = scopes === undefined || scopes.length === 0 ? '' : `; scopes: ${scopes.join(' ')}`
    const detail = `${server}${as} at ${issuer}${asked}`
    const of = { user_id: user, ...(tenant === undefined ? {} : { tenant }) }
    this.#deps.record({ event, ...of, detail, ...(reason === undefined ? {} : { reason }), ...(actor && { actor }) })
  }
}

function isOAuth(server: ServerConfig): server is ConnectedServer {
  return server.oauth !== undefined
}

function toPlace(server: string, of: string): string {
  return JSON.stringify([server, of])
}

/** Returns the URL of a server's connection page; without a public URL, its path. */
export function connectUrl(server: string, publicUrl: string | undefined): string {
  return `${publicUrl ?? ''}${CONNECT_PATH}${encodeURIComponent(server)}`
}

function whyMissing(namespace: string, publicUrl: string | undefined) {
  const user: MissingConnection = {
    namespace,
    text: `the user has not connected the server ${namespace} to their account`,
    message: `the user has not connected ${namespace} to their account`,
    suggestion: `The user connects it at ${publicUrl === undefined ? "the gateway's page " : ''}${connectUrl(namespace, publicUrl)}.`,
  }
  const why = `${namespace} is for users who connect their own account, and this caller is no user`
  return { user, nobody: { namespace, text: why, message: why } satisfies MissingConnection }
}
