/** The person and the session at the issuer that a login or a token belongs to. */
export interface IssuedTo {
  readonly sub?: string
  /** OpenID Connect Front-Channel Logout §3: unique at the issuer. */
  readonly sid?: string
}

/** The end of a session at an issuer, or of all sessions of a person. */
export interface ReportedLogout extends IssuedTo {
  /** The name of the issuer. */
  readonly issuer: string
  /** When the issuer ended them, in wall-clock milliseconds. */
  readonly atMs: number
}

/**
 * Returns whether a logout is about a login or a token.
 *
 * A logout of one session leaves other sessions of the person alone. If the session of a token is unknown, the logout is
 * about it.
 */
export function isAbout({ sub, sid }: IssuedTo, of: IssuedTo): boolean {
  if (sid !== undefined && of.sid !== undefined) return sid === of.sid
  return sub !== undefined && sub === of.sub
}
