import { MockLanguageModelV4 } from 'ai/test'

/** One answer of a scripted model: a text, or calls by name, with their inputs. */
export type Answer = string | readonly (readonly [name: string, input: object])[]

/** The AI SDK's own fake model in place of a provider. It answers from `script`, whatever it was sent. */
export function scriptedModel(script: (request: Request) => Answer): MockLanguageModelV4 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  let calls = 0
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt, tools = [] }) => {
      const answer = script({
        answers: prompt.filter(({ role }) => role === 'assistant').length,
        sent: tools.map(({ name }) => name),
        told: prompt.flatMap(({ role, content }) => (role === 'tool' ? content.flatMap(toTold) : [])),
      })
      const isText = typeof answer === 'string'
      return {
        content: isText
          ? [{ type: 'text', text: answer }]
          : answer.map(([toolName, input]) => ({
              type: 'tool-call' as const,
              toolCallId: `call-${++calls}`,
              toolName,
              input: JSON.stringify(input),
            })),
        finishReason: isText ? { unified: 'stop', raw: undefined } : { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      }
    },
  })
}

export interface Request {
  /** The number of earlier answers in this conversation. */
  readonly answers: number
  /** The names of the sent tools. */
  readonly sent: readonly string[]
  /** The results of its calls: outputs, and why others did not run. */
  readonly told: readonly Told[]
}

export interface Told {
  readonly text: string
  readonly failed: boolean
}

function toTold(part: { readonly type: string; readonly output?: unknown }): readonly Told[] {
  const { type, value } = (part.output ?? {}) as { type?: string; value?: unknown }
  return typeof value === 'string' ? [{ text: value, failed: type === 'error-text' }] : []
}
