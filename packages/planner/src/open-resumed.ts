import { type Caller, defineCaller, ToolgateError } from '@toolgate/core'
import { decide, readAnswers, readInputs } from './answers.ts'
import { checkBudgets } from './budgets.ts'
import { ceilingOf } from './ceiling.ts'
import { identityOf } from './identity.ts'
import type { Begun, LegRequest } from './leg.ts'
import { standsOn } from './lineage.ts'
import type { ResumeOptions } from './options.ts'
import type { PlannerParts } from './parts.ts'
import { openCallsOf, type PauseState } from './pause.ts'
import { createStopping } from './stopping.ts'

/** What is wrong with a token is nobody's business: whatever it is, this is said. */
function refused(): ToolgateError {
  return new ToolgateError('resume_refused', 'This run cannot be resumed so.')
}

/** Gives the leg of a run that goes on. @throws {ToolgateError} `resume_refused`, `caller_invalid` */
export function openResumed(
  parts: PlannerParts,
  token: string,
  options: ResumeOptions,
  onStream: LegRequest['onStream'],
): LegRequest {
  const { gate, pauses, tokens, clock, deployment, lineage } = parts
  const caller = defineCaller(options.caller)
  checkBudgets(options.budgets)
  const identity = identityOf(caller)
  const open = () => {
    const claims = tokens.open(token, { identity, audience: deployment }, clock.wallMs())
    if (!claims) throw refused()
    return claims.pause
  }
  const own = (pause: PauseState | undefined): PauseState => {
    if (pause?.identity !== identity || !standsOn(lineage, pause.lineage)) throw refused()
    return pause
  }
  const id = open()
  return {
    caller,
    options,
    stopping: createStopping(options.signal),
    onStream,
    async check() {
      const looked = own(await pauses.get(id))
      // What is wrong with the answers is said before anything is taken, so that one can answer again.
      await readAnswers(openCallsOf(looked.level), options, gate)
      const { runId, app } = looked
      const take = async (answer: (pause: PauseState) => Promise<void>): Promise<PauseState> => {
        // Once more, as its turn may have been long in coming.
        await answer(own(await pauses.get(open())))
        return own(await pauses.take(id))
      }
      return { runId, app, before: looked, begin: () => beginResumed(parts, caller, options, take) }
    },
  }
}

/** Decides the approvals and takes the pause: whoever may not decide has not used the token up. */
async function beginResumed(
  parts: PlannerParts,
  caller: Caller,
  options: ResumeOptions,
  take: (answer: (pause: PauseState) => Promise<void>) => Promise<PauseState>,
): Promise<Begun> {
  const { gate } = parts
  const pause = await take(async ({ level }) => {
    await decide(await readAnswers(openCallsOf(level), options, gate), options.by ?? caller, gate)
  })
  const { level, tools, policyRevision, app } = pause
  const answers = readInputs(openCallsOf(level), options)
  const view = await gate.view(caller, { app, visibility: ceilingOf(tools, options.visibility) })
  return {
    view,
    level: options.context === undefined ? level : { ...level, context: options.context },
    answers,
    resumed: {
      hidden: tools.flatMap(([id]) => (view.has(id) ? [] : [id])),
      policyChanged: policyRevision !== gate.policyRevision,
    },
  }
}
