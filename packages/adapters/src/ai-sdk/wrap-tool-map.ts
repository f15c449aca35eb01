import { ConfigError, type Decision, ToolgateError } from '@toolgate/core'
import {
  askEach,
  type AskedCall,
  createValidator,
  type HookPorts,
  type HooksOf,
  parseHooks,
  type StreamEnd,
  tellEach,
  watchStream,
} from '@toolgate/core/call'
import {
  chain,
  checkShape,
  createDeadlines,
  didYouMean,
  isThenable,
  messageOf,
  shapeOf,
  toCancelling,
} from '@toolgate/values'
import { frozenCopy } from '@toolgate/values/json'
import type { MaybePromise } from '@toolgate/core/internal'
import { messageFor, reason } from '@toolgate/core/decide'
import { type Clock, systemClock } from '@toolgate/core/stores'
import { copyWith, fieldsOf, isAsyncGenerator, isFunction } from '../shared/fields.ts'
import { isStream, lastOf } from '../shared/refused.ts'

/** Tools by name, as the AI SDK takes them. */
type ToolMap = Readonly<Record<string, object>>

/** One call of a tool of a plain tool map. */
export interface ToolMapCall<Name extends string = string> {
  readonly toolName: Name
  readonly toolCallId: string
  /** The input, frozen if it is plain JSON. Earlier hooks may have replaced it. */
  readonly input: unknown
  readonly chatId: string | undefined
  readonly userId: string | undefined
  /** Aborts with the SDK's call. */
  readonly signal: AbortSignal | undefined
}

export interface ToolMapEnd<Name extends string = string> extends ToolMapCall<Name> {
  readonly durationMs: number
  /** Whether the tool returned an output, or its stream ended normally. */
  readonly ok: boolean
  /** The tool's output. For a stream: its last item. */
  readonly output: unknown
  /** The tool's error, or why its stream ended early. */
  readonly error: unknown
}

export type ToolMapHooks<Name extends string = string> = HooksOf<ToolMapCall<Name>, ToolMapEnd<Name>>

/** The caller, as far as the host knows. The model never supplies these fields. */
export interface ToolMapCaller {
  readonly chatId?: string | undefined
  readonly userId?: string | undefined
}

/** The second argument that the SDK passes to `execute`. */
export interface ToolMapExecution {
  readonly toolCallId: string
  readonly abortSignal?: AbortSignal | undefined
  /** The tool's own context, by its `contextSchema`. */
  readonly context?: unknown
  readonly messages?: readonly unknown[] | undefined
}

export interface WrapToolMapOptions<Name extends string = string> extends ToolMapCaller {
  /** Returns the caller of each call. Missing fields come from the other options. If it throws, the call is refused. */
  readonly context?: ((execution: ToolMapExecution) => ToolMapCaller) | undefined
  /**
   * Tools to keep although hooks cannot stop them, because another process executes them. `true` keeps all.
   * Default: none.
   */
  readonly acceptUnenforceable?: boolean | readonly Name[] | undefined
  /** The time that each hook may take, in milliseconds. Default: 10 s. */
  readonly deadlineMs?: number | undefined
  readonly clock?: Pick<Clock, 'monotonicMs'> | undefined
  /** Called with the errors that hooks throw. */
  readonly onFault?: ((error: unknown) => void) | undefined
}

export interface WrappedToolMap<Tools extends ToolMap> {
  readonly tools: Tools
  /** Tools without an `execute` of their own, in the map's order. They are left out unless you accept them. */
  readonly notEnforceable: readonly (keyof Tools & string)[]
}

const OPTIONS = shapeOf<WrapToolMapOptions>({
  chatId: true,
  userId: true,
  context: true,
  acceptUnenforceable: true,
  deadlineMs: true,
  clock: true,
  onFault: true,
})
const WHO = shapeOf<ToolMapCaller>({ chatId: true, userId: true }, 'field')
const DEADLINE_MS = 10_000

