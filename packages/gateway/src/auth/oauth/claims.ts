import { hash } from 'node:crypto'
import { type Caller, defineCaller } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { IssuerConfig } from '../../config/oauth.ts'
import type { NamingIssuer } from '../../config/other-names.ts'
import { aliasesOf } from './aliases.ts'
import { remember } from './remember.ts'
import { TokenProblem } from './token-problem.ts'

/** The user or client that a token was issued for. */
export interface Identity {
  /** The same for every token that the client gets for this user. */
  readonly id: string
  readonly caller: Caller
  readonly client?: string
  readonly scopes: readonly string[]
}

const MAX_TEXT = 256
const MAX_LIST = 256
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
    const client = textOf(claims, 'client_id') ?? textOf(claims, 'azp')
    const user = userOf(claims, config, client)
    const scopes = scopesOf(claims, config)
    const roles = config.claims.roles === undefined ? [] : rolesAt(claims, config.claims.roles)
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

function userOf(
  claims: JsonObject,
  { name, claims: { user }, users }: IssuerConfig,
  client: string | undefined,
): string {
  const subject = textAt(claims, user)
  const isClient = subject === undefined || (client !== undefined && subject === client)
  if (!isClient) return users.get(subject) ?? `${name}/${subject}`
  if (client === undefined)
    throw new TokenProblem('claims', `the token has neither the claim "${user}" nor "client_id"`)
  return users.get(client) ?? clientName(name, client)
}

/** The name of an issuer contains no colon, so this name never equals that of a subject. */
function clientName(issuer: string, client: string): string {
  return `${issuer}:client/${client}`
}

function tenantOf(claims: JsonObject, { claims: { tenant: name }, tenant }: IssuerConfig): string | undefined {
  if (name === undefined) return tenant
  const value = textAt(claims, name)
  if (value === undefined) throw new TokenProblem('claims', `the token lacks the claim "${name}" of the tenant`)
  return value
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

/** Returns the value of a claim by its name, or else by a path such as `realm_access.roles`. */
function claimAt(claims: JsonObject, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const part of path.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, part)) return undefined
    value = value[part]
  }
  return value
}

function textOf(claims: JsonObject, name: string): string | undefined {
  return checkText(Object.hasOwn(claims, name) ? claims[name] : undefined, name)
}

function textAt(claims: JsonObject, path: string): string | undefined {
  return checkText(claimAt(claims, path), path)
}

function checkText(value: unknown, name: string): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT)
    throw new TokenProblem('claims', `the claim "${name}" is not a text of 1 to ${MAX_TEXT} characters`)
  return value
}

/** Returns a list of texts. A single text is split at its spaces. */
function listAt(claims: JsonObject, path: string): readonly string[] {
  const value = claimAt(claims, path)
  return toList(typeof value === 'string' ? value.split(' ').filter((item) => item !== '') : value, path)
}

/**
 * Returns a list of texts. A single text is not split: names of groups may contain spaces, and "Former admin" is not
 * "admin".
 */
function rolesAt(claims: JsonObject, path: string): readonly string[] {
  const value = claimAt(claims, path)
  return toList(typeof value === 'string' ? [value] : value, path)
}

function toList(items: unknown, path: string): readonly string[] {
  if (items === undefined) return []
  if (!Array.isArray(items) || items.length > MAX_LIST)
    throw new TokenProblem('claims', `the claim "${path}" is not a list of at most ${MAX_LIST} texts`)
  return [...new Set(items.map((item) => checkText(item, path) as string))]
}
