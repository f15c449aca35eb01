import type { RunFacts } from '../history/facts.ts'
import type { Grant } from '../ports/grants.ts'
import { type Decision, strictest } from '../decide/decision.ts'
import { type Attempt, type CallPorts, type CallRequest, type CallView, openAttempt } from './attempt.ts'
import { textFor } from './call.ts'
import { findGrant } from './granted.ts'
import { storeFailed } from './refusals.ts'

/** The outcome that a call would have now. */
export type CallPreview = PreviewPass | PreviewRefused

/** `allow`: the call would run. `ask`: an approval would be requested first, or was already given. */
interface PreviewPass {
  readonly status: 'allow' | 'ask'
  /** The decision, with the reasons of clauses that ask, including those that read the input and the run. */
  readonly decision: Decision
  /** The grant that covers a call which a rule asks about. The status is `allow` then. */
  readonly grant?: Grant
  /** The history of the run, if a rule reads it. */
  readonly facts?: RunFacts
  /** The history of the run, if a shadow rule reads it. */
  readonly shadowFacts?: RunFacts
}

interface PreviewRefused {
  readonly status: 'refused'
  readonly decision: Decision
  /** The text that the call would return. */
  readonly text: string
  readonly facts?: RunFacts
  readonly shadowFacts?: RunFacts
}

/**
 * Returns how a call would end if it were made now, by its decision, input and limits. Runs nothing, takes nothing from
 * limits, calls no hooks, asks no person, and leaves no record. The call itself is decided again.
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
    const grant = attempt.asksPerson ? await findGrant(attempt, tool) : undefined
    const status = attempt.asksPerson && !grant ? 'ask' : 'allow'
    return { status, decision: strictest(answers), ...(grant && { grant }), ...factsOf(attempt) }
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
