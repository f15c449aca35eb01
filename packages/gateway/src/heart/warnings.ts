import type { Gate, LintWarning } from '@toolgate/core'
import { didYouMean } from '@toolgate/values'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import type { ContestedUri, NameClash } from '@toolgate/mcp'
import type { ServerConfig } from '../config/config.ts'
import type { Revision } from '../auth/revision.ts'
import { type ConfigWarning, formatPath } from '../config/problems.ts'
import { problemOfRule } from '../servers/catalog/compare-rule.ts'
import { serverGroupName } from '../servers/catalog/groups.ts'
import { describeAllRejected } from '../servers/catalog/rejected.ts'
import type { UpstreamSource } from '../servers/catalog/sources.ts'
import type { RejectedItem } from '../model/upstream.ts'

/** A warning of the gate, or of the configuration. */
interface GatewayWarning extends Omit<LintWarning, 'code'> {
  readonly code: LintWarning['code'] | ConfigWarning['code']
}

/** The current warnings: valid configuration that is probably a mistake. */
export interface Warnings {
  list(): readonly GatewayWarning[]
  /** Logs new warnings about overlays and names. */
  logNew(): void
  /** Logs a warning of the gate, unless the check of the file has already found it. */
  logOfGate(warning: LintWarning): void
}

interface WarningsDeps {
  /** The current rules. A reload replaces the object. */
  config(): Pick<Revision, 'servers' | 'warnings'>
  sources(): readonly Pick<UpstreamSource, 'isListed' | 'toolNames' | 'dropped' | 'rejected' | 'rejectedHere'>[]
  /** A function, because the gate warns while it is created. */
  gate(): Pick<Gate, 'lint' | 'policyRevision' | 'catalog' | 'halts'>
  /** The names that several tools compete for, against the rules of their servers. */
  clashes(): readonly NameClash[]
  /** The listed URIs that several servers could own. */
  contested(): readonly ContestedUri[]
  log(text: string): void
}

/**
 * Returns the warnings of the file, the gate and the overlays. The file's are logged at once.
 *
 * Linting checks every clause against every tool, so its result is kept until the policy, catalog or halts change.
 */
export function createWarnings({ config, sources, gate, clashes, contested, log }: WarningsDeps): Warnings {
  const ofFile = () =>
    config().warnings.map(({ code, path, message }): GatewayWarning => ({ code, path: shownPath(path), text: message }))
  const inFile = () => new Set(ofFile().map(({ path }) => path))
  const logged = new Set<string>()
  const ofRejected = (list: 'rejected' | 'rejectedHere') =>
    config().servers.flatMap(({ name }, i) => toRejections(name, sources()[i]?.[list] ?? []))
  const ofLists = () => [
    ...config().servers.flatMap((server, i) => findUnmatched(server, sources()[i])),
    ...config().servers.flatMap((server, i) => findDropped(server, sources()[i])),
    ...config().servers.flatMap((server, i) => findUncomparable(server, sources()[i], gate().catalog)),
    ...clashes().map(toWarning),
    ...contestedWarnings(contested()),
  ]
  const logOne = ({ path, text }: GatewayWarning) => log(`${path}: ${text}`)
  let of: string | undefined
  let found: readonly GatewayWarning[] = []
  ofFile().forEach(logOne)
  return {
    list() {
      const { policyRevision, catalog, halts } = gate()
      const listed = sources()
        .map((source) => source.isListed())
        .join()
      const rejections = ofRejected('rejected')
      const texts = rejections.map(({ text }) => text)
      const ids = halts.map(({ id }) => id)
      const now = [policyRevision, catalog.revision, catalog.itemsRevision, listed, ...ids, ...texts].join(' ')
      if (of !== now) {
        const ofGate = gate()
          .lint()
          .map((warning) => ({ ...warning, path: shownPath(warning.path) }))
        const named = inFile()
        const isNew = ({ code, path }: LintWarning) =>
          !OF_FILE.has(code) || (!named.has(path) && !path.startsWith(IMPLICIT_GROUP))
        found = [...ofFile(), ...ofGate.filter(isNew), ...ofLists(), ...rejections]
        of = now
      }
      return found
    },
    logNew() {
      for (const warning of [...ofLists(), ...ofRejected('rejectedHere')]) {
        const key = `${warning.path} ${warning.text}`
        if (logged.has(key)) continue
        logged.add(key)
        logOne(warning)
      }
    },
    logOfGate(warning) {
      const path = shownPath(warning.path)
      if (!inFile().has(path) && !path.startsWith(IMPLICIT_GROUP)) logOne({ ...warning, path })
    },
  }
}

