import { type Caller, defineCaller } from '@toolgate/core'
import { toJsonText } from '@toolgate/values/json'
import type { CallerConfig } from '../../config/config.ts'
import { opensEndpoint, toResource } from '../../auth/credential.ts'
import type { Heart } from '../../heart/heart.ts'

interface AgentAsked {
  readonly person: Caller
  /** The caller as whom the person wants to call. */
  readonly caller: Caller
  readonly app?: string | undefined
}

/** Whether a person may make calls as one of their own agents. */
export function mayCall({ user, roles = [] }: Caller): boolean {
  return user !== undefined && roles.some((role) => role === 'operator' || role === 'approver')
}

/**
 * Returns an agent's key from the file that a person may act as. It must belong to the same user and tenant, be valid
 * now, open the endpoint, and have exactly the rights of the requested caller. So a person gets no rights beyond those
 * of their own keys.
 */
export function ownAgent(
  { revisions, door }: Pick<Heart, 'revisions' | 'door'>,
  { person, caller, app }: AgentAsked,
): CallerConfig | undefined {
  if (!isOwn({ person, caller })) return undefined
  const asked = toJsonText(defineCaller(caller))
  const isExpired = ({ keyHash, expiresAtMs = Infinity }: CallerConfig): boolean =>
    door.keys.isExpired({ id: Buffer.from(keyHash).toString('hex'), expiresAtMs })
  return revisions.current.callers.find(
    (key) =>
      key.for === 'mcp' &&
      isOwn({ person, caller: key.caller }) &&
      toJsonText(defineCaller(key.caller)) === asked &&
      !isExpired(key) &&
      opensEndpoint(key, toResource(app)),
  )
}

/** Whether a person may make calls as a caller, at any endpoint. */
export function mayCallAs(heart: Pick<Heart, 'revisions' | 'door'>, { person, caller }: AgentAsked): boolean {
  if (!mayCall(person) || !isOwn({ person, caller })) return false
  const apps = heart.revisions.current.callers.flatMap((key) =>
    isOwn({ person, caller: key.caller }) ? (key.apps ?? []) : [],
  )
  return [undefined, ...apps].some((app) => ownAgent(heart, { person, caller, app }) !== undefined)
}

function isOwn({ person, caller }: AgentAsked): boolean {
  return caller.user !== undefined && caller.user === person.user && caller.tenant === person.tenant
}
