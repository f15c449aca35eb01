import { type ExposedNames, type Tool, toWireName } from '@toolgate/core'
import { nativeOf, sdkNameOf } from './natives.ts'

/** Gives the name under which the SDK knows a tool of the gate. */
export function toolNameOf(tool: Tool): string {
  const native = nativeOf(tool)
  return native ? sdkNameOf(native) : toWireName(tool)
}

/** Gives the names of a gate's tools in the SDK, both ways, of the hidden ones too. */
export function namesOf(tools: readonly Tool[]): ExposedNames {
  const ids = new Map<string, string>()
  const names = new Map<string, string>()
  for (const tool of tools) {
    const name = toolNameOf(tool)
    ids.set(name, tool.id)
    names.set(tool.id, name)
  }
  return { toId: (name) => ids.get(name), toName: (id) => names.get(id) }
}
