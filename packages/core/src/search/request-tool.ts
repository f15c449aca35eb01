import type { Caller } from '../ports/caller.ts'
import type { Group, Groups } from '../tools/groups.ts'
import { markRequestTool, REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import { type CallContext, defineTool, type Tool } from '../tools/tool.ts'
import { callingOf } from './calling.ts'

/** The parts of a gate that the tool uses. */
interface Opening {
  readonly locks: { request(caller: Caller, group: string, tools?: readonly string[]): unknown }
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
      properties: REQUEST_INPUT,
      additionalProperties: false,
    },
    tags: ['meta'],
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    execute({ group, tools: names }: RequestInput, call: CallContext): string {
      const { caller, openable, idsOfNextStep, toId, toName } = callingOf(call)
      if (caller.session === undefined) return REQUEST_TEXTS.no_session
      const known = openable()
      if (group === undefined) return known.map((name) => lineOf(name, groups.locked.get(name))).join('\n')
      if (!known.includes(group)) return REQUEST_TEXTS.unknown(group, known)
      const wanted = names?.flatMap((name) => toId(name) ?? [])
      gate().locks.request(caller, group, wanted)
      const members = new Set(gate().membersOf(group))
      const listed = idsOfNextStep().filter((id) => members.has(id) && id !== REQUEST_TOOL_ID)
      if (!wanted) return REQUEST_TEXTS.opened(group, listed.map(toName))
      return REQUEST_TEXTS.openedSome(group, listed.filter((id) => wanted.includes(id)).map(toName))
    },
  })
  return markRequestTool(tool)
}

/** The input of `request_tools`, without required fields. */
export interface RequestInput {
  readonly group?: string
  /** Names of tools: only these open. */
  readonly tools?: readonly string[]
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
  tools: 'Only these tools of the group, by name. Default: all of them',
  unknown(group: string, names: readonly string[]): string {
    return `There is no group "${group}" to open. The groups are: ${names.join(', ') || '(none)'}.`
  },
  openedSome(group: string, tools: readonly string[]): string {
    return tools.length === 0
      ? `The group "${group}" has none of these tools for you.`
      : `In your list from your next step on: ${tools.join(', ')}. The rest of the group "${group}" stays as it was.`
  },
  opened(group: string, tools: readonly string[]): string {
    return `The group "${group}" is open. In your list from your next step on: ${tools.join(', ') || '(none now)'}.`
  },
} as const

/** The properties of the input of `request_tools`. */
export const REQUEST_INPUT = {
  group: { type: 'string', minLength: 1, maxLength: 64, description: REQUEST_TEXTS.group },
  tools: {
    type: 'array',
    items: { type: 'string', minLength: 1, maxLength: 257 },
    minItems: 1,
    maxItems: 20,
    description: REQUEST_TEXTS.tools,
  },
} as const
