import { type Caller, ConfigError, type Gate, type Tool, type View } from '@toolgate/core'
import { isRequestTool } from '@toolgate/core/tools'
import { didYouMean, type Shape, shapeOf } from '@toolgate/values'
import { QueryCalls } from './claude-agent/calls.ts'
import {
  type CanUseTool,
  type HookMatchers,
  type McpServers,
  partsOfName,
  toServerPrefix,
} from './claude-agent/harness.ts'
import { composeCanUseTool, composeHooks } from './claude-agent/hooks.ts'
import { createNames, harnessNameOf } from './claude-agent/import-tools.ts'
import { createServer } from './claude-agent/server.ts'
import { checkOptionNames } from './claude-agent/tool-names.ts'
import { checkGuardFor, RUN_KEYS, type RunOptions, viewFor } from './shared/guard-options.ts'
import { createOnCall, createWarn } from './shared/runs.ts'
import { createUnawaited, type Unawaited } from './shared/unawaited.ts'

export { type ClaudeAgentToolId, fromClaudeAgent } from './claude-agent/import-tools.ts'
export type {
  CanUseTool,
  HookCallback,
  HookMatcher,
  HookMatchers,
  McpServers,
  SdkTool,
} from './claude-agent/harness.ts'
export type { Overlay, ToolOverlay } from './shared/overlay.ts'
export type { RunOptions } from './shared/guard-options.ts'
export type { GuardedCallEvent } from './shared/runs.ts'

/**
 * The options of the run, and those options of `query()` that the guard also returns: it combines yours with its own.
 * An option written after the spread replaces both.
 */
export interface GuardOptions<Name extends string = string> extends RunOptions<Name> {
  /** The name of the gate's own MCP server: the model sees its tools as `mcp__gate__search`. Default `gate`. */
  readonly serverName?: string | undefined
  /**
   * The handling of a call that waits for a person. `tell`: the model is told, and may call again. `defer`: if the
   * harness runs the call, the query ends with `deferred_tool_use`, and asks the gate again when its session is
   * resumed; other calls are handled as with `tell`. Default `tell`.
   */
  readonly waiting?: 'tell' | 'defer' | undefined
  /** The longest execution by the harness. At its end the query is stopped, because the harness offers no other way. Default: an hour. */
  readonly harnessDeadlineMs?: number | undefined
  /** The built-in tools to offer, out of those that the caller sees. Default: all of them. */
  readonly tools?: readonly string[] | { readonly type: 'preset'; readonly preset: string } | undefined
  readonly disallowedTools?: readonly string[] | undefined
  readonly allowedTools?: readonly string[] | undefined
  readonly mcpServers?: McpServers | undefined
  readonly hooks?: HookMatchers | undefined
  readonly canUseTool?: CanUseTool | undefined
  readonly extraArgs?: Readonly<Record<string, string | null>> | undefined
  readonly abortController?: AbortController | undefined
}

/** Options of `query()`. */
export interface GuardedOptions {
  tools: string[]
  disallowedTools: string[]
  allowedTools: string[]
  mcpServers: McpServers
  hooks: HookMatchers
  canUseTool?: CanUseTool
  extraArgs: Record<string, string | null>
  abortController: AbortController
}

const SHAPE: Shape = shapeOf<GuardOptions>({
  ...RUN_KEYS,
  serverName: true,
  waiting: true,
  harnessDeadlineMs: true,
  tools: true,
  disallowedTools: true,
  allowedTools: true,
  mcpServers: true,
  hooks: true,
  canUseTool: true,
  extraArgs: true,
  abortController: true,
})

const unawaited = createUnawaited('guard(gate, caller)', ['tools', 'hooks', 'canUseTool'])
const DEFAULT_HARNESS_DEADLINE_MS = 3_600_000

/**
 * Returns the options that put one query of the Claude Agent SDK behind a gate. The model sees what the caller may see, and
 * every call is decided, limited and recorded by the gate, including built-ins, other MCP servers and subagents.
 *
 * They are for one query: call `guard` again for the next. Spread them last, and pass your own versions of these options
 * to `guard`, because options written after the spread replace them.
 *
 * @throws {ToolgateError} what `gate.view` throws
 * @throws {ConfigError} for a built-in or an MCP server that the gate does not know
 * @example
 * const gate = createGate({ tools: fromClaudeAgent(['Read', 'Bash']), policy: { deny: ['Bash'] } })
 * for await (const message of query({ prompt, options: { cwd, ...(await guard(gate, caller)) } })) …
 */
export function guard<Name extends string>(
  gate: Gate<Name>,
  caller: Caller,
  options: GuardOptions<Name> = {},
): Unawaited<GuardedOptions, 'tools' | 'hooks' | 'canUseTool'> {
  return unawaited(guardQuery(gate, caller, options))
}

