import { hash } from 'node:crypto'
import { type Caller, defineCaller } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { IssuerConfig } from '../../config/oauth.ts'
import type { NamingIssuer } from '../../config/other-names.ts'
import { aliasesOf } from './aliases.ts'
import { remember } from './remember.ts'
import { claimAt, listAt, namesOf, rolesAt, textAt, textOf } from './read-claims.ts'
import { TokenProblem } from './token-problem.ts'

/** The user or client that a token was issued for. */
export interface Identity {
  /** The same for every token that the client gets for this user. */
  readonly id: string
  readonly caller: Caller
  readonly client?: string
  readonly scopes: readonly string[]
}

const MAX_ACTORS = 8

/** The maximum number of remembered users and clients. */
const MAX_IDENTITIES = 10_000

type NameOfClient = (issuer: string) => string | undefined

/** Creates callers from claims. Equal callers are one object, so that a refreshed token finds the same views. */
export class Identities {
  /** Oldest first. */
  readonly #known = new Map<string, Identity>()
  readonly #nameOf: NameOfClient
  readonly #issuers: readonly NamingIssuer[]

  /**
   * `nameOf` returns the name of another issuer, for the actors of a token. `issuers`: all that name people, for the other
   * names of a person.
   */
  constructor(nameOf: NameOfClient = () => undefined, issuers: readonly NamingIssuer[] = []) {
    this.#nameOf = nameOf
    this.#issuers = issuers
  }

