/** Why a server cannot be connected now. The message is for people and never contains a token, code or secret. */
export class ConnectProblem extends Error {
  override readonly name = 'ConnectProblem'
}

/** The authorization server no longer accepts the tokens of a connection, so the connection ends. */
export class ConnectionRefused extends Error {
  override readonly name = 'ConnectionRefused'
}
