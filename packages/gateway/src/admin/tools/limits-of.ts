import type { Tool } from '@toolgate/core'
import { parseLimits } from '@toolgate/core/call'
import { matchesSelector } from '@toolgate/core/toolset'
import type { Heart } from '../../heart/heart.ts'

/** Returns a function that returns the written form of the limits that count a tool's calls. */
export function createLimitsOf({ revisions, catalog }: Pick<Heart, 'revisions' | 'catalog'>): (tool: Tool) => string[] {
  const limits = revisions.derive((rules) =>
    parseLimits(rules.limits, catalog.selectors()).map((limit, i) => {
      const written = rules.limits[i]
      return { ...limit, text: typeof written === 'string' ? written : limitText(limit) }
    }),
  )
  return (tool) => limits().flatMap(({ selector, text }) => (matchesSelector(selector, tool, 'possible') ? [text] : []))
}

/** Returns the text of a limit that is an object: `files:*:5/1.5 per tenant`. */
function limitText({ selector, label, per }: ReturnType<typeof parseLimits>[number]): string {
  return `${selector.text}:${label} per ${per.join(', ') || 'all callers together'}`
}
