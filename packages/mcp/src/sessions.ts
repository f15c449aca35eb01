import { type Caller, defineCaller } from '@toolgate/core'

/** Returns the owner of a caller's sessions: their tenant and user, whichever key they call with. */
export function ownerOf({ tenant = '', user, agent = '' }: Caller): string {
  return [tenant, user ?? agent].map(encodeURIComponent).join('/')
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
