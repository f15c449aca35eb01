import type { Caller } from '../caller.ts'
import type { Tool } from '../tools/tool.ts'

/** A call under way that can be stopped. */
export interface LiveCall {
  readonly caller: Caller
  readonly tool: Tool
  stop(reason: unknown): void
  /** Its neighbours among the live ones. */
  before: LiveCall | undefined
  after: LiveCall | undefined
}

/** The calls under way that are waiting or running: adding one and taking it out cost a few assignments. */
export interface LiveCalls {
  add(call: LiveCall): void
  remove(call: LiveCall): void
  /** Stops those for which a reason is given. */
  stopWhere(reasonOf: (call: LiveCall) => unknown): void
}

export function createLiveCalls(): LiveCalls {
  let first: LiveCall | undefined
  return {
    add(call) {
      call.after = first
      if (first) first.before = call
      first = call
    },
    remove(call) {
      const { before, after } = call
      if (before) before.after = after
      else if (first === call) first = after
      if (after) after.before = before
      call.before = undefined
      call.after = undefined
    },
    stopWhere(reasonOf) {
      // A copy, as stopping one takes it out.
      const calls: LiveCall[] = []
      for (let call = first; call; call = call.after) calls.push(call)
      for (const call of calls) {
        const reason = reasonOf(call)
        if (reason !== undefined) call.stop(reason)
      }
    },
  }
}
