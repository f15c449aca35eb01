import type { Caller } from '@toolgate/core'
import type { ServerRow } from '../../model/rows.ts'
import { countStates } from '../../servers/instances/instances.ts'
import { isApprover, maySee } from './callers.ts'

/**
 * Returns a server's row for a person. Only their tenant's instances are counted, and only approvers see the owners.
 */
export function serverFor(person: Caller, { instances, ...row }: ServerRow): ServerRow {
  if (!instances) return row
  const users = (instances.users ?? []).filter((user) => maySee(person, user))
  return { ...row, instances: { ...countStates(users), ...(isApprover(person) && { users }) } }
}
