import type { RunFacts } from '../history/facts.ts'
import { type Decision, strictest } from '../decide/decision.ts'
import { type Attempt, type CallPorts, type CallRequest, type CallView, openAttempt } from './attempt.ts'
import { textFor } from './call.ts'
import { storeFailed } from './refusals.ts'

/** What a call would get if it were made now. */
export type CallPreview = PreviewPass | PreviewRefused

/** `allow`: it would run. `ask`: a person would be asked first, or has approved it already. */
export interface PreviewPass {
  readonly status: 'allow' | 'ask'
  /** With the reasons of the clauses that ask, those about the input and the run included. */
  readonly decision: Decision
  /** What was known of the run, where a rule reads it. */
  readonly facts?: RunFacts
  /** And where a shadow of a rule does. */
  readonly shadowFacts?: RunFacts
}

export interface PreviewRefused {
  readonly status: 'refused'
  readonly decision: Decision
  /** The text that the call would get. */
  readonly text: string
  readonly facts?: RunFacts
  readonly shadowFacts?: RunFacts
}

/**
 * Returns what a call would get if it were made now: by its decision, its input and its limits. It runs nothing, takes
 * nothing, asks neither hooks nor people, and leaves no record. The call itself is decided again.
 */
export async function preview(view: CallView, request: CallRequest, ports: CallPorts): Promise<CallPreview> {
  const attempt = openAttempt(view, request, ports, true)
  const { tool } = attempt.decided
  try {
    if (tool === undefined) return refused(attempt, view.explainDecided(attempt.decided))
    for (const { run } of ports.current.checks.preview) {
      const stop = await run(attempt, tool)
      if (stop) return refused(attempt, stop.decision)
    }
    const answers = [view.explainDecided(attempt.decided), ...(attempt.withInput ? [attempt.withInput] : [])]
    return { status: attempt.asksPerson ? 'ask' : 'allow', decision: strictest(answers), ...factsOf(attempt) }
  } catch (error) {
    ports.onFault(error)
    return refused(attempt, storeFailed(error))
  } finally {
    ports.live.end()
  }
}

function refused(attempt: Attempt, decision: Decision): PreviewRefused {
  return { status: 'refused', decision, text: textFor(attempt, decision), ...factsOf(attempt) }
}

function factsOf({ history }: Attempt): Pick<PreviewPass, 'facts' | 'shadowFacts'> {
  const { facts, shadowFacts } = history ?? {}
  return { ...(facts && { facts }), ...(shadowFacts && { shadowFacts }) }
}
