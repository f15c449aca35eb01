import { parseGroups } from '@toolgate/core/groups'
import { lintLimits, parseLimits } from '@toolgate/core/call'
import { findIdleClauses, type IdleClause, parsePolicies } from '@toolgate/core/policy'
import type { GatewayConfig } from './config.ts'
import type { ConfigPlaces } from './places.ts'
import type { ConfigPath, ConfigWarning } from './problems.ts'

type IdleRules = Pick<GatewayConfig, 'policy' | 'apps' | 'groups' | 'aliases' | 'callers' | 'oauth' | 'limits'>

/** A clause or a limit of the file that has no effect. */
interface IdleWarning extends Pick<ConfigWarning, 'path'> {
  readonly code: IdleClause['code'] | 'limit_covered'
  readonly at: ConfigPath
  readonly text: string
}

/**
 * Returns the clauses that can never match, those that another clause covers, and limits that a stricter one covers. The gateway's policy applies in each
 * app too. Without `oauth`, only the callers of the file exist: a key that is made later has the rights of one of them.
 */
export function findIdleWarnings(config: IdleRules, places: ConfigPlaces): readonly IdleWarning[] {
  const { policy, apps = [], groups, aliases = {}, callers, oauth, limits } = config
  const definitions = new Map(groups.map(({ name, tools }) => [name, { tools }]))
  const { selectors } = parseGroups(definitions, new Map(Object.entries(aliases)))
  const known = oauth ? undefined : callers.map(({ caller }) => caller)
  const toWarning = ({ code, path, text, by }: IdleClause, root: ConfigPath): IdleWarning => {
    const place = by === undefined ? undefined : places.get(by)
    const where = place ? ` (${place.file}:${place.line}:${place.column})` : ''
    return { code, path, at: [...root, ...pathIn(path)], text: `${text}${where}` }
  }
  const ofAll = parsePolicies(policy, selectors)
  return [
    ...findIdleClauses(ofAll, known).map((idle) => toWarning(idle, ['policy'])),
    ...apps.flatMap(({ name, policy: own }) => {
      const root = `apps.${name}.policy`
      return findIdleClauses([...ofAll, ...parsePolicies(own, selectors, root)], known)
        .filter(({ path }) => path.startsWith(`${root}[`))
        .map((idle) => toWarning(idle, ['apps', name, 'policy']))
    }),
    ...lintLimits(parseLimits(limits, selectors)).map(({ code, path, text }): IdleWarning => ({
      code,
      path,
      at: ['limits', Number(/\d+/.exec(path)?.[0])],
      text,
    })),
  ]
}

/** Returns `[0, 'deny', 1]` of a path that ends with `[0].deny[1]`. */
function pathIn(path: string): ConfigPath {
  const [, policy, kind = '', clause] = /\[(\d+)\]\.(\w+)\[(\d+)\]$/.exec(path) ?? []
  return [Number(policy), kind, Number(clause)]
}
