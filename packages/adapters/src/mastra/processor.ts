import type {
  InputProcessor,
  ProcessInputStepArgs,
  ProcessInputStepResult,
  ProcessLLMResponseArgs,
} from '@mastra/core/processors'
import { RequestContext } from '@mastra/core/request-context'
import type { View } from '@toolgate/core'
import { fieldsOf } from '../shared/fields.ts'
import type { Calls } from './calls.ts'
import { PROCESSOR_ID } from './options.ts'
import { isSameCaller, type Request, type Requests } from './runs.ts'
import type { WrappedTools } from './wrapped.ts'

interface ProcessorPorts {
  readonly requests: Requests
  readonly calls: Calls
  readonly wrapped: WrappedTools
  readonly isUngoverned: (name: string) => boolean
}

/** The state between the request of a step, its response and the next request. */
interface StepState {
  step: MastraStep | undefined
  /** The gate's texts about calls that Mastra itself refused. */
  readonly told: Map<string, { readonly toolName: string; readonly args: unknown; readonly text: string }>
}

interface MastraStep {
  readonly request: Request
  readonly view: View
  /** Names of the offered tools. */
  readonly offered: ReadonlySet<string>
}

/**
 * Returns the processor that narrows each step to the tools visible now. Calls that Mastra itself refuses (tools that
 * were not sent, inputs that are not JSON) go to the gate, so that they are recorded and get the gate's text.
 */
export function createProcessor(ports: ProcessorPorts): InputProcessor {
  const states = new WeakMap<object, StepState>()
  const stateOf = (key: object): StepState => {
    let state = states.get(key)
    if (!state) states.set(key, (state = { step: undefined, told: new Map() }))
    return state
  }
  return {
    id: PROCESSOR_ID,
    processInputStep: (args) => prepareStep(ports, stateOf(args.state), args),
    async processLLMResponse(args) {
      await readResponse(ports, stateOf(args.state), args)
    },
  }
}

async function prepareStep(
  { requests, calls, wrapped, isUngoverned }: ProcessorPorts,
  state: StepState,
  args: ProcessInputStepArgs,
): Promise<ProcessInputStepResult> {
  tellRefused(state, args)
  const { toId, toName } = calls.names()
  const given = new Map(Object.entries(args.tools ?? {}))
  const isKept = (name: string) => (toId(name) === undefined ? isUngoverned(name) : wrapped.isOurs(given.get(name)))
  const isForeign = (name: string) => toId(name) === undefined && (given.has(name) || isUngoverned(name))
  const current = await requests.current(args.requestContext ?? new RequestContext()).catch((error: unknown) => {
    // An agent network also queries its model without tools and without a caller.
    if (given.size > 0) throw error
  })
  if (!current) return {}
  const before = state.step?.request
  const request = before && isSameCaller(before, current) ? before : requests.claim(current)
  const view = request.view.narrow({
    activeTools: args.activeTools?.filter((name) => !isForeign(name)).map((name) => toId(name) ?? name),
  })
  const seen = new Set(view.ids.map((id) => toName(id)))
  const asked = args.activeTools && new Set(args.activeTools)
  const tools = [...given].filter(([name]) => isKept(name))
  const activeTools = tools
    .map(([name]) => name)
    .filter((name) => (toId(name) === undefined ? (asked?.has(name) ?? true) : seen.has(name)))
  state.step = { request, view, offered: new Set(activeTools) }
  return tools.length === given.size ? { activeTools } : { activeTools, tools: Object.fromEntries(tools) }
}

/** Replaces Mastra's text about refused calls with the gate's, before the model reads it. */
function tellRefused({ told }: StepState, { messageList }: ProcessInputStepArgs): void {
  for (const [toolCallId, { toolName, args, text: errorText }] of told)
    messageList.updateToolInvocation({
      type: 'tool-invocation',
      toolInvocation: { state: 'output-error', toolCallId, toolName, args, errorText },
    })
  told.clear()
}

async function readResponse(
  { calls }: ProcessorPorts,
  { step: prepared, told }: StepState,
  { chunks, model, stepNumber: step, requestContext, abortSignal: signal }: ProcessLLMResponseArgs,
): Promise<void> {
  if (!prepared) return
  const { request, view, offered } = prepared
  const place = { request, view, step, model: model.modelId }
  for (const { toolName: name, toolCallId: callId, args: input } of chunks.flatMap(callsOf)) {
    if (offered.has(name) && input != null) {
      if (requestContext) calls.expect(requestContext, callId, place)
      continue
    }
    const malformed = input == null ? 'the arguments are not JSON' : undefined
    // A tool that was not sent must not run, even if the view allows it.
    const seen = offered.has(name) ? view : view.narrow({ activeTools: idsOf(offered, calls) })
    const outcome = await calls.make(request, {
      name,
      input,
      callId,
      signal,
      malformed,
      place: { ...place, view: seen },
    })
    told.set(callId, { toolName: name, args: input, text: outcome.text })
  }
}

function idsOf(names: ReadonlySet<string>, calls: Calls): string[] {
  const { toId } = calls.names()
  return [...names].map((name) => toId(name)).filter((id) => id !== undefined)
}

/** Returns the call of a chunk, unless the provider has run it. */
function callsOf({
  type,
  payload,
}: {
  readonly type: string
  readonly payload?: unknown
}): readonly { readonly toolName: string; readonly toolCallId: string; readonly args: unknown }[] {
  const { toolName, toolCallId, args, providerExecuted } = fieldsOf(payload)
  if (type !== 'tool-call' || providerExecuted === true) return []
  // A call without a usable name or id is recorded too.
  return [{ toolName: textOf(toolName), toolCallId: textOf(toolCallId), args }]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
