import type { IncomingHttpHeaders } from 'node:http'
import { type Caller, defineCaller, type Gate, type GateOptions } from '@toolgate/core'
import { isToolError } from '@toolgate/core/internal'

export const SESSION_HEADER = 'mcp-session-id'

/** Returns the session that a client of an earlier revision names, known or not; `undefined` where it names none. */
export function readSession(headers: IncomingHttpHeaders): string | undefined {
  const id = headers[SESSION_HEADER]
  return Array.isArray(id) ? id.join() : id
}

/** Returns whose sessions a caller may use: those of its tenant and user, with any of their keys. */
export function ownerOf({ tenant = '', user, agent = '' }: Caller): string {
  return [tenant, user ?? agent].map(encodeURIComponent).join('/')
}

/**
 * Gives a caller in the session that its client names: one of its own tenant and user, whatever the client says.
 *
 * @example
 * inSession({ tenant: 'acme', user: 'vera' }, 's1').session // 'acme/vera/s1'
 */
export function inSession(caller: Caller, id: string | undefined): Caller {
  if (id === undefined) return caller
  return defineCaller({ ...caller, session: `${ownerOf(caller)}/${id}` })
}

/**
 * Gives the hook that raises the event `called:<tool id>` when a call of a session has ended well: what opens groups
 * that wait for it.
 */
export function unlockByCalls(
  locks: () => Pick<Gate['locks'], 'event'>,
  onUnlocked: (caller: Caller) => void,
): NonNullable<GateOptions['hooks']> {
  return {
    afterToolCall: (ended) => {
      if (ended.caller.session === undefined || !ended.ok || isToolError(ended.output)) return
      if (locks().event(ended.caller, `called:${ended.tool.id}`).length > 0) onUnlocked(ended.caller)
    },
  }
}
