import { canonicalize } from '@toolgate/values/json'
import { RESOURCE_PREFIX } from '@toolgate/core/tools'
import {
  enforcedOf,
  parseAliases,
  type ParsedClause,
  type ParsedPolicy,
  parsePolicies,
  type Selector,
  toGroupMap,
} from '@toolgate/core/policy'
import { parseGroups } from '@toolgate/core/groups'
import type { Tool } from '@toolgate/core'
import { withoutFunctions } from './plain-policies.ts'
import type { RulesOfChange } from './what-if.ts'

/** The rules about resources, for all URIs. */
interface ResourceRules {
  readonly policies: readonly PartAboutResources[]
  /** The URI patterns in the rules. */
  readonly patterns: readonly string[]
}

interface PartAboutResources {
  readonly allow: ReadonlySet<string>
  readonly deny: ReadonlySet<string>
  readonly ask: ReadonlySet<string>
  readonly requireTags: ReadonlySet<string>
}

/** The comparison of rules for URIs that no server lists, which clients can read all the same. */
interface UnlistedComparison {
  /** Ids of some of these resources that rules name. */
  readonly samples: readonly string[]
  /** Whether the form of the rules proves that the new rules grant no more for any of them. */
  readonly isProven: boolean
}

const MAX_SAMPLES = 100

/** Compares rules about unlisted resources. `ground` is the text of the other inputs of conditions about runs. */
export function compareUnlisted(
  before: { readonly rules: RulesOfChange; readonly ground: string },
  after: { readonly rules: RulesOfChange; readonly ground: string },
  items: readonly Tool[],
): UnlistedComparison {
  const hasResources = items.filter(({ kind }) => kind === 'resource' || kind === 'template')
  const servers = [...new Set(hasResources.map(({ namespace }) => namespace))]
  if (servers.length === 0) return { samples: [], isProven: true }
  const [had, has] = [rulesAbout(before), rulesAbout(after)]
  // A policy that allows no resource denies all of them.
  const isProven =
    has.policies.some(({ allow }) => allow.size === 0) ||
    had.policies.every((old) => has.policies.some((now) => isTighter(old, now)))
  if (isProven) return { samples: [], isProven }
  const uris = [...new Set([...had.patterns, ...has.patterns])].flatMap((pattern) =>
    ['', 'x', 'x/y', 'file:///x'].map((text) => pattern.replaceAll(/\*+/g, text)),
  )
  const ids = servers.flatMap((server) => uris.map((uri) => `${RESOURCE_PREFIX}${server}:${uri}`))
  return { samples: [...new Set(ids)].slice(0, MAX_SAMPLES), isProven }
}

function rulesAbout({ rules, ground }: { readonly rules: RulesOfChange; readonly ground: string }): ResourceRules {
  const { selectors } = parseGroups(toGroupMap(rules.groups ?? {}), parseAliases(rules.aliases))
  const policies = enforcedOf(parsePolicies(withoutFunctions(rules.policy), selectors))
  const clauses = policies.flatMap(({ allow = [], deny, ask }) => [...allow, ...deny, ...ask])
  const named = clauses.flatMap((clause) => clause.selectors.flatMap(ofResources))
  return {
    policies: policies.map((policy) => toPart(policy, ground)),
    patterns: named.flatMap((selector) => (selector.kind === 'resource' ? [selector.name.join('*')] : [])),
  }
}

/** Returns the selectors that match resources; for a group, those of its members. */
function ofResources(selector: Selector): readonly Selector[] {
  if (selector.kind === 'group') return selector.members.flatMap(ofResources)
  return selector.kind === 'resource' || selector.kind === 'server' ? [selector] : []
}

function toPart({ allow = [], deny, ask, requireTags }: ParsedPolicy, ground: string): PartAboutResources {
  const textsOf = (clauses: readonly ParsedClause[]) => new Set(clauses.flatMap((clause) => toTexts(clause, ground)))
  return { allow: textsOf(allow), deny: textsOf(deny), ask: textsOf(ask), requireTags: new Set(requireTags) }
}

/** Clauses with a common text decide equally about the items that its selector matches. */
function toTexts({ selectors, when, unless, input, run, approver }: ParsedClause, ground: string): readonly string[] {
  const conditions = [when, unless, input].map((condition) => condition?.text ?? null)
  return selectors
    .flatMap(ofResources)
    .map(({ text }) =>
      canonicalize([text, conditions, approver ? JSON.stringify(approver) : null, run ? ground : null]),
    )
}

function isTighter(old: PartAboutResources, now: PartAboutResources): boolean {
  return (
    now.allow.isSubsetOf(old.allow) &&
    old.deny.isSubsetOf(now.deny) &&
    old.ask.isSubsetOf(now.ask) &&
    old.requireTags.isSubsetOf(now.requireTags)
  )
}
