import type { Caller, CallOutcome, Hooks, Progress, View } from '@toolgate/core'
import type { WireNames } from '@toolgate/expose'
import type { Cancelling } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Continuation } from '@toolgate/core/toolset'

/** The parameters of a `tools/call`, with the problem if they are invalid. */
export interface CallParams {
  readonly name: string
  readonly input: unknown
  readonly progressToken: unknown
  readonly problem: string | undefined
}

/** Reads the parameters of a `tools/call`, as the client sent them. */
export function readCall({ name, arguments: input, _meta: meta }: JsonObject): CallParams {
  const progressToken = isObject(meta) ? meta['progressToken'] : undefined
  if (typeof name !== 'string')
    return { name: '(no name)', input, progressToken, problem: 'params.name must be a string.' }
  const isValid = input === undefined || isObject(input)
  return { name, input, progressToken, problem: isValid ? undefined : 'params.arguments must be an object.' }
}

/**
 * Returns the problem of a list request's parameters, if any. A cursor is a problem, because no list has a second page.
 */
export function checkListParams({ cursor }: JsonObject): string | undefined {
  return cursor === undefined ? undefined : 'params.cursor is not a cursor of this server: its list has one page.'
}

export interface ToolCall {
  readonly view: View
  readonly names: WireNames
  /** The tool's name, as the client wrote it. */
  readonly name: string
  readonly input: unknown
  readonly signal: AbortSignal | Cancelling
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** The host's data about the request. The tool receives it. */
  readonly context?: unknown
  /** Returns the caller as they are now; `undefined` once they may no longer call. */
  readonly callerNow?: (() => Caller | undefined) | undefined
  /** The host's own name for the caller. */
  readonly asker?: string | undefined
  /** The earlier rounds of the call. */
  readonly continues?: Continuation | undefined
  /** Hooks that run before those of the gate. */
  readonly hooks?: Hooks | undefined
}

/** Calls a tool through the gate for a client that knows it by its name on the wire. */
export function callTool({ view, names, name, input, ...rest }: ToolCall): Promise<CallOutcome> {
  return view.call({
    tool: names.toId(name),
    input,
    signal: rest.signal,
    onProgress: rest.onProgress,
    callerNow: rest.callerNow,
    asker: rest.asker,
    context: rest.context,
    continues: rest.continues,
    // Each answer to a client has the note about a change.
    edits: true,
    hooks: rest.hooks,
    calledAs: name,
    nameOf: (id) => names.toName(id) ?? id,
    idOf: names.toId,
  })
}

/** Longer than any tool's name, so a cut name is never a tool's name. */
const MAX_RECORDED_NAME = 1024

/**
 * Records a call that is refused before the gate sees it, such as one with invalid parameters. Each attempt to call a
 * tool leaves an audit record.
 */
export async function recordRefusedCall(view: View, names: WireNames, name: unknown, problem: string): Promise<void> {
  const calledAs = typeof name === 'string' ? name.slice(0, MAX_RECORDED_NAME) : '(no name)'
  await view.call({ tool: names.toId(calledAs), calledAs, malformed: problem })
}
