import { mayApproveByDefault } from '@toolgate/core/call'
import type { AskingConfig } from './approver-warnings.ts'
import type { ConfigPath } from './problems.ts'

/** An `ask` clause whose text the deciding people may not read. */
interface AskWarning {
  readonly code: 'ask_unexplained'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

/**
 * Returns the `ask` clauses without a message if people of a tenant may approve. They may not read the text of a rule,
 * so its message is their only explanation.
 */
export function findUnexplainedAsks({ callers, policy, apps = [] }: AskingConfig): readonly AskWarning[] {
  const agents = callers.filter((one) => one.for === 'mcp')
  const reader = callers.find(
    ({ for: use, caller }) =>
      use === 'console' &&
      caller.tenant !== undefined &&
      agents.some((agent) => mayApproveByDefault(caller, { user: agent.caller.user, tenant: agent.caller.tenant })),
  )
  if (!reader) return []
  const { user = 'a person', tenant } = reader.caller
  const text = `has no message, and "${user}" of the tenant "${tenant}", who may approve it, does not see the text of rules: add "message: why a person is asked"`
  return [
    { at: ['policy'] as ConfigPath, path: 'policy', policies: policy },
    ...apps.map((app) => ({
      at: ['apps', app.name, 'policy'] as ConfigPath,
      path: `apps.${app.name}.policy`,
      policies: app.policy,
    })),
  ].flatMap(({ at, path, policies }) =>
    policies.flatMap(({ ask = [], mode }, p) =>
      ask.flatMap((clause, i): readonly AskWarning[] => {
        const { message, mode: own = mode } = typeof clause === 'object' ? clause : {}
        if (message !== undefined || own === 'shadow') return []
        return [{ code: 'ask_unexplained', at: [...at, p, 'ask', i], path: `${path}[${p}].ask[${i}]`, text }]
      }),
    ),
  )
}
