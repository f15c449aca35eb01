import type { View } from '@toolgate/core'
import { kindOfId } from '@toolgate/core/tools'
import type { ToolLists } from '@toolgate/mcp'

/** The names of tools and prompts in a view. */
export type NamesInLists = Pick<ToolLists, 'names' | 'promptNames'>

/**
 * Returns what a client calls each item, for the texts of refusals: the item of the call by the name that the client gave it,
 * tools and prompts by their names on the wire, resources by their URIs.
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
