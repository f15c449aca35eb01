import type { CallOutcome, JsonSchema } from '@toolgate/core'
import { errorResult, type McpResult, outputText, toErrorResult } from '@toolgate/core/internal'
import type { MetaAnswer } from '@toolgate/core/search'
import { isMcpResult, isPlainObject, jsonOf, toSendable } from '../shared/mcp-result.ts'
import { failureText, isStream } from '../shared/refused.ts'
import { RpcError } from './rpc-error.ts'

export interface ResultTool {
  /** As its client knows it. */
  readonly name: string
  readonly outputSchema: JsonSchema | undefined
}

const ANY_TOOL: ResultTool = { name: 'the tool', outputSchema: undefined }

/**
 * Gives the result of a call.
 *
 * @throws {RpcError} where the server behind the tool answered with one
 */
export async function toResult(outcome: CallOutcome, tool: ResultTool = ANY_TOOL): Promise<McpResult> {
  switch (outcome.status) {
    case 'done':
      return isStream(outcome.output) ? drain(outcome.output, tool) : toOwnResult(outcome.output, tool)
    case 'waiting':
    case 'refused':
      return toErrorResult(outcome)
    case 'failed':
      if (outcome.error instanceof RpcError) throw outcome.error
      return toErrorResult(outcome)
  }
}

/** What a tool gave: a result of MCP's as it is, anything else as a text and, where it is an object or has a schema, as that too. */
function toOwnResult(output: unknown, { outputSchema }: ResultTool): McpResult {
  if (isMcpResult(output)) return toSendable(output)
  const text = outputText(output)
  // As JSON has it, which may be no object where the output is one: a date is a text.
  const said = typeof output === 'string' ? output : jsonOf(text)
  const isStructured = isPlainObject(said) || (outputSchema !== undefined && said !== undefined)
  return { content: [{ type: 'text', text }], ...(isStructured && { structuredContent: said }) }
}

/** MCP has no result in parts: texts are joined, and of anything else the last item is the result. */
async function drain(stream: AsyncIterable<unknown>, tool: ResultTool): Promise<McpResult> {
  const items: unknown[] = []
  let joined = ''
  try {
    for await (const item of stream) {
      if (typeof item === 'string') joined += item
      else items[0] = item
    }
  } catch (error) {
    return errorResult(failureText(tool.name, error))
  }
  return toOwnResult(items.length === 0 ? joined : items[0], tool)
}

/**
 * Puts what the meta-tools say into MCP's form, so that a call through `call_tool` is answered as a direct one:
 * `metaTools({ toOutput: toMcpOutput })`.
 */
export async function toMcpOutput(answer: MetaAnswer): Promise<McpResult> {
  switch (answer.kind) {
    case 'value':
      return { content: [{ type: 'text', text: JSON.stringify(answer.value) }], structuredContent: answer.value }
    case 'refusal':
      return errorResult(answer.text)
    case 'outcome':
      return toResult(answer.outcome)
  }
}

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo'

/** Without the words that a server behind this one says of its own hop: this one says its own. */
export function withoutHop({ resultType, _meta: meta, ...result }: McpResult): McpResult {
  const { [SERVER_INFO]: _, ...kept } = meta ?? {}
  return {
    ...(resultType === 'input_required' ? { resultType } : { content: [] }),
    ...result,
    ...(Object.keys(kept).length > 0 && { _meta: kept }),
  }
}
