import type Anthropic from '@anthropic-ai/sdk'
import type { Tool as ConverseTool } from '@aws-sdk/client-bedrock-runtime'
import type { FunctionCallingConfigMode, GenerateContentConfig } from '@google/genai'
import type { StructuredToolParams } from '@langchain/core/tools'
import type { Tool as ProtocolTool } from '@modelcontextprotocol/server'
import type { generateText } from 'ai'
import type OpenAI from 'openai'
import type { ExposedTools } from './exposure.ts'
import type { GeminiFunction } from './targets/providers.ts'

/** Each target's tools are what its own SDK takes: a change on either side is an error here. */
type Takes<Sdk, Ours extends Sdk> = [Sdk, Ours]

export type Checks = [
  Takes<OpenAI.Chat.ChatCompletionTool[], ExposedTools['openai-chat']>,
  Takes<OpenAI.Responses.Tool[], ExposedTools['openai-responses']>,
  Takes<Anthropic.ToolUnion[], ExposedTools['anthropic']>,
  Takes<NonNullable<GenerateContentConfig['tools']>, { functionDeclarations: JsonForm[] }[]>,
  Takes<ConverseTool[], ExposedTools['bedrock']>,
  Takes<ProtocolTool[], ExposedTools['mcp']>,
  Takes<StructuredToolParams[], ExposedTools['langchain']>,
]

/** The OpenAPI form's schemas are made at run time; their type is wider than `Schema`. */
type JsonForm = Omit<GeminiFunction, 'parameters' | 'response'>
/** Masks. */
export const chatChoice: OpenAI.Chat.ChatCompletionToolChoiceOption = {
  type: 'allowed_tools',
  allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'a' } }] },
}
export const responsesChoice: OpenAI.Responses.ToolChoiceAllowed = {
  type: 'allowed_tools',
  mode: 'auto',
  tools: [{ type: 'function', name: 'a' }],
}
export const geminiModes: readonly `${FunctionCallingConfigMode}`[] = ['VALIDATED', 'NONE']
export type AiSdkRequest = Pick<Parameters<typeof generateText>[0], 'tools' | 'toolChoice' | 'providerOptions'>
