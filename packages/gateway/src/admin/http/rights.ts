import type { Caller } from '@toolgate/core'
import { toJsonText } from '@toolgate/values/json'
import type { Heart } from '../../heart/heart.ts'

/** A field of `caller` that people with equal rights share, or its end in a rule that reads the whole caller. */
const SHARED_FIELD = /\bcaller\s*\.\s*(?:roles|scopes|tenant|attributes)\b/g
const OTHER_USE = /\bcaller\b/

/**
 * Returns the key of a caller's rights: callers with the same key see the same tools now, so that one decision holds for
 * all of them. The user is part of the key if a rule, a halt, a preference or a server could treat them differently.
 */
export function createRightsKey({
  gate,
  revisions,
  servers,
}: Pick<Heart, 'gate' | 'revisions' | 'servers'>): (caller: Caller) => string {
  const { policy, apps = [], groups, limits, labels } = revisions.current
  const readsUser = readsMore([policy, apps, groups, limits, labels])
  const halted = new Set(gate.halts.flatMap(({ target: { user } }) => user ?? []))
  return (caller) => {
    const { user, tenant = null, roles = [], scopes = [], attributes = null, agent, client, actor } = caller
    const isOwn = readsUser || (user !== undefined && halted.has(user)) || hasOwnTools(caller, { gate, servers })
    const own = isOwn ? [user ?? null, agent ?? null, client ?? null, actor ?? null] : []
    return toJsonText([tenant, roles.toSorted(), scopes.toSorted(), attributes, own])
  }
}

/** Whether rules read more of a caller than the shared fields. A rule with a function may read anything. */
function readsMore(rules: readonly unknown[]): boolean {
  let hasFunction = false
  const text = JSON.stringify(rules, (_, value: unknown) => {
    if (typeof value === 'function') hasFunction = true
    return value instanceof Map || value instanceof Set ? [...value] : value
  })
  return hasFunction || OTHER_USE.test(text.replaceAll(SHARED_FIELD, ''))
}

/** Whether a user has tools or switches of their own. */
function hasOwnTools(caller: Caller, { gate, servers }: Pick<Heart, 'gate' | 'servers'>): boolean {
  if (caller.user === undefined) return false
  if (servers.connections.rowsOf(caller).length > 0 || servers.fleet.listsOf(caller).length > 0) return true
  const { tools, groups } = gate.preferences.get(caller)
  return tools.length > 0 || groups.length > 0
}
