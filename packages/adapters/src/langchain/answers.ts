import { AIMessage, ToolMessage } from '@langchain/core/messages'
import type { RunnableConfig } from '@langchain/core/runnables'
import {
  type BaseCheckpointSaver,
  Command,
  getCurrentTaskInput,
  isCommand,
  isGraphInterrupt,
  Send,
} from '@langchain/langgraph'
import { sha256Hex } from '@toolgate/values'
import { fieldsOf } from '../shared/fields.ts'
import { type CallAnswer, isFailure, type MadeCall, refusalOf } from './calls.ts'
import type { GuardRuntime } from './runs.ts'

/**
 * Makes a call at most once, although LangGraph runs a node again after a pause.
 *
 * A node that makes all calls of a message, as `ToolNode` does, starts from the top when one of them has paused. The
 * answers that the others got are kept beside the graph's checkpoint and given again, in any process. A call still
 * ends before the pause of another is passed on. A call that its process did not survive is made again, as LangGraph
 * runs its node again.
 */
export async function answerOnce(
  runtime: GuardRuntime,
  toolCall: MadeCall,
  make: () => Promise<CallAnswer>,
): Promise<CallAnswer> {
  const node = nodeOf(runtime)
  return node ? node.answer(toolCall, make) : make()
}

/** Returns the answers that calls got in a run of the same thread that did not end, by the ids of the calls. */
export async function findAnswers(
  { configurable = {} }: Pick<RunnableConfig, 'configurable'>,
  ids: ReadonlySet<string | undefined>,
): Promise<ReadonlyMap<string, ToolMessage>> {
  const { [CHECKPOINTER]: saver, thread_id, checkpoint_ns = '' } = fieldsOf(configurable)
  const found = new Map<string, ToolMessage>()
  if (!isSaver(saver)) return found
  const config = { configurable: { thread_id, checkpoint_ns: graphOf(String(checkpoint_ns)) } }
  for await (const { pendingWrites = [] } of saver.list(config, { limit: MAX_CHECKPOINTS }))
    for (const message of pendingWrites.flatMap(([, , written]) => messagesIn(written)))
      if (ids.has(message.tool_call_id) && !found.has(message.tool_call_id)) found.set(message.tool_call_id, message)
  return found
}

/** A new message of the user is a few checkpoints after the one at which the run waited. */
const MAX_CHECKPOINTS = 10

/** Returns the tool messages in what a node wrote: messages, a change of the state, or a command. */
function messagesIn(written: unknown, depth: number = 0): readonly ToolMessage[] {
  if (ToolMessage.isInstance(written)) return [written]
  if (typeof written !== 'object' || written === null || depth > MAX_DEPTH) return []
  return Object.values(written).flatMap((value) => messagesIn(value, depth + 1))
}

const MAX_DEPTH = 4

/** The nodes that run now, by the object that LangGraph creates each time it runs one. */
const nodes = new WeakMap<object, NodeAnswers>()

/** Returns the node that makes a call; `undefined` if nothing can make its calls again. */
function nodeOf({ configurable = {} }: GuardRuntime): NodeAnswers | undefined {
  const {
    [SCRATCHPAD]: run,
    [CHECKPOINTER]: saver,
    thread_id,
    checkpoint_ns = '',
    checkpoint_map,
  } = fieldsOf(configurable)
  if (typeof run !== 'object' || run === null || !isSaver(saver) || typeof checkpoint_ns !== 'string') return undefined
  const known = nodes.get(run)
  if (known) return known
  const graph = graphOf(checkpoint_ns)
  const checkpoint_id = fieldsOf(checkpoint_map)[graph]
  if (checkpoint_id === undefined || !makesSeveral()) return undefined
  const config = { configurable: { thread_id, checkpoint_ns: graph, checkpoint_id } }
  const node = new NodeAnswers(saver, config, checkpoint_ns)
  nodes.set(run, node)
  return node
}

/** Returns the namespace of the graph that a node is in. The last part is the node itself. */
function graphOf(namespace: string): string {
  return namespace.split('|').slice(0, -1).join('|')
}

const SCRATCHPAD = '__pregel_scratchpad'
const CHECKPOINTER = '__pregel_checkpointer'

type Saver = Pick<BaseCheckpointSaver, 'getTuple' | 'putWrites' | 'list'>

/** Whether it is a checkpointer. LangGraph also passes `true` and `false`. */
function isSaver(saver: unknown): saver is Saver {
  const { getTuple, putWrites, list } = fieldsOf(saver)
  return [getTuple, putWrites, list].every((method) => typeof method === 'function')
}

