import type { Gate } from '@toolgate/core'
import { createWireNames, type ExposedNames, type WireNames } from '@toolgate/core/expose'
import type { Toolset } from '@toolgate/core/toolset'

/** Gives the names by which tools are sent. They depend on the ids alone, so those of the whole catalog serve every view. */
export function createNames({ catalog }: Pick<Gate, 'catalog'>): ExposedNames {
  let known: { readonly snapshot: Toolset; readonly names: WireNames } | undefined
  const now = (): WireNames => {
    const snapshot = catalog.snapshot()
    if (known?.snapshot !== snapshot) known = { snapshot, names: createWireNames(snapshot.tools) }
    return known.names
  }
  return { toId: (name) => now().toId(name), toName: (id) => now().toName(id) }
}
