import type {
  PlannerForkOptions,
  PlannerOptions,
  PlannerStream,
  ResumeOptions,
  RunOptions,
  SegmentOptions,
} from './options.ts'
import { forkParts, type PlannerParts, readParts } from './parts.ts'
import { openResumed } from './pause/resume.ts'
import type { RunResult } from './result.ts'
import { runSegment } from './run/run.ts'
import type { AnyStream } from './run/scope.ts'
import { openRun, type SegmentRequest } from './run/segment.ts'
import { createStopping } from './run/turn.ts'

/** Runs agents with a gate. It is long-lived, and any number of callers and sessions share it. */
export interface Planner<Name extends string = string> {
  /**
   * Runs an agent for one caller. The runs of one session run in order.
   *
   * @throws {ConfigError} for invalid options; {@link UnknownToolError} for an unknown name in `activeTools`;
   * `caller_invalid`; `app_unknown`
   */
  run(options: RunOptions<Name>): Promise<RunResult>
  /** Streams a run. Resolves when the run's turn comes. */
  stream(options: RunOptions<Name>): Promise<PlannerStream>
  /**
   * Resumes a paused run, for the same caller in the same session.
   *
   * It sees the tools that the run saw then, if they are unchanged and the caller may still see them. An approval counts
   * if it is in the gate's store. A token works once.
   *
   * @throws {ToolgateError} `resume_refused` for an invalid token, whatever the reason;
   * `resume_unanswered`, `approval_forbidden`: the token stays valid after both
   */
  resume(token: string, options: ResumeOptions): Promise<RunResult>
  /** Resumes a paused run as {@link Planner.resume} does, and streams it. */
  resumeStream(token: string, options: ResumeOptions): Promise<PlannerStream>
  /**
   * Returns a tighter planner over a fork of the gate, with the same sessions, pauses and settings. It can resume this
   * planner's runs, but this planner cannot resume the fork's runs.
   */
  fork(options: PlannerForkOptions<Name>): Planner<Name>
}

/**
 * Returns a planner.
 *
 * @throws {ConfigError} for an invalid option
 * @example
 * const planner = createPlanner({ model, gate, instructions: 'You help with files.' })
 * const result = await planner.run({ prompt: 'Tidy up.', caller: { user: 'vera', session: 's1' } })
 */
export function createPlanner<Name extends string, Native>(options: PlannerOptions<Name, Native>): Planner<Name> {
  return openPlanner(readParts(options))
}

function openPlanner(parts: PlannerParts): Planner {
  // The run joins the queue before anything is awaited.
  const run = async (options: RunOptions, onStream?: OnStream): Promise<RunResult> =>
    runSegment(parts, openRun(parts, options, onStream))
  const resume = async (token: string, options: ResumeOptions, onStream?: OnStream): Promise<RunResult> =>
    runSegment(parts, openResumed(parts, token, options, onStream))
  return {
    run: (options) => run(options),
    stream: (options) => streamed(options, (given, onStream) => run(given, onStream)),
    resume: (token, options) => resume(token, options),
    resumeStream: (token, options) => streamed(options, (given, onStream) => resume(token, given, onStream)),
    fork: (options) => openPlanner(forkParts(parts, options)),
  }
}

type OnStream = NonNullable<SegmentRequest['onStream']>

/** Returns the SDK's stream when the first one exists. The run itself reads it to the end, even if nobody else does. */
async function streamed<Options extends SegmentOptions>(
  options: Options,
  run: (options: Options, onStream: OnStream) => Promise<RunResult>,
): Promise<PlannerStream> {
  const canceller = createStopping(options.signal)
  const begun = Promise.withResolvers<{ readonly stream: AnyStream | undefined; readonly runId: string }>()
  const result = run({ ...options, signal: canceller.signal }, (stream, runId) => begun.resolve({ stream, runId }))
  result
    .then(({ runId }) => begun.resolve({ stream: undefined, runId }), begun.reject)
    .finally(() => canceller.close())
    .catch(() => {})
  const { stream, runId } = await begun.promise
  const cancel = (reason: unknown = new DOMException('nobody wants the rest of this run', 'AbortError')) =>
    canceller.abort(reason)
  return {
    runId,
    stream,
    result,
    cancel,
    async [Symbol.asyncDispose]() {
      cancel()
      await result.catch(() => {})
    },
  }
}
