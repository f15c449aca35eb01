import type { Tool } from '@toolgate/core'
import type { Source } from '@toolgate/core/toolset'
import type { ServerConfig } from '../config/config.ts'
import type { McpTool, Upstream } from '../upstream/upstream.ts'
import { toTool } from './overlay.ts'

export interface UpstreamSource extends Source {
  tools(): Iterable<Tool>
  /** Whether the server has listed its tools once. */
  isListed(): boolean
  /** Tools that the upstream lists and the catalog does not take, with the reason. */
  readonly rejected: readonly { readonly tool: string; readonly reason: string }[]
}

/**
 * Gives the catalog's source for one upstream: its latest list, also while it is down.
 *
 * A tool that was listed before in the same words stays the same object, so that what was decided
 * and compiled of it stays valid, and a call on its way does not take it for another.
 */
export function createUpstreamSource(server: ServerConfig, upstream: Upstream): UpstreamSource {
  let known = new Map<string, Known>()
  let rejected: { tool: string; reason: string }[] = []
  let read: readonly McpTool[] | undefined
  let wasReady = false
  const isListed = () => (wasReady ||= upstream.state.status === 'ready')

  const toKnown = (listed: McpTool): Known => {
    const before = known.get(listed.name)
    if (before?.listed === listed) return before
    const text = JSON.stringify(listed)
    if (before?.text === text) return { ...before, listed }
    const execute = (input: unknown, call: Parameters<NonNullable<Tool['execute']>>[1]) =>
      upstream.call({ tool: listed.name, arguments: input, signal: call, onProgress: call.onProgress })
    return { listed, text, tool: toTool(server, listed, execute) }
  }

  return {
    name: server.name,
    namespaces: [server.name],
    isListed,
    get rejected() {
      return rejected
    },
    tools() {
      if (read === upstream.tools) return [...known.values()].map(({ tool }) => tool)
      const next = new Map<string, Known>()
      const refused: typeof rejected = []
      for (const listed of upstream.tools) {
        try {
          next.set(listed.name, toKnown(listed))
        } catch (error) {
          // Whatever is wrong with one tool, the others of its server stay.
          refused.push({ tool: listed.name, reason: error instanceof Error ? error.message : String(error) })
        }
      }
      read = upstream.tools
      known = next
      rejected = refused
      return [...known.values()].map(({ tool }) => tool)
    },
    subscribe(listener) {
      return upstream.subscribe(() => {
        const isFirst = !wasReady && isListed()
        if (isFirst || read !== upstream.tools) listener()
      })
    },
  }
}

interface Known {
  readonly listed: McpTool
  readonly text: string
  readonly tool: Tool
}
