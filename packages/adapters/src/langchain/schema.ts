import type { JsonSchema, StandardSchema, ToolDefinition } from '@toolgate/core'
import { Tool } from '@langchain/core/tools'
import { toJsonSchema } from '@langchain/core/utils/json_schema'
import { interopSafeParse, type InteropZodType, isInteropZodSchema } from '@langchain/core/utils/types'

/** What a tool of LangChain says its input is. */
export interface InputOf {
  readonly inputSchema: NonNullable<ToolDefinition['inputSchema']>
  /** The schema's answer is the input from there on, so the tool must not ask it again. */
  readonly parse: ((value: unknown) => unknown) | undefined
}

const TEXT_INPUT: JsonSchema = {
  type: 'object',
  properties: { input: { type: 'string' } },
  additionalProperties: false,
}

/**
 * Gives the schema by which a gate validates: zod's own, of whatever version, where the tool has one, with the JSON
 * Schema that LangChain shows to models.
 */
export function inputOf(tool: { readonly schema?: unknown }): InputOf {
  // Tools of one text take it out of the object by a transformation: the object is the better input to decide on.
  if (tool instanceof Tool) return { inputSchema: TEXT_INPUT, parse: undefined }
  const { schema } = tool
  if (!isInteropZodSchema(schema)) return { inputSchema: (schema ?? {}) as JsonSchema, parse: undefined }
  return { inputSchema: standardOf(schema), parse: (value) => interopSafeParse(schema, value).data }
}

function standardOf(schema: InteropZodType): StandardSchema {
  const jsonSchema = () => toJsonSchema(schema) as Record<string, unknown>
  return {
    '~standard': {
      version: 1,
      vendor: 'zod',
      validate(value) {
        const parsed = interopSafeParse(schema, value)
        return parsed.success ? { value: parsed.data } : { issues: parsed.error.issues }
      },
      jsonSchema: { input: jsonSchema, output: jsonSchema },
    },
  }
}
