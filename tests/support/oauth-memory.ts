import type { OAuthClientProvider } from '@modelcontextprotocol/client'

/** What an MCP client keeps of its authorization. It registers itself, and opens no browser. */
export class OAuthMemory implements OAuthClientProvider {
  readonly redirectUrl = 'http://127.0.0.1:9/callback'
  readonly #kept = new Map<string, unknown>()
  visited: URL | undefined

  readonly clientMetadata = {
    client_name: 'test',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }

  clientInformation() {
    return this.#kept.get('client') as never
  }

  saveClientInformation(client: unknown) {
    this.#kept.set('client', client)
  }

  tokens() {
    return this.#kept.get('tokens') as never
  }

  saveTokens(tokens: unknown) {
    this.#kept.set('tokens', tokens)
  }

  saveCodeVerifier(verifier: string) {
    this.#kept.set('verifier', verifier)
  }

  codeVerifier() {
    return this.#kept.get('verifier') as string
  }

  redirectToAuthorization(url: URL) {
    this.visited = url
  }
}
