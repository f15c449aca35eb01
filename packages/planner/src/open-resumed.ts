import { type Caller, checkShape, defineCaller, ToolgateError, type View } from '@toolgate/core'
import { checkAnswers, decide, readAnswers, readInputs } from './answers.ts'
import { checkBudgets } from './budgets.ts'
import { ceilingOf } from './ceiling.ts'
import { identityOf } from './identity.ts'
import type { Begun, LegRequest } from './leg.ts'
import { standsOn } from './lineage.ts'
import type { ResumeOptions } from './options.ts'
import type { PlannerParts } from './parts.ts'
import { openCallsOf, type PauseState } from './pause.ts'
import { RESUME } from './shapes.ts'
import { createStopping } from './stopping.ts'
import { checkSubAgents } from './sub-agent.ts'

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
  checkShape('resume', options, RESUME)
  const { gate, pauses, tokens, clock, deployment, lineage } = parts
  const caller = defineCaller(options.caller)
  checkBudgets(options.budgets)
  checkAnswers(options)
  // Nobody who is logged in, as `null` says it, is not the caller.
  const by = options.by === undefined ? caller : defineCaller(options.by)
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
      const take = async (answer: (pause: PauseState) => Promise<View>): Promise<readonly [PauseState, View]> => {
        // Once more, as its turn may have been long in coming.
        const view = await answer(own(await pauses.get(open())))
        return [own(await pauses.take(id)), view]
      }
      return { runId, app, before: looked, begin: () => beginResumed(parts, { caller, by, options }, take) }
    },
  }
}

/** Looks, decides the approvals and takes the pause: what cannot go on, or may not be decided, has not used the token up. */
async function beginResumed(
  { gate }: PlannerParts,
  { caller, by, options }: { readonly caller: Caller; readonly by: Caller; readonly options: ResumeOptions },
  take: (answer: (pause: PauseState) => Promise<View>) => Promise<readonly [PauseState, View]>,
): Promise<Begun> {
  const [pause, view] = await take(async ({ level, tools, app }) => {
    const seen = await gate.view(caller, { app, visibility: ceilingOf(tools, options.visibility) })
    checkSubAgents(seen)
    await decide(await readAnswers(openCallsOf(level), options, gate), by, gate)
    return seen
  })
  const { level, tools, policyRevision } = pause
  const answers = readInputs(openCallsOf(level), options)
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