/**
 * Returns a plain AI SDK tool map whose tools call hooks before and after they run.
 *
 * A refused call throws, and the SDK shows the model the error. Only `execute` changes. An input that a hook replaces
 * is validated again. Iterables pass item by item, and their last item is the output. A tool that the provider or the
 * client executes cannot be stopped here, so it is left out unless you accept it.
 *
 * There is no policy, limit, approval or audit here: use a gate for those.
 *
 * @throws {ConfigError} for invalid hooks, and for an accepted name that the map does not have
 */
export function wrapToolMapWithHooks<Tools extends ToolMap>(
  tools: Tools,
  hooks: ToolMapHooks<keyof Tools & string> | readonly ToolMapHooks<keyof Tools & string>[],
  options: WrapToolMapOptions<keyof Tools & string> = {},
): WrappedToolMap<Tools> {
  checkShape('wrapToolMapWithHooks', options, OPTIONS)
  const wrapping = new Wrapping(parseHooks(hooks), options)
  const names = namesOf(tools)
  const accepts = acceptance(names, options.acceptUnenforceable)
  const notEnforceable: (keyof Tools & string)[] = []
  const wrapped: [string, object][] = []
  for (const name of names) {
    const tool = tools[name]
    if (isExecutable(tool)) wrapped.push([name, wrapping.wrap(name, tool)])
    else {
      notEnforceable.push(name)
      if (tool && accepts(name)) wrapped.push([name, tool])
    }
  }
  // The tools keep their types: wrapping changes only how `execute` runs.
  return { tools: Object.fromEntries(wrapped) as Tools, notEnforceable }
}

function namesOf<Tools extends ToolMap>(tools: Tools): (keyof Tools & string)[] {
  return Object.keys(tools)
}

function isExecutable(tool: object | undefined): tool is ExecutableTool {
  const { execute, isProviderExecuted } = fieldsOf(tool)
  return typeof execute === 'function' && isProviderExecuted !== true
}

function acceptance<Name extends string>(
  names: readonly Name[],
  accepted: WrapToolMapOptions<Name>['acceptUnenforceable'],
): (name: Name) => boolean {
  if (accepted === undefined || typeof accepted === 'boolean') return () => accepted === true
  const unknown = accepted.filter((name) => !names.includes(name))
  if (unknown.length > 0)
    throw new ConfigError(
      'acceptUnenforceable',
      `the map has no tool ${unknown.map((name) => `${JSON.stringify(name)}${didYouMean(name, names)}`).join(' or ')}`,
    )
  return (name) => accepted.includes(name)
}

interface ExecutableTool {
  readonly inputSchema?: unknown
  execute(input: unknown, execution: ToolMapExecution): unknown
}

type CallerOptions = Omit<WrapToolMapOptions, 'acceptUnenforceable'>

/** The hooks of one map, and how to call them. */
class Wrapping {
  readonly #hooks: readonly ToolMapHooks[]
  readonly #options: CallerOptions
  readonly #ports: HookPorts

  constructor(hooks: readonly ToolMapHooks<never>[], options: CallerOptions) {
    const { clock = systemClock, deadlineMs = DEADLINE_MS, onFault } = options
    this.#hooks = hooks
    this.#options = options
    this.#ports = { deadlines: createDeadlines(() => clock.monotonicMs()), clock, deadlineMs, onFault }
  }

  wrap(name: string, tool: ExecutableTool): object {
    const isGenerator = isAsyncGenerator(tool.execute)
    const execute = (input: unknown, execution: ToolMapExecution): unknown => {
      const call = new WrappedCall(name, input, execution, this.#callerOf(execution), this.#hooks, this.#ports)
      const admitted = call.admit(tool)
      if (!isThenable(admitted)) return call.run(tool, admitted)
      // The SDK checks for an iterable before it awaits, so a stream must be returned immediately.
      return isGenerator ? runLater(call, tool, admitted) : admitted.then((given) => settled(call.run(tool, given)))
    }
    return copyWith(tool, { execute })
  }

  #callerOf(execution: ToolMapExecution): ToolMapCaller {
    const { context, chatId, userId } = this.#options
    if (!context) return { chatId, userId }
    try {
      const said = context(execution)
      checkShape('context', said, WHO)
      return { chatId: said.chatId ?? chatId, userId: said.userId ?? userId }
    } catch (error) {
      throw toError(hookFault(`the caller is unknown: ${messageOf(error)}`), '')
    }
  }
}

