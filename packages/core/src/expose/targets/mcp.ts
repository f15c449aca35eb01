import type { ToolAnnotations } from '../../tools/tool.ts'
import { ANY, ANY_OUTPUT } from '../schema/dialect.ts'
import { present, type Target } from './target.ts'

export interface McpTool {
  name: string
  title?: string
  description?: string
  inputSchema: { type: 'object'; [keyword: string]: unknown }
  outputSchema?: { [keyword: string]: unknown }
  annotations?: ToolAnnotations
}

/** `tools/list` of MCP 2026-07-28, which has a place for everything. It filters; deferring is for meta-tools. */
export const mcp: Target = {
  dialect: ANY,
  outputDialect: ANY_OUTPUT,
  keeps: new Set(['title', 'annotations']),
  canMask: false,
  canDefer: false,
  define: ({ name, title, description, input, output, annotations }): McpTool =>
    present({
      name,
      title,
      description,
      inputSchema: input as McpTool['inputSchema'],
      outputSchema: output,
      annotations,
    }),
  collect(named) {
    const tools = named.map(({ definition }) => definition as McpTool)
    return { tools, request: { tools } }
  },
}
