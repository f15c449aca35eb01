import { type Caller, defineCaller, memoryAudit, type Policy } from '@toolgate/core'
import type { MemoryAudit } from '@toolgate/core/audit'

/** The callers of the adapters' tests. */
export const VIEWER: Caller = defineCaller({ user: 'vera', roles: ['viewer'] })
export const ADMIN: Caller = defineCaller({ user: 'ada', roles: ['admin'] })

/** The tools are `search`, `delete_all` and `alpha`. Only admins see `delete_all`, and others are not told that it exists. */
export const ADMINS_DELETE: Policy = { deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] }

/** The tools that really ran: each records it, whatever the framework reports. */
export interface Witness {
  readonly ran: readonly string[]
  /** Returns the body of a tool: it records that it ran, and returns its name. */
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

/** An audit from which a test reads attempts: `delete_all tool_blocked policy_denied`. */
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
