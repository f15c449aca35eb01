import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test'

/** A model's answer: a text, or calls. */
export type Turn = string | readonly ScriptedCall[]
interface ScriptedCall {
  readonly name: string
  /** The call's id. Default: `call-` and its index, counted from 0. */
  readonly id?: string
  readonly input?: unknown
}

export type ModelRequest = MockLanguageModelV4['doGenerateCalls'][number]
type Generated = Awaited<ReturnType<MockLanguageModelV4['doGenerate']>>
type Part = Parameters<typeof convertArrayToReadableStream<StreamPart>>[0][number]
type StreamPart =
  Awaited<ReturnType<MockLanguageModelV4['doStream']>>['stream'] extends ReadableStream<infer P> ? P : never

export interface ScriptedModel extends MockLanguageModelV4 {
  readonly requests: readonly ModelRequest[]
  /** The names of the sent tools, by request. */
  sent(): readonly (readonly string[])[]
  /** The results for the model in the latest request, by call id. */
  told(): Readonly<Record<string, unknown>>
}

/** Returns the SDK's own fake model. Its answers come from a list, whose last one repeats, or from a function. */
export function scriptedModel(
  script: readonly Turn[] | ((request: ModelRequest, index: number) => Turn),
): ScriptedModel {
  const requests: ModelRequest[] = []
  const answer = (request: ModelRequest): Generated => {
    const index = requests.push(request) - 1
    const turn = typeof script === 'function' ? script(request, index) : (script[index] ?? script.at(-1) ?? 'Ok.')
    return {
      content: contentOf(turn),
      finishReason:
        typeof turn === 'string' ? { unified: 'stop', raw: undefined } : { unified: 'tool-calls', raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      warnings: [],
    }
  }
  const model = new MockLanguageModelV4({
    doGenerate: async (request) => answer(request),
    doStream: async (request) => ({ stream: convertArrayToReadableStream(partsOf(answer(request))) }),
  })
  return Object.assign(model, {
    requests,
    sent: () => requests.map(({ tools = [] }) => tools.map(({ name }) => name)),
    told() {
      const results = (requests.at(-1)?.prompt ?? []).flatMap((message) =>
        message.role === 'tool' ? message.content.filter((part) => part.type === 'tool-result') : [],
      )
      return Object.fromEntries(results.map(({ toolCallId, output }) => [toolCallId, output]))
    },
  })
}

function contentOf(turn: Turn): Generated['content'] {
  if (typeof turn === 'string') return [{ type: 'text', text: turn }]
  return turn.map(({ name, id, input = {} }, i) => ({
    type: 'tool-call',
    toolCallId: id ?? `call-${i}`,
    toolName: name,
    input: JSON.stringify(input),
  }))
}

function partsOf({ content, finishReason, usage }: Generated): Part[] {
  const parts = content.flatMap((part): Part[] => {
    if (part.type === 'tool-call') return [part]
    if (part.type !== 'text') return []
    return [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: part.text },
      { type: 'text-end', id: 't' },
    ]
  })
  return [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', finishReason, usage }]
}
