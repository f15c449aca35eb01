import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dynamicTool, generateText, isStepCount, jsonSchema, streamText, tool, type ToolSet } from 'ai'
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test'
import { z } from 'zod'
import type { BeforeAnswer } from '@toolgate/core/call'
import {
  type ToolMapCall,
  type ToolMapEnd,
  type ToolMapHooks,
  wrapToolMapWithHooks,
  type WrapToolMapOptions,
} from './wrap-tool-map.ts'

const boom = new Error('boom')
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** A model that calls a tool, and then says that it is done. */
function modelCalling(toolName: string, input: unknown): MockLanguageModelV4 {
  const call = { type: 'tool-call' as const, toolCallId: 'call-1', toolName, input: JSON.stringify(input) }
  const told = { unified: 'tool-calls' as const, raw: undefined }
  const stop = { unified: 'stop' as const, raw: undefined }
  const parts = (chunks: object[], finishReason: object) => ({
    stream: simulateReadableStream({
      chunks: [{ type: 'stream-start', warnings: [] }, ...chunks, { type: 'finish', usage, finishReason }] as never[],
    }),
  })
  return new MockLanguageModelV4({
    doGenerate: [
      { content: [call], finishReason: told, usage, warnings: [] },
      { content: [{ type: 'text', text: 'done' }], finishReason: stop, usage, warnings: [] },
    ],
    doStream: [
      parts([call], told),
      parts(
        [
          { type: 'text-start', id: '1' },
          { type: 'text-delta', id: '1', delta: 'done' },
          { type: 'text-end', id: '1' },
        ],
        stop,
      ),
    ],
  })
}

/** What the model is sent back for its call. */
function sentBack(prompt: readonly { role: string; content: unknown }[] | undefined): unknown {
  const message = prompt?.find(({ role }) => role === 'tool')
  return (message?.content as { output: unknown }[] | undefined)?.[0]?.output
}

/** Runs a map through the SDK’s own loop; returns the results for the model. */
async function generate(tools: ToolSet, name: string, input: unknown = {}): Promise<unknown> {
  const model = modelCalling(name, input)
  await generateText({ model, prompt: 'go', tools, stopWhen: isStepCount(2) })
  return sentBack(model.doGenerateCalls[1]?.prompt)
}

async function stream(tools: ToolSet, name: string, input: unknown = {}) {
  const model = modelCalling(name, input)
  const result = streamText({ model, prompt: 'go', tools, stopWhen: isStepCount(2), onError() {} })
  const parts: unknown[] = []
  for await (const part of result.fullStream)
    if (part.type === 'tool-result')
      parts.push(part.preliminary ? ['preliminary', part.output] : ['final', part.output])
  return { parts, sentBack: sentBack(model.doStreamCalls[1]?.prompt) }
}

/** A tool that records its inputs. */
function recording() {
  const ran: unknown[] = []
  const send = tool({
    description: 'Sends.',
    inputSchema: z.object({ to: z.string(), copies: z.number().default(1) }),
    execute: ({ to, copies }) => {
      ran.push({ to, copies })
      return `sent ${copies} to ${to}`
    },
  })
  return { ran, tools: { send } }
}

const hooking = (before: (context: ToolMapCall) => unknown, later = false): ToolMapHooks => ({
  beforeToolCall: (context) => (later ? Promise.resolve(context).then(before) : before(context)) as BeforeAnswer,
})

const refused = (text: string) => ({ type: 'error-text', value: text })

