import { ConfigError, type Tool } from '@toolgate/core'
import { type ExposedNames, toWireName } from '@toolgate/core/expose'
import { nativeOf, sdkNameOf } from './natives.ts'

/** Gives the name under which the SDK knows a tool of the gate. */
export function toolNameOf(tool: Tool): string {
  const native = nativeOf(tool)
  return native ? sdkNameOf(native) : toWireName(tool)
}

/**
 * Gives the names of a gate's tools in the SDK, both ways, of the hidden ones too.
 *
 * @throws {ConfigError} where two tools have one name there
 */
export function namesOf(tools: readonly Tool[]): ExposedNames {
  const ids = new Map<string, string>()
  const names = new Map<string, string>()
  for (const tool of tools) {
    const name = toolNameOf(tool)
    const other = ids.get(name)
    if (other !== undefined) throw new ConfigError('guard', `"${other}" and "${tool.id}" are both "${name}" in the SDK`)
    ids.set(name, tool.id)
    names.set(tool.id, name)
  }
  return { toId: (name) => ids.get(name), toName: (id) => names.get(id) }
}
