import type { FullAnswer, ModelWire } from './model-wire.ts'

/** OpenAI's chat completions, which most compatible servers speak. */
export const openAiChatWire: ModelWire = {
  name: 'openai-chat',
  matches: (path) => path.endsWith('/chat/completions'),
  read: (body) => ({
    model: String(body['model']),
    stream: body['stream'] === true,
    tools: ((body['tools'] ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name),
  }),
  toJson: (answer) => ({
    id: answer.id,
    object: 'chat.completion',
    created: 0,
    model: answer.model,
    choices: [
      {
        index: 0,
        finish_reason: finishOf(answer),
        message: {
          role: 'assistant',
          content: answer.text === '' ? null : answer.text,
          ...(answer.calls.length === 0 ? {} : { tool_calls: answer.calls.map(toToolCall) }),
        },
      },
    ],
    usage: usageOf(answer),
  }),
  toEvents(answer) {
    const chunk = (delta: object, finish: string | null = null) =>
      eventOf({
        id: answer.id,
        object: 'chat.completion.chunk',
        created: 0,
        model: answer.model,
        choices: [{ index: 0, delta, finish_reason: finish }],
      })
    return [
      chunk({ role: 'assistant', content: '' }),
      ...wordsOf(answer.text).map((content) => chunk({ content })),
      ...answer.calls.flatMap((call, index) => {
        const [head = '', ...rest] = halvesOf(call.arguments)
        return [
          chunk({
            tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: head } }],
          }),
          ...rest.map((text) => chunk({ tool_calls: [{ index, function: { arguments: text } }] })),
        ]
      }),
      chunk({}, finishOf(answer)),
      eventOf({
        id: answer.id,
        object: 'chat.completion.chunk',
        created: 0,
        model: answer.model,
        choices: [],
        usage: usageOf(answer),
      }),
      'data: [DONE]\n\n',
    ]
  },
  toError: (status, message) => ({ error: { message, type: 'server_error', code: String(status) } }),
}

function toToolCall({ id, name, arguments: text }: FullAnswer['calls'][number]): object {
  return { id, type: 'function', function: { name, arguments: text } }
}

function finishOf({ calls }: FullAnswer): string {
  return calls.length > 0 ? 'tool_calls' : 'stop'
}

function usageOf({ usage: { input, output } }: FullAnswer): object {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
}

/** Splits a text into parts, which the reader must join. */
function wordsOf(text: string): readonly string[] {
  return text.match(/\S+\s*|\s+/g) ?? []
}

function halvesOf(text: string): readonly string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== '')
}

function eventOf(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}