  /**
   * Returns the identity of a verified token.
   *
   * A token without a user belongs to its client (client credentials): `<issuer>:client/<id>`, which no subject can
   * equal.
   *
   * @throws {TokenProblem} for claims that are missing, too long or of the wrong shape
   */
  of(claims: JsonObject, config: IssuerConfig): Identity {
    const client = clientOf(claims)
    const user = userOf(claims, config, client)
    const scopes = scopesOf(claims, config)
    const roles = rolesOf(claims, config)
    const tenant = tenantOf(claims, config)
    const actors = actorsOf(claims['act'], config, this.#nameOf)
    const who = [config.issuer, tenant ?? null, user, client ?? null, actors]
    const aliases = aliasesOf(user, config.issuer, (path) => claimAt(claims, path), this.#issuers)
    const key = JSON.stringify([...who, roles, scopes, aliases])
    const known = this.#known.get(key)
    if (known) return known
    const caller = defineCaller({
      user,
      roles,
      scopes,
      ...(tenant === undefined ? {} : { tenant }),
      ...(client === undefined ? {} : { client }),
      ...(aliases.length === 0 ? {} : { aliases }),
      ...(actors.length === 0 ? {} : { actor: actors[0], actChain: actors }),
    })
    const identity = {
      id: hash('sha256', JSON.stringify(who), 'hex'),
      caller,
      scopes,
      ...(client === undefined ? {} : { client }),
    }
    remember(this.#known, key, identity, MAX_IDENTITIES)
    return identity
  }
}

/** RFC 9068 §2.2 and OpenID Connect. Entra ID writes `appid` in its first version, and Okta `cid`. */
export const CLIENT_CLAIMS = ['client_id', 'azp', 'appid', 'cid'] as const

function clientOf(claims: JsonObject): string | undefined {
  const name = CLIENT_CLAIMS.find((one) => claims[one] !== undefined)
  return name === undefined ? undefined : textOf(claims, name)
}

const MAX_VALUES = 5

/** Returns why a token brings no roles, although a claim should bring them; `undefined` if it brings some. */
export function lackOf(claims: JsonObject, { roles = [] }: Caller, config: IssuerConfig): string | undefined {
  const { roles: path } = config.claims
  if (path === undefined || roles.length > 0) return undefined
  const values = rolesAt(claims, path)
  return values.length === 0
    ? `the token has no value of the claim "${path}": ${heldBy(claims)}`
    : `no value of the claim "${path}" is in "roles": ${JSON.stringify(values.slice(0, MAX_VALUES))}`
}

const MAX_LABEL = 256

/** Returns what people call the user, for pages. It identifies nobody, so nothing may be decided by it. */
export function labelOf({ name, preferred_username: account, email }: JsonObject): string | undefined {
  return [name, account, email].find(
    (one): one is string => typeof one === 'string' && one !== '' && one.length <= MAX_LABEL,
  )
}

function userOf(
  claims: JsonObject,
  { name, claims: { user }, users }: IssuerConfig,
  client: string | undefined,
): string {
  checkVerified(claims, user)
  const subject = textAt(claims, user)
  const isClient = subject === undefined || (client !== undefined && subject === client)
  if (!isClient) return users.get(subject) ?? `${name}/${subject}`
  if (client === undefined)
    throw new TokenProblem('claims', `the token has neither the claim "${user}" nor "client_id": ${heldBy(claims)}`)
  return users.get(client) ?? clientName(name, client)
}

/** The name of an issuer contains no colon, so this name never equals that of a subject. */
function clientName(issuer: string, client: string): string {
  return `${issuer}:client/${client}`
}

function tenantOf(claims: JsonObject, { claims: { tenant: name }, tenant }: IssuerConfig): string | undefined {
  if (name === undefined) return tenant
  const value = textAt(claims, name)
  if (value === undefined)
    throw new TokenProblem('claims', `the token lacks the claim "${name}" of the tenant: ${heldBy(claims)}`)
  return value
}

/** Returns the names of the claims that a token has, as the end of a message. */
function heldBy(claims: JsonObject): string {
  return `it has the claims ${namesOf(claims)}`
}

/**
 * Returns the roles: the values of the claim, or what `roles` gives for them.
 *
 * @throws {TokenProblem} if the issuer left the values out. A rule about a role would not see it.
 */
function rolesOf(claims: JsonObject, { claims: { roles: path }, roles: mapped }: IssuerConfig): readonly string[] {
  if (path === undefined) return []
  checkVerified(claims, path)
  checkComplete(claims, path)
  const values = rolesAt(claims, path)
  return mapped ? [...new Set(values.flatMap((value) => mapped.get(value) ?? []))] : values
}

/** OpenID Connect Core §5.1: an address that is not verified may be anybody's. */
function checkVerified(claims: JsonObject, path: string): void {
  const { email_verified: isVerified = true } = claims
  if (path !== 'email' || isVerified === true || isVerified === 'true') return
  throw new TokenProblem('claims', 'the claim "email" is not verified: "email_verified" is not true')
}

/** OpenID Connect Core §5.6.2: the values of a claim may be elsewhere. Entra ID does this for people in many groups. */
function checkComplete(claims: JsonObject, path: string): void {
  const { _claim_names: elsewhere, hasgroups: hasGroups } = claims
  const isElsewhere = isObject(elsewhere) && Object.keys(elsewhere).some((name) => `${path}.`.startsWith(`${name}.`))
  const isLeftOut = isElsewhere || (path === 'groups' && (hasGroups === true || hasGroups === 'true'))
  if (!isLeftOut || claimAt(claims, path) !== undefined) return
  throw new TokenProblem(
    'claims',
    `the person is in too many groups, so the token leaves out the claim "${path}": use app roles (claims: { roles: roles }), or let the token have only the groups that are assigned to the application`,
  )
}

/** RFC 9068 §2.2.3: `scope` is a space-separated text. Some issuers use a list, or the claim `scp`. */
function scopesOf(claims: JsonObject, { claims: { scopes } }: IssuerConfig): readonly string[] {
  if (scopes !== undefined) return listAt(claims, scopes)
  return listAt(claims, claims['scope'] === undefined ? 'scp' : 'scope')
}

/**
 * Returns the actors, the current one first (RFC 8693 §4.1).
 *
 * @throws {TokenProblem} for a chain that is too long to be kept whole
 */
function actorsOf(act: unknown, config: IssuerConfig, nameOf: NameOfClient): readonly string[] {
  const actors: string[] = []
  for (let link = act; link !== undefined; link = link['act']) {
    if (!isObject(link)) throw new TokenProblem('claims', 'the claim "act" is not an object')
    if (actors.length === MAX_ACTORS)
      throw new TokenProblem('claims', `the claim "act" has more than ${MAX_ACTORS} actors`)
    actors.push(actorOf(link, config, nameOf))
  }
  return actors
}

function actorOf(link: JsonObject, { name, issuer: own }: IssuerConfig, nameOf: NameOfClient): string {
  const issuer = textOf(link, 'iss') ?? own
  const known = issuer === own ? name : (nameOf(issuer) ?? issuer)
  const subject = textOf(link, 'sub')
  if (subject !== undefined) return `${known}/${subject}`
  const client = textOf(link, 'client_id')
  if (client === undefined)
    throw new TokenProblem('claims', 'an actor in the claim "act" has neither "sub" nor "client_id"')
  return clientName(known, client)
}
