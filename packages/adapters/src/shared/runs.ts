import { randomUUID } from 'node:crypto'
import type { Approval, CallOutcome, CallRefused, CallRequest, CallWaiting, Gate, View } from '@toolgate/core'
import { type ExposedNames, toWireName } from '@toolgate/expose'
import type { RunOfCall } from '@toolgate/core/audit'
import type { HooksInput } from '@toolgate/core/call'
import { messageOf, safely } from '@toolgate/values'
import { factsOf } from '@toolgate/core/steps'
import { checkWords, type GivenWords, resultsOf } from './user-words.ts'

/** A call that has ended, or waits for a person. */
export interface GuardedCallEvent {
  /** The tool's id, or the model's name for it if no tool has that name. */
  readonly tool: string
  /** The name that the model wrote. */
  readonly name: string
  readonly callId: string
  readonly status: CallOutcome['status']
  /** `undefined` if the call was approved in an earlier run, or the framework does not count steps. */
  readonly stepNumber: number | undefined
  /** The full outcome: the decision of a refusal, or the tool's output. */
  readonly outcome: CallOutcome
  /** The approval that the call waits for. */
  readonly approval: Approval | undefined
}

/** The callbacks of a guard. An error that they throw changes no run. */
export interface GuardListeners {
  /** Called when a call ends. */
  readonly onCall?: ((event: GuardedCallEvent) => void) | undefined
  /** Called with notes for the developer: a requested tool is hidden, or a tool cannot be offered. */
  readonly onWarning?: ((text: string) => void) | undefined
}

/** Returns a function that passes each warning on once. */
export function createWarn(onWarning: GuardListeners['onWarning']): (text: string) => void {
  const warned = new Set<string>()
  const emit = safely(onWarning)
  return (text) => {
    if (warned.has(text)) return
    warned.add(text)
    emit(text)
  }
}

type CallOfEvent = Pick<GuardedCallEvent, 'tool' | 'name' | 'stepNumber'>

/** Returns a function that reports a call and its outcome; `undefined` without a listener. */
export function createOnCall(
  onCall: GuardListeners['onCall'],
  warn: (text: string) => void,
): ((call: CallOfEvent, outcome: CallOutcome) => void) | undefined {
  if (!onCall) return undefined
  const emit = safely(onCall, (error) => warn(`onCall failed: ${messageOf(error)}`))
  return (call, outcome) => {
    const { status, callId } = outcome
    emit({ ...call, callId, status, outcome, approval: status === 'waiting' ? outcome.approval : undefined })
  }
}

/** One call of a framework. */
export interface GuardedCall {
  /** The tool's name as the model wrote it. */
  readonly name: string
  readonly input: unknown
  readonly callId?: string | undefined
  readonly signal?: AbortSignal | undefined
  /** The framework's own options of the execution, for the tool. */
  readonly context?: unknown
  /** The step's view, if it is narrower than the run's view. */
  readonly view?: View | undefined
  /** The step of the run, from 0. */
  readonly step?: number | undefined
  readonly model?: string | undefined
  /** The fault that the framework found in the call, such as an input that is not JSON. */
  readonly malformed?: string | undefined
  /** Has the same meaning as `spends` in `CallRequest`. */
  readonly spends?: CallRequest['spends']
  /** Hooks that run before the gate's own. */
  readonly hooks?: HooksInput | undefined
}

type CatalogGate = Pick<Gate, 'catalog'>

export interface GuardedRunParts {
  readonly gate: CatalogGate
  /** The upper bound of what the run sees. */
  readonly view: View
  /** The tool names that the model uses. */
  readonly names: ExposedNames
  /** The run's id. Default: a random one. */
  readonly id?: string | undefined
  /** Whether approvals are bound to this run. Default: `true` for a run with an id of its own. */
  readonly bindsApprovals?: boolean | undefined
  readonly words?: GivenWords | undefined
  /** Whether the run continues after a pause. */
  readonly resumed?: boolean | undefined
  readonly onCall?: ReturnType<typeof createOnCall>
}

