import type { MCPToolFilterCallable, RunConfig, ToolErrorFormatter } from '@openai/agents'
import { type CallOutcome, type Gate, UnknownToolError } from '@toolgate/core'
import { nearestNames, toToolId } from '@toolgate/core/internal'
import { checkGuard } from '../shared/guard-options.ts'
import { createRunApprovals, type RunApprovals } from './approvals.ts'
import { guardHandoff, guardTool } from './guarded-tools.ts'
import { isHandoff, namesOf, nativeOf } from './import-tools.ts'
import { type GuardOptions, SHAPE } from './options.ts'
import { createRuns, type Runs } from './runs.ts'
import type { AnyHandoff, AnyTool } from './sdk.ts'

/** The tools of a gate for agents, and what a run of them needs. */
export interface Guard<Context = unknown> extends RunApprovals<Context> {
  /** One object for all runs: each asks for itself what it may see and call. */
  readonly tools: AnyTool[]
  readonly handoffs: AnyHandoff[]
  /**
   * For `new Runner(runConfig)`, as options of `run`, and for `asTool({ runConfig })` of a sub-agent: the run goes on
   * after the call of a hidden tool, and the model is told what the gate says. Nothing that is enforced depends on it.
   */
  readonly runConfig: GuardedRunConfig
  /** For `toolFilter` of an MCP server: shows the tools that the gate knows as `server:tool`, and only hides. */
  readonly toolFilter: MCPToolFilterCallable
}

/**
 * Gives the tools of a gate for any number of agents and overlapping runs. Whatever an agent, a runner or a run is told
 * besides, a call reaches a tool through the gate only.
 *
 * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen
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

/** A misspelt name would leave an agent without tools at its first run, and nobody would be told. */
function checkNames({ catalog }: Pick<Gate, 'catalog'>, names: readonly string[] | undefined): void {
  const unknown = names?.find((name) => !catalog.hasSeen(name))
  if (unknown !== undefined) throw new UnknownToolError(unknown, nearestNames(unknown, catalog.snapshot().ids, 3))
}

/** What a run needs so that the model is told of refusals and goes on. It takes nothing from what the gate enforces. */
export type GuardedRunConfig = Required<
  Pick<RunConfig, 'toolNotFoundBehavior' | 'toolErrorFormatter' | 'toolExecution'>
>

/** Gives it, for `new Runner(…)` and as options of `run`. */
function createRunConfig(runs: Runs, ownFormatter: ToolErrorFormatter | undefined): GuardedRunConfig {
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

/** Whether the gate would have let the model have the tool: then only the SDK can say what is wrong with the call. */
function isSeen(outcome: CallOutcome): boolean {
  return outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'input_invalid'
}
