import { skeleton } from '../tools/confusables.ts'
import { matchesGlob } from '../tools/glob.ts'
import { matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { LintWarning } from './lint.ts'
import type { ParsedPolicy } from './parse.ts'

/** Finds tools whose names look like a name that a `deny` or `ask` matches in several namespaces, but are not matched. */
export function lintLookAlikes(policies: readonly ParsedPolicy[], snapshot: Toolset): readonly LintWarning[] {
  return policies
    .flatMap(({ deny, ask }) => [...deny, ...ask])
    .flatMap(({ path, kind, selectors }) =>
      selectors.flatMap((selector): LintWarning[] => {
        const [name, ...more] = selector.kind === 'glob' ? selector.name : []
        if (selector.kind !== 'glob' || name === undefined || name === '' || more.length > 0) return []
        const { namespace } = selector
        const wanted = likenessOf(name)
        const alike = snapshot.tools.filter(
          (tool) =>
            likeness(tool) === wanted &&
            (namespace === undefined || matchesGlob(namespace, tool.namespace ?? '')) &&
            !selectors.some((one) => matchesSelector(one, tool, 'possible')),
        )
        if (alike.length === 0) return []
        const tools = alike.map(({ id }) => id)
        const text = `"${selector.text}" does not ${kind === 'deny' ? 'deny' : 'ask about'} ${tools.map((id) => JSON.stringify(id)).join(', ')}, whose name reads like it`
        return [{ code: 'name_confusable', path, text, tools }]
      }),
    )
}

const known = new WeakMap<Tool, string>()

function likeness(tool: Tool): string {
  let found = known.get(tool)
  if (found === undefined) known.set(tool, (found = likenessOf(tool.name)))
  return found
}

/** Returns equal texts for names that look alike, or differ only in letter case, `-`, `_` and `.`. */
function likenessOf(name: string): string {
  return skeleton(skeleton(name.replaceAll(/[-_.]/g, '')).toLowerCase())
}
