import type { GatewayConfig } from '../config.ts'
import { isLoopback } from '../loopback.ts'
import {
  ALGORITHMS,
  DEFAULT_SKEW_MS,
  type IssuerConfig,
  type IssuerInput,
  MAX_INTROSPECTION_MS,
  oauthSchema,
} from '../oauth.ts'
import { oidcSchema } from '../oidc.ts'
import { found, has, type Reading } from '../reading.ts'
import { plain, type Section } from '../section.ts'
import { proxy } from './proxy.ts'

/** Issuers and their names are distinct. */
export const oauth: Section<GatewayConfig['oauth']> = { schema: oauthSchema, read: readOAuth }

/** A user of `oidc` equals a user of `oauth` only if the issuer is the same. */
export const oidc: Section<GatewayConfig['oidc']> = { schema: oidcSchema, read: readOidc }

function readOAuth(reading: Reading, key: string): GatewayConfig['oauth'] {
  const { source } = reading
  const input = plain(oauthSchema).read(reading, key)
  if (!input) return undefined
  checkPublicUrl(source, 'oauth', 'tokens are for a URL that clients know')
  const issuers = input.issuers.map((one) => toIssuer(reading, one))
  for (const [i, own] of issuers.entries()) {
    const { issuer, name, tenant, claims, introspection, roles } = own
    const at = ['oauth', 'issuers', i]
    const taken = namesOf(own).find((iss) => issuers.some((other) => other !== own && namesOf(other).includes(iss)))
    if (taken !== undefined && taken !== issuer)
      source.report([...at, 'issuerAliases'], `found ${JSON.stringify(taken)} of another issuer, expected its own`)
    if (roles && claims.roles === undefined)
      source.report([...at, 'roles'], 'found "roles" without "claims.roles", expected the claim whose values these are')
    if (issuers.findIndex((one) => one.issuer === issuer) < i)
      source.report([...at, 'issuer'], `found ${JSON.stringify(issuer)} a second time, expected each issuer once`)
    else if (issuers.findIndex((one) => one.name === name) < i)
      source.report(at, `has the name ${JSON.stringify(name)} of an earlier issuer, expected a "name" of its own`)
    if (tenant !== undefined && claims.tenant !== undefined)
      source.report([...at, 'tenant'], 'found "tenant" beside "claims.tenant", expected one of them')
    if (introspection?.tokens === 'opaque' && issuers.findIndex((one) => one.introspection) < i)
      source.report(
        [...at, 'introspection'],
        'found a second one for tokens that are no JWT, expected "tokens: always": such a token does not say whose it is, and only the first issuer is asked',
      )
  }
  return { issuers, scopes: input.scopes ?? [], stepUp: input.stepUp ?? [] }
}

function readOidc(reading: Reading, key: string): GatewayConfig['oidc'] {
  const { source } = reading
  const input = plain(oidcSchema).read(reading, key)
  if (!input) return undefined
  const { clientId, clientSecret, scopes = [], roles, claims = {}, ...server } = input
  checkPublicUrl(source, 'oidc', 'people come back to a URL that their browser knows')
  if (Object.keys(roles).length === 0)
    source.report(['oidc', 'roles'], 'found no roles, expected at least one: nobody else may log in')
  if (server.tenant !== undefined && claims.tenant !== undefined)
    source.report(['oidc', 'tenant'], 'found "tenant" beside "claims.tenant", expected one of them')
  const issuer = toIssuer(reading, { ...server, claims: { roles: 'groups', ...claims } })
  for (const other of reading.of(oauth)?.issuers ?? []) checkNames(source, issuer, other)
  return {
    server: issuer,
    clientId,
    ...(clientSecret === undefined ? {} : { clientSecret }),
    scopes: [...new Set(['openid', ...scopes])],
    roles: new Map(Object.entries(roles)),
  }
}

/** Returns every `iss` of an issuer. */
function namesOf({ issuer, issuerAliases = [] }: IssuerConfig): readonly string[] {
  return [issuer, ...issuerAliases]
}

/**
 * If two issuers shared a name, their users would be mixed. If one issuer had two names, a person could approve their
 * own calls.
 */
function checkNames(source: Reading['source'], own: IssuerConfig, other: IssuerConfig): void {
  const { name } = own
  const isSame = namesOf(own).some((iss) => namesOf(other).includes(iss))
  if (isSame === (name === other.name)) return
  const problem =
    name === other.name
      ? `has the name ${JSON.stringify(name)} of another issuer in "oauth", expected a "name" of its own`
      : `has the name ${JSON.stringify(name)}, expected ${JSON.stringify(other.name)} as in "oauth": the same people`
  source.report(['oidc'], problem)
}

/** Reports a missing `publicUrl` if the gateway listens beyond loopback. */
export function checkPublicUrl(source: Reading['source'], key: string, why: string): void {
  const host = source.get(['listen', 'host'])?.value
  if (typeof host !== 'string' || isLoopback(host) || has(source, ['publicUrl'])) return
  source.report(
    ['listen', 'host'],
    `${found(source, ['listen', 'host'])} with "${key}", expected "publicUrl" beside it: ${why}`,
  )
}

function toIssuer(
  reading: Reading,
  { introspection, users = {}, claims = {}, roles, ...input }: IssuerInput,
): IssuerConfig {
  const outbound = reading.of(proxy)
  return {
    ...input,
    name: input.name ?? new URL(input.issuer).hostname.replace(/^\[|\]$/g, '').replaceAll(':', '.'),
    audiences: input.audiences ?? [],
    algorithms: input.algorithms ?? ALGORITHMS,
    clockSkewMs: input.clockSkewMs ?? DEFAULT_SKEW_MS,
    claims: { user: 'sub', ...claims },
    users: new Map(Object.entries(users)),
    ...(roles && { roles: new Map(Object.entries(roles)) }),
    ...(outbound && { proxy: outbound }),
    ...(introspection && {
      introspection: { tokens: 'opaque', cacheMs: MAX_INTROSPECTION_MS, ...introspection },
    }),
  }
}
