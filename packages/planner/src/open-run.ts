import { randomUUID } from 'node:crypto'
import { type Caller, checkShape, ConfigError, defineCaller, type View } from '@toolgate/core'
import type { ModelMessage } from 'ai'
import { checkBudgets } from './budgets.ts'
import type { LegRequest } from './leg.ts'
import type { RunOptions } from './options.ts'
import type { PlannerParts } from './parts.ts'
import { RUN } from './shapes.ts'
import { createStopping } from './stopping.ts'

/** Gives the first leg of a run. @throws {ConfigError} for options that cannot be used; `caller_invalid` */
export function openRun(parts: PlannerParts, options: RunOptions, onStream: LegRequest['onStream']): LegRequest {
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
