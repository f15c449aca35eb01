import { type Caller, ConfigError, type Gate } from '@toolgate/core'
import { type createAvailability, parseGroups } from '@toolgate/core/groups'
import { createMetaTools } from '@toolgate/mcp'
import type { Rules, Settings } from '../auth/revision.ts'
import type { GroupConfig } from '../config/config.ts'
import type { GatewayRedactor } from '../config/redaction.ts'
import type { Host } from '../heart/heart.ts'
import type { Upstream } from '../model/upstream.ts'
import { toApps, toGroups } from '../servers/catalog/groups.ts'
import type { Connections } from '../servers/connections/connections.ts'
import type { Fleet } from '../servers/fleet.ts'

const DEFAULT_TTL_MS = 10_000

type ReadGroups = ReturnType<typeof toGroups>
type ParsedGroups = ReturnType<typeof parseGroups>
type MetaTools = ReturnType<typeof createMetaTools>

interface GateRulesDeps {
  readonly search: NonNullable<Settings['search']>
  readonly redact: GatewayRedactor
  readonly fleet: Fleet
  /** A function, because the gate is created from these rules. */
  readonly gate: () => Gate
  /** Called when a session opens a group. */
  readonly onUnlocked: (caller: Caller) => void
  /** An upper bound for how long a probe's result is cached. */
  readonly probeEveryMs: number | undefined
}

/** The parts of a gate's rules that come from the file: groups, apps, and the gateway's own tools. */
export class GatewayRules {
  /** The initial groups. */
  readonly groups: ReadGroups
  readonly opensByCalls: boolean
  readonly #deps: GateRulesDeps
  #parsed: ParsedGroups
  #ownTools: MetaTools

  constructor(deps: GateRulesDeps, rules: Rules) {
    this.#deps = deps
    this.groups = this.#groupsOf(rules, deps.fleet.upstreams)
    this.#parsed = parse(this.groups, rules)
    this.#ownTools = this.#toolsOf(this.#parsed)
    this.opensByCalls = opensByCalls(this.#parsed)
  }

  get ownTools(): MetaTools {
    return this.#ownTools
  }

  get selectors(): ParsedGroups['selectors'] {
    return this.#parsed.selectors
  }

  /**
   * Replaces the rules of the gate, its groups and its servers in one turn, together with everything that `alongside`
   * replaces.
   */
  replace(
    next: Rules,
    alongside: () => void,
    {
      availability,
      connections,
    }: { readonly availability: ReturnType<typeof createAvailability>; readonly connections: Connections },
  ): ReturnType<Host['replace']> {
    const { fleet, gate } = this.#deps
    const staged = fleet.stage(next.servers)
    const groups = this.#groupsOf(next, staged.upstreams)
    const parsed = parse(groups, next)
    if (opensByCalls(parsed) && !this.opensByCalls)
      throw new ConfigError('groups', 'that open by an event need a restart, where none did before')
    const tools = this.#sameTools(this.#toolsOf(parsed))
    let committed: ReturnType<typeof staged.commit> = { started: [], retired: [] }
    const swap = () => {
      committed = staged.commit()
      availability.replace(groups)
      this.#parsed = parsed
      this.#ownTools = tools
      alongside()
      connections.renew()
    }
    const { aliases, grants, labels, limits, policy } = next
    // A server of the next revision is already open but not started, so it leaves nothing behind if a rule is invalid.
    const apps = toApps(
      next.apps,
      tools.map(({ id }) => id),
    )
    const ofGate = { tools, sources: staged.sources, groups, apps, policy, limits }
    const optional = { ...(aliases && { aliases }), ...(labels && { labels }), ...(grants && { grants }) }
    gate().setRules({ ...ofGate, ...optional }, swap)
    return committed
  }

  #sameTools(next: MetaTools): MetaTools {
    const now = this.#ownTools
    const isSame = next.length === now.length && next.every(({ id }, i) => id === now[i]?.id)
    return isSame ? now : next
  }

  #toolsOf(groups: ParsedGroups): MetaTools {
    const { search, gate, onUnlocked } = this.#deps
    return createMetaTools({ groups, search, gate, onUnlocked })
  }

  #groupsOf({ groups }: Rules, servers: readonly Upstream[]): ReadGroups {
    const { probeEveryMs, redact: redactor, fleet } = this.#deps
    return toGroups(withTtl(groups, probeEveryMs), { servers, redactor, reaper: fleet.reaper })
  }
}

function parse(groups: ReadGroups, { aliases = {} }: Rules): ParsedGroups {
  return parseGroups(groups, new Map(Object.entries(aliases)))
}

function opensByCalls({ locked }: ParsedGroups): boolean {
  return [...locked.values()].some(({ unlock }) => typeof unlock === 'object')
}

function withTtl(groups: readonly GroupConfig[], mostMs = Number.POSITIVE_INFINITY): readonly GroupConfig[] {
  return groups.map((group) => (mostMs < (group.ttlMs ?? DEFAULT_TTL_MS) ? { ...group, ttlMs: mostMs } : group))
}
