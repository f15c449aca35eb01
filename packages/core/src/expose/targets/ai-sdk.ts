import type { JsonSchema } from '../../tools/tool.ts'
import { ANY_OUTPUT, FRAMEWORK, OPENAI_STRICT } from '../schema/dialect.ts'
import { EVERYTHING, present, type Target } from './target.ts'

/** What the SDK's own `jsonSchema(…)` gives. The symbol is registered, so that copies of the SDK know each other's. */
export interface AiSdkSchema {
  readonly jsonSchema: JsonSchema
  readonly validate: undefined
}

/** A tool without `execute`: calls go through the gate. */
export interface AiSdkTool {
  description?: string
  inputSchema: AiSdkSchema
  outputSchema?: AiSdkSchema
  strict?: boolean
  deferLoading?: boolean
  metadata?: Record<string, unknown>
}

/** By name on the wire. */
export type AiSdkTools = Record<string, AiSdkTool>

/**
 * The `tools` of `generateText` and `streamText` (AI SDK 7).
 *
 * `mask` is OpenAI's, where that is the provider; `defer` is the SDK's own, for its `toolSearch()`.
 */
export const aiSdk: Target = {
  dialect: FRAMEWORK,
  strictDialect: OPENAI_STRICT,
  outputDialect: ANY_OUTPUT,
  keeps: EVERYTHING,
  canMask: false,
  canDefer: true,
  define: ({ description, input, output, title, annotations, icons, _meta, strict, deferred }): AiSdkTool => {
    const metadata = present({ title, annotations, icons, _meta })
    return present({
      description,
      inputSchema: toSchema(input),
      outputSchema: output && toSchema(output),
      strict: strict || undefined,
      deferLoading: deferred || undefined,
      metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    })
  },
  collect(named, { mask }) {
    const tools: AiSdkTools = Object.fromEntries(
      named.map(({ name, definition }) => [name, definition as AiSdkTool] as const),
    )
    return { tools, request: { tools, ...(mask && toChoice(mask)) } }
  },
}

/** The AI SDK with OpenAI behind it. */
export const aiSdkOnOpenAi: Target = { ...aiSdk, canMask: true }

const SCHEMA = Symbol.for('vercel.ai.schema')

function toSchema(jsonSchema: JsonSchema): AiSdkSchema {
  return { [SCHEMA]: true, jsonSchema, validate: undefined } as AiSdkSchema
}

/** `allowedTools` takes at least one name. */
function toChoice(mask: readonly string[]): object {
  if (mask.length === 0) return { toolChoice: 'none' }
  return { providerOptions: { openai: { allowedTools: { toolNames: [...mask] } } } }
}
