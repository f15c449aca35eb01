import type { Room } from '../../heart/room.ts'
import type { Heart } from '../../heart/heart.ts'
import type { WarningRow } from '../../model/rows.ts'
import { KEY_ISSUER } from '../../auth/people.ts'
import { namedRoles } from '../../config/named-roles.ts'

/** The warnings about people. */
export const people: Room = {
  name: 'people',
  open: (heart) => ({ warnings: () => unseenRoles(heart) }),
}

type SeenHeart = Pick<Heart, 'config' | 'revisions' | 'redact'> & { readonly door: Pick<Heart['door'], 'people'> }

/**
 * Returns a warning for each role that a rule names, and that no caller of the file, no `oidc.roles` and no latest token
 * has. None if no tokens bring roles, or if nobody has signed in yet.
 */
export function unseenRoles({ config, revisions, redact, door }: SeenHeart): readonly WarningRow[] {
  if (!config.oauth && !config.oidc) return []
  const signedIn = door.people.list().filter(({ issuer }) => issuer !== KEY_ISSUER)
  if (signedIn.length === 0) return []
  const { callers } = revisions.current
  const known = new Set([
    ...callers.flatMap(({ caller }) => caller.roles ?? []),
    ...[...(config.oidc?.roles.values() ?? [])].flat(),
    ...signedIn.flatMap(({ roles, consoleRoles = [] }) => [...roles, ...consoleRoles]),
  ])
  const since = new Date(Math.min(...signedIn.map(({ firstSeenAt }) => firstSeenAt))).toISOString()
  return [...namedRoles(revisions.current)].flatMap(([role, path]): readonly WarningRow[] => {
    if (known.has(role)) return []
    const text = `the role ${JSON.stringify(role)} is in no token, no caller of the file and no "oidc.roles"; people are recorded since ${since}`
    return [{ code: 'role_unseen', path, text: redact.redactText(text) }]
  })
}
