import { ToolgateError, type Source, type Tool } from '@toolgate/core'
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
  let known = new Map<string, { text: string; tool: Tool }>()
  let rejected: { tool: string; reason: string }[] = []
  let read: readonly McpTool[] | undefined
  let wasReady = false
  const isListed = () => (wasReady ||= upstream.state.status === 'ready')

  const toKnown = (listed: McpTool): { text: string; tool: Tool } => {
    const text = JSON.stringify(listed)
    const before = known.get(listed.name)
    if (before?.text === text) return before
    const execute = (input: unknown, call: Parameters<NonNullable<Tool['execute']>>[1]) =>
      upstream.call({ tool: listed.name, arguments: input, signal: call, onProgress: call.onProgress })
    return { text, tool: toTool(server, listed, execute) }
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
      const next = new Map<string, { text: string; tool: Tool }>()
      const refused: typeof rejected = []
      for (const listed of upstream.tools) {
        try {
          next.set(listed.name, toKnown(listed))
        } catch (error) {
          if (!(error instanceof ToolgateError)) throw error
          refused.push({ tool: listed.name, reason: error.message })
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
