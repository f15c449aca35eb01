import type { ToolAnnotations } from '../../tools/tool.ts'
import { ANY, ANY_OUTPUT } from '../schema/dialect.ts'
import { EVERYTHING, present, type Target } from './target.ts'

export interface McpIcon {
  src: string
  mimeType?: string
  sizes?: string[]
  theme?: 'light' | 'dark'
}

export interface McpTool {
  name: string
  title?: string
  description?: string
  inputSchema: { type: 'object'; [keyword: string]: unknown }
  outputSchema?: { [keyword: string]: unknown }
  annotations?: ToolAnnotations
  icons?: McpIcon[]
  _meta?: { [name: string]: unknown }
}

/** `tools/list` of MCP 2026-07-28, which has a place for everything. It filters; deferring is for meta-tools. */
export const mcp: Target = {
  dialect: ANY,
  outputDialect: ANY_OUTPUT,
  keeps: EVERYTHING,
  canMask: false,
  canDefer: false,
  define: ({ name, title, description, input, output, annotations, icons, _meta }): McpTool =>
    present({
      name,
      title,
      description,
      inputSchema: input as McpTool['inputSchema'],
      outputSchema: output,
      annotations,
      icons: icons as McpIcon[] | undefined,
      _meta,
    }),
  collect(named) {
    const tools = named.map(({ definition }) => definition as McpTool)
    return { tools, request: { tools } }
  },
}
