import type { ExposeOptions, ExposeTarget } from '../options.ts'
import { aiSdk, aiSdkOnOpenAi, langchain, mcp } from './frameworks.ts'
import { anthropic, bedrock, gemini, geminiOpenApi, openAiChat, openAiResponses } from './providers.ts'
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

/** Returns a target, in the variant that the options select. */
export function findTarget(name: string, { schemas, provider }: ExposeOptions): Target | undefined {
  if (name === 'gemini' && schemas === 'openapi') return geminiOpenApi
  if (name === 'ai-sdk' && provider === 'openai') return aiSdkOnOpenAi
  return TARGETS.get(name)
}
