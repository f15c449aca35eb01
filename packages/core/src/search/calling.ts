import type { Caller } from '../caller.ts'
import { ToolgateError } from '../errors.ts'
import type { CallOutcome } from '../call/outcome.ts'
import { throughOf } from '../call/execute.ts'
import { hasBit } from '../tools/bits.ts'
import type { CallContext, Tool } from '../tools/tool.ts'
import { type SearchHit, type SearchOptions, searchTools } from './search.ts'

/**
 * What a tool that finds or runs other tools may do in its caller's name: no more than the caller may, through the
 * view that the call came through. Names are the client's own.
 */
export interface Calling {
  readonly caller: Caller
  /** The app of the view that the call came through. */
  readonly app: string | undefined
  search(query: string, options?: SearchOptions): readonly SearchHit[]
  /** Searches also among the tools of locked groups that a search hit opens. */
  searchLocked(query: string, options?: SearchOptions): readonly SearchHit[]
  /** The locked groups that `request_tools` opens for this caller. */
  openable(): readonly string[]
  /** The ids that are visible from the next step on. */
  idsOfNextStep(): readonly string[]
  /** The tool of an id, if the view shows it today. What is hidden and what does not exist are the same. */
  get(id: string | undefined): Tool | undefined
  /** The id that the client means; `undefined` where a name means none. */
  toId(name: string): string | undefined
  toName(id: string): string
  /** A call of its own: decided, limited, approved and recorded as one that the caller makes; cancelled with this one. */
  call(name: string, input: unknown): Promise<CallOutcome>
}

/**
 * Gives what a tool may do in the name of its caller.
 *
 * @throws {ToolgateError} `tool_invalid` where no gate stands around the call
 * @example
 * defineTool({ name: 'count_tools', execute: ({ q }, call) => callingOf(call).search(q).length })
 */
export function callingOf(call: CallContext): Calling {
  const through = throughOf(call)
  if (!through) throw new ToolgateError('tool_invalid', `"${call.tool.id}" can only be called through a gate.`)
  const { view, request, callId } = through
  const { idOf, onProgress, deadlineMs, hooks, run } = request
  // Names go both ways or not at all: what a search gives must be what a call takes.
  const nameOf = idOf && request.nameOf
  const toId = (name: string) => (nameOf ? idOf(name) : name)
  return {
    caller: view.caller,
    app: view.app,
    search: (query, options) => searchTools(view.visibleToday(), query, options),
    searchLocked: (query, options) => searchTools(view.findableToday(), query, options),
    openable: () => view.openable(),
    idsOfNextStep: () => view.idsOfNextStep(),
    get(id) {
      const { snapshot, bits } = view.visibleToday()
      const index = id === undefined ? -1 : snapshot.indexOf(id)
      return index !== -1 && hasBit(bits, index) ? snapshot.tools[index] : undefined
    },
    toId,
    toName: (id) => nameOf?.(id) ?? id,
    call: (name, input) =>
      view.call({
        tool: toId(name),
        calledAs: name,
        input,
        // The records of the two belong together, and each has an id of its own.
        callId: `${callId}.1`,
        signal: call,
        onProgress,
        deadlineMs,
        // What is asked about the calls of a run, and what their approvals are bound to, holds by this way too.
        hooks,
        run,
        nameOf,
        idOf,
      }),
  }
}
