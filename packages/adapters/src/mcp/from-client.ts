import { ConfigError } from '@toolgate/core'
import { checkShape } from '@toolgate/core/internal'
import { type McpClient, toLink } from './sdk-client.ts'
import { createMcpSource, type McpSource, type McpSourceOptions, SOURCE_SHAPE } from './source.ts'

/**
 * Gives the tools of an MCP server that a client is connected to, for `createGate({ sources: [source] })`.
 *
 * The client may be one of SDK v1, SDK v2 or `@ai-sdk/mcp`. Its results pass as they come: `CallToolResult`s. The
 * server's hints only tighten, unless it is trusted.
 *
 * @throws {ConfigError} for what is no client, and for an overlay that cannot be used
 * @throws whatever the client throws, where the server's list cannot be read
 * @example
 * const files = await fromMcpClient(client, { namespace: 'files', overlay: { 'write_*': { tags: ['write'] } } })
 * const gate = createGate({ sources: [files], policy: { deny: ['tag:write'] } })
 */
export async function fromMcpClient(client: McpClient, options: McpSourceOptions = {}): Promise<McpSource> {
  if (typeof client?.listTools !== 'function' || typeof client.callTool !== 'function')
    throw new ConfigError('client', 'must be a connected client of an MCP SDK')
  checkShape('fromMcpClient', options, SOURCE_SHAPE)
  return createMcpSource(toLink(client), options)
}
