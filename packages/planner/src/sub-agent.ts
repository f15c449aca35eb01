import {
  type CallContext,
  defineTool,
  type JsonSchema,
  type StandardSchema,
  type Tool,
  type ToolDefinition,
  type View,
} from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import { toJsonText } from '@toolgate/values/json'
import type { PrepareStep } from '@toolgate/core/steps'
import type { LanguageModel, StopCondition, ToolSet } from 'ai'
import type { PolicyOf } from './options.ts'
import type { Conversation } from './pause/state.ts'
import { type Scope, callingRunOf } from './run/scope.ts'

export interface SubAgentDefinition extends Pick<
  ToolDefinition,
  'name' | 'namespace' | 'title' | 'description' | 'tags' | 'category' | 'requiredScopes' | 'groups' | 'annotations'
> {
  /** The sub-agent's own instructions. */
  readonly instructions?: string | undefined
  /** Default: the model of the calling run. */
  readonly model?: LanguageModel | undefined
  /**
   * Ids of tools that the parent's run sees. Default: all of them, without this tool and the sub-agents that contain
   * it.
   */
  readonly activeTools?: readonly string[] | undefined
  /** A policy that is combined with the policy of the parent's run. */
  readonly policy?: PolicyOf
  readonly prepareStep?: PrepareStep | undefined
  /** Default: the planner's. */
  readonly stopWhen?: StopCondition<ToolSet> | readonly StopCondition<ToolSet>[] | undefined
  /** The schema of the sub-agent's input. Default: `{ prompt: string }`. */
  readonly inputSchema?: JsonSchema | StandardSchema | undefined
  /** Returns the sub-agent's prompt for an input. Default: the input's `prompt`, or the whole input as JSON. */
  readonly toPrompt?: ((input: unknown) => string) | undefined
}

const SUB_AGENT = shapeOf<SubAgentDefinition>(
  {
    name: true,
    namespace: true,
    title: true,
    description: true,
    tags: true,
    category: true,
    requiredScopes: true,
    groups: true,
    annotations: true,
    instructions: true,
    model: true,
    activeTools: true,
    policy: true,
    prepareStep: true,
    stopWhen: true,
    inputSchema: true,
    toPrompt: true,
  },
  'field',
)

/** The text in place of the result of a paused sub-agent. No model reads it. */
const PAUSED = 'The sub-agent waits for a person.'
const MAX_DEPTH = 32

/**
 * Returns an agent as a tool of a gate, for the models of a planner's runs.
 *
 * It sees at most the view of the calling run (not only the step's list), and less if `activeTools` or `policy` narrow
 * it. It has no session of its own: it shares its parent's turn, run in the audit, limits and budgets, and ends when
 * its parent does. When one of its calls waits for a person, the whole run pauses, and the resume continues there.
 * @example
 * const researcher = subAgent({ name: 'research', description: 'Finds things out.', activeTools: ['search', 'fetch'] })
 * const planner = createPlanner({ model, gate: createGate({ tools: [search, fetch, researcher] }) })
 */
export function subAgent(definition: SubAgentDefinition): Tool {
  checkShape('subAgent', definition, SUB_AGENT)
  const { instructions, model, activeTools, policy, prepareStep, stopWhen, toPrompt, inputSchema, ...described } =
    definition
  const tool = defineTool({
    ...described,
    inputSchema: inputSchema ?? PROMPT,
    // The sub-agent's calls have deadlines, and the budgets bound its whole time.
    deadlineMs: Infinity,
    execute: (input: unknown, call) => runSubAgent(definition, input, call),
  })
  definitions.set(tool, definition)
  areThereAny = true
  return tool
}

/**
 * Checks the tool names in the definitions of the sub-agents that a view sees.
 *
 * @throws {UnknownToolError} for an unknown one
 */
export function checkSubAgents(view: View): void {
  if (!areThereAny || checked.has(view)) return
  for (const tool of view.tools) {
    const activeTools = definitions.get(tool)?.activeTools
    if (activeTools) view.narrow({ activeTools })
  }
  checked.add(view)
}

/** Equal callers share a view. */
const checked = new WeakSet<View>()
let areThereAny = false

const definitions = new WeakMap<Tool, SubAgentDefinition>()

const PROMPT: JsonSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'The whole task: nothing else is known of it.' } },
  required: ['prompt'],
  additionalProperties: false,
}

async function runSubAgent(definition: SubAgentDefinition, input: unknown, call: CallContext): Promise<string> {
  const { scope, continued } = callingRunOf(call.context) ?? {}
  if (!scope) throw new TypeError('a sub-agent works only in a run of a planner')
  if (scope.agents.length >= MAX_DEPTH) throw new RangeError(`sub-agents are nested more than ${MAX_DEPTH} deep`)
  const agent = { tool: call.tool.id, callId: call.callId }
  const events = scope.events.inside(agent)
  events.emit({ type: 'agent-started' })
  const { end, conversation } = await scope.runConversation({
    shared: scope.shared,
    view: viewOf(definition, scope, call.tool.id),
    model: definition.model ?? scope.model,
    stopWhen: definition.stopWhen === undefined ? scope.stopWhen : [definition.stopWhen].flat(),
    prepareStep: definition.prepareStep,
    events,
    signal: call.signal,
    agents: [...scope.agents, agent],
    conversation: continued ?? openingOf(definition, input),
  })
  events.emit({
    type: 'agent-ended',
    status: end.kind === 'failed' ? 'failed' : end.kind === 'paused' ? 'paused' : 'done',
  })
  switch (end.kind) {
    case 'paused':
      scope.paused.set(call.callId, conversation)
      return PAUSED
    case 'failed':
      throw new Error(`it ended without an answer: ${end.reason}`, { cause: end.error })
    case 'finished':
    case 'stopped':
      return conversation.steps.at(-1)?.text ?? ''
  }
}

/**
 * Returns the narrowed view of a sub-agent. A sub-agent that may call itself, or one that contains it, must name that
 * tool.
 */
function viewOf({ activeTools, policy }: SubAgentDefinition, { view, agents }: Scope, own: string): View {
  const around = new Set([own, ...agents.map(({ tool }) => tool)])
  return view.narrow({ activeTools: activeTools ?? view.ids.filter((id) => !around.has(id)), policy })
}

function openingOf({ instructions, toPrompt = defaultPrompt }: SubAgentDefinition, input: unknown): Conversation {
  return {
    messages: [{ role: 'user', content: toPrompt(input) }],
    steps: [],
    instructions,
    context: undefined,
    pending: [],
  }
}

function defaultPrompt(input: unknown): string {
  const prompt = typeof input === 'object' && input !== null && 'prompt' in input ? input.prompt : undefined
  return typeof prompt === 'string' ? prompt : toJsonText(input)
}
