import type { Tool } from '@toolgate/core'
import type { Source } from '@toolgate/core/toolset'
import { ServerTools } from '@toolgate/mcp'
import type { ServerConfig } from '../config/config.ts'
import type { McpTool, RejectedItem, Upstream } from '../upstream/upstream.ts'

/** The catalog's source for one upstream: its latest list, which is kept while it is down. */
export class UpstreamSource implements Source {
  readonly name: string
  readonly namespaces: readonly string[]
  readonly #upstream: Upstream
  readonly #tools: ServerTools
  #read: readonly McpTool[] | undefined
  #wasReady = false

  constructor({ name, tools, trustHints }: Pick<ServerConfig, 'name' | 'tools' | 'trustHints'>, upstream: Upstream) {
    this.name = name
    this.namespaces = [name]
    this.#upstream = upstream
    this.#tools = new ServerTools({
      namespace: name,
      overlays: tools,
      trustHints,
      executeOf: (tool) => (input, call) =>
        upstream.call({
          method: 'tools/call',
          params: { name: tool, arguments: input },
          caller: call.caller,
          signal: call,
          onProgress: call.onProgress,
        }),
    })
  }

  /** Listed tools that the catalog rejects, with the reason. */
  get rejected(): readonly RejectedItem[] {
    return this.#tools.leftOut.map(({ tool, error }) => ({ kind: 'tool', name: tool, reason: error.message }))
  }

  /** Whether the server has listed its tools once. */
  isListed(): boolean {
    return (this.#wasReady ||= this.#upstream.state.status === 'ready')
  }

  tools(): Iterable<Tool> {
    const listed = this.#upstream.items.tools
    if (this.#read !== listed) {
      this.#tools.read(listed)
      this.#read = listed
    }
    return this.#tools.tools
  }

  subscribe(listener: () => void): () => void {
    return this.#upstream.subscribe(() => {
      const isFirst = !this.#wasReady && this.isListed()
      if (isFirst || this.#read !== this.#upstream.items.tools) listener()
    })
  }
}
