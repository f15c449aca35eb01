import type { Catalog } from '../tools/catalog.ts'
import type { Tool } from '../tools/tool.ts'
import { lintSchema, type LintWarning } from './lint.ts'

/** An upstream that changes its schemas for ever must fill neither the log nor the memory. */
const MAX_TOLD = 1000

/** Returns a function that warns of the keywords that are not checked of tools that are new since its last call. */
export function createSchemaWatch(
  catalog: Pick<Catalog, 'snapshot'>,
  onWarning: (warning: LintWarning) => void,
): () => void {
  const seen = new WeakSet<Tool>()
  const told = new Set<string>()
  return () => {
    for (const tool of catalog.snapshot().tools) {
      if (seen.has(tool)) continue
      seen.add(tool)
      for (const warning of lintSchema(tool)) {
        if (told.has(warning.path) || told.size >= MAX_TOLD) continue
        told.add(warning.path)
        onWarning(warning)
      }
    }
  }
}
