import type { View } from '@toolgate/core'
import { createWireNames, type WireNames } from '@toolgate/core/expose'
import { type ListedTool, toListedTool } from '@toolgate/core/internal'
import type { Toolset } from '@toolgate/core/toolset'

/** Gives what `tools/list` shows of a view, in the order of the ids. A tool whose wire name is not its own is left out. */
export function toListedTools(view: Pick<View, 'tools'>, names: WireNames): readonly ListedTool[] {
  return view.tools.flatMap((tool) => {
    const name = names.toName(tool.id)
    const listed = name === undefined ? undefined : toListedTool(tool, name)
    return listed ? [listed] : []
  })
}

/** Gives a function that finds the wire names of a snapshot, made once for each. */
export function createNaming(): (snapshot: Toolset) => WireNames {
  const known = new WeakMap<Toolset, WireNames>()
  return (snapshot) => {
    let names = known.get(snapshot)
    if (!names) known.set(snapshot, (names = createWireNames(snapshot)))
    return names
  }
}
