import { type NamingIssuer, otherNames } from '../../config/other-names.ts'

/** The claims that name the same person in the tokens of every client. Entra ID gives each client another `sub`. */
const STABLE = ['sub', 'oid'] as const
const MAX_TEXT = 256

/**
 * Returns the other names of the person of a token, so that nobody approves a call of their own under another name.
 *
 * `claimAt` returns the value of a claim by its path.
 */
export function aliasesOf(
  user: string,
  issuer: string,
  claimAt: (path: string) => unknown,
  issuers: readonly NamingIssuer[],
): readonly string[] {
  const paths = new Set([...issuers.flatMap((one) => (one.issuer === issuer ? [one.claims.user] : [])), ...STABLE])
  const subjects = [...paths].flatMap((claim) => {
    const value = claimAt(claim)
    return typeof value === 'string' && value !== '' && value.length <= MAX_TEXT ? [{ issuer, claim, value }] : []
  })
  return otherNames(user, issuers, subjects)
}
