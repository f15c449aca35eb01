import { MockLanguageModelV4, simulateReadableStream } from 'ai/test'

/** An answer of a test's model: a text, or calls with JSON inputs. */
export type Turn = string | readonly ModelCall[]
export interface ModelCall {
  readonly name: string
  readonly id?: string
  readonly input?: unknown
  /** The text of the input, sent unchanged in place of `input`. */
  readonly text?: string
  /** The result of a call that the provider ran. */
  readonly result?: object
}

type CallOptions = MockLanguageModelV4['doGenerateCalls'][number]
type Generated = Awaited<ReturnType<MockLanguageModelV4['doGenerate']>>
type Streamed = Awaited<ReturnType<MockLanguageModelV4['doStream']>>

/** The SDK's own fake model, for both `generateText` and `streamText`. */
export interface MockModel extends MockLanguageModelV4 {
  /** The requests, oldest first. */
  readonly requests: readonly CallOptions[]
  /** The names of the sent tools, by request. */
  sent(): readonly (readonly string[])[]
  /** The results for the model in the latest request, by call id. */
  told(): Readonly<Record<string, unknown>>
}

/** Returns a model that answers turn by turn, and repeats its last turn. A function gets the request and its number. */
export function mockModel(
  turns: readonly Turn[] | ((options: CallOptions, index: number) => Turn | Promise<Turn>),
): MockModel {
  const requests: CallOptions[] = []
  const next = (options: CallOptions): Turn | Promise<Turn> => {
    const index = requests.push(options) - 1
    return typeof turns === 'function' ? turns(options, index) : (turns[index] ?? turns.at(-1) ?? 'done')
  }
  const model = new MockLanguageModelV4({
    doGenerate: async (options) => {
      const turn = await next(options)
      return { content: toContent(turn), finishReason: finishOf(turn), usage: USAGE, warnings: [] }
    },
    doStream: async (options) => {
      const turn = await next(options)
      return {
        stream: simulateReadableStream({ chunks: toChunks(turn), chunkDelayInMs: null, initialDelayInMs: null }),
      }
    },
  })
  return Object.assign(model, {
    requests,
    sent: () => requests.map(({ tools }) => (tools ?? []).map(({ name }) => name)),
    told: () => toldIn(requests.at(-1)),
  })
}

const USAGE: Generated['usage'] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

function finishOf(turn: Turn): Generated['finishReason'] {
  return typeof turn === 'string' ? { unified: 'stop', raw: 'stop' } : { unified: 'tool-calls', raw: 'tool_calls' }
}

function toContent(turn: Turn): Generated['content'] {
  if (typeof turn === 'string') return [{ type: 'text', text: turn }]
  return turn.flatMap(toParts)
}

function toParts({ name, id, input = {}, text, result }: ModelCall, index: number): CallPart[] {
  const call = { toolCallId: id ?? `call-${index}`, toolName: name }
  const part = { type: 'tool-call', ...call, input: text ?? JSON.stringify(input) } as const
  if (!result) return [part]
  return [
    { ...part, providerExecuted: true },
    { type: 'tool-result', ...call, result: result as Record<string, string> },
  ]
}

type CallPart = Extract<Generated['content'][number], { readonly type: 'tool-call' | 'tool-result' }>

type Chunk = Streamed['stream'] extends ReadableStream<infer Part> ? Part : never

function toChunks(turn: Turn): Chunk[] {
  const parts: Chunk[] =
    typeof turn === 'string'
      ? [
          { type: 'text-start', id: '1' },
          { type: 'text-delta', id: '1', delta: turn },
          { type: 'text-end', id: '1' },
        ]
      : turn.flatMap(toParts)
  return [
    { type: 'stream-start', warnings: [] },
    ...parts,
    { type: 'finish', finishReason: finishOf(turn), usage: USAGE },
  ]
}

function toldIn(request: CallOptions | undefined): Readonly<Record<string, unknown>> {
  const told = new Map<string, unknown>()
  for (const { role, content } of request?.prompt ?? []) {
    if (role !== 'tool') continue
    for (const part of content) if (part.type === 'tool-result') told.set(part.toolCallId, part.output)
  }
  return Object.fromEntries(told)
}
