import {
  type AgentInputItem,
  Agent,
  type FunctionTool,
  type ModelResponse,
  type RunContext,
  Runner,
  type SerializedTool,
  tool,
} from '@openai/agents'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing'
import { type Caller, createGate, type Gate, type GateOptions } from '@toolgate/core'
import { fromOpenAIAgents, guard, type Guard, type GuardOptions } from '../openai-agents.ts'
import { ADMINS_DELETE, createTestAudit, createWitness, type Witness } from './world.ts'

/** The context of a run in these tests. */
export interface Session {
  caller: Caller
}

interface NoInput {
  type: 'object'
  properties: Record<string, never>
  required: never[]
  additionalProperties: false
}
export const NO_INPUT: NoInput = { type: 'object', properties: {}, required: [], additionalProperties: false }
export const DONE: ModelResponse['output'] = [assistantMessage('done')]

/** Returns one answer of the model with calls of these names, each with its own id. */
export function calls(...names: readonly string[]): ModelResponse['output'] {
  return names.map((name, i) => callOf(name, {}, `${name}-${i}`))
}

export function callOf(
  name: string,
  input: string | Record<string, unknown>,
  callId = name,
): ReturnType<typeof functionCall> {
  return functionCall(name, input, { callId })
}

type TestTool = FunctionTool<Session, NoInput, string>

export function createTools(witness: Witness): { search: TestTool; delete_all: TestTool; alpha: TestTool } {
  const make = (name: string): TestTool =>
    tool<NoInput, Session>({
      name,
      description: `It is ${name}.`,
      parameters: NO_INPUT,
      execute: witness.body(name),
    }) as TestTool
  return { search: make('search'), delete_all: make('delete_all'), alpha: make('alpha') }
}

export interface Scene {
  readonly witness: Witness
  readonly audit: ReturnType<typeof createTestAudit>
  readonly gate: Gate
  readonly guarded: Guard<Session>
  readonly model: ScriptedModel
  readonly agent: Agent<Session>
  readonly runner: Runner
}

type SceneOptions = Omit<GateOptions, 'tools' | 'sources' | 'audit'> & {
  readonly script?: readonly ModelResponse['output'][]
  readonly guard?: Partial<GuardOptions<string, Session>>
}

/** An agent with the three guarded tools, a scripted model, and a runner that continues after hidden tools. */
export function createScene({ script = [], guard: options, ...gateOptions }: SceneOptions = {}): Scene {
  const witness = createWitness()
  const audit = createTestAudit()
  const { search, delete_all, alpha } = createTools(witness)
  const tools = fromOpenAIAgents([search, delete_all, alpha])
  const gate = createGate({ tools, policy: ADMINS_DELETE, ...gateOptions, audit })
  const guarded = guard(gate, { caller: callerOf, ...options })
  const model = new ScriptedModel(script)
  const agent = new Agent<Session>({ name: 'Assistant', instructions: 'Help.', model, tools: guarded.tools })
  return { witness, audit, gate, guarded, model, agent, runner: runnerOf(guarded) }
}

export function callerOf(runContext: RunContext<Session>): Caller {
  return runContext.context.caller
}

export function runnerOf(guarded?: Pick<Guard, 'runConfig'>): Runner {
  return new Runner({ tracingDisabled: true, ...guarded?.runConfig })
}

/** Returns the names of the sent tools, by request. */
export function sentTools(model: ScriptedModel): readonly (readonly string[])[] {
  return model.calls.map(({ request }) => request.tools.map(nameOf))
}

function nameOf(sent: SerializedTool): string {
  return sent.name
}

/** Returns the results that the model's last request contains, in call order. */
export function toldTexts(model: ScriptedModel): readonly string[] {
  const { input } = model.lastCall?.request ?? { input: [] }
  return typeof input === 'string' ? [] : input.flatMap(textOf)
}

function textOf(item: AgentInputItem): readonly string[] {
  if (item.type !== 'function_call_result') return []
  const { output } = item
  if (typeof output === 'string') return [output]
  return (Array.isArray(output) ? output : [output]).flatMap((part) => ('text' in part ? [part.text] : []))
}
