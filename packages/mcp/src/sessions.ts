import { type Caller, defineCaller } from '@toolgate/core'

/** The owner of each frozen caller. This is cached because each request of a session asks twice. */
const owners = new WeakMap<Caller, string>()

/** Returns the owner of a caller's sessions: the tenant and user, for every key that they use. */
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
 * Returns a caller in a session of their own tenant and user, whatever id the client sends.
 *
 * @example
 * inSession({ tenant: 'acme', user: 'vera' }, 's1').session // 'acme/vera/s1'
 */
export function inSession(caller: Caller, id: string | undefined): Caller {
  return id === undefined ? caller : defineCaller({ ...caller, session: `${ownerOf(caller)}/${id}` })
}
