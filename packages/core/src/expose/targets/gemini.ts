import { sha256Hex } from '../../util/hash.ts'
import { GEMINI, GEMINI_OPENAPI, GEMINI_OPENAPI_OUTPUT, GEMINI_OUTPUT } from '../schema/dialect.ts'
import { NOTHING, type Parts, present, type Target } from './target.ts'

export interface GeminiFunction {
  name: string
  description?: string
  parametersJsonSchema?: unknown
  responseJsonSchema?: unknown
  /** In the OpenAPI form, as the message `Schema`. */
  parameters?: Record<string, unknown>
  response?: Record<string, unknown>
}
export interface GeminiTool {
  functionDeclarations: GeminiFunction[]
}

const shared = {
  keeps: NOTHING,
  canMask: true,
  canDefer: false,
  toName,
  collect(named, { mask }) {
    const functionDeclarations = named.map(({ definition }) => definition as GeminiFunction)
    const tools: GeminiTool[] = functionDeclarations.length > 0 ? [{ functionDeclarations }] : []
    if (tools.length === 0) return { tools, request: {} }
    return { tools, request: { config: { tools, ...(mask && { toolConfig: toToolConfig(mask) }) } } }
  },
} satisfies Partial<Target>

/** A name begins with a letter or `_`. No other plain name on the wire begins with `_`. */
function toName(name: string): string {
  if (/^[A-Za-z_]/.test(name)) return name
  return name.length < 64 ? `_${name}` : `_${name.slice(0, 50)}__${sha256Hex(name).slice(0, 10)}_`
}

/** Gemini, with schemas in JSON Schema. */
export const gemini: Target = {
  ...shared,
  dialect: GEMINI,
  outputDialect: GEMINI_OUTPUT,
  define: ({ name, description, input, output }: Parts): GeminiFunction =>
    present({ name, description, parametersJsonSchema: input, responseJsonSchema: output }),
}

/** Gemini, with schemas in its subset of OpenAPI 3.0. A function without parameters says nothing of them. */
export const geminiOpenApi: Target = {
  ...shared,
  writesInto: true,
  dialect: GEMINI_OPENAPI,
  outputDialect: GEMINI_OPENAPI_OUTPUT,
  define: ({ name, description, input, output }: Parts): GeminiFunction =>
    present({
      name,
      description,
      parameters: Object.keys(input['properties'] ?? {}).length === 0 ? undefined : input,
      response: output,
    }),
}

/** `VALIDATED` may also answer in text; `AUTO` takes no names. */
function toToolConfig(mask: readonly string[]): object {
  const functionCallingConfig =
    mask.length === 0 ? { mode: 'NONE' } : { mode: 'VALIDATED', allowedFunctionNames: [...mask] }
  return { functionCallingConfig }
}
