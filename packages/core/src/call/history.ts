import { readsRun, shadowsReadRun } from '../decide/decide.ts'
import { CallHistory } from '../history/call-history.ts'
import { type RunFacts, strictestFacts } from '../history/facts.ts'
import type { Histories } from '../history/histories.ts'
import type { MaybePromise, RunOfCall } from '../ports/ports.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import { chain, isToolError, ToolgateError } from '@toolgate/values'
import type { Attempt, CallPorts, CallView, HistoryOfCall, Stop } from './attempt.ts'
import { type Executed, throughOf } from './execute.ts'
import { InputRequired } from './outcome.ts'
import { continuedBy } from './rounds.ts'
import type { StreamEnd } from './streams.ts'

/** Returns what a call knows and leaves of its run: of a call that begins to, nothing yet. */
function historyOf(attempt: Attempt): HistoryOfCall {
  return (attempt.history ??= {
    facts: undefined,
    shadowFacts: undefined,
    entered: undefined,
    shadow: undefined,
    labels: undefined,
  })
}

/** Reads what has happened in the run. Where that fails, nothing is known of it, and the strictest answer holds. */
export function readHistory(attempt: Attempt, tool: Tool): MaybePromise<undefined> {
  const { ports, decided } = attempt
  const { rules, shadows } = ports.histories
  const read = rules && readsRun(decided) ? readOfRules(attempt, tool) : undefined
  if (!shadows?.rules || !shadowsReadRun(decided)) return read
  return chain(read, () => forShadows(attempt, () => readOfShadows(attempt, tool, shadows)))
}

/** Whether a person reads what another call would change: it leaves nothing. */
function leavesNothing({ request }: Attempt): boolean {
  return request.as?.kind === 'compare'
}

function readOfRules(attempt: Attempt, tool: Tool): MaybePromise<undefined> {
  try {
    const opened = leavesNothing(attempt) ? lookAtHistory(attempt) : openHistory(attempt, tool, true)
    return opened instanceof Promise ? opened.catch((error: unknown) => unread(attempt, error)) : opened
  } catch (error) {
    return unread(attempt, error)
  }
}

function readOfShadows(attempt: Attempt, tool: Tool, shadows: Histories): MaybePromise<void> {
  const { view, request } = attempt
  const facts = leavesNothing(attempt)
    ? chain(shadows.read(view.caller, request.run), (history) => history?.facts)
    : chain(openShadow(attempt, tool, shadows, true), (history) => history.facts())
  return chain(facts, (known) => {
    historyOf(attempt).shadowFacts = known
  })
}

/** Returns what has happened in a run, for its next step; `undefined` where no rule reads it. Its history begins now, if not before. */
export function factsOfRun(
  { caller, kept }: Pick<CallView, 'caller' | 'kept'>,
  run: RunOfCall,
  { histories, onFault }: CallPorts,
): MaybePromise<RunFacts | undefined> {
  const { rules, shadows } = histories
  // A run that goes on later has begun for its shadows, too.
  const begun = shadows?.rules && quietly(() => chain(shadows.of(caller, run, kept.shadows, false), noFacts), onFault)
  if (!rules) return chain(begun, noFacts)
  const unknown = (error?: unknown) => {
    if (error !== undefined) onFault(error)
    return strictestFacts(histories.labels().names)
  }
  try {
    const read = chain(
      chain(begun, () => histories.of(caller, run, kept.rules, true)),
      (history) => new CallHistory(histories, history, undefined).facts() ?? unknown(),
    )
    return read instanceof Promise ? read.catch(unknown) : read
  } catch (error) {
    return unknown(error)
  }
}

function noFacts(): undefined {}

/** A run for which there is no room is refused. */
function unread({ ports }: Attempt, error: unknown): undefined {
  if (error instanceof ToolgateError && error.code === 'history_full') throw error
  ports.onFault(error)
}

function openHistory(attempt: Attempt, tool: Tool, reads: boolean): MaybePromise<undefined> {
  const { ports, view, request } = attempt
  const { histories } = ports
  return chain(histories.of(view.caller, request.run, view.kept.rules, reads), (history) => {
    const known = historyOf(attempt)
    known.entered = new CallHistory(histories, history, continuedBy(attempt, tool)?.event)
    if (reads) known.facts = known.entered.facts()
    return undefined
  })
}

