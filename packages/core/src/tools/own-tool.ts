import type { Tool } from './tool.ts'
import type { Toolset } from './toolset.ts'

/** The id of the tool that a model calls to open locked groups. */
export const REQUEST_TOOL_ID = 'request_tools'

const own = new WeakSet<Tool>()
const requesting = new WeakSet<Tool>()

/** Marks a tool of Toolgate itself, such as `search_tools`. No source can list it, so pins do not suspend it as new. */
export function markOwnTool(tool: Tool): Tool {
  own.add(tool)
  return tool
}

export function isOwnTool(tool: Tool): boolean {
  return own.has(tool)
}

const passing = new WeakSet<Tool>()

/** Marks a tool that returns the output of a call that it makes. The inner call is the one that counts. */
export function markPassingTool(tool: Tool): Tool {
  passing.add(tool)
  return tool
}

export function isPassingTool(tool: Tool): boolean {
  return passing.has(tool)
}

const unlisted = new WeakSet<Tool>()

/** Marks a resource that no server lists. It was made for one URI, and has no definition that a server could change. */
export function markUnlisted(tool: Tool): Tool {
  unlisted.add(tool)
  return tool
}

export function isUnlisted(tool: Tool): boolean {
  return unlisted.has(tool)
}

const ofOne = new WeakSet<Tool>()

/** Marks a tool from the list of a single caller. Other callers may have another definition of it. */
export function markListedForOne(tool: Tool): void {
  ofOne.add(tool)
}

export function isListedForOne(tool: Tool): boolean {
  return ofOne.has(tool)
}

/** Marks the `request_tools` that a gate adds itself. */
export function markRequestTool(tool: Tool): Tool {
  requesting.add(tool)
  return markOwnTool(tool)
}

/** Returns whether a gate added this tool itself, to open locked groups. */
export function isRequestTool(tool: Tool): boolean {
  return requesting.has(tool)
}

/** Returns the index of the `request_tools` that the gate added, or -1. */
export function indexOfRequestTool(snapshot: Toolset): number {
  const tool = snapshot.get(REQUEST_TOOL_ID)
  return tool && isRequestTool(tool) ? snapshot.indexOf(REQUEST_TOOL_ID) : -1
}
