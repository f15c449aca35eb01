/** What `request_tools` says to a model, whoever defines it. */
export const REQUEST_TEXTS = {
  title: 'Request tools',
  description: 'Opens a group of tools for this session. Its tools are in your list from your next step on.',
  no_session: 'You have no session to open groups for. Find tools with search_tools, and call them with call_tool.',
  group: 'The name of the group',
  unknown(group: string, names: readonly string[]): string {
    return `There is no group "${group}" to open. The groups are: ${names.join(', ') || '(none)'}.`
  },
  opened(group: string, tools: readonly string[]): string {
    return `The group "${group}" is open. In your list from your next step on: ${tools.join(', ') || '(none now)'}.`
  },
} as const
