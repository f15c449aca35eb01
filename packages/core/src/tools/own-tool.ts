import type { Tool } from './tool.ts'
import type { Toolset } from './toolset.ts'

/** The id of the tool with which a model opens locked groups, whoever defines it. */
export const REQUEST_TOOL_ID = 'request_tools'

const own = new WeakSet<Tool>()
const requesting = new WeakSet<Tool>()

/** Marks a tool as one of Toolgate itself, such as `search_tools`: no source can list it, so pins do not hold it as new. */
export function markOwnTool(tool: Tool): Tool {
  own.add(tool)
  return tool
}

export function isOwnTool(tool: Tool): boolean {
  return own.has(tool)
}

/** Marks a tool as the `request_tools` that a gate adds by itself. */
export function markRequestTool(tool: Tool): Tool {
  requesting.add(tool)
  return markOwnTool(tool)
}

/** Whether a gate has added this tool by itself, to open locked groups. */
export function isRequestTool(tool: Tool): boolean {
  return requesting.has(tool)
}

/** Returns the index of the `request_tools` that the gate has added; -1 where it has added none. */
export function indexOfRequestTool(snapshot: Toolset): number {
  const tool = snapshot.get(REQUEST_TOOL_ID)
  return tool && isRequestTool(tool) ? snapshot.indexOf(REQUEST_TOOL_ID) : -1
}
