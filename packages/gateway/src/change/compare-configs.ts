import {
  type CatalogSnapshot,
  comparePolicies,
  type ComparePoliciesOptions,
  type OtherCallers,
  type PolicyComparison,
  type RulesOfChange,
} from '@toolgate/core/change'
import { inSession } from '@toolgate/mcp'
import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig, GroupConfig, ServerConfig } from '../config/config.ts'
import type { IssuerConfig } from '../config/oauth.ts'
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
/** Sections that let more calls through, or other people decide them, in more ways than are compared. */
const OTHERS = ['oauth', 'oidc', 'approvals', 'pins', 'definitions'] as const
/** What a server offers is compared item by item; these say nothing of what a call may do. */
const COVERED_OF_SERVERS: ReadonlySet<string> = new Set(
  'tools prompts trustHints offers offersByDefault names instructions era startTimeoutMs callTimeoutMs'.split(' '),
)

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
  pace: Pick<ComparePoliciesOptions, 'onProgress' | 'signal'> = {},
): Promise<ConfigComparison> {
  const named = [before, after].flatMap((config) =>
    config.callers.flatMap((one) => (one.for === 'mcp' ? [one.caller] : [])),
  )
  const callers = [before, after].some(mayReadSessions)
    ? named.flatMap((caller) => [caller, inSession(caller, 'any')])
    : named
  // Limits and apps are compared by their form.
  const rulesOf = (config: GatewayConfig) => {
    const { limits: _, apps: __, ...rules } = configuredRules(catalog, config)
    return { ...rules, callers }
  }
  const sections = [
    ...findUnproven(before, after).filter((section) => !COVERED.has(section)),
    ...(isSameHold(before.groups, after.groups) ? [] : ['groups']),
    ...(hasKnownServers(before.servers, after.servers) ? [] : ['servers']),
    ...OTHERS.filter((section) => !isDeepStrictEqual(before[section], after[section])),
  ]
  const compared = await comparePolicies({
    before: rulesOf(before),
    after: rulesOf(after),
    others: othersOf([...(before.oauth?.issuers ?? []), ...(after.oauth?.issuers ?? [])]),
    ...pace,
  })
  const grantsNoMore = compared.grantsNoMore === 'yes' && sections.length > 0 ? 'unknown' : compared.grantsNoMore
  return { ...compared, grantsNoMore, sections }
}

/** Who may come with a token of an issuer. Keys are for the configured callers only. */
function othersOf(issuers: readonly IssuerConfig[]): readonly OtherCallers[] {
  return issuers.map(({ name, claims, tenant, users }) => {
    const named = new Set(users.values())
    return {
      fields: {
        user: 'always',
        scopes: 'maybe',
        session: 'maybe',
        client: 'maybe',
        actor: 'maybe',
        ...(claims.roles === undefined ? {} : { roles: 'maybe' }),
        ...(claims.tenant === undefined && tenant === undefined ? {} : { tenant: 'always' }),
      },
      ...(claims.tenant === undefined && { tenant }),
      isUser: (user) => named.has(user) || user.startsWith(`${name}/`) || user.startsWith(`${name}:client/`),
      anyUser: `${name}/anyone`,
    }
  })
}

/** Whether a policy may read the session of a caller, which clients of earlier revisions of MCP have: also by another spelling. */
function mayReadSessions({ policy }: GatewayConfig): boolean {
  return /caller(?!\.(?!session\b)\w)/.test(JSON.stringify(policy))
}

/** Whether groups that hold tools back do so as before. Which tools they have counts: one that leaves a group is held by it no longer. */
function isSameHold(before: readonly GroupConfig[], after: readonly GroupConfig[]): boolean {
  const holds = before.some(
    ({ visibility, unlock, availableWhen, dependsOn }) =>
      visibility !== 'always' || unlock !== undefined || availableWhen.length + dependsOn.length > 0,
  )
  return !holds || isDeepStrictEqual(before, after)
}

/** Whether each server is one that was there, and reached and trusted as it was. What it offers beside may be in no catalog. */
function hasKnownServers(before: readonly ServerConfig[], after: readonly ServerConfig[]): boolean {
  const known = new Map(before.map((server) => [server.name, server]))
  return after.every((server) => {
    const old = known.get(server.name)
    return (
      old !== undefined &&
      isDeepStrictEqual(uncovered(old), uncovered(server)) &&
      server.offers.every((offer) => old.offers.includes(offer))
    )
  })
}

function uncovered(server: ServerConfig): readonly (readonly [string, unknown])[] {
  return Object.entries(server)
    .filter(([key, value]) => !COVERED_OF_SERVERS.has(key) && value !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
}
