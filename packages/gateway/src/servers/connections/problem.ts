/** Why a server cannot be connected now. The message is for people and never contains a token, code or secret. */
export class ConnectProblem extends Error {
  override readonly name = 'ConnectProblem'
  /** The line of the file that solves it, if there is one, such as `servers.mail.oauth.issuer: <url>`. */
  readonly mend: string | undefined

  constructor(message: string, { mend, ...options }: ErrorOptions & { readonly mend?: string } = {}) {
    super(message, options)
    this.mend = mend
  }
}

/** The authorization server no longer accepts the tokens of a connection, so the connection ends. */
export class ConnectionRefused extends Error {
  override readonly name = 'ConnectionRefused'
}