describe('wrapToolMapWithHooks', () => {
  it('runs an allowed call, and calls both hooks', async () => {
    const { ran, tools } = recording()
    const heard: unknown[] = []
    const hooks: ToolMapHooks = {
      beforeToolCall: ({ toolName, toolCallId, input, chatId, userId, signal }) =>
        void heard.push([toolName, toolCallId, input, chatId, userId, signal]),
      afterToolCall: ({ toolName, toolCallId, input, chatId, userId, durationMs, ok, output, error }) => {
        assert.ok(durationMs >= 0)
        heard.push([toolName, toolCallId, input, chatId, userId, ok, output, error])
      },
    }
    const wrapped = wrapToolMapWithHooks(tools, hooks, { chatId: 'c1', userId: 'vera' })
    assert.deepEqual(wrapped.notEnforceable, [])
    assert.deepEqual(await generate(wrapped.tools, 'send', { to: 'a' }), { type: 'text', value: 'sent 1 to a' })
    const who = ['send', 'call-1', { to: 'a', copies: 1 }, 'c1', 'vera']
    assert.deepEqual(heard, [
      [...who, undefined],
      [...who, true, 'sent 1 to a', undefined],
    ])
    assert.deepEqual(ran, [{ to: 'a', copies: 1 }])
  })

  it('changes nothing but execute, and not the map it was given', () => {
    const { tools } = recording()
    const { execute } = tools.send
    const wrapped = wrapToolMapWithHooks(
      tools,
      hooking(() => {}),
    ).tools
    assert.deepEqual(Object.keys(wrapped), ['send'])
    assert.deepEqual(
      [wrapped.send.description, wrapped.send.inputSchema, tools.send.execute, wrapped.send.execute === execute],
      ['Sends.', tools.send.inputSchema, execute, false],
    )
  })

  for (const later of [false, true]) {
    describe(later ? 'with hooks that answer later' : 'with hooks that answer at once', () => {
      it('does not run a call that a hook refuses, and tells the model why', async () => {
        const { ran, tools } = recording()
        let ended = 0
        const hooks = [
          hooking(() => ({ allow: false, reason: 'not on Sundays' }), later),
          { afterToolCall: () => void ended++ },
        ]
        const wrapped = wrapToolMapWithHooks(tools, hooks).tools
        assert.deepEqual(await generate(wrapped, 'send', { to: 'a' }), refused('TOOL_CALL_BLOCKED: not on Sundays'))
        assert.deepEqual(
          (await stream(wrapped, 'send', { to: 'a' })).sentBack,
          refused('TOOL_CALL_BLOCKED: not on Sundays'),
        )
        assert.deepEqual([ran, ended], [[], 0])
      })

      it('fails closed for a hook that throws or returns something invalid, and tells the model no detail', async () => {
        const { ran, tools } = recording()
        const faults: unknown[] = []
        for (const answer of [() => Promise.reject(boom), () => 7, () => ({ alow: false })]) {
          const wrapped = wrapToolMapWithHooks(tools, hooking(answer, later), {
            onFault: (error) => faults.push(error),
          }).tools
          assert.deepEqual(await generate(wrapped, 'send', { to: 'a' }), refused('TOOL_CALL_BLOCKED: a check failed'))
        }
        assert.deepEqual([ran, faults.length], [[], 3])
      })

      it('runs with the input that a hook gave, as the schema has it', async () => {
        const { ran, tools } = recording()
        const inputs: unknown[] = []
        const hooks = [
          hooking(() => ({ input: { to: 'b', extra: 1 } }), later),
          { afterToolCall: ({ input }: ToolMapEnd) => void inputs.push(input) },
        ]
        await generate(wrapToolMapWithHooks(tools, hooks).tools, 'send', { to: 'a', copies: 3 })
        assert.deepEqual([ran, inputs], [[{ to: 'b', copies: 1 }], [{ to: 'b', copies: 1 }]])
      })

      it('does not run with an input of a hook that the schema refuses', async () => {
        const { ran, tools } = recording()
        const wrapped = wrapToolMapWithHooks(
          tools,
          hooking(() => ({ input: { to: 7 } }), later),
        ).tools
        assert.deepEqual(await generate(wrapped, 'send', { to: 'a' }), refused('TOOL_CALL_BLOCKED: a check failed'))
        assert.deepEqual(ran, [])
      })

      it('passes a generator item by item, and reports its end after the last', async () => {
        const heard: unknown[] = []
        const tools = {
          count: tool({
            inputSchema: z.object({}),
            async *execute() {
              yield 1
              yield 2
            },
          }),
        }
        const hooks = [
          hooking(() => {}, later),
          { afterToolCall: ({ ok, output }: ToolMapEnd) => void heard.push([ok, output]) },
        ]
        const wrapped = wrapToolMapWithHooks(tools, hooks).tools
        const streamed = await stream(wrapped, 'count')
        assert.deepEqual(streamed.parts, [
          ['preliminary', 1],
          ['preliminary', 2],
          ['final', 2],
        ])
        assert.deepEqual([streamed.sentBack, heard], [{ type: 'json', value: 2 }, [[true, 2]]])
      })

      it('reports the error of a generator that throws on the way', async () => {
        const heard: unknown[] = []
        const tools = {
          count: tool({
            inputSchema: z.object({}),
            async *execute() {
              yield 1
              throw boom
            },
          }),
        }
        const hooks = [
          hooking(() => {}, later),
          { afterToolCall: ({ ok, error }: ToolMapEnd) => void heard.push([ok, error]) },
        ]
        const streamed = await stream(wrapToolMapWithHooks(tools, hooks).tools, 'count')
        assert.deepEqual([streamed.sentBack, heard], [refused('Error: boom'), [[false, boom]]])
      })

      it('returns the last item of an iterable from a plain function', async () => {
        const tools = {
          count: tool({
            inputSchema: z.object({}),
            execute: (): AsyncIterable<number> =>
              (async function* () {
                yield 1
                yield 2
              })(),
          }),
        }
        const streamed = await stream(
          wrapToolMapWithHooks(
            tools,
            hooking(() => {}, later),
          ).tools,
          'count',
        )
        assert.deepEqual(streamed.parts.at(-1), ['final', 2])
        assert.equal(streamed.parts.length, later ? 1 : 3)
      })

      it('reports the tool’s error, and throws the same', async () => {
        const heard: unknown[] = []
        const hooks = [
          hooking(() => {}, later),
          { afterToolCall: ({ error, ok }: ToolMapEnd) => void heard.push([ok, error]) },
        ]
        for (const execute of [
          () => {
            throw boom
          },
          () => Promise.reject(boom),
        ] as (() => string | Promise<string>)[]) {
          const tools = { fail: tool({ inputSchema: z.object({}), execute }) }
          assert.deepEqual(await generate(wrapToolMapWithHooks(tools, hooks).tools, 'fail'), refused('Error: boom'))
        }
        assert.deepEqual(heard, [
          [false, boom],
          [false, boom],
        ])
      })
    })
  }

  it('asks several hooks in order, each with the input as those before it left it', async () => {
    const { ran, tools } = recording()
    const seen: unknown[] = []
    const hooks = [
      hooking(() => ({ input: { to: 'b' } })),
      hooking(({ input }) => void seen.push(input), true),
      hooking(({ input }) => ({ input: { ...(input as object), copies: 2 } })),
    ]
    await generate(wrapToolMapWithHooks(tools, hooks).tools, 'send', { to: 'a' })
    assert.deepEqual([seen, ran], [[{ to: 'b' }], [{ to: 'b', copies: 2 }]])
  })

  it('does not let a hook write into the input', async () => {
    const { ran, tools } = recording()
    const writing = hooking(({ input }) => void ((input as { to: string }).to = 'z'))
    await generate(wrapToolMapWithHooks(tools, writing).tools, 'send', { to: 'a' })
    assert.deepEqual(ran, [])
  })

  it('cannot lose a result to a hook that fails or hangs after', async () => {
    const { tools } = recording()
    const after = [
      () => {
        throw boom
      },
      () => Promise.reject(boom),
      () => new Promise<never>(() => {}),
    ]
    const hooks = after.map((afterToolCall) => ({ afterToolCall }))
    const wrapped = wrapToolMapWithHooks(tools, hooks, { deadlineMs: 1 }).tools
    assert.deepEqual(await generate(wrapped, 'send', { to: 'a' }), { type: 'text', value: 'sent 1 to a' })
  })

  it('fails closed at the deadline of a hook', async () => {
    const { ran, tools } = recording()
    const wrapped = wrapToolMapWithHooks(
      tools,
      hooking(() => new Promise(() => {})),
      { deadlineMs: 1 },
    ).tools
    assert.deepEqual(await generate(wrapped, 'send', { to: 'a' }), refused('TOOL_CALL_BLOCKED: a check failed'))
    assert.deepEqual(ran, [])
  })

  it('runs nothing for a caller who leaves while a hook is running', async () => {
    const { ran, tools } = recording()
    const controller = new AbortController()
    const hanging = hooking(({ signal }) => {
      assert.equal(signal, controller.signal)
      controller.abort(boom)
      return new Promise(() => {})
    })
    const { execute } = wrapToolMapWithHooks(tools, hanging).tools.send
    const execution = { toolCallId: 'x', messages: [], context: undefined as never, abortSignal: controller.signal }
    await assert.rejects(Promise.resolve(execute({ to: 'a', copies: 1 }, execution)), boom)
    assert.deepEqual(ran, [])
  })

  it('reads the caller from the host for each call', async () => {
    const { tools } = recording()
    const heard: unknown[] = []
    const hooks = hooking(({ chatId, userId }) => void heard.push([chatId, userId]))
    const options: WrapToolMapOptions<'send'> = {
      chatId: 'c1',
      context: ({ toolCallId }) => ({ userId: `of ${toolCallId}` }),
    }
    await generate(wrapToolMapWithHooks(tools, hooks, options).tools, 'send', { to: 'a' })
    assert.deepEqual(heard, [['c1', 'of call-1']])
  })

  it('refuses if the host cannot name the caller', async () => {
    const { ran, tools } = recording()
    const context = () => {
      throw boom
    }
    let asked = 0
    const wrapped = wrapToolMapWithHooks(
      tools,
      hooking(() => void asked++),
      { context },
    ).tools
    assert.deepEqual(await generate(wrapped, 'send', { to: 'a' }), refused('TOOL_CALL_BLOCKED: a check failed'))
    assert.equal(asked, 0)
    assert.deepEqual(ran, [])
  })

  describe('of tools that others execute', () => {
    const provider = {
      type: 'provider',
      id: 'acme.search',
      isProviderExecuted: true,
      args: {},
      inputSchema: z.object({}),
    } as const
    const client = tool({ inputSchema: z.object({}) })
    const dynamic = dynamicTool({ inputSchema: z.object({}), execute: () => 'ran' })
    const tools = { client, dynamic, provider }

    it('says that hooks cannot stop them, and leaves them out', () => {
      const wrapped = wrapToolMapWithHooks(
        tools,
        hooking(() => {}),
      )
      assert.deepEqual([Object.keys(wrapped.tools), wrapped.notEnforceable], [['dynamic'], ['client', 'provider']])
    })

    it('does not take an execute for one that the provider would call', () => {
      const both = { both: { ...provider, execute: () => 'ran' } }
      assert.deepEqual(
        wrapToolMapWithHooks(
          both,
          hooking(() => {}),
        ),
        { tools: {}, notEnforceable: ['both'] },
      )
    })

    it('keeps those that are accepted, as they are', () => {
      const keys = (acceptUnenforceable: WrapToolMapOptions<keyof typeof tools>['acceptUnenforceable']) => {
        const wrapped = wrapToolMapWithHooks(
          tools,
          hooking(() => {}),
          { acceptUnenforceable },
        )
        assert.deepEqual(wrapped.notEnforceable, ['client', 'provider'])
        return Object.keys(wrapped.tools)
      }
      assert.deepEqual(keys(true), ['client', 'dynamic', 'provider'])
      assert.deepEqual(keys(['provider']), ['dynamic', 'provider'])
      assert.deepEqual([keys(false), keys([])], [['dynamic'], ['dynamic']])
      assert.equal(
        wrapToolMapWithHooks(
          tools,
          hooking(() => {}),
          { acceptUnenforceable: true },
        ).tools.client,
        client,
      )
    })

    it('refuses a name to accept that the map does not have', () => {
      assert.throws(
        () =>
          wrapToolMapWithHooks(
            tools,
            hooking(() => {}),
            { acceptUnenforceable: ['cleint' as 'client'] },
          ),
        { message: 'acceptUnenforceable: the map has no tool "cleint"; did you mean "client"?' },
      )
    })
  })

  it('refuses invalid hooks', () => {
    assert.throws(() => wrapToolMapWithHooks({}, { beforeToolcall() {} } as ToolMapHooks), {
      message: /^hooks\.beforeToolcall: unknown key/,
    })
  })

  it('checks a hook’s input with any schema of the SDK', async () => {
    const document = { type: 'object' as const, properties: { to: { type: 'string' as const } }, required: ['to'] }
    const schemas = {
      zod: z.object({ to: z.string() }),
      json: jsonSchema(document),
      jsonLater: jsonSchema(() => Promise.resolve(document)),
      own: jsonSchema(document, {
        validate: (value) =>
          typeof (value as { to?: unknown }).to === 'string'
            ? { success: true, value }
            : { success: false, error: boom },
      }),
      lazy: () => jsonSchema(document),
      throwing: jsonSchema(document, {
        validate: () => {
          throw boom
        },
      }),
    }
    const ran: string[] = []
    for (const [name, inputSchema] of Object.entries(schemas)) {
      for (const to of ['b', 7]) {
        const tools = { send: { inputSchema, execute: () => void ran.push(`${name} ${to}`) } }
        const wrapped = wrapToolMapWithHooks(
          tools,
          hooking(() => ({ input: { to } })),
        ).tools
        const execute = wrapped.send.execute as (input: unknown, execution: object) => unknown
        await Promise.resolve()
          .then(() => execute({}, { toolCallId: 'x' }))
          .catch((error: unknown) => assert.equal((error as { code?: string }).code, 'tool_refused'))
      }
    }
    assert.deepEqual(ran, ['zod b', 'json b', 'jsonLater b', 'own b', 'lazy b'])
  })
})
