import type { Tool } from './tool.ts'

const own = new WeakSet<Tool>()

/** Marks a tool as one of Toolgate itself, such as `search_tools`: no source can list it, so pins do not hold it as new. */
export function markOwnTool(tool: Tool): Tool {
  own.add(tool)
  return tool
}

export function isOwnTool(tool: Tool): boolean {
  return own.has(tool)
}
