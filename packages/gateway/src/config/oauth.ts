import { z } from 'zod'
import type { ProxyRules } from '../util/proxy-rules.ts'
import { isLoopback } from './loopback.ts'

/** The tokens that the gateway accepts, besides the keys of `callers`. */
export interface OAuthConfig {
  readonly issuers: readonly IssuerConfig[]
  /** The scopes that a client should request first. */
  readonly scopes: readonly string[]
  /** Scopes whose tools are listed to callers who lack them. */
  readonly stepUp: readonly string[]
}

/** An authorization server whose tokens the gateway accepts. */
export interface IssuerConfig {
  /** The exact `iss` of its tokens. */
  readonly issuer: string
  /** Other values of `iss` that its tokens have. */
  readonly issuerAliases?: readonly string[]
  /** The prefix of its users' names: `<name>/<sub>`. */
  readonly name: string
  /** Further audiences. A token for one of them is valid at every endpoint. */
  readonly audiences: readonly string[]
  readonly algorithms: readonly string[]
  /** Default: the URL in the issuer's metadata. */
  readonly jwksUri?: string
  readonly clockSkewMs: number
  readonly claims: ClaimsConfig
  /** The roles for each value of the claim `claims.roles`. Absent: the values are the roles. */
  readonly roles?: ReadonlyMap<string, readonly string[]>
  /** The tenant of all its users. */
  readonly tenant?: string
  /** The users of some subjects. Other subjects are named `<name>/<sub>`. */
  readonly users: ReadonlyMap<string, string>
  readonly introspection?: IntrospectionConfig
  /** How it is reached. Absent: directly. */
  readonly proxy?: ProxyRules
}

/** The names of the claims that the gateway reads. */
interface ClaimsConfig {
  readonly user: string
  readonly scopes?: string
  readonly roles?: string
  readonly tenant?: string
}

/** Asks the authorization server about tokens (RFC 7662). */
export interface IntrospectionConfig {
  /** Default: the URL in the issuer's metadata. */
  readonly endpoint?: string
  readonly clientId: string
  readonly clientSecret: string
  /** `opaque`: only tokens that are not a JWT. `always`: JWTs too, so that revoked ones are refused. */
  readonly tokens: 'opaque' | 'always'
  /** How long an answer is cached. */
  readonly cacheMs: number
}

/** Algorithms with a private key. A shared secret is not allowed, as it could be the public key. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'Ed25519',
  'EdDSA',
] as const

export const DEFAULT_SKEW_MS = 30_000
const MAX_SKEW_MS = 300_000
export const MAX_INTROSPECTION_MS = 30_000
const MAX_ISSUERS = 50

export const text = z.string().min(1, 'text that is not empty').max(1024, 'at most 1024 characters')

/** RFC 8414 §2, but http is allowed on loopback for tests. */
export const issuerUrl = z
  .string()
  .refine(isSecureUrl, 'an https URL without query and fragment, such as https://login.example.com (http on loopback)')

const url = z.string().refine((value) => isSecureUrl(value, true), 'an https URL (http on loopback)')

/** RFC 6749 §3.3. */
export const scope = z
  .string()
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, 'a scope: printable characters without spaces')

export const claim = text.describe('The name of a claim, or a path such as realm_access.roles.')

const introspectionSchema = z
  .strictObject({
    endpoint: url.describe('Default: that of its metadata.').exactOptional(),
    clientId: text,
    clientSecret: text.describe('Prefer ${VAR}.'),
    tokens: z
      .enum(['opaque', 'always'])
      .describe(
        'opaque: only tokens that are no JWT. always: JWTs too, so that revoked ones are refused. Default: opaque.',
      )
      .exactOptional(),
    cacheMs: z
      .int()
      .min(0, `a number of milliseconds from 0 to ${MAX_INTROSPECTION_MS}`)
      .max(MAX_INTROSPECTION_MS, `a number of milliseconds from 0 to ${MAX_INTROSPECTION_MS}`)
      .describe(`How long an answer holds. Default: ${MAX_INTROSPECTION_MS}.`)
      .exactOptional(),
  })
  .describe('Asks the authorization server about tokens (RFC 7662), for tokens that are no JWT and for revoked ones.')

