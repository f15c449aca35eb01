import { type Caller, sha256Hex } from '@toolgate/core'

/**
 * Gives who a caller is, as one text: tenant, user, agent and session. Roles, scopes and the chat are not of it: they
 * say what one may, which is decided anew each time.
 */
export function identityOf({ tenant, user, agent, session }: Caller): string {
  return lengthPrefixed([tenant, user, agent, session])
}

/** Gives the key of a caller's session within its tenant; `undefined` where there is none. */
export function sessionKeyOf({ tenant, session }: Caller): string | undefined {
  if (session === undefined) return undefined
  // Hashed, as a store takes no key of any length and content.
  return `planner:${sha256Hex(lengthPrefixed([tenant, session]))}`
}

/** So that no two lists have one text, whatever stands in them. An absent part is not an empty one. */
function lengthPrefixed(parts: readonly (string | undefined)[]): string {
  return parts.map((part) => (part === undefined ? '-' : `${part.length}:${part}`)).join(',')
}
