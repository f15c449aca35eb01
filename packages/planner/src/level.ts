import { runLoop } from './loop.ts'
import type { LevelState } from './pause.ts'
import type { ResumedPart } from './resumed-parts.ts'
import type { LevelEnd, LevelRequest, Scope } from './scope.ts'
import { settle } from './settle.ts'

/** Runs a conversation from where it stands: first the calls that waited, and when none waits any more, the model. */
export async function runLevel(request: LevelRequest): Promise<LevelEnd> {
  const { shared, view, model, stopWhen, teller, signal, agents, prepareStep, onStream } = request
  const scope: Scope = {
    shared,
    view,
    model,
    stopWhen,
    teller,
    signal,
    agents,
    calls: shared.meter.calls(),
    paused: new Map(),
    runLevel,
  }
  let { level } = request
  let resumed: readonly ResumedPart[] = []
  if (level.pending.length > 0) {
    const { calls, parts, ...settled } = await settle(level, scope)
    resumed = parts
    level = { ...level, ...settled, steps: withCalls(level, calls) }
    if (level.pending.length > 0) return { end: { kind: 'paused' }, level }
  }
  return runLoop({ scope, level, prepareStep, onStream, resumed })
}

/** The step that a run paused in knows by now what came of its calls. */
function withCalls({ steps }: LevelState, calls: Awaited<ReturnType<typeof settle>>['calls']): LevelState['steps'] {
  const last = steps.at(-1)
  if (!last) return steps
  const settled = new Map(calls.map(({ tool, callId, status }) => [callId, { tool, callId, status }]))
  return [...steps.slice(0, -1), { ...last, calls: last.calls.map((call) => settled.get(call.callId) ?? call) }]
}
