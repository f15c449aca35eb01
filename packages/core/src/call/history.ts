import { readsRun, shadowsReadRun } from '../decide/decide.ts'
import { CallHistory } from '../history/call-history.ts'
import { type RunFacts, strictestFacts } from '../history/facts.ts'
import type { Histories } from '../history/histories.ts'
import type { MaybePromise, RunOfCall } from '../ports/ports.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import { chain, isToolError, ToolgateError } from '@toolgate/values'
import type { Attempt, CallPorts, CallView, CheckResult, HistoryOfCall, Stop } from './attempt.ts'
import { type Executed, throughOf } from './execute.ts'
import { InputRequired } from './outcome.ts'
import { continuedBy } from './rounds.ts'
import type { StreamEnd } from './streams.ts'

/** Returns what the call reads and adds in the history of its run. Creates it, empty, at the first use. */
function historyOf(attempt: Attempt): HistoryOfCall {
  return (attempt.history ??= {
    facts: undefined,
    shadowFacts: undefined,
    entered: undefined,
    shadow: undefined,
    labels: undefined,
  })
}

/** Reads the history of the run. If that fails, the history is unknown, and the strictest answer applies. */
export function readHistory(attempt: Attempt, tool: Tool): MaybePromise<undefined> {
  const { ports, decided } = attempt
  const { rules, shadows } = ports.histories
  const read = rules && readsRun(decided) ? readOfRules(attempt, tool) : undefined
  if (!shadows?.rules || !shadowsReadRun(decided)) return read
  return chain(read, () => forShadows(attempt, () => readOfShadows(attempt, tool, shadows)))
}

/** Returns whether the call only shows data to an approver. Such a call is not added to the history. */
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

