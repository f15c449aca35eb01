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

/** The tools that Mastra gets in place of the gate's. */
export interface WrappedTools {
  wrap(tool: Tool, options: { readonly name: string; readonly asks: boolean }): MastraTool
  /** Whether Mastra built the tool from one that was wrapped for this gate. */
  isOurs(made: unknown): boolean
}

type MastraContext = Partial<ToolExecutionContext>

/** Wraps the gate's tools. Each tool's own `execute` calls the gate, so no option of an agent or a call bypasses it. */
export function createWrappedTools(gate: AnyGate, requests: Requests, calls: Calls): WrappedTools {
  const execute = createExecute(requests, calls)
  return {
    wrap(tool, { name, asks }) {
      const native = nativeOf(tool.execute)
      const onInputAvailable = (event: unknown) => native?.onInputAvailable?.(event)
      marks.set(onInputAvailable, gate)
      const wrapped = copyWith(native ? openNative(native) : toNative(tool), {
        id: name,
        execute: (input: unknown, context?: MastraContext) => execute(name, input, context),
        onInputAvailable,
        // A tool with this schema may pause, so Mastra does not run it in parallel with others.
        suspendSchema: native?.suspendSchema ? takesAny(native.suspendSchema) : asks ? ANY_SCHEMA : undefined,
      })
      // Callers with the same tools share this object, and `listTools` returns it to everyone.
      return Object.freeze(wrapped)
    },
    isOurs(made) {
      const { onInputAvailable } = fieldsOf(made)
      return typeof onInputAvailable === 'function' && marks.get(onInputAvailable) === gate
    },
  }
}

/** The gate of each wrapped tool, by a function that Mastra keeps when it rebuilds the tool. */
const marks = new WeakMap<object, AnyGate>()

/** Returns a copy of Mastra's tool whose schema accepts any input. The gate validates the input. */
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
  /** Steps and resumes in which a call already waits. */
  const paused = new WeakSet<object>()
  return async (name: string, input: unknown, context: MastraContext = {}): Promise<unknown> => {
    const { requestContext = new RequestContext(), abortSignal: signal, agent } = context
    const callId = agent?.toolCallId
    const request = await requests.ofTool(requestContext)
    const place = calls.placeOf(requestContext, callId)
    const outcome = await calls.make(request, { name, input, callId, signal, context, place })
    if (outcome.status !== 'waiting' || !mayPause(context, place ?? request)) return toResult(outcome)
    paused.add(place ?? request)
    return agent?.suspend({}, { requireToolApproval: true })
  }

  /**
   * Whether a call may pause. Of several pauses at once, Mastra keeps only one, and it loses the answer to a tool that
   * paused itself.
   */
  function mayPause({ agent }: MastraContext, pass: object): boolean {
    return agent?.suspend !== undefined && agent.resumeData == null && !paused.has(pass)
  }
}

function toResult(outcome: CallOutcome): unknown {
  if (outcome.status === 'done') return outcome.output
  // Mastra handles the tool's own errors, and recognises its own error classes.
  if (outcome.status === 'failed' && outcome.code === 'tool_failed') throw outcome.error
  throw new RefusedMastraCall(outcome)
}
