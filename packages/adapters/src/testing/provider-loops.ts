import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import type { Caller, Gate } from '@toolgate/core'
import OpenAI from 'openai'
import { guard as guardAnthropic } from '../anthropic.ts'
import { guard as guardGemini } from '../gemini.ts'
import { guard as guardOpenAI } from '../openai.ts'
import type { ProviderRunOptions } from '../shared/provider-run.ts'
import { type JsonServer, startJsonServer } from './json-server.ts'

/** A call of the scripted model. `json` replaces the input if the provider sends a text. */
interface ScriptedCall {
  readonly name: string
  readonly input?: Readonly<Record<string, unknown>>
  readonly json?: string
}

/** The result of one loop over a provider's own SDK. */
interface LoopReport {
  /** The bodies of the requests, as they came over the wire. */
  readonly bodies: readonly Readonly<Record<string, unknown>>[]
  /** The sent names, by request. */
  readonly sent: readonly (readonly string[])[]
  /** The results for the model, in call order. */
  readonly told: readonly string[]
}

/** The loop that a host writes with a provider's SDK. `script` has the calls of each answer. A text follows them. */
export interface ProviderLoop {
  readonly name: string
  /** Whether inputs are texts on the wire, which may be invalid JSON. */
  readonly sendsText: boolean
  /** Whether the provider can mask tools. */
  readonly mask: boolean
  run(guarded: Guarded, script: Script): Promise<LoopReport>
  /** Runs the same loop without a gate. It looks tools up by name, as hosts do. */
  runBare(tools: BareTools, script: Script): Promise<LoopReport>
}

export type Script = readonly (readonly ScriptedCall[])[]
/** The tools of a loop without a gate. `shown` is sent; calls are looked up among all. */
interface BareTools {
  readonly shown: readonly string[]
  readonly all: ReadonlyMap<string, (input: unknown) => unknown>
}
interface Guarded {
  readonly gate: Gate
  readonly caller: Caller
  readonly options?: ProviderRunOptions
  /** Called before each request. */
  readonly beforeStep?: (index: number) => Promise<void> | void
}

const KEY = 'a key'
const MODEL = 'scripted'

interface Wire<Call, Output> {
  readonly name: string
  readonly sendsText: boolean
  readonly mask: boolean
  /** The user's message. */
  readonly prompt: object
  /** Returns the answer that makes these calls. */
  answer(calls: readonly ScriptedCall[], index: number): unknown
  names(body: Readonly<Record<string, unknown>>): readonly string[]
  textOf(output: Output): string
  open(url: string, guarded: Guarded): Promise<Loop<Call, Output>>
  /** The tools and answers that a host without a gate writes by hand. */
  bare(shown: readonly string[]): object
  bareCall(call: Call): { readonly name: string; readonly input: unknown; answer(text: string): Output }
  ask(url: string): (request: object, history: unknown[]) => Promise<readonly Call[]>
  append(history: unknown[], calls: readonly Call[], outputs: readonly Output[]): void
}

interface Loop<Call, Output> {
  next(): Promise<object>
  execute(call: Call): Promise<Output>
}

function createLoop<Call, Output>(wire: Wire<Call, Output>): ProviderLoop {
  const drive = async (script: Script, open: (url: string) => Promise<Loop<Call, Output>>, before?: BeforeStep) => {
    await using server: JsonServer = await startJsonServer((_, index) => wire.answer(script[index] ?? [], index))
    const loop = await open(server.url)
    const ask = wire.ask(server.url)
    const history: unknown[] = [wire.prompt]
    const told: string[] = []
    for (let index = 0; index <= script.length; index++) {
      await before?.(index)
      const calls = await ask(await loop.next(), history)
      const outputs = await Promise.all(calls.map((call) => loop.execute(call)))
      told.push(...outputs.map(wire.textOf))
      wire.append(history, calls, outputs)
      if (calls.length === 0) break
    }
    return { bodies: server.bodies, sent: server.bodies.map((body) => wire.names(body)), told }
  }
  return {
    name: wire.name,
    sendsText: wire.sendsText,
    mask: wire.mask,
    run: (guarded, script) => drive(script, (url) => wire.open(url, guarded), guarded.beforeStep),
    runBare: ({ shown, all }, script) =>
      drive(script, () =>
        Promise.resolve({
          next: () => Promise.resolve(wire.bare(shown)),
          async execute(call) {
            const { name, input, answer } = wire.bareCall(call)
            return answer(String(await all.get(name)?.(input)))
          },
        }),
      ),
  }
}

type BeforeStep = Guarded['beforeStep']

const jsonOf = ({ input, json }: ScriptedCall) => json ?? JSON.stringify(input ?? {})
const parse = (text: string): unknown => JSON.parse(text) as unknown

const responses = createLoop<OpenAI.Responses.ResponseFunctionToolCall, { output: string }>({
  name: 'OpenAI Responses',
  prompt: { role: 'user', content: 'Go.' },
  sendsText: true,
  mask: true,
  answer: (calls, index) => ({
    id: `resp_${index}`,
    object: 'response',
    created_at: 0,
    model: MODEL,
    status: 'completed',
    output:
      calls.length > 0
        ? calls.map((call, i) => ({
            type: 'function_call',
            id: `fc_${index}_${i}`,
            call_id: `call_${index}_${i}`,
            name: call.name,
            arguments: jsonOf(call),
            status: 'completed',
          }))
        : [
            {
              type: 'message',
              id: 'msg_1',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: 'done', annotations: [] }],
            },
          ],
  }),
  names: ({ tools }) => ((tools as { name: string }[] | undefined) ?? []).map(({ name }) => name),
  textOf: ({ output }) => output,
  open: (_, { gate, caller, options }) => guardOpenAI(gate, caller, options),
  bare: (shown) => ({ tools: shown.map((name) => ({ type: 'function', name, parameters: {}, strict: false })) }),
  bareCall: ({ name, arguments: text, call_id }) => ({
    name,
    input: parse(text),
    answer: (output) => ({ type: 'function_call_output', call_id, output }),
  }),
  ask(baseURL) {
    const client = new OpenAI({ apiKey: KEY, baseURL })
    return async (request, input) => {
      const { output } = await client.responses.create({ model: MODEL, input: input as [], ...request })
      return output.filter((item) => item.type === 'function_call')
    }
  },
  append: (history, calls, outputs) => void history.push(...calls, ...outputs),
})

