/** Why a server cannot be connected now. The message is for people and never holds a token, code or secret. */
export class ConnectProblem extends Error {
  override readonly name = 'ConnectProblem'
}

/** The authorization server no longer accepts what a connection has: it is over. */
export class ConnectionRefused extends Error {
  override readonly name = 'ConnectionRefused'
}
