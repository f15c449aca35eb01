import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type Tool as McpTool,
} from '@modelcontextprotocol/sdk/types.js'
import { type CallOutcome, expose, type Progress, type View } from '@toolgate/core'
import type { QueryCalls } from './calls.ts'
import type { HarnessNames } from './names.ts'
import { harnessNameOf, metaOf } from './tools.ts'

export interface ServerOptions {
  readonly view: View
  readonly names: HarnessNames
  readonly calls: QueryCalls
  readonly serverName: string
  readonly onClose: () => void
}

/** The gate's own server as `mcpServers` of the SDK take it: in this process, with the visible tools that the gate runs. */
export interface ServerConfig {
  type: 'sdk'
  name: string
  instance: McpServer
}

export function createServer({ view, names, calls, serverName, onClose }: ServerOptions): ServerConfig {
  const instance = new McpServer({ name: serverName, version: '1.0.0' }, { capabilities: { tools: {} } })
  const { server } = instance
  const tools = listTools(view)
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { progressToken, [TOOL_USE_ID]: id } = extra._meta ?? {}
    const outcome = await calls.run({
      id: typeof id === 'string' ? id : undefined,
      name: names.fromOwnName(params.name),
      input: params.arguments ?? {},
      signal: extra.signal,
      context: extra,
      ...(progressToken === undefined ? {} : { onProgress: (progress) => void notify({ ...progress, progressToken }) }),
    })
    return toResult(outcome)

    async function notify(progress: Progress & { readonly progressToken: string | number }): Promise<void> {
      const told = extra.sendNotification({ method: 'notifications/progress', params: { ...progress } })
      // Who has gone needs to hear of no progress.
      await told.catch(() => {})
    }
  })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
  server.onclose = onClose
  return { type: 'sdk', name: serverName, instance }
}

/** By which the harness says which `tool_use` a call is of. */
const TOOL_USE_ID = 'claudecode/toolUseId'

function listTools(view: View): McpTool[] {
  const own = view.tools.filter((tool) => harnessNameOf(tool) === undefined)
  const { tools, names } = expose(view.narrow({ activeTools: own.map(({ id }) => id) }), 'mcp')
  return tools.map(({ outputSchema: _, ...listed }) => {
    // The model is told nothing of outputs, and a client that knew of it would have every result fit it.
    const meta = metaOf(view.get(names.toId(listed.name) ?? ''))
    return { ...listed, ...(meta ? { _meta: meta } : {}) }
  })
}

async function toResult(outcome: CallOutcome): Promise<CallToolResult> {
  if (outcome.status !== 'done') return { content: [{ type: 'text', text: outcome.text }], isError: true }
  const { output } = outcome
  if (isStream(output)) return toOutput(await lastOf(output))
  return isResult(output) ? output : { content: [{ type: 'text', text: outcome.text }] }
}

function toOutput(output: unknown): CallToolResult {
  if (isResult(output)) return output
  const text = typeof output === 'string' ? output : (JSON.stringify(output) ?? '')
  return { content: [{ type: 'text', text }] }
}

/** What `tool()` of the SDK and MCP servers give. */
function isResult(output: unknown): output is CallToolResult {
  const content: unknown = typeof output === 'object' && output !== null && 'content' in output && output.content
  return (
    Array.isArray(content) && content.every((block) => typeof (block as { type?: unknown } | null)?.type === 'string')
  )
}

function isStream(output: unknown): output is AsyncIterable<unknown> {
  return typeof output === 'object' && output !== null && Symbol.asyncIterator in output
}

/** A result is one message: of what comes in parts, the last is the whole, as other frameworks have it. */
async function lastOf(stream: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown
  for await (const item of stream) last = item
  return last
}
