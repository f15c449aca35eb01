import { ConfigError, type Tool } from '@toolgate/core'
import { createWireNames, toWireName } from '@toolgate/core/expose'
import { partsOfName, toHarnessName, toServerPrefix } from './harness.ts'
import { harnessNameOf } from './tools.ts'

/** The names by which the harness calls the tools of a gate: its own, and those of the gate's server. */
export interface HarnessNames {
  /** Of hidden tools too, so that a call of one is recorded as that. */
  toId(name: string): string | undefined
  toName(id: string): string | undefined
  /** Whether the tool is run by the gate's own server. `server` is the one that the harness says it is of. */
  isOwn(name: string, server?: ServerOfTool): boolean
  /** The name for the gate's server, from that for the harness. */
  toOwnName(name: string): string
  fromOwnName(name: string): string
}

export interface ServerOfTool {
  readonly name: string
  readonly source: string
}

/** @throws {ConfigError} where another server is brought in by the name of the gate's own */
export function createNames(tools: Iterable<Tool>, serverName: string): HarnessNames {
  const prefix = toServerPrefix(serverName)
  const wire = createWireNames(tools, (tool) => {
    const harnessName = harnessNameOf(tool)
    if (harnessName?.startsWith(prefix))
      throw new ConfigError('serverName', `"${serverName}" is a server of its own, of which "${tool.id}" is a tool`)
    return harnessName ?? `${prefix}${toWireName(tool)}`
  })
  return {
    toId: wire.toId,
    toName: wire.toName,
    // `mcp__gate___x` may be `_x` of the gate's server, and `x` of one named `gate_`.
    isOwn: (name, server) =>
      name.startsWith(prefix) &&
      (server === undefined ? wire.toId(name) !== undefined : server.source === 'sdk' && server.name === serverName),
    toOwnName: (name) => name.slice(prefix.length),
    fromOwnName: (name) => `${prefix}${name}`,
  }
}

/** Whether a tool is of the server that its name says. A name can be read as more than one server's. */
export function isOfItsServer(name: string, server: ServerOfTool | undefined): boolean {
  return server === undefined || partsOfName(name)?.server === toHarnessName(server.name)
}
