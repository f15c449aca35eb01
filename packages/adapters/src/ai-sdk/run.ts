import type { CallOutcome, Hooks, View } from '@toolgate/core'
import { messageOf, safely } from '@toolgate/core/internal'
import { createRun, type GuardedCall } from '../shared/run.ts'
import { answeredCalls } from './apply-approvals.ts'
import { arm } from './armed.ts'
import { asWritten } from './import-tools.ts'
import type { LoopCall, LoopRun, OpenStep } from './loop.ts'
import { type Offering, offeringOf, widenOffering } from './offering.ts'
import type { AnyGate, GuardOptions } from './options.ts'

export function openLoopRun(gate: AnyGate, view: View, options: GuardOptions): LoopRun {
  const { runId, acceptUnenforceable, onCall, onWarning } = options
  const tools: Record<string, object> = {}
  const steps = createSteps()
  const heard = createHeard()
  const warned = new Set<string>()
  const first = offeringOf(view, acceptUnenforceable)
  let offering = first
  let offeredTo = view
  const names = {
    toId: (name: string) => offering.byName.get(name)?.id,
    toName: (id: string) => offering.byId.get(id)?.name,
  }
  // Without pauses nothing is resumed, so an approval is for whichever run makes the call next.
  const run = createRun(gate, view, names, runId, runId !== undefined && options.approvals !== 'tell')

  const toGuarded = (call: LoopCall, step: OpenStep | undefined): GuardedCall => ({
    name: call.toolName,
    input: inputOf(call),
    callId: call.toolCallId,
    signal: call.abortSignal,
    context: call.context,
    malformed: call.malformed,
    hooks: call.hooks ?? options.hooks,
    view: heard.of(call)?.mustBeAsked ? asking(step?.view ?? view, names.toId(call.toolName)) : step?.view,
    step: step?.stepNumber,
    model: step?.model,
  })

  // What the call came to stands, whoever cannot bear to hear of it.
  const tellCall = safely(onCall, (error) => loop.warn(`onCall failed: ${messageOf(error)}`))
  const tellWarning = safely(onWarning)
  const tell = ({ toolName }: LoopCall, step: OpenStep | undefined, outcome: CallOutcome): void => {
    const { status, callId } = outcome
    const approval = status === 'waiting' ? outcome.approval : undefined
    const tool = names.toId(toolName) ?? toolName
    tellCall({ tool, callId, status, stepNumber: step?.stepNumber, outcome, approval })
  }

  const loop: LoopRun = {
    gate,
    view,
    options,
    tools,
    mark: Object.freeze({}),
    spoiled: new WeakMap(),
    offered: (name) => offering.byName.get(name),
    offer(seen) {
      if (seen === offeredTo) return
      offeredTo = seen
      const wider = widenOffering(offering, seen, acceptUnenforceable)
      if (wider === offering) return
      offering = wider
      fill(loop, offering)
    },
    namesOf(seen) {
      if (seen === view && offering === first) return undefined
      const seenNames = seen.ids.flatMap((id) => offering.byId.get(id)?.name ?? [])
      return seenNames.length === offering.all.length ? undefined : seenNames
    },
    openStep: steps.open,
    stepOf: steps.of,
    hear: heard.add,
    isHeard: (call) => heard.of(call) !== undefined,
    async call(call) {
      const step = steps.of(call.messages)
      const outcome = await run.call(toGuarded(call, step))
      if (onCall) tell(call, step, outcome)
      return outcome
    },
    refuse: (call, name, reason) =>
      loop.call({ ...call, hooks: [{ name, beforeToolCall: () => ({ allow: false, reason }) }, ...hooksOf(options)] }),
    refuseUnsent: (call) => loop.call({ ...call, malformed: 'the tool is not offered in this step' }),
    async requestApproval(call) {
      const step = steps.of(call.messages)
      const outcome = await run.requestApproval(toGuarded(call, step))
      if (outcome && onCall) tell(call, step, outcome)
      return outcome
    },
    warn(text) {
      if (warned.has(text)) return
      warned.add(text)
      tellWarning(text)
    },
  }
  fill(loop, offering)
  return loop
}

/** The object stays, as the SDK reads it anew in each step. Its order is that of the ids, whatever came when. */
function fill(loop: LoopRun, { all, warnings }: Offering): void {
  const { tools } = loop
  const before = new Map(Object.entries(tools))
  for (const name of before.keys()) delete tools[name]
  for (const offered of all) tools[offered.name] = before.get(offered.name) ?? arm(loop, offered)
  for (const warning of warnings) loop.warn(warning)
}

/** Keeps the steps by their messages: the same tools may be in several loops at once, and each loop has its own. */
function createSteps(): { open: LoopRun['openStep']; of: LoopRun['stepOf'] } {
  const steps = new WeakMap<object, OpenStep>()
  let latest: OpenStep | undefined
  return {
    open(messages, step) {
      latest = step
      steps.set(messages, step)
    },
    // What messages say was approved in an earlier run is run before any step.
    of: (messages) => (messages && steps.get(messages)) ?? (answeredCalls(messages).length > 0 ? undefined : latest),
  }
}

interface Heard {
  readonly mustBeAsked: boolean
}

/** Keeps what yours has said of each call, by their messages, as above. */
function createHeard(): { add(call: LoopCall, said: Heard): void; of(call: LoopCall): Heard | undefined } {
  const heard = new WeakMap<object, Map<string, Heard>>()
  return {
    add({ messages, toolCallId }, said) {
      if (messages) heard.set(messages, (heard.get(messages) ?? new Map<string, Heard>()).set(toolCallId, said))
    },
    of: ({ messages, toolCallId }) => messages && heard.get(messages)?.get(toolCallId),
  }
}

/** Where a person must be asked that policy would not ask, policy is made to. */
function asking(view: View, id: string | undefined): View {
  return id === undefined ? view : view.narrow({ policy: { ask: [id] } })
}

/** As the model wrote it: an approved call comes from the messages, where both that and what a schema made of it stand. */
function inputOf({ toolCallId, input, messages }: LoopCall): unknown {
  const written = asWritten(input)
  if (written !== input) return written
  const answered = answeredCalls(messages).find((call) => call.toolCallId === toolCallId)
  return answered ? answered.input : input
}

function hooksOf({ hooks }: GuardOptions): readonly Hooks[] {
  if (hooks === undefined) return []
  return Array.isArray(hooks) ? (hooks as readonly Hooks[]) : [hooks as Hooks]
}
