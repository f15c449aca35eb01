import { type Caller, ConfigError, defineTool, type Gate, type Tool, type View } from '@toolgate/core'
import type { Group, parseGroups } from '@toolgate/core/groups'
import { errorResult, markOwnTool, type McpResult, REQUEST_TEXTS } from '@toolgate/core/internal'
import { callingOf, type MetaAnswer, metaTools } from '@toolgate/core/search'
import { matchesSelector, parseSelector } from '@toolgate/core/toolset'
import type { SearchConfig } from '../config/config.ts'
import { toAnswer, toResult } from './call.ts'
import { isRequested, type LockedGroup } from './locked-groups.ts'

export type MetaToolName = 'search_tools' | 'get_tool_details' | 'call_tool' | 'request_tools'

export interface MetaToolDeps {
  readonly locked: ReadonlyMap<string, Group>
  /** What selectors may name. */
  readonly names: ReturnType<typeof parseGroups>['selectors']
  readonly search: SearchConfig
  /** Asked when a tool is called: the gate has these tools in it. */
  readonly gate: () => Pick<Gate, 'view' | 'locks' | 'membersOf'>
  /** The locked groups of which a caller may use something. */
  readonly lockedFor: (view: View) => readonly LockedGroup[]
  /** A session has opened groups. */
  readonly onUnlocked: (caller: Caller) => void
}

const made = new WeakMap<Tool, MetaToolName>()

/** Gives which of the gateway's own tools a tool is. */
export function isMetaTool(tool: Tool): MetaToolName | undefined {
  return made.get(tool)
}

/**
 * Gives the gateway's own tools, with which models find, call and open others: none where nothing is locked and
 * nobody wants them. Their ids have no namespace, and those of servers have one, so they cannot clash.
 *
 * @throws {ConfigError} for a locked group that names these tools too, which then could not open it
 */
export function createMetaTools(deps: MetaToolDeps): readonly Tool[] {
  const { locked, search } = deps
  const isWanted = search.offer === 'always' || search.above !== undefined || locked.size > 0
  const finders =
    search.offer === 'never' || !isWanted
      ? []
      : metaTools({ onFound: open, own: (tool) => made.has(tool), toOutput: toMcpOutput })
  const tools = [...finders, ...([...locked.values()].some(isByRequest) ? [requestTool(deps)] : [])]
  for (const tool of tools) made.set(markOwnTool(tool), tool.id as MetaToolName)
  checkLocked(deps, tools)
  return tools

  function open(caller: Caller, ids: readonly string[]): void {
    if (deps.gate().locks.found(caller, ids).length > 0) deps.onUnlocked(caller)
  }
}

/** A call's result passes as it came, so that it makes no difference to a client how it called. */
function toMcpOutput(answer: MetaAnswer): McpResult {
  switch (answer.kind) {
    case 'value':
      return { content: [{ type: 'text', text: JSON.stringify(answer.value) }], structuredContent: answer.value }
    case 'refusal':
      return errorResult(answer.text)
    case 'outcome':
      return toResult(toAnswer(answer.outcome))
  }
}

function isByRequest({ unlock }: Group): boolean {
  return unlock === 'request'
}

/** Opens a group by a call of this tool and by nothing else. A group that its caller may use nothing of is none. */
function requestTool({ gate, lockedFor, onUnlocked }: MetaToolDeps): Tool {
  return defineTool({
    name: 'request_tools',
    title: REQUEST_TEXTS.title,
    description: REQUEST_TEXTS.description,
    inputSchema: {
      type: 'object',
      properties: { group: { type: 'string', minLength: 1, maxLength: 64, description: REQUEST_TEXTS.group } },
      required: ['group'],
      additionalProperties: false,
    },
    tags: ['meta'],
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    async execute({ group }: { readonly group: string }, call): Promise<McpResult> {
      const { caller, app, toName } = callingOf(call)
      if (caller.session === undefined) return errorResult(REQUEST_TEXTS.no_session)
      const before = await gate().view(caller, { app })
      const known = lockedFor(before).filter(isRequested)
      if (!known.some(({ name }) => name === group))
        return errorResult(
          REQUEST_TEXTS.unknown(
            group,
            known.map(({ name }) => name),
          ),
        )
      if (gate().locks.request(caller, group).length > 0) onUnlocked(caller)
      return opened(group, await gate().view(caller, { app }), gate().membersOf(group), toName)
    },
  })
}

function opened(group: string, view: View, members: readonly string[], toName: (id: string) => string): McpResult {
  const tools = members.filter((id) => view.has(id)).map(toName)
  return { content: [{ type: 'text', text: REQUEST_TEXTS.opened(group, tools) }], structuredContent: { group, tools } }
}

function checkLocked({ locked, names }: Pick<MetaToolDeps, 'locked' | 'names'>, tools: readonly Tool[]): void {
  for (const [name, { tools: selectors }] of locked)
    for (const [i, text] of selectors.entries()) {
      const own = tools.find((tool) => matchesSelector(parseSelector(text, names), tool, 'possible'))
      if (own)
        throw new ConfigError(
          `groups.${name}.tools[${i}]`,
          `"${text}" names ${own.id} too, which is needed to open the group; name the servers, as in "files:*"`,
        )
    }
}
