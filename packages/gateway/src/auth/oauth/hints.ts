import { isObject, type JsonObject } from '@toolgate/values/json'
import type { TokenReason } from './token-problem.ts'

interface ProviderHint {
  readonly reason: TokenReason
  /** Whether the claims are those of the provider that the hint is about. They are not verified. */
  readonly fits: (claims: JsonObject) => boolean
  readonly text: string
}

const isEntra = (claims: JsonObject) => typeof claims['tid'] === 'string'
const isOkta = (claims: JsonObject) => typeof claims['cid'] === 'string'
const isKeycloak = (claims: JsonObject) => isObject(claims['realm_access']) || claims['typ'] === 'Bearer'

/** What to change at providers in common use. The first hint that fits is shown. */
const HINTS: readonly ProviderHint[] = [
  {
    reason: 'audience',
    fits: isKeycloak,
    text: 'at Keycloak, add a mapper of the type Audience to a scope of the client, with this address as its custom audience',
  },
  {
    reason: 'audience',
    fits: isEntra,
    text: 'at Entra ID, the audience is the application that stands for this gateway: list it in "audiences", if it stands for nothing else',
  },
  {
    reason: 'audience',
    fits: isOkta,
    text: 'at Okta, the audience is that of the authorization server: list it in "audiences", if the server is for this gateway only',
  },
  {
    reason: 'audience',
    fits: () => true,
    text: 'the issuer must write this address into the token; an audience that stands for this gateway only may be listed in "audiences"',
  },
  {
    reason: 'key',
    fits: isOkta,
    text: 'only Okta itself can check tokens of its org authorization server: use a custom one (Security > API), whose issuer ends in /oauth2/default or another name',
  },
  {
    reason: 'issuer',
    fits: (claims) => isEntra(claims) && claims['ver'] === '1.0',
    text: 'Entra ID issues tokens of its first version for this application: set requestedAccessTokenVersion to 2 in its manifest, or list this issuer in "issuerAliases"',
  },
]

/** Returns what to change at the provider, as the end of a line of the log; an empty text if nothing is known. */
export function hintFor(reason: TokenReason, claims: JsonObject): string {
  const hint = HINTS.find((one) => one.reason === reason && one.fits(claims))
  return hint ? `; ${hint.text}` : ''
}

/** Google's access tokens begin so. */
const GOOGLE = /^ya29\./

/** Returns why a token that is no JWT cannot be checked, if its provider is known. */
export function opaqueHint(token: string): string | undefined {
  return GOOGLE.test(token)
    ? 'only Google itself can check its access tokens: give people keys for their clients, or let another issuer sign their tokens'
    : undefined
}