/** The two histories of a call know it by one name. */
function openShadow(attempt: Attempt, tool: Tool, shadows: Histories, reads: boolean): MaybePromise<CallHistory> {
  const { view, request } = attempt
  return chain(shadows.of(view.caller, request.run, view.kept.shadows, reads), (history) => {
    const known = historyOf(attempt)
    const event = known.entered?.event ?? continuedBy(attempt, tool)?.event
    return (known.shadow = new CallHistory(shadows, history, event))
  })
}

/** Reads a history, and makes none. */
function lookAtHistory(attempt: Attempt): MaybePromise<undefined> {
  const { ports, view, request } = attempt
  return chain(ports.histories.read(view.caller, request.run), (history) => {
    historyOf(attempt).facts = history?.facts
    return undefined
  })
}

/** Returns whether more has happened in the run since it was last read. */
export function refreshFacts({ history, decided }: Attempt): boolean {
  if (history?.entered === undefined || !readsRun(decided)) return false
  const facts = history.entered.facts()
  if (facts === history.facts) return false
  history.facts = facts
  return true
}

/** Enters that the call begins. What cannot be entered does not begin; whether shadows know of it stops nothing. */
export function beginCall(
  attempt: Attempt,
  tool: Tool,
  decide: () => Stop | undefined,
): MaybePromise<Stop | undefined> {
  const { rules, shadows } = attempt.ports.histories
  const begun = rules && enterBegin(attempt, tool, decide)
  if (!shadows?.rules) return begun
  return chain(begun, (stop) => stop ?? forShadows(attempt, () => enterShadow(attempt, tool, shadows)))
}

function enterBegin(attempt: Attempt, tool: Tool, decide: () => Stop | undefined): MaybePromise<Stop | undefined> {
  const { ports, view, request } = attempt
  const reads = readsRun(attempt.decided)
  // Most calls are of such tools. Rounds count by themselves.
  if (!reads && !request.continues && ports.histories.hasNothingToEnter(tool, view.caller, request.run))
    return undefined
  const opened = attempt.history?.entered ? undefined : openHistory(attempt, tool, reads)
  return chain(opened, () => attempt.history?.entered?.begin(tool, attempt.input, reads, decide))
}

function enterShadow(attempt: Attempt, tool: Tool, shadows: Histories): MaybePromise<undefined> {
  const { view, request } = attempt
  if (!request.continues && shadows.hasNothingToEnter(tool, view.caller, request.run)) return undefined
  const opened = attempt.history?.shadow ?? openShadow(attempt, tool, shadows, false)
  return chain(opened, (history) => history.begin(tool, attempt.input, false, () => undefined))
}

/** Does something for shadows. Where it fails, nothing is stopped, and they no longer know what has happened in the run. */
function forShadows(attempt: Attempt, work: () => MaybePromise<void>): MaybePromise<undefined> {
  const { ports, view, request } = attempt
  const failed = (error: unknown): MaybePromise<undefined> => {
    ports.onFault(error)
    return leavesNothing(attempt) ? undefined : lose()
  }
  const lose = (): MaybePromise<undefined> =>
    quietly(() => ports.histories.shadows?.lose(view.caller, request.run), ports.onFault)
  return quietly(work, failed)
}

/** Returns once something is done, or its error is handled. */
function quietly(
  work: () => MaybePromise<void>,
  onError: (error: unknown) => MaybePromise<void>,
): MaybePromise<undefined> {
  const failed = (error: unknown) => chain(onError(error), () => undefined)
  try {
    const done = work()
    return done instanceof Promise ? done.then(() => undefined, failed) : undefined
  } catch (error) {
    return failed(error)
  }
}

/** Enters something in the histories of a call. */
function enter(attempt: Attempt, work: (history: CallHistory) => MaybePromise<void>): MaybePromise<void> {
  const { entered, shadow } = attempt.history ?? {}
  const done = entered && work(entered)
  return shadow ? chain(done, () => forShadows(attempt, () => work(shadow))) : done
}

