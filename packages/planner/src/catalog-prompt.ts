import type { Tool, View } from '@toolgate/core'

/** What the catalog's part of the instructions is made of: equal ones have equal text. */
export interface CatalogFacts {
  /** In the order of their ids. */
  readonly tools: readonly Tool[]
  /** Messages of denials, hints of locked groups. */
  readonly notices: readonly string[]
}

/** Gives the catalog's part of the instructions; an empty text is none. Pure: it is asked once for the same facts. */
export type RenderCatalog = (facts: CatalogFacts) => string

/** The notices, one a line: the tools themselves are sent as tools. */
export const renderNotices: RenderCatalog = ({ notices }) =>
  notices.length === 0 ? '' : `About your tools:\n${notices.map((notice) => `- ${notice}`).join('\n')}`

const MAX_KEPT = 256

/** Gives the catalog's part of the instructions for views, each text made once for as long as it is asked for. */
export function createCatalogPrompt(render: RenderCatalog = renderNotices): (view: View) => string {
  const kept = new Map<string, string>()
  return (view) => {
    // The fingerprint is of the definitions; what is noticed may differ where those are the same.
    const key = JSON.stringify([view.fingerprint, view.notices])
    const known = kept.get(key)
    const text = known ?? render({ tools: view.tools, notices: view.notices })
    // Put last again, so that the first one is the one that was not asked for the longest.
    kept.delete(key)
    kept.set(key, text)
    const [oldest = key] = kept.keys()
    if (kept.size > MAX_KEPT) kept.delete(oldest)
    return text
  }
}

/** Puts the catalog's part behind the instructions. */
export function joinInstructions(instructions: string | undefined, catalog: string): string | undefined {
  const parts = [instructions, catalog].filter((part) => part !== undefined && part !== '')
  return parts.length === 0 ? undefined : parts.join('\n\n')
}
