import { isDeepStrictEqual } from 'node:util'
import { ConfigError } from '../errors.ts'
import { definitionOf } from '../tools/definition-hash.ts'
import { defineTool, isTool, type Tool, type ToolDefinition } from '../tools/tool.ts'

/** A tool of an app's own: a selector of tools that there are, or a definition. */
export type OwnTool = string | Tool | ToolDefinition

const made = new WeakMap<object, Tool>()

/** Gives what an app lists of tools as selectors: of a definition, its id. */
export function readOwnTools(path: string, tools: readonly OwnTool[] = []): readonly string[] {
  return tools.map((tool, i) => (typeof tool === 'string' ? tool : toTool(`${path}.tools[${i}]`, tool).id))
}

/**
 * Gives all tools of a gate, those that its apps define themselves among them, each once.
 *
 * The same definition in two places is one tool: the first one's, which is what runs. Two different ones with one id
 * would make what an app offers depend on another app.
 *
 * @throws {ConfigError} `tool_duplicate`, naming both places and what differs
 */
export function collectTools(
  tools: readonly Tool[],
  apps: ReadonlyMap<string, { readonly tools?: readonly OwnTool[] }>,
): readonly Tool[] {
  const owners = new Map(tools.map((tool) => [tool.id, { tool, place: 'tools' }]))
  const added: Tool[] = []
  for (const [name, app] of apps) {
    for (const [i, written] of (Array.isArray(app?.tools) ? app.tools : []).entries()) {
      if (typeof written === 'string') continue
      const place = `apps.${name}.tools[${i}]`
      const tool = toTool(place, written)
      const owner = owners.get(tool.id)
      if (owner) checkSame(place, tool, owner)
      else {
        owners.set(tool.id, { tool, place })
        added.push(tool)
      }
    }
  }
  return [...tools, ...added]
}

function checkSame(path: string, tool: Tool, { tool: first, place }: { tool: Tool; place: string }): void {
  const differs = FIELDS.find((field) => !isDeepStrictEqual(read(tool, field), read(first, field)))
  if (differs === undefined) return
  throw new ConfigError(path, `the tool "${tool.id}" is defined in ${place} too, with another ${differs}`, {
    code: 'tool_duplicate',
  })
}

/** All that is told of a tool, and all that decisions go by. */
const FIELDS = [
  'title',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
  'icons',
  '_meta',
  'strict',
  'tags',
  'category',
  'requiredScopes',
  'hintsTrusted',
  'groups',
] as const

function read(tool: Tool, field: (typeof FIELDS)[number]): unknown {
  return { ...tool, ...definitionOf(tool) }[field]
}

function toTool(path: string, written: unknown): Tool {
  if (typeof written !== 'object' || written === null)
    throw new ConfigError(path, 'must be a selector or a tool', { code: 'tool_invalid' })
  if (isTool(written)) return written
  let tool = made.get(written)
  if (!tool) made.set(written, (tool = defineTool(written as Parameters<typeof defineTool>[0])))
  return tool
}
