import type { LegRequest } from './leg.ts'
import { openResumed } from './open-resumed.ts'
import { openRun } from './open-run.ts'
import type { PlannerForkOptions, PlannerOptions, PlannerStream, ResumeOptions, RunOptions } from './options.ts'
import { forkParts, type PlannerParts, readParts } from './parts.ts'
import type { RunResult } from './result.ts'
import { runLeg } from './run.ts'
import { streamed } from './streamed.ts'

/** Runs agents over a gate: long-lived, and shared by any number of callers and sessions at once. */
export interface Planner<Name extends string = string> {
  /**
   * Runs an agent for one caller. Runs of one session go one after the other, in the order of asking.
   *
   * @throws {ConfigError} for options that cannot be used; {@link UnknownToolError} for a name in `activeTools` that the
   * catalog has never seen; `caller_invalid`; `app_unknown`
   */
  run(options: RunOptions<Name>): Promise<RunResult>
  /** The same, streamed. Resolves when it is the run's turn. */
  stream(options: RunOptions<Name>): Promise<PlannerStream>
  /**
   * Goes on with a run that paused, for the same caller in the same session.
   *
   * It sees what the run saw then, by the definitions of then, and of that what the caller may see now. An approval counts
   * where the gate's store has it; the token counts once.
   *
   * @throws {ToolgateError} `resume_refused` for a token that is not good for this, whatever the reason;
   * `resume_unanswered`, `approval_forbidden`, after both of which the token is still good
   */
  resume(token: string, options: ResumeOptions): Promise<RunResult>
  /** The same, streamed. */
  resumeStream(token: string, options: ResumeOptions): Promise<PlannerStream>
  /**
   * Gives a tighter planner over a fork of the gate, with the same sessions, pauses and settings. It can go on with this
   * one's runs; this one cannot go on with those of a fork.
   */
  fork(options: PlannerForkOptions<Name>): Planner<Name>
}

/**
 * Gives a planner.
 *
 * @throws {ConfigError} for an option that cannot be used
 * @example
 * const planner = createPlanner({ model, gate, instructions: 'You help with files.' })
 * const result = await planner.run({ prompt: 'Tidy up.', caller: { user: 'vera', session: 's1' } })
 */
export function createPlanner<Name extends string, Native>(options: PlannerOptions<Name, Native>): Planner<Name> {
  return openPlanner(readParts(options))
}

function openPlanner(parts: PlannerParts): Planner {
  // Not one of them waits for anything before its run stands in the queue.
  const run = async (options: RunOptions, onStream?: OnStream): Promise<RunResult> =>
    runLeg(parts, openRun(parts, options, onStream))
  const resume = async (token: string, options: ResumeOptions, onStream?: OnStream): Promise<RunResult> =>
    runLeg(parts, openResumed(parts, token, options, onStream))
  return {
    run: (options) => run(options),
    stream: (options) => streamed(options, (given, onStream) => run(given, onStream)),
    resume: (token, options) => resume(token, options),
    resumeStream: (token, options) => streamed(options, (given, onStream) => resume(token, given, onStream)),
    fork: (options) => openPlanner(forkParts(parts, options)),
  }
}

type OnStream = LegRequest['onStream']
