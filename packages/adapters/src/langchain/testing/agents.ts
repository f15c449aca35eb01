import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager'
import { BaseChatModel, type BindToolsInput } from '@langchain/core/language_models/chat_models'
import type { BaseMessage } from '@langchain/core/messages'
import type { ChatResult } from '@langchain/core/outputs'
import { convertToOpenAITool } from '@langchain/core/utils/function_calling'
import { isRunnableToolLike, isStructuredTool } from '@langchain/core/tools'
import { type BaseCheckpointSaver, Command } from '@langchain/langgraph'
import { type AgentMiddleware, AIMessage, createAgent, tool, ToolMessage } from 'langchain'
import { type Caller, createGate, defineCaller, type Policies } from '@toolgate/core'
import type { NativeGateOptions } from '@toolgate/core/internal'
import { z } from 'zod'
import { createTestAudit, createWitness, type Witness } from '../../testing/world.ts'
import { guard, type GuardOptions } from '../guard.ts'
import { fromLangChain, type NativeTools } from '../import-tools.ts'

/** A call in a script. */
export interface ScriptedCall {
  readonly name: string
  readonly args?: Record<string, unknown>
  readonly id?: string
}

/** The request that a provider got. */
interface SentRequest {
  /** The names of the tools, in the order in which they were sent. */
  readonly tools: readonly string[]
  readonly definitions: readonly unknown[]
  readonly toolChoice: unknown
  readonly messages: readonly BaseMessage[]
}

type Say = (messages: readonly BaseMessage[]) => AIMessage | Promise<AIMessage>

/** A model that answers from a script, and stores the tool definitions that it was sent, in OpenAI's format. */
export class ScriptedModel extends BaseChatModel {
  readonly requests: SentRequest[] = []
  readonly say: Say

  constructor(say: Say) {
    super({})
    this.say = say
  }

  _llmType(): string {
    return 'scripted'
  }

  /** The tool names in each request. */
  get sent(): readonly (readonly string[])[] {
    return this.requests.map(({ tools }) => tools)
  }

  override bindTools(tools: BindToolsInput[], options: Record<string, unknown> = {}): ReturnType<this['withConfig']> {
    const definitions = tools.map((one) =>
      isStructuredTool(one as never) || isRunnableToolLike(one as never) ? convertToOpenAITool(one as never) : one,
    )
    return this.withConfig({ ...options, tools: definitions } as object) as ReturnType<this['withConfig']>
  }

  override withStructuredOutput(): never {
    return { invoke: () => Promise.resolve({ tools: ['search'] }) } as never
  }

  async _generate(
    messages: BaseMessage[],
    options: {
      readonly tools?: readonly {
        readonly type?: string
        readonly name?: string
        readonly function?: { readonly name: string }
      }[]
      readonly tool_choice?: unknown
    },
    _manager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    const definitions = options.tools ?? []
    this.requests.push({
      tools: definitions.map((one) => one.function?.name ?? one.name ?? one.type ?? ''),
      definitions,
      toolChoice: options.tool_choice,
      messages,
    })
    return { generations: [{ text: '', message: await this.say(messages) }] }
  }
}

let lastId = 0

export function calling(...calls: readonly ScriptedCall[]): AIMessage {
  return new AIMessage({
    content: '',
    tool_calls: calls.map(({ name, args = {}, id = `call_${++lastId}` }) => ({
      name,
      args,
      id,
      type: 'tool_call' as const,
    })),
  })
}

/** Answers the turns in order. The conversation selects the turn, so any number of runs may share one model. */
export function scripted(...turns: readonly (readonly ScriptedCall[] | AIMessage)[]): ScriptedModel {
  return new ScriptedModel((messages) => {
    const last = messages.findLastIndex((message) => message.getType() === 'human')
    const turn = turns[messages.slice(last + 1).filter((message) => message.getType() === 'ai').length]
    if (turn === undefined) return new AIMessage('done')
    return AIMessage.isInstance(turn) ? turn : calling(...turn)
  })
}

/** The three tools of the world, as LangChain's own. Each records that it ran. */
export function langChainWorld(witness: Witness) {
  const make = <const Name extends string>(name: Name) => {
    const body = witness.body(name)
    return tool(() => body(), {
      name,
      description: `The tool ${name}.`,
      schema: z.object({ q: z.string().optional() }),
    })
  }
  return [make('search'), make('delete_all'), make('alpha')] as const
}

export const HELLO = { messages: [{ role: 'user', content: 'Go.' }] }

/** Returns the results that the model got: `delete_all error: Tool "delete_all" is not available. …`. */
export function toldOf({ messages }: { readonly messages: readonly BaseMessage[] }): readonly string[] {
  return messages
    .filter((message) => ToolMessage.isInstance(message))
    .map(
      ({ name, status, content }) =>
        `${name} ${status ?? 'success'}: ${typeof content === 'string' ? content : JSON.stringify(content)}`,
    )
}

type World = NativeGateOptions<NativeTools<ReturnType<typeof langChainWorld>>>

export type WorldOptions = Partial<Omit<World, 'tools' | 'audit' | 'policy'>> & {
  readonly policy?: Policies | undefined
  readonly guard?: Partial<GuardOptions<'search' | 'delete_all' | 'alpha'>>
  readonly before?: readonly AgentMiddleware[]
  readonly after?: readonly AgentMiddleware[]
  readonly checkpointer?: BaseCheckpointSaver
  /** How LangChain runs the calls of a message: `v1` in one node, `v2` in a node for each. */
  readonly version?: 'v1' | 'v2'
}

/** Creates one agent with the three tools, behind one gate. The context contains the caller. */
export function createWorld(model: ScriptedModel, options: WorldOptions = {}) {
  const { guard: guardOptions, before = [], after = [], checkpointer, version, policy, ...gateOptions } = options
  const witness = createWitness()
  const audit = createTestAudit()
  const warnings: string[] = []
  const tools = langChainWorld(witness)
  const gate = createGate({
    tools: fromLangChain(tools),
    audit,
    ...gateOptions,
    ...(policy && { policy: policy as NonNullable<World['policy']> }),
  })
  const middleware = guard(gate, {
    caller: (runtime) => runtime.context.caller,
    onWarning: (warning) => warnings.push(warning),
    ...guardOptions,
  })
  const agent = createAgent({
    model,
    tools: [...tools],
    middleware: [...before, middleware, ...after],
    ...(checkpointer && { checkpointer }),
    ...(version && { version }),
  })
  const configOf = (caller: Caller, thread = 't1') => ({
    context: { caller: defineCaller(caller) } as never,
    configurable: { thread_id: thread },
  })
  return {
    witness,
    audit,
    warnings,
    gate,
    agent,
    run: (caller: Caller, thread?: string) => agent.invoke(HELLO, configOf(caller, thread)),
    resume: (caller: Caller, thread?: string) => agent.invoke(null, configOf(caller, thread)),
    resumeWith: (caller: Caller, resume: unknown, thread?: string) =>
      agent.invoke(new Command({ resume }), configOf(caller, thread)),
  }
}

/**
 * Casts a middleware. With `exactOptionalPropertyTypes`, LangChain's own middlewares do not match `AgentMiddleware`.
 */
export function loose(middleware: object): AgentMiddleware {
  return middleware as AgentMiddleware
}
