import type { Caller } from '@toolgate/core'
import type { Credential } from '../credential.ts'
import type { Identity } from './claims.ts'

/** What a token says beside the identity. */
interface TokenFacts {
  readonly issuer: string
  readonly expiresAtMs: number
  readonly label: string | undefined
}

/** A credential that keeps the digest of its token. */
export class TokenCredential implements Credential {
  readonly for = 'mcp'
  readonly id: string
  readonly caller: Caller
  readonly issuer: string
  readonly expiresAtMs: number
  readonly scopes: readonly string[]
  declare readonly client?: string
  declare readonly label?: string
  readonly #digest: string

  constructor(digest: string, { id, caller, client, scopes }: Identity, { issuer, expiresAtMs, label }: TokenFacts) {
    this.id = id
    this.caller = caller
    this.issuer = issuer
    this.expiresAtMs = expiresAtMs
    this.scopes = scopes
    if (client !== undefined) this.client = client
    if (label !== undefined) this.label = label
    this.#digest = digest
    Object.freeze(this)
  }

  /** Returns the digest of the token, if the credential comes from one. */
  static digestOf(credential: Credential): string | undefined {
    return credential instanceof TokenCredential ? credential.#digest : undefined
  }
}
