import { randomUUID } from 'node:crypto'
import type { Caller, Gate, Tool, View } from '@toolgate/core'
import { createWireNames, type WireNames } from '@toolgate/core/expose'
import { type ListedTool, sha256Hex, toListedTool } from '@toolgate/core/internal'
import type { Toolset } from '@toolgate/core/toolset'

export interface Listing {
  readonly tools: readonly ListedTool[]
  /** Equal lists have equal keys. */
  readonly key: string
}

export interface Listings {
  /** The names of all tools there are, hidden ones too, so that the audit says which was asked for. */
  names(): WireNames
  of(caller: Caller): Promise<Listing>
}

type OpenView = (caller: Caller) => Promise<View>

/** Gives the lists of callers, each made once for as long as nothing changes. */
export function createListings({ catalog }: Pick<Gate, 'catalog'>, openView: OpenView): Listings {
  const naming = new WeakMap<Toolset, WireNames>()
  const known = new WeakMap<View, Listing>()

  const names = (): WireNames => {
    const snapshot = catalog.snapshot()
    let found = naming.get(snapshot)
    if (!found) naming.set(snapshot, (found = createWireNames(snapshot)))
    return found
  }

  return {
    names,
    async of(caller) {
      const view = await openView(caller)
      let listing = known.get(view)
      if (!listing) {
        const shown = caller.session === undefined ? await withoutLocked(view, openView) : view.tools
        known.set(view, (listing = toListing(shown, names())))
      }
      return listing
    },
  }
}

function toListing(shown: readonly Tool[], names: WireNames): Listing {
  const tools = shown.flatMap((tool) => {
    const name = names.toName(tool.id)
    const listed = name === undefined ? undefined : toListedTool(tool, name)
    return listed ? [listed] : []
  })
  return { tools, key: sha256Hex(JSON.stringify(tools)) }
}

/** In it nothing has been opened, ever. */
const NEW_SESSION = randomUUID()

/**
 * Leaves out what a session would have to open first: without one a lock is about listing only, and what it holds back
 * is found and called through the meta-tools.
 */
async function withoutLocked(view: View, openView: OpenView): Promise<readonly Tool[]> {
  const locked = await openView({ ...view.caller, session: NEW_SESSION })
  return view.tools.filter(
    ({ id }) => locked.has(id) || !locked.explain(id).reasons.some(({ code }) => code === 'group_locked'),
  )
}
