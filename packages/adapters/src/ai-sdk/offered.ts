import type { Tool, View } from '@toolgate/core'
import { expose, toWireName } from '@toolgate/core/expose'
import { type ImportedTool, importedFrom } from './import-tools.ts'
import { toSchema } from './schema.ts'

/** A tool of a gate, as the SDK is given it. */
export interface Offered {
  readonly id: string
  /** On the wire. */
  readonly name: string
  readonly tool: Tool
  readonly imported: ImportedTool | undefined
  /** What the SDK gets, but for `execute`. Shared by all runs. */
  readonly definition: object
  /** It gives its output bit by bit, and the SDK wants to know before it runs. */
  readonly isGenerator: boolean
  readonly isEnforceable: boolean
}

/** Gives a tool that was brought in from the SDK as it is given back; `undefined` for any other. */
export function offerImported(tool: Tool): Offered | undefined {
  let offered = kept.get(tool)
  if (offered) return offered
  const imported = importedFrom(tool.execute)
  if (!imported) return undefined
  const { execute, needsApproval: _, ...rest } = imported.tool as ImportedTool['tool'] & Record<string, unknown>
  const { inputSchema } = imported
  offered = {
    id: tool.id,
    name: toWireName(tool),
    tool,
    imported,
    definition: inputSchema ? { ...rest, inputSchema } : rest,
    isGenerator: isGeneratorFunction(execute),
    isEnforceable: imported.isEnforceable,
  }
  kept.set(tool, offered)
  return offered
}

/** By tool, which never changes. */
const kept = new WeakMap<Tool, Offered>()

/** Gives tools that are the gate's own, such as those of an MCP server, as the SDK takes them; without those that cannot be. */
export function offerOwn(view: View, tools: readonly Tool[], onWarning: (text: string) => void): readonly Offered[] {
  if (tools.length === 0) return []
  const own = tools.length === view.size ? view : view.narrow({ activeTools: tools.map(({ id }) => id) })
  const { tools: definitions, names, errors } = expose(own, 'ai-sdk')
  for (const { tool, message } of errors) onWarning(`"${tool}" cannot be offered: it ${message}.`)
  return tools.flatMap((tool) => {
    const name = names.toName(tool.id)
    const exposed = name === undefined ? undefined : definitions[name]
    if (name === undefined || !exposed) return []
    const { id } = tool
    const definition = { ...exposed, inputSchema: toSchema(exposed.inputSchema.jsonSchema) }
    return [{ id, name, tool, imported: undefined, definition, isGenerator: false, isEnforceable: true }]
  })
}

function isGeneratorFunction(execute: unknown): boolean {
  return Object.prototype.toString.call(execute) === '[object AsyncGeneratorFunction]'
}
