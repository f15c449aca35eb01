import type { ConfigComparison } from '../../model/config-comparison.ts'
import {
  type CatalogSnapshot,
  comparePolicies,
  type ComparePoliciesOptions,
  type OtherCallers,
  type RulesOfChange,
} from '@toolgate/change'
import type { Caller } from '@toolgate/core'
import { toJsonText } from '@toolgate/values/json'
import { inSession } from '@toolgate/mcp'
import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig, GroupConfig, ServerConfig } from '../../config/config.ts'
import type { IssuerConfig } from '../../config/oauth.ts'
import { findUnproven } from '../../auth/tighter.ts'
import { rulesOfChange } from '../../servers/catalog/rules-of-change.ts'
import { configuredItems, OFFER_OF } from './snapshot-items.ts'

/**
 * How each section is compared. `tools`: over the tools of the catalog. `form`: by its form, for any tools. `equal`: a
 * different section may allow more. `none`: the section does not affect what calls may do.
 */
const COMPARED: Readonly<Record<keyof GatewayConfig, 'tools' | 'form' | 'equal' | 'none'>> = {
  policy: 'tools',
  groups: 'tools',
  aliases: 'tools',
  servers: 'tools',
  callers: 'form',
  limits: 'form',
  grants: 'form',
  labels: 'form',
  apps: 'form',
  oauth: 'equal',
  oidc: 'equal',
  publicUrl: 'equal',
  listen: 'equal',
  approvals: 'equal',
  pins: 'equal',
  definitions: 'equal',
  history: 'equal',
  calls: 'equal',
  search: 'equal',
  redact: 'equal',
  metrics: 'equal',
  audit: 'equal',
  state: 'equal',
  stores: 'equal',
  replica: 'equal',
  instances: 'equal',
  // This decides whether a change is applied automatically, not what the change grants.
  watch: 'none',
  // It is a part of servers and issuers.
  proxy: 'none',
  drainMs: 'none',
  names: 'none',
  instructions: 'none',
  secretCommands: 'none',
  // These fields state how the file was read.
  file: 'none',
  text: 'none',
  textHash: 'none',
  notRun: 'none',
  ran: 'none',
  secrets: 'none',
  warnings: 'none',
  places: 'none',
  policySource: 'none',
}
const SECTIONS = Object.keys(COMPARED) as (keyof GatewayConfig)[]
/**
 * Fields of a server that need no comparison: its items are compared one by one, and the other fields do not affect
 * calls.
 */
const COVERED_OF_SERVERS: ReadonlySet<string> = new Set(
  'tools prompts trustHints offers offersByDefault names instructions era startTimeoutMs waitForStart callTimeoutMs'.split(
    ' ',
  ),
)

/** Returns the rules of a configuration for a recorded catalog, with the configuration's tags, scopes and labels. */
export function configuredRules(catalog: CatalogSnapshot, config: GatewayConfig): RulesOfChange {
  return rulesOfChange(configuredItems(catalog, config.servers).items, config)
}

interface CompareConfigsOptions extends Pick<ComparePoliciesOptions, 'onProgress' | 'signal'> {
  /** The people who signed in: examples of the callers with tokens. */
  readonly people?: readonly Caller[]
}

/**
 * Compares two configurations, over a catalog and the callers of both. Policies with groups, aliases and the operator's
 * tags are compared tool by tool; limits, labels, apps and callers are compared by their form.
 */
export async function compareConfigs(
  before: GatewayConfig,
  after: GatewayConfig,
  catalog: CatalogSnapshot,
  { people = [], ...pace }: CompareConfigsOptions = {},
): Promise<ConfigComparison> {
  const named = [before, after].flatMap((config) =>
    config.callers.flatMap((one) => (one.for === 'mcp' ? [one.caller] : [])),
  )
  const known = [...named, ...oneOfEach(people)]
  const callers = [before, after].some(mayReadSessions)
    ? known.flatMap((caller) => [caller, inSession(caller, 'any')])
    : known
  // Limits and apps are compared by their form.
  const rulesOf = (config: GatewayConfig) => {
    const { limits: _, apps: __, ...rules } = configuredRules(catalog, config)
    return { ...rules, callers }
  }
  const sections = sectionsUnknown(before, after, catalog)
  const compared = await comparePolicies({
    before: rulesOf(before),
    after: rulesOf(after),
    others: othersOf([...(before.oauth?.issuers ?? []), ...(after.oauth?.issuers ?? [])]),
    ...pace,
  })
  const grantsNoMore = compared.grantsNoMore === 'yes' && sections.length > 0 ? 'unknown' : compared.grantsNoMore
  return { ...compared, grantsNoMore, sections }
}

/** The maximum number of people who are examples. */
const MAX_EXAMPLES = 100

