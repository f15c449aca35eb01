import type { View } from '@toolgate/core'
import { kindOfId } from '@toolgate/core/tools'
import type { ToolLists } from '@toolgate/mcp'

/** The names of tools and prompts in a view. */
export type NamesInLists = Pick<ToolLists, 'names' | 'promptNames'>

/**
 * Returns the client's names of items, for the texts of refusals. The called item has the name that the client used,
 * tools and prompts have their names on the wire, and resources have their URIs.
 */
export function clientNames(
  lists: NamesInLists,
  view: View,
  asked: { readonly id: string | undefined; readonly name: string },
): (id: string) => string {
  return (id) => {
    if (id === asked.id) return asked.name
    const kind = kindOfId(id)
    if (kind === 'tool') return lists.names(view).toName(id) ?? id
    if (kind === 'prompt') return lists.promptNames(view).toName(id) ?? id
    return id.split(':').slice(2).join(':')
  }
}