async function guardQuery<Name extends string>(
  gate: Gate<Name>,
  caller: Caller,
  options: GuardOptions<Name>,
): Promise<GuardedOptions> {
  checkGuardFor(gate, caller, options, SHAPE)
  const { runId, canUseTool, userWords, earlierResults } = options
  const { serverName, waiting, harnessDeadlineMs } = checkOptions(options)
  const view = withoutRequests(await viewFor(gate, caller, options))
  const known = gate.catalog.snapshot().tools
  const names = createNames(known, serverName)
  const abortController = options.abortController ?? new AbortController()
  const calls = new QueryCalls({
    view,
    names,
    runId,
    words: { userWords, earlierResults },
    onCall: createOnCall(options.onCall, createWarn(options.onWarning)),
    deadlineMs: harnessDeadlineMs,
    stopQuery: (reason) => abortController.abort(reason),
  })
  const onClose = () => void calls.close(new Error('the query is over'))
  const server = createServer({ view, names, calls, serverName, onClose })
  const own = view.tools.filter((tool) => harnessNameOf(tool) === undefined)
  const composing = { calls, names, waiting }
  return {
    tools: toBuiltIns(view, known, options.tools),
    disallowedTools: [...(options.disallowedTools ?? []), ...hiddenNames(view, known, options.mcpServers)],
    // The harness still calls the user's hooks for these tools.
    allowedTools: [
      ...(options.allowedTools ?? []),
      ...(canUseTool ? [] : own.flatMap(({ id }) => names.toName(id) ?? [])),
    ],
    mcpServers: { ...checkServers(known, options.mcpServers, serverName), [serverName]: server },
    hooks: composeHooks(options.hooks ?? {}, composing),
    ...(canUseTool ? { canUseTool: composeCanUseTool(canUseTool, composing) } : {}),
    // A resumed query runs a deferred call before it loads hooks, unless it is told to wait for them.
    extraArgs: { ...options.extraArgs, 'await-initialize': null },
    abortController,
  }
}

/** The tools of a query are fixed when it begins, so meta-tools that would open more are not offered. */
function withoutRequests(view: View): View {
  const own = view.tools.find(isRequestTool)
  return own ? view.narrow({ policy: { deny: [own.id] } }) : view
}

function checkOptions(options: GuardOptions): GuardSettings {
  const { serverName = 'gate', waiting = 'tell', harnessDeadlineMs = DEFAULT_HARNESS_DEADLINE_MS } = options
  if (!SERVER_NAME.test(serverName)) throw new ConfigError('serverName', 'must be 1 to 40 of A-Z, a-z, 0-9, _ and -')
  if (waiting !== 'tell' && waiting !== 'defer') throw new ConfigError('waiting', 'must be "tell" or "defer"')
  checkOptionNames('allowedTools', options.allowedTools)
  checkOptionNames('disallowedTools', options.disallowedTools)
  if (!(harnessDeadlineMs > 0)) throw new ConfigError('harnessDeadlineMs', 'must be a positive number of milliseconds')
  return { serverName, waiting, harnessDeadlineMs }
}

interface GuardSettings {
  readonly serverName: string
  readonly waiting: 'tell' | 'defer'
  readonly harnessDeadlineMs: number
}

/** The name is short, so that it fits into the provider's limit together with a tool's name. */
const SERVER_NAME = /^[A-Za-z0-9_-]{1,40}$/

/** The built-ins in the model's context. It is an allow-list, so tools unknown to the gate are not in it. */
function toBuiltIns(view: View, known: readonly Tool[], wanted: GuardOptions['tools']): string[] {
  const visible = view.tools.flatMap((tool) => builtInOf(tool) ?? [])
  if (!isList(wanted)) return visible
  const builtIns = new Set(known.flatMap((tool) => builtInOf(tool) ?? []))
  for (const name of wanted)
    if (!builtIns.has(name))
      throw new ConfigError(
        `tools.${name}`,
        `is not in the gate: import it with fromClaudeAgent${didYouMean(name, builtIns)}`,
      )
  return visible.filter((name) => wanted.includes(name))
}

function isList(wanted: GuardOptions['tools']): wanted is readonly string[] {
  return Array.isArray(wanted)
}

function builtInOf(tool: Tool): string | undefined {
  const name = harnessNameOf(tool)
  return name !== undefined && partsOfName(name) === undefined ? name : undefined
}

/** The tools that the harness could run and the model must not see; a whole server if none of its tools is visible. */
function hiddenNames(view: View, known: readonly Tool[], servers: McpServers = {}): string[] {
  const names = known.filter(({ id }) => !view.has(id)).flatMap((tool) => harnessNameOf(tool) ?? [])
  const visible = view.tools.flatMap((tool) => harnessNameOf(tool) ?? [])
  const unseen = Object.keys(servers).filter((server) => !visible.some((name) => isOfServer(name, server)))
  return [...names, ...unseen.map((server) => toServerPrefix(server).slice(0, -2))]
}

function checkServers(known: readonly Tool[], servers: McpServers = {}, serverName: string): McpServers {
  const names = known.flatMap((tool) => harnessNameOf(tool) ?? [])
  for (const server of Object.keys(servers)) {
    if (toServerPrefix(server) === toServerPrefix(serverName))
      throw new ConfigError(`mcpServers.${server}`, "has the name of the gate's own server: give another serverName")
    if (!names.some((name) => isOfServer(name, server)))
      throw new ConfigError(
        `mcpServers.${server}`,
        `the gate knows none of its tools: import them with fromClaudeAgent(['${toServerPrefix(server)}…'])`,
      )
  }
  return servers
}

function isOfServer(name: string, server: string): boolean {
  return name.startsWith(toServerPrefix(server))
}