/** The fields of an issuer. */
export const issuerFields = {
  issuer: issuerUrl.describe('Its issuer identifier, exactly as in the "iss" of its tokens and in its metadata.'),
  issuerAliases: z
    .array(text)
    .max(5, 'at most 5 aliases')
    .describe(
      'Other values of "iss" that its tokens have, such as https://sts.windows.net/<tenant id>/ of Entra ID. Default: none.',
    )
    .exactOptional(),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{0,63}$/, 'lower-case letters, digits, "." and "-"')
    .describe('Begins the names of its users: <name>/<sub>. Default: the host of the issuer.')
    .exactOptional(),
  audiences: z
    .array(text)
    .max(20, 'at most 20 audiences')
    .describe(
      'Further audiences. A token for one of them opens every endpoint. Default: none, only <publicUrl>/mcp[/<app>].',
    )
    .exactOptional(),
  algorithms: z
    .array(z.enum(ALGORITHMS))
    .min(1, 'at least one algorithm')
    .describe('Accepted signatures. Default: all of these.')
    .exactOptional(),
  jwksUri: url.describe('Where its keys are. Default: the "jwks_uri" of its metadata.').exactOptional(),
  clockSkewMs: z
    .int()
    .min(0, `a number of milliseconds from 0 to ${MAX_SKEW_MS}`)
    .max(MAX_SKEW_MS, `a number of milliseconds from 0 to ${MAX_SKEW_MS}`)
    .describe(`How far its clock may be off. Default: ${DEFAULT_SKEW_MS}.`)
    .exactOptional(),
  claims: z
    .strictObject({
      user: claim.describe('The claim of the user. Default: sub.').exactOptional(),
      scopes: claim.describe('The claim of the scopes. Default: scope, or scp.').exactOptional(),
      roles: claim.describe('The claim of the roles. Default: none, so tokens bring no roles.').exactOptional(),
      tenant: claim.describe('The claim of the tenant. Tokens without it are refused.').exactOptional(),
    })
    .describe('Which claims make the caller.')
    .exactOptional(),
  roles: z
    .record(text, z.array(text))
    .describe(
      'The roles for each value of the claim "claims.roles", such as { 5f3c…: [admin] }. Other values bring no role. Default: the values are the roles.',
    )
    .exactOptional(),
  tenant: text.describe('The tenant of all its users, in place of a claim.').exactOptional(),
  users: z
    .record(text, text)
    .describe('Users by subject, where they are not <name>/<sub>: a person who also has a key, for example.')
    .exactOptional(),
  introspection: introspectionSchema.exactOptional(),
}

const issuerSchema = z.strictObject(issuerFields)

export const oauthSchema = z
  .strictObject({
    issuers: z
      .array(issuerSchema)
      .min(1, 'at least one issuer')
      .max(MAX_ISSUERS, `at most ${MAX_ISSUERS} issuers`)
      .describe('The authorization servers whose tokens are accepted.'),
    scopes: z
      .array(scope)
      .max(100, 'at most 100 scopes')
      .describe('What clients should ask for first. Public.')
      .exactOptional(),
    stepUp: z
      .array(scope)
      .max(100, 'at most 100 scopes')
      .describe(
        'Tools that lack nothing but these scopes are listed, and a call asks the client to get them. Public. Default: none.',
      )
      .exactOptional(),
  })
  .describe(
    'OAuth 2.1: access tokens that open /mcp, beside the keys of callers. Each endpoint is a resource of its own.',
  )

export type IssuerInput = z.infer<typeof issuerSchema>

/** Returns whether a URL is https, or http on loopback, and has no credentials and no fragment. */
export function isSecureUrl(value: string, mayHaveQuery = false): boolean {
  const parsed = URL.parse(value)
  if (!parsed || parsed.username !== '' || parsed.password !== '' || value.includes('#')) return false
  if (!mayHaveQuery && value.includes('?')) return false
  return (
    parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopback(parsed.hostname.replace(/^\[|\]$/g, '')))
  )
}
