import { isDeepStrictEqual } from 'node:util'
import { fieldsOf } from '../shared/fields.ts'
import type { HarnessCall, QueryCalls, HarnessVerdict } from './calls.ts'
import type {
  CanUseTool,
  HookCallback,
  HookMatchers,
  PostToolBatchInput,
  PostToolUseFailureInput,
  PostToolUseInput,
  ToolHookInput,
} from './harness.ts'
import type { HarnessNames } from './import-tools.ts'

interface HooksOptions {
  readonly calls: QueryCalls
  readonly names: HarnessNames
  /** The handling of a call that waits for a person: the model is told, or the query ends and can be resumed. */
  readonly waiting: 'tell' | 'defer'
}

/**
 * Returns the gate's hooks together with the user's. The harness calls all of them and takes the strictest answer, so the
 * user's cannot allow what the gate refuses. An input that they replace is decided like any other.
 */
export function composeHooks(theirs: HookMatchers, options: HooksOptions): HookMatchers {
  const composed = new Map(Object.entries(theirs))
  for (const [event, decide] of Object.entries({ PreToolUse: decideReplaced, PermissionRequest: decidePermitted })) {
    const decided = composed.get(event)?.map((matcher) => {
      return { ...matcher, hooks: matcher.hooks.map((hook) => decide(hook, options)) }
    })
    if (decided) composed.set(event, decided)
  }
  for (const [event, hook] of Object.entries(ownHooks(options)))
    composed.set(event, [{ hooks: [hook], onFailure: 'block' }, ...(composed.get(event) ?? [])])
  return Object.fromEntries(composed)
}

function ownHooks({ calls, names, waiting }: HooksOptions): Record<string, HookCallback> {
  const isOwn = ({ name, server }: HarnessCall) => names.isOwn(name, server)
  let hasDeferred = false
  const toAnswerOnce = (verdict: HarnessVerdict, call: HarnessCall, { agent_id }: ToolHookInput) => {
    // If several are deferred, the harness continues with one of them. It does not end the query for a call in a subagent.
    const defers = waiting === 'defer' && !hasDeferred && agent_id === undefined && !verdict.mayRun && verdict.isWaiting
    hasDeferred ||= defers
    return toAnswer(verdict, call, defers)
  }
  return {
    PreToolUse: async (input: ToolHookInput, id, { signal }: { readonly signal: AbortSignal }) => {
      calls.isOf(input.session_id)
      const call = toCall(input, id)
      if (!isOwn(call)) return toAnswerOnce(await calls.ask(call, signal), call, input)
      calls.passOn(call)
      return {}
    },
    PostToolUse: async (input: PostToolUseInput, id) => {
      const call = toCall(input, id)
      const isFine = isOwn(call) || (await calls.done(call, input.tool_response))
      return isFine ? {} : STOP
    },
    PostToolUseFailure: async (input: PostToolUseFailureInput, id) => {
      const call = toCall(input, id)
      if (isOwn(call)) return {}
      if (input.is_interrupt) await calls.interrupted(call)
      else if (!(await calls.failed(call, input.error))) return STOP
      return {}
    },
    PostToolBatch: async ({ tool_calls }: PostToolBatchInput) => {
      for (const { tool_use_id: id, tool_name: name, tool_input: input, tool_response: said } of tool_calls)
        await calls.over({ id, name, input }, toText(said))
      return {}
    },
  }
}

/** The answer while the query is being stopped: the harness must do nothing more. */
const STOP = { continue: false, stopReason: 'a call ran without a decision of the gate' }

function toCall({ tool_name: name, tool_input: input, tool_use_id, mcp_server: server }: ToolHookInput, id = '') {
  return { id: tool_use_id ?? id, name, input, server } satisfies HarnessCall
}

/**
 * Returns the hook's answer. An empty answer leaves the call to the harness's own permission rules, which the gate does
 * not replace.
 */
function toAnswer(verdict: HarnessVerdict, { input }: HarnessCall, defers: boolean): object {
  if (!verdict.mayRun) return toDecision(defers ? 'defer' : 'deny', verdict.text)
  if (isDeepStrictEqual(verdict.input, input)) return {}
  return { hookSpecificOutput: { hookEventName: 'PreToolUse', updatedInput: verdict.input } }
}

function toDecision(permissionDecision: 'deny' | 'defer', permissionDecisionReason: string): object {
  return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason } }
}

function decideReplaced(theirs: HookCallback, { calls, names }: HooksOptions): HookCallback {
  return async (input: ToolHookInput, id, options) => {
    const answer: unknown = await theirs(input, id, options)
    const specific = fieldOf(answer, 'hookSpecificOutput')
    const replaced = fieldOf(specific, 'updatedInput')
    const call = toCall(input, id)
    if (replaced === undefined || isDeepStrictEqual(replaced, call.input)) return answer
    if (names.isOwn(call.name, call.server)) return answer
    const verdict = await calls.ask({ ...call, input: replaced })
    if (!verdict.mayRun) return toDecision('deny', verdict.text)
    return { ...toObject(answer), hookSpecificOutput: { ...toObject(specific), updatedInput: verdict.input } }
  }
}

function decidePermitted(theirs: HookCallback, options: HooksOptions): HookCallback {
  return async (input: ToolHookInput, id, given) => {
    const answer: unknown = await theirs(input, id, given)
    const specific = fieldOf(answer, 'hookSpecificOutput')
    const permission = fieldOf(specific, 'decision')
    const decision = await decidePermission(permission, toCall(input, id), options)
    if (decision === permission) return answer
    return { ...toObject(answer), hookSpecificOutput: { ...toObject(specific), decision } }
  }
}

/** Returns the user's permission callback, which the harness calls after the hooks. */
export function composeCanUseTool(theirs: CanUseTool, options: HooksOptions): CanUseTool {
  return async (name, input, given: { readonly toolUseID: string; readonly mcpServer?: HarnessCall['server'] }) => {
    const call = { id: given.toolUseID, name, input, server: given.mcpServer }
    return decidePermission(await theirs(name, input, given), call, options)
  }
}

/**
 * Decides a call again after a person or the host has permitted it. That may have taken long, and the input may differ from
 * the one that was decided before.
 */
async function decidePermission(
  permission: unknown,
  call: HarnessCall,
  { calls, names }: HooksOptions,
): Promise<unknown> {
  if (fieldOf(permission, 'behavior') !== 'allow' || names.isOwn(call.name, call.server)) return permission
  const input = fieldOf(permission, 'updatedInput') ?? call.input
  const verdict = await calls.askAgain({ ...call, input })
  if (!verdict.mayRun) return { behavior: 'deny', message: verdict.text }
  return isDeepStrictEqual(verdict.input, input) ? permission : { ...toObject(permission), updatedInput: verdict.input }
}

function fieldOf(value: unknown, name: string): unknown {
  return fieldsOf(value)[name]
}

function toObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}

const MAX_SAID_LENGTH = 300

/** Returns the harness's text for the model about a call, without its own markup. */
function toText(said: unknown): string {
  const text = typeof said === 'string' ? said : 'it gave a result'
  return text.replaceAll(/<\/?tool_use_error>/g, '').slice(0, MAX_SAID_LENGTH)
}
