import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { CallOutcome, CallRequest, View } from '@toolgate/core'
import type { createOnCall } from '../shared/runs.ts'
import type { GivenWords } from '../shared/user-words.ts'
import { HarnessExecution } from './harness.ts'
import { harnessNameOf, type HarnessNames, isOfItsServer, type ServerOfTool } from './import-tools.ts'

/** One call of the harness. */
export interface HarnessCall {
  /** The id of the model's `tool_use`. */
  readonly id: string
  readonly name: string
  readonly input: unknown
  /** The MCP server of the tool, if the harness names it. */
  readonly server?: ServerOfTool | undefined
}

/** Whether the harness may run a call, and with which input. */
export type HarnessVerdict =
  | { readonly mayRun: true; readonly input: unknown }
  | { readonly mayRun: false; readonly isWaiting: boolean; readonly text: string }

/** A call that has reached the gate's own server. */
type OwnCall = Pick<CallRequest, 'signal' | 'onProgress' | 'context'> & {
  /** The call's id. Absent if the SDK does not pass it. */
  readonly id: string | undefined
  readonly name: string
  readonly input: unknown
}

interface CallsOptions {
  readonly view: View
  readonly names: HarnessNames
  readonly runId: string | undefined
  readonly words: GivenWords
  readonly onCall: ReturnType<typeof createOnCall>
  /** Ends an execution by the harness, and the query with it. */
  readonly deadlineMs: number
  readonly stopQuery: (reason: unknown) => void
}

/** The gate's answer about one input of a call that the harness runs. */
interface AskedByAgent {
  readonly input: unknown
  readonly execution: HarnessExecution
  readonly outcome: Promise<CallOutcome>
  readonly verdict: Promise<HarnessVerdict>
}

/** The calls of one query, each from its first hook to its terminal record. */
export class QueryCalls {
  readonly #options: CallsOptions
  readonly #asked = new Map<string, readonly AskedByAgent[]>()
  /** Calls on their way to the gate's own server. */
  readonly #passed = new Map<string, HarnessCall>()
  /** Calls with a record, until their message is complete. */
  readonly #recorded = new Set<string>()
  #runId: string | undefined

  constructor(options: CallsOptions) {
    this.#options = options
    this.#runId = options.runId
  }

  /** Uses the session as the run's name in the audit, unless the host has named the run. */
  isOf(session: string): void {
    this.#runId ??= session
  }

  /** Asks the gate about a call that the harness is to run. `signal`: the harness no longer waits for the answer. */
  ask(call: HarnessCall, signal?: AbortSignal): Promise<HarnessVerdict> {
    return this.#open(call, signal).verdict
  }

  /** Returns the earlier answer about an input, unless the tool is no longer visible. */
  askAgain(call: HarnessCall): Promise<HarnessVerdict> {
    const { view, names } = this.#options
    const earlier = this.#find(call)
    const outcome = earlier && view.explain(names.toId(call.name) ?? call.name).outcome
    if (earlier && (outcome === 'allow' || outcome === 'ask')) return earlier.verdict
    earlier?.execution.abandon(new Error('the tool is no longer visible'))
    return this.#open(call).verdict
  }

  /** Allows a call to reach the gate's own server, which asks the gate. */
  passOn(call: HarnessCall): void {
    this.#passed.set(call.id, call)
  }

  /** Runs a call that has reached the gate's own server. */
  run({ id, name, input, ...rest }: OwnCall): Promise<CallOutcome> {
    if (id !== undefined) {
      this.#passed.delete(id)
      this.#recorded.add(id)
    }
    return this.#call({ ...this.#toRequest({ id, name, input }), ...rest })
  }

  /**
   * Records the result of a call that the harness ran. Returns `false` if the call was not allowed, and stops the
   * query.
   */
  done(call: HarnessCall, output: unknown): Promise<boolean> {
    return this.#settle(call, (execution) => execution.done(output))
  }

  /**
   * Records the error of a call that the harness ran. Returns `false` if the call was not allowed, and stops the query.
   */
  failed(call: HarnessCall, error: string): Promise<boolean> {
    return this.#settle(call, (execution) => execution.fail(new Error(error)))
  }

  /** Records that the harness was stopped during a call. */
  interrupted(call: HarnessCall): Promise<void> {
    return this.#abandon(call.id, new Error('it was interrupted'))
  }

