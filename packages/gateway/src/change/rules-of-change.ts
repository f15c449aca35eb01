import type { Tool } from '@toolgate/core'
import type { RulesOfChange } from '@toolgate/core/change'
import { toApps, toGroups } from '../catalog/groups.ts'
import type { GatewayConfig } from '../config/config.ts'

type Written = Pick<
  GatewayConfig,
  'policy' | 'groups' | 'aliases' | 'apps' | 'labels' | 'limits' | 'servers' | 'callers' | 'oauth' | 'history'
>

/** Returns what a configuration says about the items that are known now: those of its servers, for its agents. */
export function rulesOfChange(items: readonly Tool[], written: Written): RulesOfChange {
  const { policy, groups, aliases, apps, labels, limits, servers, callers, oauth, history } = written
  const isServed = new Set(servers.map(({ name }) => name))
  const unprobed = groups.map((group) => ({ ...group, availableWhen: [], visibility: 'always' as const }))
  return {
    catalog: items.filter(({ namespace }) => namespace === undefined || isServed.has(namespace)),
    policy,
    limits,
    groups: toGroups(unprobed, NO_PROBES),
    apps: toApps(apps),
    callers: callers.flatMap((one) => (one.for === 'mcp' ? [one.caller] : [])),
    ...(aliases && { aliases }),
    ...(labels && { labels }),
    ...(oauth && { stepUp: oauth.stepUp }),
    ...(history && { history }),
  }
}

const NO_PROBES = {
  servers: [],
  redactor: { redactText: String, redactValue: (value: unknown) => value },
  reaper: { watch() {}, release() {} },
}
