import { type Caller, defineCaller, memoryAudit, type Policy } from '@toolgate/core'
import type { MemoryAudit } from '@toolgate/core/audit'

/** A caller of the adapters' tests. */
export const VIEWER: Caller = defineCaller({ user: 'vera', roles: ['viewer'] })
export const ADMIN: Caller = defineCaller({ user: 'ada', roles: ['admin'] })

/**
 * A policy for the tools `search`, `delete_all` and `alpha`. Only admins see `delete_all`. Others get no sign that it
 * exists.
 */
export const ADMINS_DELETE: Policy = { deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] }

/** Records each tool that runs, independent of what the framework reports. */
export interface Witness {
  readonly ran: readonly string[]
  /** Returns the body of a tool. It records that it ran, and returns the tool's name. */
  body(name: string): (input?: unknown) => string
}

export function createWitness(): Witness {
  const ran: string[] = []
  return {
    ran,
    body: (name) => () => {
      ran.push(name)
      return `${name} done`
    },
  }
}

/** Creates an audit that lists attempts for a test: `delete_all tool_blocked policy_denied`. */
export function createTestAudit(): MemoryAudit & { attempts(): readonly string[] } {
  const audit = memoryAudit()
  return {
    ...audit,
    get records() {
      return audit.records
    },
    attempts: () =>
      audit.records
        .filter(({ tool_call_id }) => tool_call_id !== undefined)
        .map(({ tool, event, reason }) => [tool, event, reason].filter((part) => part !== undefined).join(' ')),
  }
}
