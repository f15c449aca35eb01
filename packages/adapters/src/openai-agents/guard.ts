import type { MCPToolFilterCallable, RunConfig, ToolErrorFormatter } from '@openai/agents'
import { type CallOutcome, type Gate, UnknownToolError } from '@toolgate/core'
import { nearestNames } from '@toolgate/values'
import { toToolId } from '@toolgate/core/tools'
import { checkGuard } from '../shared/guard-options.ts'
import { createRunApprovals, type RunApprovals } from './approvals.ts'
import { guardHandoff, guardTool } from './guarded-tools.ts'
import { isHandoff, namesOf, nativeOf } from './import-tools.ts'
import { type GuardOptions, SHAPE } from './options.ts'
import { createRuns, type Runs } from './runs.ts'
import type { AnyHandoff, AnyTool } from './sdk.ts'

/** The tools of a gate for agents, and the options of their runs. */
export interface Guard<Context = unknown> extends RunApprovals<Context> {
  /** One list for all runs: each tool checks for its run whether it may be seen and called. */
  readonly tools: AnyTool[]
  readonly handoffs: AnyHandoff[]
  /**
   * For `new Runner(runConfig)`, as options of `run`, and for `asTool({ runConfig })` of a sub-agent: the run continues after
   * a call of a hidden tool, and the model gets the gate's text. Nothing that is enforced depends on it.
   */
  readonly runConfig: GuardedRunConfig
  /** For `toolFilter` of an MCP server: shows the tools that the gate knows as `server:tool`. It can only hide. */
  readonly toolFilter: MCPToolFilterCallable
}

/**
 * Returns the tools of a gate for any number of agents and overlapping runs. Whatever other options an agent, a runner
 * or a run has, a call reaches a tool through the gate only.
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

/** Without this check, a misspelt name would leave an agent without tools at its first run, silently. */
function checkNames({ catalog }: Pick<Gate, 'catalog'>, names: readonly string[] | undefined): void {
  const unknown = names?.find((name) => !catalog.hasSeen(name))
  if (unknown !== undefined) throw new UnknownToolError(unknown, nearestNames(unknown, catalog.snapshot().ids, 3))
}

/** The options with which a run continues after a refusal. They do not weaken what the gate enforces. */
export type GuardedRunConfig = Required<
  Pick<RunConfig, 'toolNotFoundBehavior' | 'toolErrorFormatter' | 'toolExecution'>
>

/** Returns them, for `new Runner(…)` and as options of `run`. */
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

/** Whether the gate would have let the model have the tool. Then only the SDK knows what is wrong with the call. */
function isSeen(outcome: CallOutcome): boolean {
  return outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'input_invalid'
}
