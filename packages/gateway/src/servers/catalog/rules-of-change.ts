import type { RulesOfChange } from '@toolgate/change'
import { toApps, toGroups } from './groups.ts'
import type { GatewayConfig } from '../../config/config.ts'

type WrittenRules = Pick<
  GatewayConfig,
  'policy' | 'groups' | 'aliases' | 'apps' | 'labels' | 'limits' | 'servers' | 'callers' | 'oauth' | 'history' | 'calls'
>

type ChangeCatalog = RulesOfChange['catalog']

/** Returns the rules in a configuration that apply to a catalog: to its servers' items, and to its agents. */
export function rulesOfChange(catalog: ChangeCatalog, written: WrittenRules): RulesOfChange {
  const { policy, groups, aliases, apps, labels, limits, servers, callers, oauth, history, calls } = written
  const isServed = new Set(servers.map(({ name }) => name))
  const unprobed = groups.map((group) => ({ ...group, availableWhen: [], visibility: 'always' as const }))
  return {
    catalog: filterItems(catalog, ({ namespace }) => namespace === undefined || isServed.has(namespace)),
    policy,
    limits,
    groups: toGroups(unprobed, NO_PROBES),
    apps: toApps(apps),
    callers: callers.flatMap((one) => (one.for === 'mcp' ? [one.caller] : [])),
    ...(aliases && { aliases }),
    ...(labels && { labels }),
    ...(oauth && { stepUp: oauth.stepUp }),
    ...(history && { history }),
    ...(calls && { concurrency: calls.concurrency }),
  }
}

function filterItems(
  catalog: ChangeCatalog,
  keeps: (item: { readonly namespace?: string | undefined }) => boolean,
): ChangeCatalog {
  return 'items' in catalog ? { ...catalog, items: catalog.items.filter(keeps) } : catalog.filter(keeps)
}

const NO_PROBES = {
  servers: [],
  redactor: { redactText: String, redactValue: (value: unknown) => value },
  reaper: { watch() {}, release() {} },
}