/** Returns one person for each set of rights. */
function oneOfEach(people: readonly Caller[]): readonly Caller[] {
  const byRights = Map.groupBy(people, ({ user: _, ...rights }) => toJsonText(rights))
  return [...byRights.values()].flatMap((group) => group.slice(0, 1)).slice(0, MAX_EXAMPLES)
}

/** Returns the sections that are not proven to allow no more. */
function sectionsUnknown(before: GatewayConfig, after: GatewayConfig, catalog: CatalogSnapshot): readonly string[] {
  const isSame = (section: keyof GatewayConfig) => isDeepStrictEqual(before[section], after[section])
  const hasSameMeaning = isDeepStrictEqual(meaningOf(before), meaningOf(after))
  const isSamePolicy = hasSameMeaning && isSame('policy')
  const areServersKnown =
    hasKnownServers(before.servers, after.servers) && (isSamePolicy || after.servers.every(isListedIn(catalog)))
  const unknown: readonly string[] = [
    ...findUnproven(before, after).filter((section) => COMPARED[section as keyof GatewayConfig] === 'form'),
    ...(areServersKnown ? [] : ['servers']),
    ...(hasSameMeaning ? [] : selectingByForm(before)),
    ...SECTIONS.filter((section) => COMPARED[section] === 'equal' && !isSame(section)),
  ]
  return [...new Set(unknown)]
}

/** Returns everything, except for the catalog, that the tools of a selector depend on. */
function meaningOf({ groups, aliases, servers }: GatewayConfig): unknown {
  const ofServers = servers.map(({ name, tools, resources, prompts, trustHints }) => {
    return { name, tools, resources, prompts, trustHints }
  })
  return { groups, aliases, ofServers }
}

/** Returns the sections whose selectors are not compared tool by tool. */
function selectingByForm({ groups, limits, labels = {}, apps = [], calls }: GatewayConfig): readonly string[] {
  const selecting = {
    // A group no longer restricts a tool that leaves it.
    groups: groups.filter(holdsBack),
    limits,
    labels,
    apps,
    calls: calls?.concurrency ?? [],
  }
  return Object.entries(selecting).flatMap(([section, some]) => (Object.keys(some).length > 0 ? [section] : []))
}

function holdsBack({ visibility, unlock, availableWhen, dependsOn }: GroupConfig): boolean {
  return visibility !== 'always' || unlock !== undefined || availableWhen.length + dependsOn.length > 0
}

/** Whether a catalog has an item of each kind that a server offers. A server that was down has none. */
function isListedIn({ items }: CatalogSnapshot): (server: ServerConfig) => boolean {
  return ({ name, offers, offersByDefault }) => {
    const own = items.filter(({ namespace }) => namespace === name)
    const listed = new Set(own.map(({ kind }) => OFFER_OF[kind ?? 'tool']))
    return offersByDefault ? own.length > 0 : offers.every((offer) => listed.has(offer))
  }
}

/** Returns the callers with tokens of an issuer. Keys exist only for the configured callers. */
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

/**
 * Whether a policy may read a caller's session, in any spelling. Only clients of earlier revisions of MCP have
 * sessions.
 */
function mayReadSessions({ policy }: GatewayConfig): boolean {
  return /caller(?!\.(?!session\b)\w)/.test(JSON.stringify(policy))
}

/**
 * Whether each server existed before, with the same address and trust. A catalog may lack other items that it offers.
 */
function hasKnownServers(before: readonly ServerConfig[], after: readonly ServerConfig[]): boolean {
  const known = new Map(before.map((server) => [server.name, server]))
  const now = new Set(after.map(({ name }) => name))
  // If one of two servers that could own a URI is removed, the URI belongs to the other.
  const leavesUris = before.some(({ name, offers }) => !now.has(name) && offers.includes('resources'))
  if (leavesUris) return false
  return after.every((server) => {
    const old = known.get(server.name)
    return (
      old !== undefined &&
      isDeepStrictEqual(uncovered(old), uncovered(server)) &&
      isDeepStrictEqual(unlistedOf(old), unlistedOf(server)) &&
      server.offers.every((offer) => old.offers.includes(offer))
    )
  })
}

/**
 * Returns the settings of a server's tools that no catalog shows: which are disabled, and which ones read content for
 * comparisons.
 */
function unlistedOf({ tools }: ServerConfig): unknown {
  const overlays = [...tools].filter(([, { enabled, compare }]) => enabled !== undefined || compare !== undefined)
  return overlays.map(([name, { enabled, compare }]) => ({ name, enabled, compare }))
}

function uncovered(server: ServerConfig): readonly (readonly [string, unknown])[] {
  return Object.entries(server)
    .filter(([key, value]) => !COVERED_OF_SERVERS.has(key) && value !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
}
