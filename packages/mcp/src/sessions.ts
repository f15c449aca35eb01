import { type Caller, defineCaller } from '@toolgate/core'

/** The owners of callers, by their frozen callers: each request of a session asks twice. */
const owners = new WeakMap<Caller, string>()

/** Returns the owner of a caller's sessions: their tenant and user, whichever key they call with. */
export function ownerOf(caller: Caller): string {
  let owner = owners.get(caller)
  if (owner === undefined) {
    const { tenant = '', user, agent = '' } = caller
    owner = [tenant, user ?? agent].map(encodeURIComponent).join('/')
    if (Object.isFrozen(caller)) owners.set(caller, owner)
  }
  return owner
}

/**
 * Returns a caller in a session of their own tenant and user, whatever the client calls it.
 *
 * @example
 * inSession({ tenant: 'acme', user: 'vera' }, 's1').session // 'acme/vera/s1'
 */
export function inSession(caller: Caller, id: string | undefined): Caller {
  return id === undefined ? caller : defineCaller({ ...caller, session: `${ownerOf(caller)}/${id}` })
}
