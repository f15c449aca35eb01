import { createFailedLogins } from '../auth/failed-logins.ts'
import { FleetFailures } from '../auth/fleet-failures.ts'
import { Keys } from '../auth/keys.ts'
import { openAuthenticator } from '../auth/open-authenticator.ts'
import { createOriginRules, isOwnUrl } from '../auth/origin.ts'
import { People } from '../auth/people.ts'
import type { Revisions, Settings } from '../auth/revision.ts'
import { Runs } from '../auth/runs.ts'
import type { GatewayConfig } from '../config/config.ts'
import { isLoopback } from '../config/loopback.ts'
import { namingIssuers, otherNames } from '../config/other-names.ts'
import type { Listening } from '../edge/server.ts'
import type { Door, Heart } from '../heart/heart.ts'
import type { Lifecycle } from '../util/lifecycle.ts'
import { type ClientAddresses, createClientAddresses } from '../util/client-address.ts'

/** The door before the gate exists: callers can be authenticated, but failed logins are not recorded yet. */
export interface EarlyDoor extends Omit<Door, 'logins' | 'addresses' | 'stopping'> {
  /** Whether an origin belongs to this gateway. */
  isOwn(origin: string): boolean
}

type DoorServices = Pick<Heart, 'clock' | 'log' | 'onFault'> & { readonly revisions: Revisions }

/** @throws {ConfigError} for OAuth without a public URL */
export async function openDoor(
  { listen, publicUrl: written, oauth, oidc }: Settings,
  { clock, log, onFault, revisions }: DoorServices,
  listener: Pick<Listening, 'port' | 'certificate'>,
): Promise<EarlyDoor> {
  const { host, tls, origins: listed = [], corsOrigins } = listen
  const { port } = listener
  const publicUrl = written ?? (isLoopback(host) ? toUrl(listen, port) : undefined)
  const keys = new Keys({ revisions, clock, onFault })
  const runs = new Runs({ revisions, clock, keys, onFault })
  const loginRoles = new Set([...(oidc?.roles.values() ?? [])].flat())
  const people = new People({
    clock,
    log,
    otherNames: (user) => otherNames(user, namingIssuers({ oauth, oidc })),
    loginRoles: (issuer) => (issuer === oidc?.server.issuer ? loginRoles : new Set()),
  })
  const opened = await openAuthenticator([keys, runs], {
    oauth,
    naming: namingIssuers({ oauth, oidc }),
    publicUrl,
    clock,
    log,
    onFault,
    onFound: people.noteRequest.bind(people),
  })
  const known = written === undefined ? listed : [...listed, written]
  const origins = createOriginRules({ host, port, isTls: tls !== undefined, origins: known, corsOrigins })
  return {
    ...opened,
    keys,
    runs,
    people,
    port,
    publicUrl,
    origins,
    certificateExpiresAtMs: () => listener.certificate?.expiresAtMs,
    isOwn: (origin) => isOwnUrl(new URL(origin), origins, port),
  }
}

/** Returns the URL of the port, such as `http://127.0.0.1:8787`. */
export function toUrl({ host, tls }: GatewayConfig['listen'], port: number): string {
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

type Recording = Pick<Heart, 'config' | 'clock' | 'onFault' | 'replica' | 'gate' | 'stores'> & {
  readonly lifecycle: Lifecycle
}

/** Adds the record of failed logins to the door. They are audited until the gateway closes. */
export function openLogins(
  { isOwn: _, ...door }: EarlyDoor,
  { config, clock, onFault, replica, gate, stores, lifecycle }: Recording,
): Door {
  const direct = createClientAddresses(config.listen.proxies)
  // A replica that forwards a request states the client's address, with a proof.
  const addresses: ClientAddresses = {
    isProxy: (address) => direct.isProxy(address),
    of: (request) => replica?.elsewhere()?.addressOf(request) ?? direct.of(request),
  }
  const fleet =
    replica &&
    new FleetFailures({
      incarnation: replica.membership.self.incarnation,
      state: replica.stores.state,
      clock,
      onFault,
    })
  if (fleet) lifecycle.onClose(() => fleet.close())
  const revisions = () => ({ policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision })
  const logins = createFailedLogins({ audit: stores.audit, clock, revisions, addresses, onFault, fleet })
  lifecycle.onClose(() => logins.close())
  return { ...door, logins, addresses, stopping: lifecycle }
}
