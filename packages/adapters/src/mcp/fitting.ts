import type { JsonSchema } from '@toolgate/core'
import type { ListedTool, McpResult } from '@toolgate/core/internal'
import { isPlainObject } from '../shared/mcp-result.ts'

/** What the clients of an SDK's server can read of a list, and of a result. */
export interface Fitting {
  fitList(tools: readonly ListedTool[]): readonly ListedTool[]
  fitResult(result: McpResult, outputSchema: JsonSchema | undefined): object
}

/** A server of v2. */
interface FittingServer {
  projectCallToolResult(result: object, outputSchema: JsonSchema | undefined): object
}

/** It fits lists by itself, and results when it is asked. */
export function fittingV2(server: FittingServer): Fitting {
  return {
    fitList: (tools) => tools,
    fitResult: (result, outputSchema) => server.projectCallToolResult(result, outputSchema),
  }
}

/** Before MCP 2026-07-28 structured content is an object, and so is what an output schema describes. */
export const FITTING_V1: Fitting = {
  fitList: (tools) =>
    tools.map((tool) => {
      const { outputSchema, ...rest } = tool
      return outputSchema === undefined || outputSchema['type'] === 'object' ? tool : rest
    }),
  fitResult(result) {
    const { structuredContent, content = [], ...rest } = result
    if (structuredContent === undefined || isPlainObject(structuredContent)) return result
    const isTold = content.some((block) => isPlainObject(block) && block['type'] === 'text')
    const told = isTold ? [] : [{ type: 'text', text: JSON.stringify(structuredContent) }]
    return { ...rest, content: [...content, ...told] }
  },
}
