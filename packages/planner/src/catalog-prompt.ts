import type { Tool, View } from '@toolgate/core'

/** The facts for the catalog's part of the instructions. Equal facts have equal text. */
export interface CatalogFacts {
  /** Visible tools, by id. */
  readonly tools: readonly Tool[]
  /** Messages of denials, hints of locked groups. */
  readonly notices: readonly string[]
}

/**
 * Returns the catalog's part of the instructions, or an empty text. The function must be pure: it runs once for equal
 * facts.
 */
export type RenderCatalog = (facts: CatalogFacts) => string

/** Returns the notices, one per line. It does not describe the tools, because the model gets these as tools. */
export const renderNotices: RenderCatalog = ({ notices }) =>
  notices.length === 0 ? '' : `About your tools:\n${notices.map((notice) => `- ${notice}`).join('\n')}`

const MAX_KEPT = 256

/** Returns the catalog's part of the instructions for views. Each text is rendered once and cached. */
export function createCatalogPrompt(render: RenderCatalog = renderNotices): (view: View) => string {
  const kept = new Map<string, string>()
  return (view) => {
    // The fingerprint covers only definitions. Notices may differ between views with the same definitions.
    const key = JSON.stringify([view.fingerprint, view.notices])
    const known = kept.get(key)
    const text = known ?? render({ tools: view.tools, notices: view.notices })
    // The entry moves to the end, so that the first entry is the least recently used.
    kept.delete(key)
    kept.set(key, text)
    const [oldest = key] = kept.keys()
    if (kept.size > MAX_KEPT) kept.delete(oldest)
    return text
  }
}

/** Appends the catalog's part to the instructions. */
export function joinInstructions(instructions: string | undefined, catalog: string): string | undefined {
  const parts = [instructions, catalog].filter((part) => part !== undefined && part !== '')
  return parts.length === 0 ? undefined : parts.join('\n\n')
}
