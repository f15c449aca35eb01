import { type CatalogSnapshot, comparePolicies, type PolicyComparison, type RulesOfChange } from '@toolgate/core/change'
import type { GatewayConfig } from '../config/config.ts'
import { findUnproven } from '../reload/tighter.ts'
import { rulesOfChange } from './rules-of-change.ts'
import { configuredItems } from './snapshot-items.ts'

/** Whether a configuration grants no more than another. */
export interface ConfigComparison extends PolicyComparison {
  /** Sections that differ, grant more for all that is known, and are not compared tool by tool. */
  readonly sections: readonly string[]
}

/** The sections that the comparison of policies covers, over the tools of the catalog. */
const COVERED: ReadonlySet<string> = new Set(['policy', 'groups', 'aliases', 'servers'])

/** Returns what a configuration says about a recorded catalog, under the tags, scopes and labels that it gives now. */
export function configuredRules(catalog: CatalogSnapshot, config: GatewayConfig): RulesOfChange {
  return rulesOfChange(configuredItems(catalog, config.servers).items, config)
}

/**
 * Compares two configurations, over a catalog and the callers of both: policies with groups, aliases and the operator's tags
 * tool by tool, and limits, labels, apps and callers by their form.
 */
export async function compareConfigs(
  before: GatewayConfig,
  after: GatewayConfig,
  catalog: CatalogSnapshot,
): Promise<ConfigComparison> {
  const callers = [before, after].flatMap((config) =>
    config.callers.flatMap((one) => (one.for === 'mcp' ? [one.caller] : [])),
  )
  const rulesOf = (config: GatewayConfig) => ({
    ...configuredRules(catalog, config),
    callers,
  })
  const unproven = findUnproven(before, after)
  const known = new Set(before.servers.map(({ name }) => name))
  // What a further server offers may be in no catalog.
  const sections = [
    ...unproven.filter((section) => !COVERED.has(section)),
    ...(after.servers.some(({ name }) => !known.has(name)) ? ['servers'] : []),
  ]
  const compared = await comparePolicies({ before: rulesOf(before), after: rulesOf(after) })
  const grantsNoMore = compared.grantsNoMore === 'yes' && sections.length > 0 ? 'unknown' : compared.grantsNoMore
  return { ...compared, grantsNoMore, sections }
}