async function* runLater(call: WrappedCall, tool: ExecutableTool, admitted: PromiseLike<unknown>): AsyncGenerator {
  const output = call.run(tool, await admitted)
  if (isStream(output)) yield* output
}

/** Returns an output. The SDK needs a stream before `execute` resolves, so a late stream becomes its last item. */
function settled(output: unknown): unknown {
  return isStream(output) ? lastOf(output) : output
}

/** One call of one wrapped tool. */
class WrappedCall implements AskedCall<ToolMapCall> {
  readonly input: unknown
  readonly cancelling: AskedCall<ToolMapCall>['cancelling']
  readonly #name: string
  readonly #given: unknown
  readonly #execution: ToolMapExecution
  readonly #caller: ToolMapCaller
  readonly #hooks: readonly ToolMapHooks[]
  readonly #ports: HookPorts

  constructor(
    name: string,
    input: unknown,
    execution: ToolMapExecution,
    caller: ToolMapCaller,
    hooks: readonly ToolMapHooks[],
    ports: HookPorts,
  ) {
    // A schema's output may not be plain JSON. Hooks then get it as it is.
    const copy = frozenCopy(input)
    this.input = 'value' in copy ? copy.value : input
    this.cancelling = execution.abortSignal && toCancelling(execution.abortSignal)
    this.#name = name
    this.#given = input
    this.#execution = execution
    this.#caller = caller
    this.#hooks = hooks
    this.#ports = ports
  }

  contextFor(input: unknown): ToolMapCall {
    const { toolCallId, abortSignal } = this.#execution
    const { chatId, userId } = this.#caller
    return { toolName: this.#name, toolCallId, input, chatId, userId, signal: abortSignal }
  }

  close(): void {
    // This call's context holds no open resource.
  }

  /** Returns the input for the tool, or throws. */
  admit(tool: ExecutableTool): MaybePromise<unknown> {
    return chain(askEach(this.#hooks, this, this.#ports), (asked) => {
      if (!asked.ok) throw this.#refusal(asked.decision)
      if (!asked.replaced) return this.#given
      return chain(checkAgainst(tool.inputSchema, asked.input), (checked) => {
        if ('value' in checked) return checked.value
        throw this.#refusal(hookFault(`the input that a hook returned is not valid: ${checked.problem}`))
      })
    })
  }

  run(tool: ExecutableTool, input: unknown): unknown {
    const startedMs = this.#ports.clock.monotonicMs()
    const done: OnEnd = (end) => this.#tell(input, end, this.#ports.clock.monotonicMs() - startedMs)
    let output: unknown
    try {
      output = tool.execute(input, this.#execution)
      if (isThenable(output)) return settle(output, done)
    } catch (error) {
      return chain(done({ ok: false, error }), () => {
        throw error
      })
    }
    return isStream(output) ? this.#follow(output, done) : chain(done({ ok: true, output }), () => output)
  }

  #follow(stream: AsyncIterable<unknown>, done: OnEnd): AsyncIterable<unknown> {
    let last: unknown
    const onEnd = (end: StreamEnd) =>
      done(end.how === 'ended' ? { ok: true, output: last } : { ok: false, error: errorOf(end) })
    const onItem = (item: unknown) => void (last = item)
    const { deadlines, clock } = this.#ports
    return watchStream(stream, { deadlines, clock, cancelling: this.cancelling, onEnd, onItem })
  }

  #tell(input: unknown, end: EndedCall, durationMs: number): MaybePromise<void> {
    const { ok } = end
    const output = ok ? end.output : undefined
    const error = ok ? undefined : end.error
    const newContext = () => ({ ...this.contextFor(input), durationMs, ok, output, error })
    return tellEach<ToolMapEnd>(this.#hooks, newContext, () => {}, this.#ports)
  }

  #refusal(decision: Decision): unknown {
    const { abortSignal } = this.#execution
    if (decision.reasons[0]?.code === 'caller_gone') return abortSignal?.reason
    return toError(decision, this.#name)
  }
}

type EndedCall = { readonly ok: true; readonly output: unknown } | { readonly ok: false; readonly error: unknown }
type OnEnd = (end: EndedCall) => MaybePromise<void>

async function settle(answer: PromiseLike<unknown>, done: OnEnd): Promise<unknown> {
  let output: unknown
  try {
    output = await answer
  } catch (error) {
    await done({ ok: false, error })
    throw error
  }
  await done({ ok: true, output })
  return output
}

function errorOf(end: StreamEnd): unknown {
  return 'error' in end ? end.error : new DOMException('nobody read the stream to its end', 'AbortError')
}

function hookFault(text: string): Decision {
  const one = reason('hooks', 'hook_error', text, { message: 'a check failed' })
  return { outcome: one.outcome, reasons: [one] }
}

function toError(decision: Decision, name: string): ToolgateError {
  const message = messageFor(decision, { asked: name, visible: () => [] })
  return new RefusedByHook('tool_refused', message, { detail: decision.reasons[0]?.text ?? '' })
}

/**
 * The error when a hook refuses. The SDK shows its text to the model; the text of other errors begins with the class.
 */
class RefusedByHook extends ToolgateError {
  override toString(): string {
    return this.message
  }