/** The codes of warnings that the check of the file finds too. */
const OF_FILE: ReadonlySet<string> = new Set<ConfigWarning['code']>([
  'selector_unmatched',
  'clause_covered',
  'clause_never',
  'limit_covered',
])

/** The implicit group of a server, which the file does not contain. */
const IMPLICIT_GROUP = `groups.${serverGroupName('')}`

/** Returns the path in the file for `calls.concurrency`, which the gate calls by its own option. */
function shownPath(path: string): string {
  return path.startsWith('concurrency[') ? `calls.${path}` : path
}

function toWarning({ name, ids, isPrefixed }: NameClash): GatewayWarning {
  const owners = ids.map((id) => `"${id}"`).join(' and ')
  const short = `${owners} would be "${name}" without a prefix`
  const problem = !isPrefixed
    ? `${owners} are left out: clients would know them all by the name "${name}"`
    : ids.length > 1
      ? `${short}; clients get the prefix where they see several of them`
      : `${short}, as is a tool of the gateway itself; clients get the prefix`
  return { code: 'name_clash', path: 'names', text: `${problem}. Rename one in "tools" of its server` }
}

function toRejections(server: string, rejected: readonly RejectedItem[]): readonly GatewayWarning[] {
  const path = formatPath(['servers', server])
  return describeAllRejected(rejected).map((text) => ({ code: 'item_rejected', path, text }))
}

const MAX_SHOWN_URIS = 3

/** Returns one warning for each set of servers, because they may share thousands of URIs. */
function contestedWarnings(contested: readonly ContestedUri[]): readonly GatewayWarning[] {
  return [...Map.groupBy(contested, ({ servers }) => servers.join('", "'))].map(([servers, uris]) => {
    const shown = uris.slice(0, MAX_SHOWN_URIS).map(({ uri }) => `"${uri}"`)
    const more = uris.length > shown.length ? ` and ${uris.length - shown.length} more` : ''
    const text = `the servers "${servers}" could each own ${shown.join(', ')}${more}, so nobody can read these resources`
    return { code: 'uri_contested', path: 'servers', text }
  })
}

/**
 * Returns the kinds of items that a server has and its entry does not mention. An entry with `offers` needs no warning.
 */
function findDropped(
  { name, offersByDefault }: ServerConfig,
  source: ReturnType<WarningsDeps['sources']>[number] | undefined,
): readonly GatewayWarning[] {
  const dropped = source?.dropped ?? []
  if (offersByDefault !== true || dropped.length === 0) return []
  const kinds = dropped.join(' and ')
  const all = ['tools', ...dropped].join(', ')
  return [
    {
      code: 'not_offered',
      path: formatPath(['servers', name]),
      text: `the server also has ${kinds}, which its entry does not offer; add "offers: [${all}]", or "offers: [tools]" to keep it so`,
    },
  ]
}

/** Returns the overlay patterns that match no tool of a server, once it has listed its tools. */
function findUnmatched(
  { name, tools }: ServerConfig,
  source: ReturnType<WarningsDeps['sources']>[number] | undefined,
): readonly LintWarning[] {
  if (tools.size === 0 || !source?.isListed()) return []
  const names = source.toolNames
  return [...tools.keys()].flatMap((pattern) => {
    const glob = parseGlob(pattern)
    if (names.some((tool) => matchesGlob(glob, tool))) return []
    return [
      {
        code: 'selector_unmatched',
        path: formatPath(['servers', name, 'tools', pattern]),
        text: `"${pattern}" names no tool of the server${didYouMean(pattern, names)}`,
      },
    ]
  })
}

/** Returns the entries whose `compare` cannot work with the tools that the server has listed. */
function findUncomparable(
  { name, tools }: ServerConfig,
  source: ReturnType<WarningsDeps['sources']>[number] | undefined,
  catalog: Gate['catalog'],
): readonly GatewayWarning[] {
  const rules = [...tools].flatMap(([pattern, { compare }]) => (compare ? [{ pattern, compare }] : []))
  if (rules.length === 0 || !source?.isListed()) return []
  const names = source.toolNames
  return rules.flatMap(({ pattern, compare }) => {
    const reader = catalog.get(`${name}:${compare.with}`)
    const glob = parseGlob(pattern)
    const problems = names.flatMap((one) => {
      const tool = matchesGlob(glob, one) ? catalog.get(`${name}:${one}`) : undefined
      return (tool && problemOfRule(compare, tool, reader, names)) ?? []
    })
    const path = formatPath(['servers', name, 'tools', pattern, 'compare'])
    return [...new Set(problems)].map((text) => ({ code: 'compare_unusable' as const, path, text }))
  })
}
