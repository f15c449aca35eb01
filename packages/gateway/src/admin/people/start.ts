import type { Room } from '../../heart/room.ts'
import type { Heart } from '../../heart/heart.ts'
import type { WarningRow } from '../../model/rows.ts'
import { KEY_ISSUER } from '../../auth/people.ts'

/** The warnings about people. */
export const people: Room = {
  name: 'people',
  open: (heart) => ({ warnings: () => unseenRoles(heart) }),
}

/** A role that a condition names, such as `'admin' in caller.roles`. */
const NAMED_ROLE = /(["'])((?:(?!\1).)+)\1\s+in\s+caller\.roles/g

type SeenHeart = Pick<Heart, 'config' | 'revisions' | 'redact'> & { readonly door: Pick<Heart['door'], 'people'> }

/**
 * Returns a warning for each role that a policy names, and that no caller of the file, no `oidc.roles` and no latest token
 * has. None if no tokens bring roles, or if nobody has signed in yet.
 */
export function unseenRoles({ config, revisions, redact, door }: SeenHeart): readonly WarningRow[] {
  if (!config.oauth && !config.oidc) return []
  const signedIn = door.people.list().filter(({ issuer }) => issuer !== KEY_ISSUER)
  if (signedIn.length === 0) return []
  const { callers, policy, apps = [] } = revisions.current
  const known = new Set([
    ...callers.flatMap(({ caller }) => caller.roles ?? []),
    ...[...(config.oidc?.roles.values() ?? [])].flat(),
    ...signedIn.flatMap(({ roles, consoleRoles = [] }) => [...roles, ...consoleRoles]),
  ])
  const since = new Date(Math.min(...signedIn.map(({ firstSeenAt }) => firstSeenAt))).toISOString()
  const named = new Map<string, string>()
  const policies: (readonly [path: string, policy: unknown])[] = policy.map((one, i) => [`policy[${i}]`, one])
  for (const app of apps) policies.push(...app.policy.map((one, i) => [`apps.${app.name}.policy[${i}]`, one] as const))
  for (const [path, one] of policies)
    for (const text of textsIn(one))
      for (const [, , role = ''] of text.matchAll(NAMED_ROLE)) if (!named.has(role)) named.set(role, path)
  return [...named].flatMap(([role, path]): readonly WarningRow[] => {
    if (known.has(role)) return []
    const text = `the role ${JSON.stringify(role)} is in no token, no caller of the file and no "oidc.roles"; people are recorded since ${since}`
    return [{ code: 'role_unseen', path, text: redact.redactText(text) }]
  })
}

/** Returns every text in a value. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
