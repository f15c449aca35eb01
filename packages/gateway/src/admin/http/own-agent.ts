import { type Caller, defineCaller } from '@toolgate/core'
import { toJsonText } from '@toolgate/values/json'
import type { CallerConfig } from '../../config/config.ts'
import { opensEndpoint, toResource } from '../../auth/credential.ts'
import type { ApiDeps } from './deps.ts'

interface Asked {
  readonly person: Caller
  /** The caller that the person wants to call as. */
  readonly caller: Caller
  readonly app?: string | undefined
}

/** Whether a person may make calls at all, as an agent of their own. */
export function mayCall({ user, roles = [] }: Caller): boolean {
  return user !== undefined && roles.some((role) => role === 'operator' || role === 'approver')
}

/**
 * Returns a key of an agent in the file, if it is of the person's own user and tenant, has not expired, opens
 * the endpoint, and has exactly the rights of the caller that is asked for. So a person has no right here that a key of theirs
 * does not have.
 */
export function ownAgent(
  { callers, clock, keys }: Pick<ApiDeps, 'callers' | 'clock' | 'keys'>,
  { person, caller, app }: Asked,
): CallerConfig | undefined {
  if (!isOwn({ person, caller })) return undefined
  const asked = toJsonText(defineCaller(caller))
  const isExpired = ({ keyHash, expiresAtMs = Infinity }: CallerConfig): boolean =>
    keys?.isExpired({ id: Buffer.from(keyHash).toString('hex'), expiresAtMs }) ?? expiresAtMs <= clock.wallMs()
  return callers().find(
    (key) =>
      key.for === 'mcp' &&
      isOwn({ person, caller: key.caller }) &&
      toJsonText(defineCaller(key.caller)) === asked &&
      !isExpired(key) &&
      opensEndpoint(key, toResource(app)),
  )
}

/** Whether a person may make calls as a caller, at some endpoint. */
export function mayCallAs(
  deps: Pick<ApiDeps, 'callers' | 'clock' | 'keys' | 'agents'>,
  { person, caller }: Asked,
): boolean {
  if (deps.agents === undefined || !mayCall(person) || !isOwn({ person, caller })) return false
  const apps = deps.callers().flatMap((key) => (isOwn({ person, caller: key.caller }) ? (key.apps ?? []) : []))
  return [undefined, ...apps].some((app) => ownAgent(deps, { person, caller, app }) !== undefined)
}

function isOwn({ person, caller }: Asked): boolean {
  return caller.user !== undefined && caller.user === person.user && caller.tenant === person.tenant
}