/** Whether the node may make several calls. With version 2 of its agents, LangGraph runs a node for each call. */
function makesSeveral(): boolean {
  const input: unknown = taskInput()
  if (fieldsOf(input)['lg_tool_call'] !== undefined) return false
  const messages: unknown = Array.isArray(input) ? input : fieldsOf(input)['messages']
  if (!Array.isArray(messages)) return true
  const last: unknown = messages.findLast((message) => AIMessage.isInstance(message))
  return !AIMessage.isInstance(last) || (last.tool_calls?.length ?? 0) !== 1
}

function taskInput(): unknown {
  try {
    return getCurrentTaskInput()
  } catch {
    // Called outside of a graph.
    return undefined
  }
}

/** The answers of one run of a node, and of its earlier runs at the same checkpoint. */
class NodeAnswers {
  readonly #saver: Saver
  readonly #config: RunnableConfig
  readonly #node: string
  readonly #ending = new Set<Promise<unknown>>()
  #earlier: Promise<ReadonlyMap<string, CallAnswer>> | undefined

  constructor(saver: Saver, config: RunnableConfig, node: string) {
    this.#saver = saver
    this.#config = config
    this.#node = node
  }

  async answer(toolCall: MadeCall, make: () => Promise<CallAnswer>): Promise<CallAnswer> {
    const key = this.#keyOf(toolCall)
    // Only answers of earlier runs count: a middleware that repeats a call in this run makes another attempt.
    const earlier = (await (this.#earlier ??= this.#read())).get(key)
    return earlier ?? this.#make(key, toolCall, make())
  }

  async #make(key: string, toolCall: MadeCall, made: Promise<CallAnswer>): Promise<CallAnswer> {
    const ended = this.#end(key, toolCall, made)
    this.#ending.add(ended)
    try {
      return await made
    } catch (error) {
      if (isGraphInterrupt(error)) await Promise.all(this.#ending)
      throw error
    } finally {
      await ended
    }
  }

  /** Keeps the answer of a call, once it has one. A pause has none. */
  async #end(key: string, toolCall: MadeCall, made: Promise<CallAnswer>): Promise<void> {
    let answer: CallAnswer
    try {
      answer = await made
    } catch (error) {
      if (isFailure(error)) await this.#keep(`${key}${FAILED}`, refusalOf({ text: error.message }, toolCall))
      return
    }
    await this.#keep(key, answer)
  }

  #keyOf({ id, name, args }: MadeCall): string {
    return sha256Hex(JSON.stringify([this.#node, id, name, args]))
  }

  #keep(key: string, answer: CallAnswer): Promise<void> {
    return this.#saver.putWrites(this.#config, [[CHANNEL, toKept(answer)]], key)
  }

  async #read(): Promise<ReadonlyMap<string, CallAnswer>> {
    const { pendingWrites = [] } = (await this.#saver.getTuple(this.#config)) ?? {}
    const kept = new Map(
      pendingWrites.flatMap(([key, channel, answer]) => (channel === CHANNEL ? [[key, answer]] : [])),
    )
    const answers = new Map<string, CallAnswer>()
    for (const [key, answer] of kept) {
      const call = key.replace(FAILED, '')
      // A call that failed may have been repeated. Then its success counts.
      if (call === key || !kept.has(call)) answers.set(call, fromKept(answer))
    }
    return answers
  }
}

const CHANNEL = '__toolgate_answer__'
/** The end of the key of an answer that says that the tool threw. */
const FAILED = '-failed'

/** Returns an answer as a checkpointer keeps it. A `Command` would lose its graph. */
function toKept(answer: CallAnswer): unknown {
  if (!isCommand(answer)) return answer
  const { graph, update, goto } = answer
  return { command: { graph, update, goto } }
}

/** @throws {TypeError} for a kept answer that cannot be read, so that the call is not made again */
function fromKept(kept: unknown): CallAnswer {
  if (ToolMessage.isInstance(kept)) return kept
  const { command } = fieldsOf(kept)
  if (command === undefined) throw new TypeError('the checkpointer returned an answer of a tool that cannot be read')
  const { goto, ...rest } = fieldsOf(command)
  return new Command({ ...rest, goto: [goto ?? []].flat().map(toGoto) })
}

/** A checkpointer turns a `Send` into a plain object. */
function toGoto(place: unknown): string | Send {
  const { node, args } = fieldsOf(place)
  return typeof node === 'string' ? new Send(node, args) : String(place)
}
