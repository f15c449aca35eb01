import type { Caller } from '../ports/caller.ts'
import type { Group, Groups } from '../tools/groups.ts'
import { markRequestTool, REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import { type CallContext, defineTool, type Tool } from '../tools/tool.ts'
import { callingOf } from './calling.ts'

/** The parts of a gate that the tool uses. */
interface Opening {
  readonly locks: { request(caller: Caller, group: string): unknown }
  membersOf(group: string): readonly string[]
}

/**
 * Returns the tools of a gate, with `request_tools` if a group opens by request and the host has no tool with that id.
 */
export function withRequestTool(tools: readonly Tool[], groups: Groups, gate: () => Opening): readonly Tool[] {
  const isWanted = [...groups.locked.values()].some(({ unlock }) => unlock === 'request')
  if (!isWanted || tools.some(({ id }) => id === REQUEST_TOOL_ID)) return tools
  return [...tools, createRequestTool(groups, gate)]
}

/** Returns the tool that opens a group. A group without a tool that the caller may use counts as unknown. */
function createRequestTool(groups: Groups, gate: () => Opening): Tool {
  const tool = defineTool({
    name: REQUEST_TOOL_ID,
    title: REQUEST_TEXTS.title,
    description: `${REQUEST_TEXTS.description} Without a group, lists those that you can open.`,
    inputSchema: {
      type: 'object',
      properties: { group: { type: 'string', minLength: 1, maxLength: 64, description: REQUEST_TEXTS.group } },
      additionalProperties: false,
    },
    tags: ['meta'],
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    execute({ group }: { readonly group?: string }, call: CallContext): string {
      const { caller, openable, idsOfNextStep, toName } = callingOf(call)
      if (caller.session === undefined) return REQUEST_TEXTS.no_session
      const known = openable()
      if (group === undefined) return known.map((name) => lineOf(name, groups.locked.get(name))).join('\n')
      if (!known.includes(group)) return REQUEST_TEXTS.unknown(group, known)
      gate().locks.request(caller, group)
      const members = new Set(gate().membersOf(group))
      const listed = idsOfNextStep().filter((id) => members.has(id) && id !== REQUEST_TOOL_ID)
      return REQUEST_TEXTS.opened(group, listed.map(toName))
    },
  })
  return markRequestTool(tool)
}

function lineOf(name: string, { title, hint }: Partial<Group> = {}): string {
  return [`- ${name}:`, title === undefined ? undefined : `${title}.`, hint].filter(Boolean).join(' ')
}

/** The texts of `request_tools` for a model. */
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
