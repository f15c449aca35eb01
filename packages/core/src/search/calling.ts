import type { Caller } from '../ports/caller.ts'
import { ToolgateError } from '@toolgate/values'
import type { CallOutcome } from '../call/outcome.ts'
import { throughOf } from '../call/execute.ts'
import { isPassingTool } from '../tools/own-tool.ts'
import { passedOn } from '../call/history.ts'
import { continuedBy } from '../call/rounds.ts'
import { hasBit } from '../tools/bits.ts'
import { isItemId } from '../tools/tool-id.ts'
import type { CallContext, Tool } from '../tools/tool.ts'
import { type SearchHit, type SearchOptions, searchTools, searchToolsBy } from './search.ts'
import type { CheckedSearcher } from './searcher.ts'

/**
 * The view of a call, for a tool that finds or runs other tools on its caller's behalf. It can do no more than the caller
 * may. Names are the client's own.
 */
export interface Calling {
  readonly caller: Caller
  /** The app of the view that the call came through. */
  readonly app: string | undefined
  search(query: string, options?: SearchOptions): readonly SearchHit[]
  /** Also searches the tools of locked groups that a search hit opens. */
  searchLocked(query: string, options?: SearchOptions): readonly SearchHit[]
  /** Searches with a searcher of the host; `locked`: also the tools of locked groups that a search hit opens. */
  searchBy(
    searcher: CheckedSearcher,
    query: string,
    options: SearchOptions,
    locked: boolean,
  ): Promise<readonly SearchHit[]>
  /** Returns the locked groups that `request_tools` opens for this caller. */
  openable(): readonly string[]
  /** Returns the ids that are visible from the next step on. */
  idsOfNextStep(): readonly string[]
  /** Returns the tool with an id, if the view shows it now. Hidden and unknown ids have the same result. */
  get(id: string | undefined): Tool | undefined
  /** Returns the id for a client's name; `undefined` for an unknown name. */
  toId(name: string): string | undefined
  toName(id: string): string
  /**
   * Makes a call of its own: decided, limited, approved and recorded like the caller's, and cancelled with this one. If
   * it needs input, so does this call: `execute` returns `new InputRequired(outcome.payload, outcome.continues)`.
   */
  call(name: string, input: unknown): Promise<CallOutcome>
}

/**
 * Returns the view of a call.
 *
 * @throws {ToolgateError} `tool_invalid` for a call that did not come through a gate
 * @example
 * defineTool({ name: 'count_tools', execute: ({ q }, call) => callingOf(call).search(q).length })
 */
export function callingOf(call: CallContext): Calling {
  const through = throughOf(call)
  if (!through) throw new ToolgateError('tool_invalid', `"${call.tool.id}" can only be called through a gate.`)
  const { view, request, callId } = through
  const { idOf, onProgress, deadlineMs, hooks, run, context } = request
  // Names are translated both ways or not at all: a search must return names that a call takes.
  const nameOf = idOf && request.nameOf
  // Only tools can be called here, so an id of a resource or a prompt is not accepted as a name.
  const toId = (name: string) => (nameOf ? idOf(name) : isItemId(name) ? undefined : name)
  return {
    caller: view.caller,
    app: view.app,
    search: (query, options) => searchTools(view.visibleToday(), query, options),
    searchLocked: (query, options) => searchTools(view.findableToday(), query, options),
    searchBy(searcher, query, options, locked) {
      const visible = () => (locked ? view.findableToday() : view.visibleToday())
      return searchToolsBy(searcher, visible, query, options, { caller: view.caller, signal: call.signal })
    },
    openable: () => view.openable(),
    idsOfNextStep: () => view.idsOfNextStep(),
    get(id) {
      const { snapshot, bits } = view.visibleToday()
      const index = id === undefined ? -1 : snapshot.indexOf(id)
      return index !== -1 && hasBit(bits, index) ? snapshot.tools[index] : undefined
    },
    toId,
    toName: (id) => nameOf?.(id) ?? id,
    async call(name, input) {
      const outcome = await view.call({
        tool: toId(name),
        calledAs: name,
        input,
        // The records of both calls belong together; each has an id of its own.
        callId: `${callId}.1`,
        signal: call,
        onProgress,
        deadlineMs,
        // The run's hooks and the binding of its approvals also apply to this call.
        hooks,
        run,
        // A server that the other tool reaches may ask the client, and a retry is the next round of both calls.
        context,
        continues: continuedBy(through, call.tool)?.inner,
        // Only a tool that passes the whole answer on tells the model what was changed.
        edits: isPassingTool(call.tool) && request.edits === true,
        nameOf,
        idOf,
      })
      if (outcome.status !== 'refused' && outcome.status !== 'waiting') passedOn(through)
      return outcome
    },
  }
}
