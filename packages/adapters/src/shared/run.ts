import { randomUUID } from 'node:crypto'
import type { CallOutcome, CallRefused, CallRequest, CallWaiting, Gate, View, ViewOptions } from '@toolgate/core'
import { type ExposedNames, toWireName } from '@toolgate/core/expose'
import type { HooksInput } from '@toolgate/core/internal'

/** What every adapter's `guard` may be told about a run. */
export interface RunOptions<Name extends string = string> extends ViewOptions<Name> {
  /**
   * Names the run in the audit, and binds approvals to it: give the same one when the run is resumed.
   * Default: a random one, to which approvals are not bound.
   */
  readonly runId?: string | undefined
}

/** One call as a framework makes it. */
export interface GuardedCall {
  /** The tool's name as the model wrote it. */
  readonly name: string
  readonly input: unknown
  readonly callId?: string | undefined
  readonly signal?: AbortSignal | undefined
  /** The framework's own options of the execution, for the tool. */
  readonly context?: unknown
  /** What the step sees, where that is less than what the run sees. */
  readonly view?: View | undefined
  /** Of the run, counted from 0. */
  readonly step?: number | undefined
  readonly model?: string | undefined
  /** What the framework found wrong with the call itself, such as an input that is no JSON. */
  readonly malformed?: string | undefined
  /** Asked before those of the gate. */
  readonly hooks?: HooksInput | undefined
}

/** One run of an agent: what it sees at most, and the only way by which its calls go. */
export interface GuardedRun {
  readonly id: string
  readonly view: View
  /** Decides, takes, runs and records one call. Never throws for what the model did. */
  call(call: GuardedCall): Promise<CallOutcome>
  /** See {@link View.requestApproval}. */
  requestApproval(call: GuardedCall): Promise<CallRefused | CallWaiting | undefined>
}

type AnyGate = Pick<Gate, 'catalog'>

/**
 * Gives a run over a view. `names` are those that the model was given; without them, names are ids. Approvals are bound
 * to a run that was given its id, unless `bindsApprovals` says otherwise.
 */
export function createRun(
  gate: AnyGate,
  view: View,
  names?: ExposedNames,
  runId?: string,
  bindsApprovals: boolean = runId !== undefined,
): GuardedRun {
  const id = runId ?? randomUUID()
  const nameOf = names && ((tool: string) => names.toName(tool) ?? tool)
  const idOf = names ? (name: string) => names.toId(name) ?? idOfHidden(gate, name) : (name: string) => name
  const toRequest = ({ name, step, model, view: _, ...call }: GuardedCall): CallRequest => ({
    ...call,
    tool: idOf(name),
    calledAs: name,
    nameOf,
    idOf,
    run: { id, step, model, bindsApprovals },
  })
  return {
    id,
    view,
    call: (call) => (call.view ?? view).call(toRequest(call)),
    requestApproval: (call) => (call.view ?? view).requestApproval(toRequest(call)),
  }
}

/** What was not sent has no name on the wire; the audit should still say which tool was asked for. */
function idOfHidden({ catalog }: AnyGate, name: string): string | undefined {
  return catalog.snapshot().tools.find((tool) => tool.id === name || toWireName(tool) === name)?.id
}
