import type { MCPToolFilterCallable } from '@openai/agents'
import { type Gate, UnknownToolError } from '@toolgate/core'
import { nearestNames, toToolId } from '@toolgate/core/internal'
import { checkGuard } from '../shared/checks.ts'
import { createRunApprovals, type RunApprovals } from './approvals.ts'
import { guardHandoff } from './guarded-handoff.ts'
import { guardTool } from './guarded-tool.ts'
import { namesOf } from './names.ts'
import { isHandoff, nativeOf } from './natives.ts'
import type { AnyHandoff, AnyTool } from './sdk-types.ts'
import { type GuardOptions, SHAPE } from './options.ts'
import { createRunConfig, type GuardedRunConfig } from './run-config.ts'
import { createRuns } from './runs.ts'

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
