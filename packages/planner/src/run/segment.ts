import { randomUUID } from 'node:crypto'
import { resultsOf } from '@toolgate/adapters/run'
import { type Caller, ConfigError, defineCaller, type View } from '@toolgate/core'
import { checkShape } from '@toolgate/values'
import type { ModelMessage } from 'ai'
import { checkBudgets } from '../budgets.ts'
import { RUN, type RunOptions, type SegmentOptions } from '../options.ts'
import type { Conversation, PauseState, PendingState } from '../pause/state.ts'
import type { PlannerParts } from '../parts.ts'
import type { AnyStream, RunShared } from './scope.ts'
import { createStopping } from './turn.ts'

/** One segment of a run: from its beginning, or from a pause, to its end or its next pause. */
export interface SegmentRequest {
  readonly caller: Caller
  readonly options: SegmentOptions
  readonly stopping: ReturnType<typeof createStopping>
  /** Called with the SDK's stream when it exists. */
  readonly onStream?: ((stream: AnyStream, runId: string) => void) | undefined
  /** Runs while the segment waits for its turn. If it throws, the run throws, and nothing has happened. */
  check(): Promise<CheckedSegment>
}

export interface CheckedSegment {
  readonly runId: string
  readonly app: string | undefined
  readonly words: RunShared['words']
  /** The amounts that the run used before this segment. */
  readonly before: Pick<PauseState, 'used' | 'usage' | 'budgets'> | undefined
  /** Runs when the segment's turn comes. If it throws, the run throws. */
  begin(): Promise<SegmentStart>
}

export type RunSegment = SegmentRequest & CheckedSegment

/** The start of a segment. */
export interface SegmentStart {
  readonly view: View
  readonly conversation: Conversation
  readonly answers: ReadonlyMap<PendingState, unknown>
  /** Fields of a resumed segment only. */
  readonly resumed: { readonly hidden: readonly string[]; readonly policyChanged: boolean } | undefined
}

/** Returns the first segment of a run. @throws {ConfigError} for invalid options; `caller_invalid` */
export function openRun(
  parts: PlannerParts,
  options: RunOptions,
  onStream: SegmentRequest['onStream'],
): SegmentRequest {
  checkShape('run', options, RUN)
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
      // Names are checked now, rather than when the turn comes.
      if (app !== undefined || activeTools !== undefined) await parts.gate.view(caller, { app, activeTools })
      return {
        runId: randomUUID(),
        app,
        words: {
          userWords: options.userWords ?? options.prompt,
          earlierResults: resultsOf(options.messages ?? []),
          resumed: false,
        },
        before: undefined,
        begin: async () => ({
          view: await viewOf(parts, caller, { app, visibility, activeTools }),
          conversation: {
            messages,
            steps: [],
            instructions: parts.instructions,
            context: options.context,
            pending: [],
          },
          answers: new Map(),
          resumed: undefined,
        }),
      }
    },
  }
}

/** Returns the view of a run. Equal callers share one view if nothing narrows it. */
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
