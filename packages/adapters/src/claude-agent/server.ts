import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type Tool as McpTool,
} from '@modelcontextprotocol/sdk/types.js'
import type { CallOutcome, Progress, View } from '@toolgate/core'
import { expose } from '@toolgate/expose'
import { outputText } from '@toolgate/values'
import { isMcpResult, toSendable } from '@toolgate/mcp'
import { failureText, isStream, lastOf } from '../shared/refused.ts'
import type { QueryCalls } from './calls.ts'
import { harnessNameOf, type HarnessNames } from './import-tools.ts'

interface ServerOptions {
  readonly view: View
  readonly names: HarnessNames
  readonly calls: QueryCalls
  readonly serverName: string
  readonly onClose: () => void
}

export function createServer({ view, names, calls, serverName, onClose }: ServerOptions): {
  type: 'sdk'
  name: string
  instance: McpServer
} {
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
    return toResult(outcome, names.fromOwnName(params.name))

    async function notify(progress: Progress & { readonly progressToken: string | number }): Promise<void> {
      const told = extra.sendNotification({ method: 'notifications/progress', params: { ...progress } })
      // The client may be gone, and then needs no progress.
      await told.catch(() => {})
    }
  })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
  server.onclose = onClose
  return { type: 'sdk', name: serverName, instance }
}

/** The harness's field for the id of a call's `tool_use`. */
const TOOL_USE_ID = 'claudecode/toolUseId'

function listTools(view: View): McpTool[] {
  const own = view.tools.filter((tool) => harnessNameOf(tool) === undefined)
  const { tools } = expose(view.narrow({ activeTools: own.map(({ id }) => id) }), 'mcp')
  // A client that knows an output schema rejects every result that does not match it.
  return tools.map(({ outputSchema: _, ...listed }) => listed)
}

async function toResult(outcome: CallOutcome, name: string): Promise<CallToolResult> {
  if (outcome.status !== 'done') return toldResult(outcome.text)
  try {
    return toOwnResult(isStream(outcome.output) ? await lastOf(outcome.output) : outcome.output)
  } catch (error) {
    return toldResult(failureText(name, error))
  }
}

function toOwnResult(output: unknown): CallToolResult {
  if (isMcpResult(output) && output.content) return toSendable(output) as CallToolResult
  return { content: [{ type: 'text', text: outputText(output) }] }
}

function toldResult(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}
