import { ConfigError } from '@toolgate/core'
import { didYouMean } from '@toolgate/values'
import { partsOfName } from './harness.ts'

/**
 * Checks the name of a tool that Claude Code runs. A name that is no name would be imported and never match a call.
 *
 * @throws {ConfigError} for a permission rule, a wildcard, a server, a gate's id, and another spelling of a built-in
 */
export function checkToolName(name: string): void {
  const problem = problemOf(name)
  if (problem !== undefined) throw new ConfigError(`tool ${JSON.stringify(name)}`, problem, { code: 'tool_invalid' })
  if (partsOfName(name) !== undefined || BUILT_INS.has(name) || warned.has(name) || warned.size >= MAX_WARNED) return
  warned.add(name)
  const warning = `fromClaudeAgent: "${name}" is no built-in tool of Claude Code that Toolgate knows${didYouMean(name, BUILT_INS)}`
  process.emitWarning(warning, { type: 'ToolgateWarning', code: 'tool_unknown' })
}

/** @throws {ConfigError} for another spelling of a built-in in an option of the SDK, which would have no effect */
export function checkOptionNames(option: string, names: readonly string[] = []): void {
  for (const [i, given] of names.entries()) {
    const [name = ''] = given.split('(', 1)
    const builtIn = otherSpellingOf(name)
    if (builtIn !== undefined)
      throw new ConfigError(`${option}[${i}]`, `"${given}" names no tool: did you mean "${builtIn}"?`)
  }
}

function problemOf(name: string): string | undefined {
  if (name.startsWith('mcp__') && (name.includes('*') || partsOfName(name) === undefined))
    return `names no tool: ${MCP_TOOLS}`
  const [, ruled] = /^([\w-]+)\(.*\)$/s.exec(name) ?? []
  if (ruled !== undefined)
    return `is a permission rule, and patterns belong in the policy: import "${otherSpellingOf(ruled) ?? ruled}", and write { match: "${otherSpellingOf(ruled) ?? ruled}", input: "…" }`
  const builtIn = otherSpellingOf(name)
  if (builtIn !== undefined) return `names no tool: did you mean "${builtIn}"?`
  const [, server, tool] = /^([^:*\s]+):([^:*\s]+)$/.exec(name) ?? []
  if (tool !== undefined) return `is a gate's id: import it as "mcp__${server}__${tool}"`
  return /^[\w-]+$/.test(name) ? undefined : 'names no tool: write one name for each tool, without patterns'
}

const MCP_TOOLS =
  'name each tool of an MCP server, such as "mcp__github__create_issue". To take all of a server’s tools as it lists them, ' +
  'connect the server to the gate: createGate({ sources: [await fromMcpClient(client, { namespace: "github" })] })'

/** Returns the built-in that a name spells in another way, such as `Bash` for `bash` and `WebFetch` for `web_fetch`. */
function otherSpellingOf(name: string): string | undefined {
  return BUILT_INS.has(name) ? undefined : spellings.get(toSpelling(name))
}

function toSpelling(name: string): string {
  return name.replaceAll(/[\s_-]/g, '').toLowerCase()
}

/** The built-ins of Claude Code, as the SDK 0.3.330 lists them, and those of earlier releases. */
const BUILT_INS: ReadonlySet<string> = new Set(
  `
    Agent Artifact AskUserQuestion Bash ClaudeDesign CronCreate CronDelete CronList Edit EndConversation
    EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob Grep ListAgents ListMcpResourcesTool LSP
    Monitor NotebookEdit OfferChromeSetup PowerShell Projects propose_skills PushNotification Read
    ReadMcpResourceDirTool ReadMcpResourceTool ReadNotifications RemoteTrigger ReportFindings ScheduleWakeup
    SendFeedback SendMessage SendUserFile SendUserMessage SetGoal ShareOnboardingGuide
    ShowOnboardingRolePicker Skill SubagentHandback TaskCreate TaskGet TaskList TaskStop TaskUpdate
    TodoWrite ToolSearch WaitForMcpServers WebFetch WebSearch Workflow Write BashOutput KillBash KillShell
    LS MultiEdit NotebookRead SlashCommand Task TaskOutput TodoRead
  `
    .trim()
    .split(/\s+/),
)

const spellings: ReadonlyMap<string, string> = new Map([...BUILT_INS].map((name) => [toSpelling(name), name]))

const MAX_WARNED = 100
const warned = new Set<string>()
