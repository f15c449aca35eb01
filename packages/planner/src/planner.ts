import { randomUUID } from 'node:crypto'
import { type Caller, ConfigError, defineCaller, ToolgateError, type View } from '@toolgate/core'
import type { ModelMessage } from 'ai'
import { decide, readAnswers, readInputs } from './answers.ts'
import { checkBudgets } from './budgets.ts'
import { ceilingOf } from './ceiling.ts'
import { identityOf } from './identity.ts'
import { standsOn } from './lineage.ts'
import type { AnyStream } from './scope.ts'
import type {
  LegOptions,
  PlannerForkOptions,
  PlannerOptions,
  PlannerStream,
  ResumeOptions,
  RunOptions,
} from './options.ts'
import { forkParts, type PlannerParts, readParts } from './parts.ts'
import { openCallsOf, type PauseState } from './pause.ts'
import type { RunResult } from './result.ts'
import { type Begun, type LegRequest, runLeg } from './run.ts'
import { createStopping } from './stopping.ts'

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

type OnStream = (stream: AnyStream, runId: string) => void

function openRun(parts: PlannerParts, options: RunOptions, onStream: OnStream | undefined): LegRequest {
  const { app, visibility, activeTools } = options
  const caller = defineCaller(options.caller)
  checkBudgets(options.budgets)
  const messages = readMessages(options)
  return {
    caller,
    options,
    stopping: createStopping(options.signal),
    onStream,
    async check() {
      // Names are checked now, and not when the turn comes.
      if (app !== undefined || activeTools !== undefined) await parts.gate.view(caller, { app, activeTools })
      return {
        runId: randomUUID(),
        app,
        before: undefined,
        begin: async () => ({
          view: await viewOf(parts, caller, { app, visibility, activeTools }),
          level: { messages, steps: [], instructions: parts.instructions, context: options.context, pending: [] },
          answers: new Map(),
          resumed: undefined,
        }),
      }
    },
  }
}

/** A caller who narrows nothing shares the view with his equals. */
function viewOf(
  { gate }: PlannerParts,
  caller: Caller,
  narrowed: Pick<RunOptions, 'app' | 'visibility' | 'activeTools'>,
): Promise<View> {
  const isPlain = Object.values(narrowed).every((value) => value === undefined)
  return isPlain ? gate.view(caller) : gate.view(caller, narrowed)
}

function readMessages({ prompt, messages }: RunOptions): readonly ModelMessage[] {
  if ((prompt === undefined) === (messages === undefined))
    throw new ConfigError('run', 'takes a prompt or messages: one of them')
  if (messages !== undefined) {
    if (!Array.isArray(messages) || messages.length === 0)
      throw new ConfigError('run.messages', 'must be a list of messages')
    return [...messages]
  }
  if (typeof prompt !== 'string') throw new ConfigError('run.prompt', 'must be a text')
  return [{ role: 'user', content: prompt }]
}

/** What is wrong with a token is nobody's business: whatever it is, this is said. */
function refused(): ToolgateError {
  return new ToolgateError('resume_refused', 'This run cannot be resumed so.')
}

function openResumed(
  parts: PlannerParts,
  token: string,
  options: ResumeOptions,
  onStream: OnStream | undefined,
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

/** Hands the SDK's stream out as soon as there is one; the run itself reads it to its end, whoever else does. */
async function streamed<Options extends LegOptions>(
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