  override toJSON(): string {
    return this.message
  }
}

/** A valid input, or the reason why the schema rejects it. */
type CheckedCall = { readonly value: unknown } | { readonly problem: string }

/**
 * Checks an input with a schema of the AI SDK: a Standard Schema (zod, valibot, ArkType), the SDK's own with a `validate`
 * or only a JSON Schema, or a function that returns one. Without a schema every input is valid.
 *
 * A schema that throws, rejects or returns something invalid refuses every input.
 */
function checkAgainst(schema: unknown, input: unknown): MaybePromise<CheckedCall> {
  try {
    return guarded(check(schema, input))
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

function guarded(checked: MaybePromise<CheckedCall>): MaybePromise<CheckedCall> {
  return checked instanceof Promise ? checked.catch((error: unknown) => ({ problem: messageOf(error) })) : checked
}

function check(schema: unknown, input: unknown): MaybePromise<CheckedCall> {
  if (schema === undefined || schema === null) return { value: input }
  // Both may be methods that use `this`.
  const standard = fieldsOf(fieldsOf(schema)['~standard'])
  if (isFunction(standard['validate'])) return chain(awaitable(standard['validate'](input)), readStandard)
  if (isFunction(schema)) return check(schema(), input)
  const own = fieldsOf(schema)
  if (isFunction(own['validate'])) return chain(awaitable(own['validate'](input)), readSdk)
  return chain(awaitable(own['jsonSchema']), (document) => checkJson(document, input))
}

function awaitable(answer: unknown): MaybePromise<unknown> {
  return isThenable(answer) && !(answer instanceof Promise) ? Promise.resolve(answer) : answer
}

/** Standard Schema 1: a failure has issues, and a success has none. */
function readStandard(answer: unknown): CheckedCall {
  const { value, issues } = fieldsOf(answer)
  if (issues !== undefined) return { problem: messageOf(fieldsOf(fieldsOf(issues)[0])['message']) }
  return 'value' in fieldsOf(answer) ? { value } : { problem: 'the schema returned no value' }
}

function readSdk(answer: unknown): CheckedCall {
  const { success, value, error } = fieldsOf(answer)
  return success === true ? { value } : { problem: messageOf(error) }
}

const validateJson = createValidator()

function checkJson(schema: unknown, input: unknown): CheckedCall {
  if (typeof schema !== 'object' || schema === null) return { problem: 'the tool has no schema that can be used' }
  const problem = validateJson(schema, input)
  return problem ? { problem: `"${problem.pointer}" ${problem.message}` } : { value: input }
}
