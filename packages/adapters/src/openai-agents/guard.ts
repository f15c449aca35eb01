import type { MCPToolFilterCallable, RunConfig, ToolErrorFormatter } from '@openai/agents'
import { type CallOutcome, type Gate, UnknownToolError } from '@toolgate/core'
import { nearestNames } from '@toolgate/values'
import { toToolId } from '@toolgate/core/tools'
import { checkGuard } from '../shared/guard-options.ts'
import { createRunApprovals, type RunApprovals } from './approvals.ts'
import { guardHandoff, guardTool } from './guarded-tools.ts'
import { isHandoff, namesOf, nativeOf } from './import-tools.ts'
import { type GuardOptions, SHAPE } from './options.ts'
import { createRuns, type AgentRuns } from './runs.ts'
import type { AnyHandoff, AnyTool } from './sdk.ts'

/** The tools of a gate for agents, and the options of their runs. */
export interface Guard<Context = unknown> extends RunApprovals<Context> {
  /** One list of tools for all runs. Each tool checks whether its run may see and call it. */
  readonly tools: AnyTool[]
  readonly handoffs: AnyHandoff[]
  /**
   * Pass it to `new Runner(runConfig)`, to the options of `run`, and to `asTool({ runConfig })` of a sub-agent. The run
   * then continues after a call of a hidden tool, and the model gets the gate's text. The gate enforces the same
   * without it.
   */
  readonly runConfig: GuardedRunConfig
  /**
   * Pass it to an MCP server as `toolFilter`. It shows the tools that the gate knows as `server:tool`, and hides all
   * others.
   */
  readonly toolFilter: MCPToolFilterCallable
}

/**
 * Returns the tools of a gate for any number of agents and overlapping runs. With any other options of an agent, a
 * runner or a run, a call still reaches a tool only through the gate.
 *
 * @throws {UnknownToolError} for an unknown name in `activeTools`
 * @throws {ConfigError} for two tools of one name in the SDK
 * @example
 * const { tools, runConfig } = guard(gate, { caller: (run: RunContext<Session>) => run.context.caller })
 * const agent = new Agent({ name: 'Assistant', instructions, tools })
 * await run(agent, 'Tidy up.', { context: { caller }, ...runConfig })
 */
export function guard<Name extends string, Native, Context = unknown>(
  gate: Gate<Name, Native>,
  options: GuardOptions<NoInfer<Name>, Context>,
): Guard<Context> {
  checkGuard(gate, options, SHAPE)
  const { catalog } = gate
  const { tools } = catalog.snapshot()
  checkNames(gate, options.activeTools)
  const names = namesOf(tools)
  const runs = createRuns(gate, names, options)
  const handoffs = tools.flatMap((tool) => {
    const native = nativeOf(tool)
    return isHandoff(native) ? [guardHandoff(tool, native, runs)] : []
  })
  const functions = tools.filter((tool) => tool.execute && !isHandoff(nativeOf(tool)))
  return {
    tools: [...functions.map((tool) => guardTool(tool, runs)), ...(options.ungoverned ?? [])],
    handoffs,
    runConfig: createRunConfig(runs, options.toolErrorFormatter),
    async toolFilter({ runContext, agent, serverName }, { name }) {
      return runs.sees(runContext, agent, toToolId(serverName, name))
    },
    ...createRunApprovals<Context>(gate, runs, names),
  }
}

/**
 * Checks the names in `activeTools`. Without this check, a misspelt name would silently leave an agent without tools.
 */
function checkNames({ catalog }: Pick<Gate, 'catalog'>, names: readonly string[] | undefined): void {
  const unknown = names?.find((name) => !catalog.hasSeen(name))
  if (unknown !== undefined) throw new UnknownToolError(unknown, nearestNames(unknown, catalog.snapshot().ids, 3))
}

/** The options that let a run continue after a refusal. They do not weaken the gate. */
export type GuardedRunConfig = Required<
  Pick<RunConfig, 'toolNotFoundBehavior' | 'toolErrorFormatter' | 'toolExecution'>
>

/** Returns these options, for `new Runner(…)` and for `run`. */
function createRunConfig(runs: AgentRuns, ownFormatter: ToolErrorFormatter | undefined): GuardedRunConfig {
  return {
    toolNotFoundBehavior: 'return_error_to_model',
    toolExecution: { preApprovalInputGuardrails: true },
    async toolErrorFormatter(args) {
      const { kind, toolType, toolName: name, callId, runContext, defaultMessage } = args
      if (toolType !== 'function') return ownFormatter?.(args)
      const run = await runs.of(runContext)
      const malformed = kind === 'tool_not_found' ? defaultMessage : 'was rejected before the call'
      const outcome = await run.call({ name, input: undefined, malformed, callId })
      if (kind === 'tool_not_found' && !isSeen(outcome)) return outcome.text
      return ownFormatter?.(args)
    },
  }
}

/** Whether the gate would have shown the tool to the model. If so, only the SDK knows why the call is invalid. */
function isSeen(outcome: CallOutcome): boolean {
  return outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'input_invalid'
}
