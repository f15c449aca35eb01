/** The providers, the protocol and the frameworks that tools can be exposed to. */
export const EXPOSE_TARGETS = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'bedrock',
  'mcp',
  'langchain',
  'ai-sdk',
] as const
export type ExposeTarget = (typeof EXPOSE_TARGETS)[number]