  /** Ends a call that the harness will not run. A call that the harness itself stopped is recorded too. */
  async over(call: HarnessCall, said: string): Promise<void> {
    if (this.#asked.has(call.id)) await this.#abandon(call.id, new Error(`Claude Code did not run it: ${said}`))
    else if (!this.#recorded.has(call.id)) await this.#recordStopped(this.#passed.get(call.id) ?? call, said)
    this.#passed.delete(call.id)
    this.#recorded.delete(call.id)
  }

  /** Ends the query. The results of open calls stay unknown. */
  async close(reason: Error): Promise<void> {
    const passed = [...this.#passed.values()]
    this.#passed.clear()
    await Promise.allSettled([
      ...[...this.#asked.keys()].map((id) => this.#abandon(id, reason)),
      ...passed.map((call) => this.#recordStopped(call, reason.message)),
    ])
  }

  #open(call: HarnessCall, signal?: AbortSignal): AskedByAgent {
    const { deadlineMs, stopQuery } = this.#options
    const execution = new HarnessExecution(stopQuery)
    const outcome = this.#call({
      ...this.#toRequest(call),
      signal: execution.cancelling,
      context: execution,
      deadlineMs,
      hooks: { name: 'Claude Code', beforeToolCall: ({ tool }) => ({ allow: harnessNameOf(tool) === call.name }) },
    })
    const giveUp = () => {
      if (!execution.isOpen) execution.abandon(new Error('Claude Code no longer waits'))
    }
    signal?.addEventListener('abort', giveUp, { once: true })
    const verdict = Promise.race([
      execution.begun.then((input): HarnessVerdict => ({ mayRun: true, input })),
      outcome.then(toStopped),
    ]).finally(() => signal?.removeEventListener('abort', giveUp))
    const asked = { input: call.input, execution, outcome, verdict }
    this.#asked.set(call.id, [...(this.#asked.get(call.id) ?? []), asked])
    return asked
  }

  #find({ id, input }: HarnessCall): AskedByAgent | undefined {
    return this.#asked
      .get(id)
      ?.findLast((asked) => isDeepStrictEqual(asked.input, input) || asked.execution.isOf(input))
  }

  /** Ends a call with `end`. The input that ran must be the input that was decided. */
  async #settle(call: HarnessCall, end: (execution: HarnessExecution) => void): Promise<boolean> {
    const { id, input, name } = call
    const wasAsked = this.#asked.has(id)
    const all = this.#take(id)
    const open = all.map(({ execution }) => execution).filter(({ isOpen }) => isOpen)
    const ran = open.find((execution) => execution.isOf(input))
    for (const execution of open) {
      if (execution === ran) end(execution)
      else if (ran) execution.abandon(new Error(OTHER_INPUT))
      else execution.fail(new Error(OTHER_INPUT))
    }
    await Promise.allSettled(all.map(({ outcome }) => outcome))
    if (ran) return true
    const said = open.length > 0 ? OTHER_INPUT : UNASKED
    if (!wasAsked) await this.#recordStopped(call, said)
    // This runs after the harness's own stop, which takes time.
    setImmediate(() => this.#options.stopQuery(new Error(`${name}: ${said}`)))
    return false
  }

  async #abandon(id: string, reason: Error): Promise<void> {
    const all = this.#take(id)
    for (const { execution } of all) execution.abandon(reason)
    await Promise.allSettled(all.map(({ outcome }) => outcome))
  }

  #take(id: string): readonly AskedByAgent[] {
    const all = this.#asked.get(id) ?? []
    this.#asked.delete(id)
    this.#recorded.add(id)
    return all
  }

  /** Refuses a call with a hook, so that the call is recorded and does not run. */
  async #recordStopped(call: HarnessCall, said: string): Promise<void> {
    const hooks = { name: 'Claude Code', beforeToolCall: () => ({ allow: false, reason: said }) }
    await this.#call({ ...this.#toRequest(call), hooks })
  }

  async #call(request: CallRequest): Promise<CallOutcome> {
    const { view, onCall } = this.#options
    const outcome = await view.call(request)
    const { tool, calledAs: name = '' } = request
    onCall?.({ tool: tool ?? name, name, stepNumber: undefined }, outcome)
    return outcome
  }

  #toRequest(call: Pick<HarnessCall, 'name' | 'input' | 'server'> & { readonly id: string | undefined }): CallRequest {
    const { names, runId, words } = this.#options
    return {
      tool: isOfItsServer(call.name, call.server) ? names.toId(call.name) : undefined,
      calledAs: call.name,
      input: call.input,
      callId: call.id,
      nameOf: (id) => names.toName(id) ?? id,
      idOf: names.toId,
      run: { id: (this.#runId ??= randomUUID()), bindsApprovals: runId !== undefined, ...words },
    }
  }
}

const OTHER_INPUT = 'Claude Code ran it with another input than this'
const UNASKED = "Claude Code ran it without the gate's permission"

function toStopped(outcome: CallOutcome): HarnessVerdict {
  return { mayRun: false, isWaiting: outcome.status === 'waiting', text: outcome.text }
}
