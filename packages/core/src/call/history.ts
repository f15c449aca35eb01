import { readsRun, shadowsReadRun } from '../decide/decide.ts'
import { CallHistory } from '../history/call-history.ts'
import { type RunFacts, strictestFacts } from '../history/facts.ts'
import type { MaybePromise, RunOfCall } from '../ports/ports.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import { ToolgateError } from '../util/errors.ts'
import { chain } from '../util/async.ts'
import type { Attempt, CallPorts, CallView, Stop } from './attempt.ts'
import { type Executed, throughOf } from './execute.ts'
import { InputRequired } from './outcome.ts'
import { isToolError } from '../util/output.ts'
import { continuedBy } from './rounds.ts'
import type { StreamEnd } from './streams.ts'

/** Reads what has happened in the run. Where that fails, nothing is known of it, and the strictest answer holds. */
export function readHistory(attempt: Attempt, tool: Tool): MaybePromise<undefined> {
  const { ports } = attempt
  if (!ports.histories.rules || !isRead(attempt)) return undefined
  try {
    const opened = attempt.request.comparing ? lookAtHistory(attempt) : openHistory(attempt, tool)
    return opened instanceof Promise ? opened.catch((error: unknown) => unread(attempt, error)) : opened
  } catch (error) {
    return unread(attempt, error)
  }
}

/** Returns what has happened in a run, for its next step; `undefined` where no rule reads it. Its history begins now, if not before. */
export function factsOfRun(
  { caller, isKept }: Pick<CallView, 'caller' | 'isKept'>,
  run: RunOfCall,
  { histories, onFault }: CallPorts,
): MaybePromise<RunFacts | undefined> {
  if (!histories.rules) return undefined
  const unknown = (error?: unknown) => {
    if (error !== undefined) onFault(error)
    return strictestFacts(histories.labels().names)
  }
  try {
    const read = chain(
      histories.of(caller, run, isKept, true),
      (history) => new CallHistory(histories, history, undefined).facts() ?? unknown(),
    )
    return read instanceof Promise ? read.catch(unknown) : read
  } catch (error) {
    return unknown(error)
  }
}

/** Whether rules or shadows of them read the run. */
function isRead({ decided }: Attempt): boolean {
  return readsRun(decided) || shadowsReadRun(decided)
}

/** A run for which there is no room is refused. */
function unread({ ports, decided }: Attempt, error: unknown): undefined {
  if (error instanceof ToolgateError && error.code === 'history_full' && readsRun(decided)) throw error
  ports.onFault(error)
}

function openHistory(attempt: Attempt, tool: Tool): MaybePromise<undefined> {
  const { ports, view, request } = attempt
  const { histories } = ports
  const reads = isRead(attempt)
  return chain(histories.of(view.caller, request.run, view.isKept, reads), (history) => {
    attempt.history = new CallHistory(histories, history, continuedBy(attempt, tool)?.event)
    if (reads) attempt.facts = attempt.history.facts()
    return undefined
  })
}

/** Reads a history, and makes none. */
function lookAtHistory(attempt: Attempt): MaybePromise<undefined> {
  const { ports, view, request } = attempt
  return chain(ports.histories.read(view.caller, request.run), (history) => {
    attempt.facts = history?.facts
    return undefined
  })
}

/** Returns whether more has happened in the run since it was last read. */
export function refreshFacts(attempt: Attempt): boolean {
  if (attempt.history === undefined || !readsRun(attempt.decided)) return false
  const facts = attempt.history.facts()
  if (facts === attempt.facts) return false
  attempt.facts = facts
  return true
}

/** Enters that the call begins. What cannot be entered does not begin, unless only shadows would read it. */
export function beginCall(
  attempt: Attempt,
  tool: Tool,
  decide: () => Stop | undefined,
): MaybePromise<Stop | undefined> {
  if (attempt.request.comparing) return undefined
  return forRules(attempt.ports, () => enterBegin(attempt, tool, decide))
}

/** Enters something. Where it fails, that stops a call only if rules are enforced that read histories. */
function forRules<T>({ histories, onFault }: CallPorts, enter: () => MaybePromise<T>): MaybePromise<T | undefined> {
  if (histories.isEnforced) return enter()
  try {
    const entered = enter()
    if (!(entered instanceof Promise)) return entered
    return entered.catch((error: unknown) => {
      onFault(error)
      return undefined
    })
  } catch (error) {
    onFault(error)
    return undefined
  }
}