/** A call that this one has made has put something out, which is entered. */
export function passedOn({ history }: Attempt): void {
  history?.entered?.passedOn()
  history?.shadow?.passedOn()
}

/** Runs a tool in its call's history, and notes the labels of its output. */
export function withinHistory<T>(attempt: Attempt, tool: Tool, work: () => T): T {
  const { view, request, ports } = attempt
  if (!leavesNothing(attempt)) historyOf(attempt).labels = ports.histories.raisedBy(tool)
  return ports.histories.within(view.caller, request.run, work)
}

/** Enters how a call ended, before its caller gets the output. */
export function enterEnd(attempt: Attempt, tool: Tool, executed: Executed): MaybePromise<Executed> {
  const { input } = attempt
  const output = outputOf(executed)
  const done = executed.ok && !(executed.output instanceof InputRequired) && !isToolError(output)
  try {
    const entered = enter(attempt, (history) => history.end(tool, input, { done, output }))
    if (!(entered instanceof Promise)) return executed
    return entered.then(
      () => executed,
      (error: unknown) => withheld(attempt, error),
    )
  } catch (error) {
    return withheld(attempt, error)
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
function withheld({ ports }: Attempt, cause: unknown): Executed {
  ports.onFault(cause)
  const error = new Error('it ran, and its output is withheld: the history of the run cannot be written', { cause })
  return { ok: false, code: 'tool_failed', error }
}

/** Enters the end of a stream, whose items were entered as they came. */
export async function enterStreamEnd(attempt: Attempt, tool: Tool, end: StreamEnd): Promise<void> {
  const error = 'error' in end ? messagesOf(end.error) : undefined
  try {
    await enter(attempt, (history) => history.end(tool, attempt.input, { done: end.how === 'ended', output: error }))
  } catch (fault) {
    attempt.ports.onFault(fault)
  }
}

/** Returns what enters the items of a stream. */
export function watchItems(attempt: Attempt): ((item: unknown) => void) | undefined {
  if (!isEntered(attempt)) return undefined
  return (item) => {
    const entered = enter(attempt, (history) => history.put(item))
    if (entered instanceof Promise) entered.catch(attempt.ports.onFault)
  }
}

/** Whether what a call puts out is entered somewhere. */
function isEntered({ history }: Attempt): boolean {
  return history?.entered !== undefined || history?.shadow !== undefined
}

/** Returns the listener, which hears of progress once its text is entered. */
export function watchProgress(attempt: Attempt, listener: (progress: Progress) => void): (progress: Progress) => void {
  if (!isEntered(attempt)) return listener
  return (progress) => {
    const entered = enter(attempt, (history) => history.put(progress.message))
    if (entered instanceof Promise) entered.then(() => listener(progress), attempt.ports.onFault)
    else listener(progress)
  }
}

/** Enters what a running tool says before it answers. Nobody may get it before this resolves. */
export function enterSaid(call: CallContext, said: unknown): MaybePromise<void> {
  const attempt = throughOf(call)
  return attempt && enter(attempt, (history) => history.put(said))
}

/** Raises labels in the run of a running call. Nobody may get what the labels are about before this resolves. */
export function raiseLabels(call: CallContext, labels: readonly string[]): MaybePromise<void> {
  const attempt = throughOf(call)
  if (!attempt?.ports.current.history || labels.length === 0 || leavesNothing(attempt)) return
  const { rules, shadows } = attempt.ports.histories
  const known = historyOf(attempt)
  known.labels = [...new Set([...(known.labels ?? []), ...labels])].toSorted()
  // A call that had nothing to enter has not opened it.
  const opened = rules && !known.entered ? openHistory(attempt, call.tool, readsRun(attempt.decided)) : undefined
  const raised = rules && chain(opened, () => known.entered?.raise(call.tool, labels))
  if (!shadows?.rules) return raised
  return chain(raised, () =>
    forShadows(attempt, () =>
      chain(known.shadow ?? openShadow(attempt, call.tool, shadows, false), (history) =>
        history.raise(call.tool, labels),
      ),
    ),
  )
}
