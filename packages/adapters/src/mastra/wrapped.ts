import { RequestContext } from '@mastra/core/request-context'
import { createTool, type ToolExecutionContext } from '@mastra/core/tools'
import type { CallOutcome, Tool } from '@toolgate/core'
import { copyWith, fieldsOf } from '../shared/fields.ts'
import { type Calls, RefusedMastraCall } from './calls.ts'
import {
  ANY_SCHEMA,
  isSchema,
  jsonSchemaForModel,
  type MastraSchema,
  type MastraTool,
  nativeOf,
  schemaForModel,
} from './import-tools.ts'
import type { AnyGate } from './options.ts'
import type { Requests } from './runs.ts'

/** The tools that Mastra is given in place of the gate's. */
export interface WrappedTools {
  wrap(tool: Tool, options: { readonly name: string; readonly asks: boolean }): MastraTool
  /** Whether Mastra made it of one that was wrapped for this gate. */
  isOurs(made: unknown): boolean
}

type Context = Partial<ToolExecutionContext>

/**
 * A call goes through the gate in the tool's own `execute`: nothing that is said to an agent or to one of its calls can
 * take that away.
 */
export function createWrappedTools(gate: AnyGate, requests: Requests, calls: Calls): WrappedTools {
  const execute = createExecute(requests, calls)
  return {
    wrap(tool, { name, asks }) {
      const native = nativeOf(tool.execute)
      const onInputAvailable = (event: unknown) => native?.onInputAvailable?.(event)
      marks.set(onInputAvailable, gate)
      const wrapped = copyWith(native ? openNative(native) : toNative(tool), {
        id: name,
        execute: (input: unknown, context?: Context) => execute(name, input, context),
        onInputAvailable,
        // A tool with this schema may pause, so Mastra does not run it in parallel with others.
        suspendSchema: native?.suspendSchema ? takesAny(native.suspendSchema) : asks ? ANY_SCHEMA : undefined,
      })
      // Callers with the same tools share it, and `listTools` returns it to everyone.
      return Object.freeze(wrapped)
    },
    isOurs(made) {
      const { onInputAvailable } = fieldsOf(made)
      return typeof onInputAvailable === 'function' && marks.get(onInputAvailable) === gate
    },
  }
}

/** Mastra rebuilds tools, and keeps this one function of each as it is: the gate of each wrapped tool, by that. */
const marks = new WeakMap<object, AnyGate>()

/** Returns a copy of Mastra's tool whose schema accepts any input: the gate checks it. */
function openNative(native: MastraTool): MastraTool {
  return copyWith(native, { inputSchema: native.inputSchema && takesAny(native.inputSchema) })
}

function takesAny(schema: unknown): MastraSchema | undefined {
  return isSchema(schema) ? schemaForModel(schema) : undefined
}

/** Returns a tool of the gate, such as one of an MCP server, as a tool of Mastra. */
function toNative({ title, description, inputSchema, id }: Tool): MastraTool {
  const execute = () => Promise.resolve()
  const tool = createTool({ id, description, inputSchema: jsonSchemaForModel(inputSchema), execute })
  return Object.assign(tool, { title })
}

function createExecute(requests: Requests, calls: Calls) {
  /** Steps, and resumes, in which one call waits already. */
  const paused = new WeakSet<object>()
  return async (name: string, input: unknown, context: Context = {}): Promise<unknown> => {
    const { requestContext = new RequestContext(), abortSignal: signal, agent } = context
    const callId = agent?.toolCallId
    const request = await requests.ofTool(requestContext)
    const place = calls.placeOf(requestContext, callId)
    const outcome = await calls.make(request, { name, input, callId, signal, context, place })
    if (outcome.status !== 'waiting' || !mayPause(context, place ?? request)) return toResult(outcome)
    paused.add(place ?? request)
    return agent?.suspend({}, { requireToolApproval: true })
  }

  /** Mastra loses all but one of several pauses at once, and what was answered to a tool that paused by itself. */
  function mayPause({ agent }: Context, pass: object): boolean {
    return agent?.suspend !== undefined && agent.resumeData == null && !paused.has(pass)
  }
}

function toResult(outcome: CallOutcome): unknown {
  if (outcome.status === 'done') return outcome.output
  // What the tool threw is Mastra's to tell: it knows its own errors by what they are.
  if (outcome.status === 'failed' && outcome.code === 'tool_failed') throw outcome.error
  throw new RefusedMastraCall(outcome)
}
