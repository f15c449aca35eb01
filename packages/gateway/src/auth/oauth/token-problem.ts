/** Why a token is refused, for the operator. The sender does not receive the reason. */
const TOKEN_REASONS = [
  'malformed',
  'issuer',
  'algorithm',
  'key',
  'signature',
  'expired',
  'early',
  'kind',
  'bound',
  'claims',
  'audience',
  'inactive',
  'logged_out',
  'issuer_down',
] as const

export type TokenReason = (typeof TOKEN_REASONS)[number]

/** A token that the gateway does not accept. */
export class TokenProblem extends Error {
  override readonly name = 'TokenProblem'
  readonly reason: TokenReason

  constructor(reason: TokenReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
