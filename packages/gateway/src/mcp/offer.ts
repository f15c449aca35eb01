import type { Gate, Tool, View } from '@toolgate/core'
import type { Group } from '@toolgate/core/groups'
import { sha256Hex } from '@toolgate/core/internal'
import { definitionHash } from '@toolgate/core/pins'
import type { Toolset } from '@toolgate/core/toolset'
import type { SearchConfig } from '../config/config.ts'
import { isRequested, type LockedGroup, toRequestDescription, toSearchDescription } from './locked-groups.ts'
import { isMetaTool } from './meta-tools.ts'

/** What `tools/list` shows of a view. */
export interface Offered {
  /** In the order of their ids; those that find others say what there is to find. */
  readonly tools: readonly Tool[]
  /** Equal lists have equal keys. */
  readonly key: string
}

export interface OfferDeps {
  readonly gate: Pick<Gate, 'catalog' | 'membersOf'>
  /** By name. */
  readonly locked: ReadonlyMap<string, Group>
  readonly search: SearchConfig
}

export interface Offers {
  of(view: View): Offered
  /** The locked groups of which this caller may use something, open or not, by name. */
  lockedFor(view: View): readonly LockedGroup[]
}

/**
 * Gives what is offered to each caller.
 *
 * A caller without a session has nothing to open for, and its list must not depend on what it asked before: what is
 * locked stays off the list, and is found and called through the meta-tools. Decided is nothing here.
 */
export function createOffers(deps: OfferDeps): Offers {
  const known = new WeakMap<View, Offered>()
  const lockedIds = createLockedIds(deps)
  const isPlain = deps.locked.size === 0 && deps.search.offer !== 'always' && deps.search.above === undefined

  return { of, lockedFor }

  function of(view: View): Offered {
    // The lists of those who see the same have one fingerprint, made once.
    if (isPlain) return { tools: view.tools, key: view.fingerprint }
    let offered = known.get(view)
    if (!offered) known.set(view, (offered = make(view)))
    return offered
  }

  function make(view: View): Offered {
    const { session } = view.caller
    const hidden = session === undefined ? lockedIds() : NONE
    const locked = lockedFor(view)
    const usable = view.tools.filter((tool) => !isMetaTool(tool) && !hidden.has(tool.id))
    const isOffered = isSearchOffered(deps.search, locked.length, usable.length)
    const tools = view.tools.flatMap((tool): readonly Tool[] => {
      if (hidden.has(tool.id)) return []
      const meta = isMetaTool(tool)
      if (!meta) return [tool]
      if (meta === 'request_tools')
        return session !== undefined && locked.some(isRequested)
          ? [describedAs(tool, toRequestDescription(locked))]
          : []
      if (!isOffered) return []
      return meta === 'search_tools'
        ? [describedAs(tool, toSearchDescription(tool.description, locked, session))]
        : [tool]
    })
    return { tools, key: sha256Hex(tools.map((tool) => `${definitionHash(tool)}\n${tool.description}`).join('\n')) }
  }

  function lockedFor(view: View): readonly LockedGroup[] {
    const found: LockedGroup[] = []
    for (const [name, group] of [...deps.locked].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const members = deps.gate.membersOf(name)
      const isOpen = members.some((id) => view.has(id))
      if (isOpen || members.some((id) => isOnlyLocked(view, id))) found.push({ name, group, isClosed: !isOpen })
    }
    return found
  }
}

const NONE: ReadonlySet<string> = new Set()

/** Whether nothing but locks holds a tool back: of any other the caller is told nothing. */
function isOnlyLocked(view: View, id: string): boolean {
  if (view.caller.session === undefined) return false
  const { outcome, reasons } = view.explain(id)
  return outcome === 'wait' && reasons.every((reason) => reason.code === 'group_locked' || reason.outcome === 'ask')
}

function isSearchOffered({ offer, above = Infinity }: SearchConfig, locked: number, listed: number): boolean {
  return offer === 'always' || (offer === 'auto' && (locked > 0 || listed > above))
}

/** The ids of all tools of locked groups, once for each catalog. */
function createLockedIds({ gate, locked }: OfferDeps): () => ReadonlySet<string> {
  const known = new WeakMap<Toolset, ReadonlySet<string>>()
  return () => {
    const snapshot = gate.catalog.snapshot()
    let ids = known.get(snapshot)
    if (!ids) known.set(snapshot, (ids = new Set([...locked.keys()].flatMap((name) => gate.membersOf(name)))))
    return ids
  }
}

function describedAs(tool: Tool, description: string): Tool {
  return { ...tool, description }
}