const chat = createLoop<OpenAI.Chat.ChatCompletionMessageFunctionToolCall, { content: string }>({
  name: 'OpenAI Chat Completions',
  prompt: { role: 'user', content: 'Go.' },
  sendsText: true,
  mask: true,
  answer: (calls, index) => ({
    id: `chat_${index}`,
    object: 'chat.completion',
    created: 0,
    model: MODEL,
    choices: [
      {
        index: 0,
        finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
        message: {
          role: 'assistant',
          content: null,
          tool_calls: calls.map((call, i) => ({
            id: `call_${index}_${i}`,
            type: 'function',
            function: { name: call.name, arguments: jsonOf(call) },
          })),
        },
      },
    ],
  }),
  names: ({ tools }) => ((tools as { function: { name: string } }[] | undefined) ?? []).map((one) => one.function.name),
  textOf: ({ content }) => content,
  open: (_, { gate, caller, options }) => guardOpenAI(gate, caller, { ...options, api: 'chat' }),
  bare: (shown) => ({ tools: shown.map((name) => ({ type: 'function', function: { name, parameters: {} } })) }),
  bareCall: ({ id, function: { name, arguments: text } }) => ({
    name,
    input: parse(text),
    answer: (content) => ({ role: 'tool', tool_call_id: id, content }),
  }),
  ask(baseURL) {
    const client = new OpenAI({ apiKey: KEY, baseURL })
    return async (request, messages) => {
      const { choices } = await client.chat.completions.create({ model: MODEL, messages: messages as [], ...request })
      return (choices[0]?.message.tool_calls ?? []).filter((call) => call.type === 'function')
    }
  },
  append: (history, calls, outputs) =>
    void history.push({ role: 'assistant', content: null, tool_calls: calls }, ...outputs),
})

const anthropic = createLoop<Anthropic.ToolUseBlock, { content: string }>({
  name: 'Anthropic Messages',
  prompt: { role: 'user', content: 'Go.' },
  sendsText: false,
  mask: false,
  answer: (calls, index) => ({
    id: `msg_${index}`,
    type: 'message',
    role: 'assistant',
    model: MODEL,
    stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
    content: calls.map(({ name, input = {} }, i) => ({ type: 'tool_use', id: `toolu_${index}_${i}`, name, input })),
  }),
  names: ({ tools }) => ((tools as { name: string }[] | undefined) ?? []).map(({ name }) => name),
  textOf: ({ content }) => content,
  open: (_, { gate, caller, options }) => guardAnthropic(gate, caller, options),
  bare: (shown) => ({ tools: shown.map((name) => ({ name, input_schema: { type: 'object' } })) }),
  bareCall: ({ id, name, input }) => ({
    name,
    input,
    answer: (content) => ({ type: 'tool_result', tool_use_id: id, content }),
  }),
  ask(baseURL) {
    const client = new Anthropic({ apiKey: KEY, baseURL })
    return async (request, messages) => {
      const answer = await client.messages.create({
        model: MODEL,
        max_tokens: 100,
        messages: messages as [],
        ...request,
      })
      return answer.content.filter((block) => block.type === 'tool_use')
    }
  },
  append: (history, calls, outputs) =>
    void history.push({ role: 'assistant', content: calls }, { role: 'user', content: outputs }),
})

const gemini = createLoop<
  { id?: string; name?: string; args?: Record<string, unknown> },
  { functionResponse: { name: string; response: { output: string } | { error: string } } }
>({
  name: 'Gemini',
  prompt: { role: 'user', parts: [{ text: 'Go.' }] },
  sendsText: false,
  mask: true,
  answer: (calls) => ({
    candidates: [
      {
        finishReason: 'STOP',
        content: {
          role: 'model',
          parts:
            calls.length > 0
              ? calls.map(({ name, input = {} }) => ({ functionCall: { name, args: input } }))
              : [{ text: 'done' }],
        },
      },
    ],
  }),
  names: ({ tools }) =>
    ((tools as { functionDeclarations: { name: string }[] }[] | undefined) ?? []).flatMap((tool) =>
      tool.functionDeclarations.map(({ name }) => name),
    ),
  textOf: ({ functionResponse: { response } }) => ('output' in response ? response.output : response.error),
  open: (_, { gate, caller, options }) => guardGemini(gate, caller, options),
  bare: (shown) => ({ config: { tools: [{ functionDeclarations: shown.map((name) => ({ name })) }] } }),
  bareCall: ({ name = '', args }) => ({
    name,
    input: args,
    answer: (output) => ({ functionResponse: { name, response: { output } } }),
  }),
  ask(baseUrl) {
    const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl } })
    return async (request, contents) => {
      const answer = await client.models.generateContent({ model: MODEL, contents: contents as [], ...request })
      return answer.functionCalls ?? []
    }
  },
  append: (history, calls, outputs) =>
    void history.push(
      { role: 'model', parts: calls.map((functionCall) => ({ functionCall })) },
      { role: 'user', parts: outputs },
    ),
})

export const PROVIDER_LOOPS: readonly ProviderLoop[] = [responses, chat, anthropic, gemini]
