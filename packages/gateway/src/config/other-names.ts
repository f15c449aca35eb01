import type { GatewayConfig } from './config.ts'
import type { IssuerConfig } from './oauth.ts'

/** What decides the names of people who sign in with an issuer. */
export type NamingIssuer = Pick<IssuerConfig, 'issuer' | 'name' | 'users' | 'claims'>

/** A person at an issuer, by the value of one claim. */
interface IssuerSubject {
  readonly issuer: string
  readonly claim: string
  readonly value: string
}

const MAX_NAMES = 32

interface SignInConfig {
  readonly oauth?: GatewayConfig['oauth'] | undefined
  readonly oidc?: GatewayConfig['oidc'] | undefined
}

/** Returns all issuers of a configuration that name people. */
export function namingIssuers({ oauth, oidc }: SignInConfig): readonly NamingIssuer[] {
  return [...(oauth?.issuers ?? []), ...(oidc ? [oidc.server] : [])]
}

/**
 * Returns the other names of a person: those that any configuration of the same issuer gives to the same subject, such as
 * with and without `users`. Sorted, and at most 32.
 */
export function otherNames(
  user: string | undefined,
  issuers: readonly NamingIssuer[],
  subjects: readonly IssuerSubject[] = [],
): readonly string[] {
  const names = new Set(subjects.flatMap((one) => namesOf(one, issuers)))
  if (user !== undefined) names.add(user)
  // A set that grows while it is read: each new name may belong to further subjects.
  for (const name of names) {
    if (names.size > MAX_NAMES) break
    for (const subject of subjectsOf(name, issuers)) for (const other of namesOf(subject, issuers)) names.add(other)
  }
  if (user !== undefined) names.delete(user)
  return [...names].toSorted().slice(0, MAX_NAMES)
}

/** Returns the callers of the file with the names under which the same people sign in. Their made keys and runs have them too. */
export function withOtherNames(config: Pick<GatewayConfig, 'callers' | 'oauth' | 'oidc'>): GatewayConfig['callers'] {
  const issuers = namingIssuers(config)
  if (issuers.length === 0) return config.callers
  return config.callers.map((one) => {
    const aliases = otherNames(one.caller.user, issuers)
    return aliases.length === 0 ? one : { ...one, caller: { ...one.caller, aliases } }
  })
}

function subjectsOf(name: string, issuers: readonly NamingIssuer[]): readonly IssuerSubject[] {
  return issuers.flatMap(({ issuer, name: prefix, users, claims }) => {
    const values = [...users].flatMap(([value, user]) => (user === name ? [value] : []))
    if (name.startsWith(`${prefix}/`)) values.push(name.slice(prefix.length + 1))
    return values.map((value) => ({ issuer, claim: claims.user, value }))
  })
}

/** An actor of a token is named by its subject, whatever claim names users, and never by `users`. */
function namesOf({ issuer, claim, value }: IssuerSubject, issuers: readonly NamingIssuer[]): readonly string[] {
  return issuers.flatMap((one) => {
    if (one.issuer !== issuer) return []
    const user = one.claims.user === claim ? one.users.get(value) : undefined
    return [`${one.name}/${value}`, ...(user === undefined ? [] : [user])]
  })
}
