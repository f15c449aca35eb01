import { type Caller, defineCaller, memoryAudit, type Policy } from '@toolgate/core'
import type { MemoryAudit } from '@toolgate/core/audit'

/** Who runs agents in the adapters' tests. */
export const VIEWER: Caller = defineCaller({ user: 'vera', roles: ['viewer'] })
export const ADMIN: Caller = defineCaller({ user: 'ada', roles: ['admin'] })

/** The tools are `search`, `delete_all` and `alpha`; only admins see `delete_all`, and nothing says that there is one. */
export const ADMINS_DELETE: Policy = { deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] }

/** What really ran: the tools of a test say it themselves, whatever the framework tells. */
export interface Witness {
  readonly ran: readonly string[]
  /** Gives the body of a tool: it says that it ran, and answers with its name. */
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

/** An audit whose attempts a test reads: `delete_all tool_blocked policy_denied`. */
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
