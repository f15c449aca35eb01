import type { Caller } from '@toolgate/core'
import { type RightsKey, rightsKeyOf } from '@toolgate/change/internal'
import { toJsonText } from '@toolgate/values/json'
import type { Heart } from '../../heart/heart.ts'

/**
 * Returns the key of a caller's rights: callers with the same key see the same tools now, so that one decision holds for
 * all of them. The user is part of the key if a rule, a halt, a preference or a list of their own could treat them
 * differently.
 */
export async function createRightsKey({ gate, servers }: Pick<Heart, 'gate' | 'servers'>): Promise<RightsKey> {
  const rightsOf = await rightsKeyOf(gate)
  const halted = new Set(gate.halts.flatMap(({ target: { user } }) => user ?? []))
  return (caller) => {
    const { user, tenant = null } = caller
    const isOwn = user !== undefined && (halted.has(user) || hasOwnTools(caller, { gate, servers }))
    const connected = servers.connections
      .rowsOf(caller)
      .flatMap(({ server, connection }) => (connection ? [server] : []))
    return toJsonText([tenant, rightsOf(caller), connected, isOwn ? user : null])
  }
}

/** Whether a user has switches or a list of their own. Everybody without a list yet sees the shared one. */
function hasOwnTools(caller: Caller, { gate, servers }: Pick<Heart, 'gate' | 'servers'>): boolean {
  if (servers.fleet.listsOf(caller).some(({ state }) => state === 'known')) return true
  const { tools, groups } = gate.preferences.get(caller)
  return tools.length > 0 || groups.length > 0
}