/** Returns the history of a run, for its next step; `undefined` if no rule reads it. Creates the history if there is none. */
export function factsOfRun(
  { caller, kept }: Pick<CallView, 'caller' | 'kept'>,
  run: RunOfCall,
  { histories, onFault }: CallPorts,
): MaybePromise<RunFacts | undefined> {
  const { rules, shadows } = histories
  // Creates the history of shadow rules, too, for a run that continues later.
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

/** A run is refused if there is no room for its history. */
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

/** Both histories of a call use the same id for it. */
function openShadow(attempt: Attempt, tool: Tool, shadows: Histories, reads: boolean): MaybePromise<CallHistory> {
  const { view, request } = attempt
  return chain(shadows.of(view.caller, request.run, view.kept.shadows, reads), (history) => {
    const known = historyOf(attempt)
    const event = known.entered?.event ?? continuedBy(attempt, tool)?.event
    return (known.shadow = new CallHistory(shadows, history, event))
  })
}

/** Reads a history without creating one. */
function lookAtHistory(attempt: Attempt): MaybePromise<undefined> {
  const { ports, view, request } = attempt
  return chain(ports.histories.read(view.caller, request.run), (history) => {
    historyOf(attempt).facts = history?.facts
    return undefined
  })
}

/** Returns whether the history has grown since it was last read. */
export function refreshFacts({ history, decided }: Attempt): boolean {
  if (history?.entered === undefined || !readsRun(decided)) return false
  const facts = history.entered.facts()
  if (facts === history.facts) return false
  history.facts = facts
  return true
}

/**
 * Adds the beginning of the call to the history. If that fails, the call does not begin. Failures of shadow histories stop
 * nothing.
 */
export function beginCall(attempt: Attempt, tool: Tool, decide: () => Stop | undefined): CheckResult {
  const { rules, shadows } = attempt.ports.histories
  const begun = rules && enterBegin(attempt, tool, decide)
  if (!shadows?.rules) return begun
  return chain(begun, (stop) => stop ?? forShadows(attempt, () => enterShadow(attempt, tool, shadows)))
}

function enterBegin(attempt: Attempt, tool: Tool, decide: () => Stop | undefined): CheckResult {
  const { ports, view, request } = attempt
  const reads = readsRun(attempt.decided)
  // Most calls are of tools that no rule about runs reads. Later rounds count by themselves.
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

/** Runs work for shadow rules. A failure stops no call, but makes the history unknown to them. */
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

/** Resolves when the work is done or its error is handled. */
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

/** Adds something to the histories of a call. */
function enter(attempt: Attempt, work: (history: CallHistory) => MaybePromise<void>): MaybePromise<void> {
  const { entered, shadow } = attempt.history ?? {}
  const done = entered && work(entered)
  return shadow ? chain(done, () => forShadows(attempt, () => work(shadow))) : done
}

/** Notes that the output of a call made by this tool was already added to the history. */
export function passedOn({ history }: Attempt): void {
  history?.entered?.passedOn()
  history?.shadow?.passedOn()
}

/** Runs a tool within its call's history, and notes the labels of its output. */
export function withinHistory<T>(attempt: Attempt, tool: Tool, work: () => T): T {
  const { view, request, ports } = attempt
  if (!leavesNothing(attempt)) historyOf(attempt).labels = ports.histories.raisedBy(tool)
  return ports.histories.within(view.caller, request.run, work)
}

/** Adds the end of a call to the history before its caller gets the output. */
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

/** The error of a tool counts as output, with the `data` of a JSON-RPC error. */
function messagesOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  return [error.message, 'data' in error ? error.data : undefined, messagesOf(error.cause)]
}

/** An output that was not added would count as the model's or the user's own words, so it is withheld. */
function withheld({ ports }: Attempt, cause: unknown): Executed {
  ports.onFault(cause)
  const error = new Error('it ran, and its output is withheld: the history of the run cannot be written', { cause })
  return { ok: false, code: 'tool_failed', error }
}

/** Adds the end of a stream. Its items were added as they came. */
export async function enterStreamEnd(attempt: Attempt, tool: Tool, end: StreamEnd): Promise<void> {
  const error = 'error' in end ? messagesOf(end.error) : undefined
  try {
    await enter(attempt, (history) => history.end(tool, attempt.input, { done: end.how === 'ended', output: error }))
  } catch (fault) {
    attempt.ports.onFault(fault)
  }
}

/** Returns a function that adds the items of a stream to the history. */
export function watchItems(attempt: Attempt): ((item: unknown) => void) | undefined {
  if (!isEntered(attempt)) return undefined
  return (item) => {
    const entered = enter(attempt, (history) => history.put(item))
    if (entered instanceof Promise) entered.catch(attempt.ports.onFault)
  }
}

/** Returns whether any history records the call's output. */
function isEntered({ history }: Attempt): boolean {
  return history?.entered !== undefined || history?.shadow !== undefined
}

/** Wraps a progress listener. It is called after the text of the progress is in the history. */
export function watchProgress(attempt: Attempt, listener: (progress: Progress) => void): (progress: Progress) => void {
  if (!isEntered(attempt)) return listener
  return (progress) => {
    const entered = enter(attempt, (history) => history.put(progress.message))
    if (entered instanceof Promise) entered.then(() => listener(progress), attempt.ports.onFault)
    else listener(progress)
  }
}

/** Adds text that a running tool sends before it answers. Do not pass the text on until this resolves. */
export function enterSaid(call: CallContext, said: unknown): MaybePromise<void> {
  const attempt = throughOf(call)
  return attempt && enter(attempt, (history) => history.put(said))
}

/** Adds labels to the run of a running call. Do not pass the labelled data on until this resolves. */
export function raiseLabels(call: CallContext, labels: readonly string[]): MaybePromise<void> {
  const attempt = throughOf(call)
  if (!attempt?.ports.current.history || labels.length === 0 || leavesNothing(attempt)) return
  const { rules, shadows } = attempt.ports.histories
  const known = historyOf(attempt)
  known.labels = [...new Set([...(known.labels ?? []), ...labels])].toSorted()
  // A call that had nothing to add has not opened its history yet.
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
