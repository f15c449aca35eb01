import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { checkDefinition, type DefinitionFinding, FINDINGS } from './definition-check.ts'
import { findNearNames } from './near-names.ts'

/** What is found of tools: in their own definitions, and in their names beside those of the others. */
export interface DefinitionChecks {
  findings(tool: Tool, snapshot: Toolset): readonly DefinitionFinding[]
  /** Those for which quarantine hides the tool. */
  grave(tool: Tool, snapshot: Toolset): readonly DefinitionFinding[]
}

export function createDefinitionChecks(): DefinitionChecks {
  const names = new WeakMap<Toolset, ReadonlyMap<string, readonly DefinitionFinding[]>>()
  let latest: { readonly ids: string; readonly found: ReadonlyMap<string, readonly DefinitionFinding[]> } | undefined
  const namesIn = (snapshot: Toolset) => {
    let found = names.get(snapshot)
    if (!found) {
      // Definitions change more often than names do.
      const ids = snapshot.ids.join(' ')
      if (latest?.ids !== ids) latest = { ids, found: findNearNames(snapshot) }
      names.set(snapshot, (found = latest.found))
    }
    return found
  }
  const findings = (tool: Tool, snapshot: Toolset): readonly DefinitionFinding[] => {
    const own = checkDefinition(tool)
    const beside = namesIn(snapshot).get(tool.id)
    return beside ? [...own, ...beside] : own
  }
  return {
    findings,
    grave: (tool, snapshot) => findings(tool, snapshot).filter((finding) => quarantines(tool, finding)),
  }
}

/** Of two names that look alike, plain ASCII is not the one in disguise: else one server could take away another's tool. */
function quarantines({ name }: Tool, { code }: DefinitionFinding): boolean {
  return FINDINGS[code].quarantines && (code !== 'name_lookalike' || /[^ -~]/.test(name))
}
