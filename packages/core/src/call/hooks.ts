import type { Caller } from '../ports/caller.ts'
import {
  AbortedError,
  type Cancelling,
  checkMethods,
  checkShape,
  ConfigError,
  type Deadlines,
  isErrorOf,
  isThenable,
  messageOf,
  shapeOf,
  TimeoutError,
  withDeadline,
} from '@toolgate/values'
import { type Decision, type Reason, reason } from '../decide/decision.ts'
import { frozenCopy, isPlain } from '@toolgate/values/json'
import type { Clock, MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { callerGone } from './refusals.ts'

/** Functions of the host around each call. Either may be absent or asynchronous. */
export interface HooksOf<Before, After> {
  /** Shown to people in refusals and faults. Default: the number of the hooks, counted from 1. */
  readonly name?: string | undefined
  /**
   * Called before a call that the layers allow. An error, an answer after the deadline, and an answer that is not a
   * {@link BeforeAnswer} refuse the call.
   */
  beforeToolCall?(context: Before): MaybePromise<BeforeAnswer | undefined | void>
  /**
   * Called after each call that was executed. It cannot change the outcome: its errors go to `onFault`, and its answer is
   * dropped. The output is the same object that the caller gets, and must not be changed.
   */
  afterToolCall?(context: After): MaybePromise<void>
}

export interface Hooks extends HooksOf<BeforeToolCall, AfterToolCall> {}

export interface BeforeAnswer {
  /** `false` refuses the call. `true` has no effect, like no answer. */
  readonly allow?: boolean | undefined
  /** Why the hook refuses. The model sees it. */
  readonly reason?: string | undefined
  /** A new input that replaces the old one, if the field is present; plain JSON. It is validated and decided like any other. */
  readonly input?: unknown
}

/** A call, in the form that `beforeToolCall` receives. */
export interface BeforeToolCall extends Cancelling {
  readonly tool: Tool
  readonly callId: string
  /** Frozen. Includes replacements by earlier hooks. */
  readonly input: unknown
  readonly caller: Caller
  /** Whether this attempt only requests an approval. The call itself comes later, and calls the hooks again. */
  readonly onlyAsks: boolean
  /** The ids that the caller may see now. Computed on demand. */
  readonly visibleIds: readonly string[]
  /** Aborts when the caller goes away. `onAbort` is cheaper. */
  readonly signal: AbortSignal
}

export interface AfterToolCall extends BeforeToolCall {
  readonly durationMs: number
  /** Whether the tool returned an output. */
  readonly ok: boolean
  /** The tool's output. If the tool asks for more input, an `InputRequired`; the next round calls the hooks again. */
  readonly output?: unknown
  /** The tool's error, or the reason why it was stopped. */
  readonly error?: unknown
}

/** The call that hooks are called for. */
export interface HookedCall {
  readonly tool: Tool
  readonly callId: string
  /** Deeply frozen. */
  readonly input: unknown
  readonly caller: Caller
  readonly cancelling: Cancelling | undefined
  readonly onlyAsks?: boolean | undefined
  visibleIds(): readonly string[]
}

export type HookedEnd =
  | { readonly ok: true; readonly durationMs: number; readonly output: unknown }
  | { readonly ok: false; readonly durationMs: number; readonly error: unknown }

export interface HookPorts {
  readonly deadlines: Deadlines
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Milliseconds, for each hook. */
  readonly deadlineMs: number
  /** Receives errors of hooks. */
  readonly onFault?: ((error: unknown) => void) | undefined
}

export type BeforeResult =
  | { readonly ok: true; readonly input: unknown; readonly replaced: boolean }
  | { readonly ok: false; readonly decision: Decision }

/** One set of hooks, or several. */
export type HooksInput = Hooks | readonly Hooks[]

/**
 * Checks hooks and returns them as a list, in the order in which they are called.
 *
 * @throws {ConfigError} for an unknown key: a misspelt hook would never be called
 */
export function parseHooks<Before, After>(
  hooks: HooksOf<Before, After> | readonly HooksOf<Before, After>[] | undefined,
  path = 'hooks',
): readonly HooksOf<Before, After>[] {
  if (hooks === undefined) return []
  if (!isList(hooks)) return [checkHooks(path, hooks)]
  return Object.freeze(hooks.map((one, i) => checkHooks(`${path}[${i}]`, one)))
}

type AnyHooks = HooksOf<never, never>

const HOOK_NAMES = ['beforeToolCall', 'afterToolCall'] as const
const HOOKS = shapeOf<AnyHooks>({ name: true, beforeToolCall: true, afterToolCall: true }, 'key')

function checkHooks<Some extends AnyHooks>(path: string, hooks: Some): Some {
  if (typeof hooks !== 'object' || hooks === null) throw new ConfigError(path, 'must be an object')
  const wrong = HOOK_NAMES.find((name) => hooks[name] !== undefined && typeof hooks[name] !== 'function')
  if (wrong !== undefined) throw new ConfigError(`${path}.${wrong}`, 'must be a function')
  // An instance of a class may have other members.
  if (isPlain(hooks)) checkShape(path, hooks, HOOKS)
  else checkMethods(path, hooks, HOOK_NAMES)
  if (HOOK_NAMES.every((name) => hooks[name] === undefined))
    throw new ConfigError(path, `has neither ${HOOK_NAMES.join(' nor ')}`)
  return hooks
}

function isList<Some extends AnyHooks>(hooks: Some | readonly Some[]): hooks is readonly Some[] {
  return Array.isArray(hooks)
}

/**
 * Calls each hook in turn. Each sees the input as replaced by the hooks before it.
 *
 * The first hook that refuses or fails ends it. Answers synchronously if every hook does. Never throws or rejects.
 */
export function askBefore(hooks: readonly Hooks[], call: HookedCall, ports: HookPorts): MaybePromise<BeforeResult> {
  return hooks.length === 0
    ? { ok: true, input: call.input, replaced: false }
    : askEach(hooks, new HookQuestion(call), ports)
}

/** A call, in the form that hooks of one kind receive. */
export interface AskedCall<Context> {
  readonly input: unknown
  readonly cancelling: Cancelling | undefined
  contextFor(input: unknown): Context
  /** Called when the hook has answered. */
  close(context: Context): void
}

class HookQuestion implements AskedCall<Context> {
  readonly input: unknown
  readonly cancelling: Cancelling | undefined
  readonly #call: HookedCall

  constructor(call: HookedCall) {
    this.input = call.input
    this.cancelling = call.cancelling
    this.#call = call
  }

  contextFor(input: unknown): Context {
    return new Context(this.#call, input)
  }

  close(context: Context): void {
    context.close()
  }
}

/** Like {@link askBefore}, for hooks of any kind. */
export function askEach<Before>(
  hooks: readonly HooksOf<Before, never>[],
  call: AskedCall<Before>,
  ports: HookPorts,
): MaybePromise<BeforeResult> {
  return askFrom(0, hooks, call, call.input, ports)
}

function askFrom<Before>(
  first: number,
  hooks: readonly HooksOf<Before, never>[],
  call: AskedCall<Before>,
  given: unknown,
  ports: HookPorts,
): MaybePromise<BeforeResult> {
  let input = given
  for (let i = first; i < hooks.length; i++) {
    const hook = hooks[i] as HooksOf<Before, never>
    const context = call.contextFor(input)
    let verdict: HookVerdict
    try {
      const answer: unknown = hook.beforeToolCall?.(context)
      if (isThenable(answer)) return askLater(answer, i, context, hooks, call, input, ports)
      verdict = readAnswer(answer, input)
    } catch (error) {
      verdict = new HookFailure(error)
    }
    call.close(context)
    if (verdict instanceof Replacement) input = verdict.input
    else if (verdict !== undefined) return stopped(verdict, hook, i, ports)
  }
  return { ok: true, input, replaced: input !== call.input }
}

async function askLater<Before>(
  answer: PromiseLike<unknown>,
  i: number,
  context: Before,
  hooks: readonly HooksOf<Before, never>[],
  call: AskedCall<Before>,
  input: unknown,
  ports: HookPorts,
): Promise<BeforeResult> {
  let verdict: HookVerdict
  try {
    const awaited = await withDeadline(answer, ports.deadlines, ports.clock, ports.deadlineMs, call.cancelling)
    verdict = readAnswer(awaited, input)
  } catch (error) {
    verdict = new HookFailure(error)
  }
  call.close(context)
  if (verdict === undefined || verdict instanceof Replacement)
    return askFrom(i + 1, hooks, call, verdict ? verdict.input : input, ports)
  return stopped(verdict, hooks[i] as AnyHooks, i, ports)
}

/** The verdict of a hook; `undefined` if it lets the call pass. */
type HookVerdict = Replacement | HookRefusal | HookFailure | undefined

class Replacement {
  readonly input: unknown
  constructor(input: unknown) {
    this.input = input
  }
}

class HookRefusal {
  readonly reason: string | undefined
  constructor(why: string | undefined) {
    this.reason = why
  }
}

class HookFailure {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

const ANSWER_KEYS: ReadonlySet<string> = new Set(['allow', 'reason', 'input'])

/** A misspelt `allow` would let the call pass, so an unknown answer is an error. */
function readAnswer(answer: unknown, input: unknown): HookVerdict {
  if (answer === undefined) return undefined
  if (!isPlain(answer)) return nonsense('it answered something other than an object or nothing')
  for (const key of Object.keys(answer)) {
    if (!ANSWER_KEYS.has(key))
      return nonsense(`its answer has a field ${JSON.stringify(key.slice(0, MAX_ECHO_LENGTH))}`)
  }
  const { allow, reason: why } = answer
  if (allow !== undefined && typeof allow !== 'boolean') return nonsense('its "allow" is no boolean')
  if (why !== undefined && typeof why !== 'string') return nonsense('its "reason" is no text')
  if (allow === false) return new HookRefusal(why)
  if (!Object.hasOwn(answer, 'input')) return undefined
  return replace(answer['input'], input)
}

function replace(by: unknown, input: unknown): HookVerdict {
  // The input was frozen before, so it is the one that was decided.
  if (by === input) return undefined
  const copy = frozenCopy(by)
  if ('value' in copy) return new Replacement(copy.value)
  return nonsense(`the input it gave at "${copy.problem.pointer}" ${copy.problem.message}`)
}

const MAX_ECHO_LENGTH = 64

function nonsense(problem: string): HookFailure {
  return new HookFailure(new TypeError(problem))
}

function stopped(verdict: HookRefusal | HookFailure, hook: AnyHooks, i: number, { onFault }: HookPorts): BeforeResult {
  const label = labelOf(hook, i)
  if (verdict instanceof HookRefusal) return { ok: false, decision: denied(label, verdict.reason) }
  const { error } = verdict
  if (isErrorOf(error, AbortedError)) return { ok: false, decision: callerGone() }
  if (!isErrorOf(error, TimeoutError)) reportFault(onFault, 'before', label, error)
  return { ok: false, decision: failed(label, error) }
}

const MAX_REASON_LENGTH = 1000

function denied(label: string, why: string | undefined): Decision {
  const message = why === undefined || why === '' ? undefined : shortened(why)
  return denial(
    reason('hooks', 'hook_denied', message === undefined ? `${label} refuses it` : `${label} refuses it: ${message}`, {
      message,
    }),
  )
}

function failed(label: string, error: unknown): Decision {
  const text = `${label} failed: ${shortened(messageOf(error))}`
  return denial(reason('hooks', 'hook_error', text, { message: 'a check failed' }))
}

function denial(one: Reason): Decision {
  return { outcome: one.outcome, reasons: [one] }
}

function shortened(text: string): string {
  return (text.length > MAX_REASON_LENGTH ? `${text.slice(0, MAX_REASON_LENGTH)}…` : text).toWellFormed()
}

function labelOf({ name }: AnyHooks, i: number): string {
  return typeof name === 'string' ? `the hook "${name}"` : `hook ${i + 1}`
}

/**
 * Calls all hooks at once with the end of a call, each for no longer than its deadline.
 *
 * Never throws or rejects. A hook cannot change the outcome.
 */
export function tellAfter(
  hooks: readonly Hooks[],
  call: HookedCall,
  end: HookedEnd,
  ports: HookPorts,
): MaybePromise<void> {
  return hooks.length === 0
    ? undefined
    : tellEach<EndContext>(hooks, () => new EndContext(call, end), closeContext, ports)
}

function closeContext(context: Context): void {
  context.close()
}

/** Like {@link tellAfter}, for hooks of any kind. Each hook gets its own context. */
export function tellEach<After>(
  hooks: readonly HooksOf<never, After>[],
  newContext: () => After,
  close: (context: After) => void,
  ports: HookPorts,
): MaybePromise<void> {
  let waits: Promise<void>[] | undefined
  for (let i = 0; i < hooks.length; i++) {
    const hook = hooks[i] as HooksOf<never, After>
    const context = newContext()
    try {
      const answer: unknown = hook.afterToolCall?.(context)
      if (isThenable(answer)) (waits ??= []).push(waitAfter(answer, hook, i, ports).then(() => close(context)))
      else close(context)
    } catch (error) {
      close(context)
      reportFault(ports.onFault, 'after', labelOf(hook, i), error)
    }
  }
  return waits && Promise.all(waits).then(() => {})
}

async function waitAfter(
  answer: PromiseLike<unknown>,
  hook: AnyHooks,
  i: number,
  { deadlines, clock, deadlineMs, onFault }: HookPorts,
): Promise<void> {
  try {
    await withDeadline(answer, deadlines, clock, deadlineMs)
  } catch (error) {
    reportFault(onFault, 'after', labelOf(hook, i), error)
  }
}

function reportFault(onFault: HookPorts['onFault'], when: 'before' | 'after', label: string, error: unknown): void {
  try {
    onFault?.(new Error(`${label} failed ${when} a call: ${messageOf(error)}`, { cause: error }))
  } catch {
    // A fault listener that throws must not cause another fault.
  }
}

/** The context of one hook. Each hook has its own, so that none can change another's. */
class Context implements BeforeToolCall {
  readonly tool: Tool
  readonly callId: string
  readonly input: unknown
  readonly caller: Caller
  readonly onlyAsks: boolean
  readonly #call: HookedCall
  #visibleIds: readonly string[] | undefined
  #controller: AbortController | undefined
  #unlisten: (() => void) | undefined
  #closed = false

  constructor(call: HookedCall, input: unknown) {
    this.tool = call.tool
    this.callId = call.callId
    this.input = input
    this.caller = call.caller
    this.onlyAsks = call.onlyAsks === true
    this.#call = call
  }

  get visibleIds(): readonly string[] {
    return (this.#visibleIds ??= Object.freeze([...this.#call.visibleIds()]))
  }

  get aborted(): boolean {
    return this.#call.cancelling?.aborted === true
  }

  get reason(): unknown {
    return this.#call.cancelling?.reason
  }

  onAbort(listener: () => void): () => void {
    return this.#call.cancelling?.onAbort(listener) ?? (() => {})
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = (this.#controller = new AbortController())
      if (this.aborted) controller.abort(this.reason)
      else if (!this.#closed) this.#unlisten = this.onAbort(() => controller.abort(this.reason))
    }
    return this.#controller.signal
  }

  /** Called when the hook has answered, so that a long-lived caller does not collect listeners. */
  close(): void {
    this.#closed = true
    this.#unlisten?.()
  }
}

class EndContext extends Context implements AfterToolCall {
  readonly durationMs: number
  readonly ok: boolean
  readonly output: unknown
  readonly error: unknown

  constructor(call: HookedCall, end: HookedEnd) {
    super(call, call.input)
    this.durationMs = end.durationMs
    this.ok = end.ok
    this.output = end.ok ? end.output : undefined
    this.error = end.ok ? undefined : end.error
  }
}
