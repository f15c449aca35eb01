import { type AskingConfig, demandsOf, mayDecide, mayDecideByLogin } from './able-approvers.ts'
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
export function findUnexplainedAsks(config: AskingConfig): readonly AskWarning[] {
  const { callers, policy, apps = [], oidc } = config
  const demands = demandsOf(config)
  const agents = callers.filter((one) => one.for === 'mcp')
  const reader = callers.find(
    ({ for: use, caller }) =>
      use === 'console' &&
      caller.tenant !== undefined &&
      agents.some((agent) => mayDecide(caller, agent.caller, demands)),
  )
  const isByLogin = agents.some(({ caller }) => caller.tenant !== undefined && mayDecideByLogin(oidc, caller, demands))
  if (!reader && !isByLogin) return []
  const who = reader
    ? `"${reader.caller.user ?? 'a person'}" of the tenant "${reader.caller.tenant}", who may approve it, does`
    : 'people of a tenant who log in and may approve it do'
  const text = `has no message, and ${who} not see the text of rules: add "message: why a person is asked"`
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
