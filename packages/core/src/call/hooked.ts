import type { Cancelling } from '../util/cancelling.ts'
import type { Tool } from '../tools/tool.ts'
import type { Attempt, CallPorts } from './attempt.ts'
import type { HookedCall, HookPorts } from './hooks.ts'

/** Gives an attempt as its hooks are asked about it. */
export function toHooked(attempt: Attempt, tool: Tool, cancelling: Cancelling | undefined): HookedCall {
  const { callId, input, view, onlyAsks } = attempt
  return { tool, callId, input, caller: view.caller, cancelling, onlyAsks, visibleIds: () => view.idsToday() }
}

export function hookPorts({ deadlines, clock, hookDeadlineMs, onFault }: CallPorts): HookPorts {
  return { deadlines, clock, deadlineMs: hookDeadlineMs, onFault }
}
