import { createWireNames, type Tool, type Toolset, type View, type WireNames } from '@toolgate/core'

/** A tool as `tools/list` shows it (MCP `Tool`). */
export interface ListedTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: object
  readonly outputSchema?: object
  readonly annotations?: object
}

/** Gives what `tools/list` shows of a view, in the order of the ids. A tool whose wire name is not its own is left out. */
export function toListedTools(view: Pick<View, 'tools'>, names: WireNames): readonly ListedTool[] {
  return view.tools.flatMap((tool) => {
    const name = names.toName(tool.id)
    return name === undefined ? [] : [toListedTool(tool, name)]
  })
}

function toListedTool(tool: Tool, name: string): ListedTool {
  const { title, description, inputSchema, outputSchema, annotations } = tool
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === '' ? {} : { description }),
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  }
}

/** Gives a function that finds the wire names of a snapshot, made once for each. */
export function createNaming(): (snapshot: Toolset) => WireNames {
  const known = new WeakMap<Toolset, WireNames>()
  return (snapshot) => {
    let names = known.get(snapshot)
    if (!names) known.set(snapshot, (names = createWireNames(snapshot)))
    return names
  }
}