/** One run of an agent, with the upper bound of what it may see. All its calls reach the gate through this object. */
export class GuardedRun {
  readonly id: string
  readonly view: View
  readonly #gate: CatalogGate
  readonly #names: ExposedNames
  readonly #onCall: ReturnType<typeof createOnCall>
  #run: RunOfCall

  constructor({ gate, view, names, id, bindsApprovals = id !== undefined, words, resumed, onCall }: GuardedRunParts) {
    if (words) checkWords(words)
    this.id = id ?? randomUUID()
    this.view = view
    this.#gate = gate
    this.#names = names
    this.#run = { id: this.id, bindsApprovals, ...words, resumed }
    this.#onCall = onCall
  }

  /** Adds the tool results in the messages that the framework begins with, unless the host has passed them. */
  beginsWith(messages: readonly unknown[]): void {
    if (this.#run.earlierResults) return
    const earlierResults = resultsOf(messages)
    this.#run = { ...this.#run, earlierResults }
  }

  /** Returns the facts about the run that rules read, for its next step. */
  facts(): ReturnType<typeof factsOf> {
    return factsOf(this.view, this.#run)
  }

  /** Decides, counts, runs, records and reports one call. Never throws for a mistake of the model. */
  call(call: GuardedCall): Promise<CallOutcome> {
    const outcome = (call.view ?? this.view).call(this.#toRequest(call))
    return this.#onCall ? outcome.then((settled) => this.report(call, settled)) : outcome
  }

  /** Asks for an approval, as {@link View.requestApproval} does. Reports nothing. */
  requestApproval(call: GuardedCall): Promise<CallRefused | CallWaiting | undefined> {
    return (call.view ?? this.view).requestApproval(this.#toRequest(call))
  }

  /** Reports a call's outcome to the host, and returns it. */
  report<Outcome extends CallOutcome>({ name, step }: GuardedCall, outcome: Outcome): Outcome {
    this.#onCall?.({ tool: this.#names.toId(name) ?? name, name, stepNumber: step }, outcome)
    return outcome
  }

  #toRequest({ name, step, model, view: _, ...call }: GuardedCall): CallRequest {
    return {
      ...call,
      tool: this.#idOf(name),
      calledAs: name,
      nameOf: (id) => this.#names.toName(id) ?? id,
      idOf: (other) => this.#idOf(other),
      run: { ...this.#run, step, model },
    }
  }

  /** Returns the id of a tool. A tool that was not sent has no wire name, but the audit still names it. */
  #idOf(name: string): string | undefined {
    return (
      this.#names.toId(name) ??
      this.#gate.catalog.snapshot().tools.find((tool) => tool.id === name || toWireName(tool) === name)?.id
    )
  }
}

/**
 * The current runs. They are found by an object that the framework creates for each run, and by a key such as the
 * caller's.
 */
export class RunRegistry<Run> {
  // When the framework drops the object, its runs are dropped too.
  readonly #byOwner = new WeakMap<object, Map<string, Promise<Run>>>()

  /** Returns the run of this owner and key. Opens it if it does not exist, or if opening it failed before. */
  of(owner: object, key: string, open: () => Promise<Run>): Promise<Run> {
    return this.#runsOf(owner).get(key) ?? this.open(owner, key, open)
  }

  /** Opens a run, replacing an existing one. */
  open(owner: object, key: string, open: () => Promise<Run>): Promise<Run> {
    const runs = this.#runsOf(owner)
    const run = open()
    runs.set(key, run)
    run.catch(() => {
      if (runs.get(key) === run) runs.delete(key)
    })
    return run
  }

  #runsOf(owner: object): Map<string, Promise<Run>> {
    let runs = this.#byOwner.get(owner)
    if (!runs) this.#byOwner.set(owner, (runs = new Map()))
    return runs
  }
}