function enterBegin(attempt: Attempt, tool: Tool, decide: () => Stop | undefined): MaybePromise<Stop | undefined> {
  const { ports, view, request } = attempt
  const reads = readsRun(attempt.decided)
  // Most calls are of such tools. Rounds count by themselves.
  if (!reads && !request.continues && ports.histories.hasNothingToEnter(tool, view.caller, request.run))
    return undefined
  if (attempt.history) return attempt.history.begin(tool, attempt.input, reads, decide)
  return chain(openHistory(attempt, tool), () => attempt.history?.begin(tool, attempt.input, reads, decide))
}

/** Enters how a call ended, before its caller gets the output. */
export function enterEnd(attempt: Attempt, tool: Tool, executed: Executed): MaybePromise<Executed> {
  const { history, input } = attempt
  const output = outputOf(executed)
  const done = executed.ok && !(executed.output instanceof InputRequired) && !isToolError(output)
  try {
    const entered = history?.end(tool, input, { done, output })
    if (!(entered instanceof Promise)) return executed
    return entered.then(
      () => executed,
      (error: unknown) => withheld(attempt, error, executed),
    )
  } catch (error) {
    return withheld(attempt, error, executed)
  }
}

function outputOf(executed: Executed): unknown {
  if (!executed.ok) return messagesOf(executed.error)
  return executed.output instanceof InputRequired ? executed.output.payload : executed.output
}

/** An error of a tool is its output, with the data that errors of JSON-RPC have. */
function messagesOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  return [error.message, 'data' in error ? error.data : undefined, messagesOf(error.cause)]
}

/** What was not entered would be taken for the model's own words, or for the user's. */
function withheld({ ports }: Attempt, cause: unknown, executed: Executed): Executed {
  ports.onFault(cause)
  if (!ports.histories.isEnforced) return executed
  const error = new Error('it ran, and its output is withheld: the history of the run cannot be written', { cause })
  return { ok: false, code: 'tool_failed', error }
}

/** Enters the end of a stream, whose items were entered as they came. */
export async function enterStreamEnd(attempt: Attempt, tool: Tool, end: StreamEnd): Promise<void> {
  const error = 'error' in end ? messagesOf(end.error) : undefined
  try {
    await attempt.history?.end(tool, attempt.input, { done: end.how === 'ended', output: error })
  } catch (fault) {
    attempt.ports.onFault(fault)
  }
}

/** Returns what enters the items of a stream. */
export function watchItems({ history, ports }: Attempt): ((item: unknown) => void) | undefined {
  if (!history) return undefined
  return (item) => {
    const entered = forRules(ports, () => history.put(item))
    if (entered instanceof Promise) entered.catch(ports.onFault)
  }
}

/** Returns the listener, which hears of progress once its text is entered. */
export function watchProgress(
  { history, ports }: Attempt,
  listener: (progress: Progress) => void,
): (progress: Progress) => void {
  if (!history) return listener
  return (progress) => {
    const entered = forRules(ports, () => history.put(progress.message))
    if (entered instanceof Promise) entered.then(() => listener(progress), ports.onFault)
    else listener(progress)
  }
}

/** Enters what a running tool says before it answers. Nobody may get it before this resolves. */
export function enterSaid(call: CallContext, said: unknown): MaybePromise<void> {
  const attempt = throughOf(call)
  return attempt && forRules(attempt.ports, () => attempt.history?.put(said))
}

/** Raises labels in the run of a running call. Nobody may get what the labels are about before this resolves. */
export function raiseLabels(call: CallContext, labels: readonly string[]): MaybePromise<void> {
  const attempt = throughOf(call)
  if (!attempt?.ports.histories.rules || labels.length === 0 || attempt.request.comparing) return
  // A call that had nothing to enter has not opened it.
  attempt.labels = [...new Set([...(attempt.labels ?? []), ...labels])].toSorted()
  return forRules(attempt.ports, () => {
    const opened = attempt.history ? undefined : openHistory(attempt, call.tool)
    return chain(opened, () => attempt.history?.raise(call.tool, labels))
  })
}
