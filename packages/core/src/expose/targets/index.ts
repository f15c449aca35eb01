import type { ExposeOptions } from '../options.ts'
import type { ExposeTarget } from '../target-names.ts'
import { aiSdk, aiSdkOnOpenAi } from './ai-sdk.ts'
import { anthropic } from './anthropic.ts'
import { bedrock } from './bedrock.ts'
import { gemini, geminiOpenApi } from './gemini.ts'
import { langchain } from './langchain.ts'
import { mcp } from './mcp.ts'
import { openAiChat } from './openai-chat.ts'
import { openAiResponses } from './openai-responses.ts'
import type { Target } from './target.ts'

const TARGETS: ReadonlyMap<string, Target> = new Map<ExposeTarget, Target>([
  ['openai-chat', openAiChat],
  ['openai-responses', openAiResponses],
  ['anthropic', anthropic],
  ['gemini', gemini],
  ['bedrock', bedrock],
  ['mcp', mcp],
  ['langchain', langchain],
  ['ai-sdk', aiSdk],
])

/** Gives what is known of a target, in the variant that the options name. */
export function findTarget(name: string, { schemas, provider }: ExposeOptions): Target | undefined {
  if (name === 'gemini' && schemas === 'openapi') return geminiOpenApi
  if (name === 'ai-sdk' && provider === 'openai') return aiSdkOnOpenAi
  return TARGETS.get(name)
}
