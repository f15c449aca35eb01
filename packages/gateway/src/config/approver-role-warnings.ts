import { type AskingConfig, rolesOfClause, rolesOfLogin } from './able-approvers.ts'
import type { ConfigPath } from './problems.ts'

/** An `ask` clause that needs a role which nobody has. */
interface ApproverRoleWarning {
  readonly code: 'approver_role_missing'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

/** Returns the roles of `approvers` that neither a console key nor a login brings: nobody can approve such a call. */
export function findApproverRoleWarnings(config: AskingConfig): readonly ApproverRoleWarning[] {
  const { callers, policy, apps = [], oidc } = config
  const keys = callers.filter((one) => one.for === 'console').flatMap(({ caller }) => caller.roles ?? [])
  const known = new Set([...keys, ...rolesOfLogin(oidc)])
  const places: readonly { at: ConfigPath; path: string; policies: AskingConfig['policy'] }[] = [
    { at: ['policy'], path: 'policy', policies: policy },
    ...apps.map((app) => ({
      at: ['apps', app.name, 'policy'],
      path: `apps.${app.name}.policy`,
      policies: app.policy,
    })),
  ]
  return places.flatMap(({ at, path, policies }) =>
    policies.flatMap(({ ask = [] }, p) =>
      ask.flatMap((clause, i) =>
        Object.keys(rolesOfClause(clause) ?? {})
          .filter((role) => !known.has(role))
          .map((role): ApproverRoleWarning => {
            const text = `needs an approver with the role "${role}", which no console key${oidc ? ' and no login' : ''} has: nobody can approve its calls`
            return { code: 'approver_role_missing', at: [...at, p, 'ask', i], path: `${path}[${p}].ask[${i}]`, text }
          }),
      ),
    ),
  )
}
