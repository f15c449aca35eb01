import { getCurrentSpan } from '@openai/agents'
import type { GuardedRun } from '../shared/run.ts'

const watched = new WeakSet<object>()

/**
 * Records the calls of unknown tools for which the SDK ends the run at once, as it does by default: the error that it
 * writes into the agent's span is the only trace of them, and there is a span also where tracing is switched off.
 */
export function watchSpan(run: Pick<GuardedRun, 'call'>): void {
  const span = getCurrentSpan()
  if (!span || watched.has(span)) return
  watched.add(span)
  const setError = span.setError.bind(span)
  span.setError = (error) => {
    const name: unknown = error.data?.['tool_name']
    // Only what the agent does not have is told with the agent's name.
    if (typeof name === 'string' && 'agent_name' in (error.data ?? {}))
      void run.call({ name, input: undefined, malformed: error.message })
    setError(error)
  }
}
