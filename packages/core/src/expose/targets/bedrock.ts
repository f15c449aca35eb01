import { BEDROCK_STRICT, FLAT } from '../schema/dialect.ts'
import { NOTHING, present, type Target } from './target.ts'

export interface BedrockTool {
  toolSpec: { name: string; description?: string; inputSchema: { json: JsonDocument }; strict?: boolean }
}
type JsonDocument = null | boolean | number | string | JsonDocument[] | { [key: string]: JsonDocument }

/** Amazon Bedrock's Converse. A `toolConfig` without tools is an error, so an empty one is left out. */
export const bedrock: Target = {
  dialect: FLAT,
  strictDialect: BEDROCK_STRICT,
  keeps: NOTHING,
  canMask: false,
  canDefer: false,
  define: ({ name, description, input, strict }): BedrockTool => ({
    toolSpec: present({
      name,
      description,
      inputSchema: { json: input as JsonDocument },
      strict: strict || undefined,
    }),
  }),
  collect(named) {
    const tools = named.map(({ definition }) => definition as BedrockTool)
    return { tools, request: tools.length === 0 ? {} : { toolConfig: { tools } } }
  },
}
