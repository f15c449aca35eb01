import { type Caller, ConfigError, defineTool, type Gate, type Tool, type View } from '@toolgate/core'
import type { Group, parseGroups } from '@toolgate/core/groups'
import { markOwnTool } from '@toolgate/core/tools'
import { REQUEST_INPUT, REQUEST_TEXTS, type RequestInput } from '@toolgate/core/internal'
import { toJsonText } from '@toolgate/values/json'
import { callingOf, type MetaAnswer, metaTools } from '@toolgate/core/search'
import { matchesSelector, parseSelector } from '@toolgate/core/toolset'
import { type McpResult, errorResult, toResult, wrapOutcome } from './results.ts'

/** Selects the callers who are offered the search tools. */
export interface SearchOffer {
  /** `auto`: callers with a locked group, or with a list longer than `above`. */
  readonly offer: 'auto' | 'always' | 'never'
  /** The number of tools above which `auto` offers search. */
  readonly above?: number | undefined
}

type LockedGate = Pick<Gate, 'locks' | 'membersOf'>

export interface MetaToolDeps {
  readonly groups: Pick<ReturnType<typeof parseGroups>, 'locked' | 'selectors'>
  readonly search: SearchOffer
  /** A function, because the gate is created with these tools. It is read when a tool is called. */
  readonly gate: () => LockedGate & Pick<Gate, 'view'>
  /** Called when a session has opened groups. */
  readonly onUnlocked: (caller: Caller) => void
}

const made = new WeakSet<Tool>()

/** Returns whether a tool is one of {@link createMetaTools}. */
export function isMetaTool(tool: Tool): boolean {
  return made.has(tool)
}

/** Returns whether any caller can be offered the search tools. */
export function isSearchWanted({ offer, above }: SearchOffer, locked: number): boolean {
  return offer === 'always' || above !== undefined || locked > 0
}

/**
 * Returns the tools with which a model finds, calls and opens other tools. The list is empty if no group is locked and
 * search is not offered. Their ids have no namespace, so they cannot clash with the tools of servers.
 *
 * @throws {ConfigError} for a locked group with one of these tools as a member, since nothing could open it
 */
export function createMetaTools(deps: MetaToolDeps): readonly Tool[] {
  const { groups, search, gate, onUnlocked } = deps
  const onFound = (caller: Caller, ids: readonly string[]) => {
    if (gate().locks.found(caller, ids).length > 0) onUnlocked(caller)
  }
  const finders =
    search.offer !== 'never' && isSearchWanted(search, groups.locked.size)
      ? metaTools({ onFound, own: isMetaTool, toOutput: toToolResult })
      : []
  const isOpenedByRequest = [...groups.locked.values()].some(({ unlock }) => unlock === 'request')
  const tools = [...finders, ...(isOpenedByRequest ? [requestTool(deps)] : [])]
  for (const tool of tools) made.add(markOwnTool(tool))
  checkLocked(deps, tools)
  return tools
}

/** The result of `call_tool` is the result of the called tool, so a client sees no difference from a direct call. */
function toToolResult(answer: MetaAnswer): McpResult {
  return answer.kind === 'outcome' ? wrapOutcome(answer.outcome) : toOwnResult(answer)
}

/**
 * Converts the result of a tool of `metaTools`, so that a call through `call_tool` is answered like a direct call:
 * `metaTools({ toOutput: toMcpOutput })`.
 */
export async function toMcpOutput(answer: MetaAnswer): Promise<McpResult> {
  return answer.kind === 'outcome' ? toResult(answer.outcome) : toOwnResult(answer)
}

function toOwnResult(answer: Exclude<MetaAnswer, { kind: 'outcome' }>): McpResult {
  if (answer.kind === 'refusal') return errorResult(answer.text)
  return { content: [{ type: 'text', text: toJsonText(answer.value) }], structuredContent: answer.value }
}

/** Opens a group for the session that calls it. A caller who may use no tool of a group does not learn that it exists. */
function requestTool({ gate, onUnlocked }: MetaToolDeps): Tool {
  return defineTool({
    name: 'request_tools',
    title: REQUEST_TEXTS.title,
    description: REQUEST_TEXTS.description,
    inputSchema: {
      type: 'object',
      properties: REQUEST_INPUT,
      required: ['group'],
      additionalProperties: false,
    },
    tags: ['meta'],
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    async execute({ group = '', tools: names }: RequestInput, call): Promise<McpResult> {
      const { caller, app, toId, toName } = callingOf(call)
      if (caller.session === undefined) return errorResult(REQUEST_TEXTS.no_session)
      const current = gate()
      const locked = lockedGroupsFor(current, await current.view(caller, { app }))
      const known = locked.filter(isByRequest).map(({ name }) => name)
      if (!known.includes(group)) return errorResult(REQUEST_TEXTS.unknown(group, known))
      const wanted = names?.flatMap((name) => toId(name) ?? [])
      if (current.locks.request(caller, group, wanted).length > 0) onUnlocked(caller)
      const view = await current.view(caller, { app })
      const ids = current.membersOf(group).filter((id) => view.has(id) && (!wanted || wanted.includes(id)))
      const tools = ids.map(toName)
      if (wanted && tools.length === 0) return errorResult(REQUEST_TEXTS.openedSome(group, tools))
      return {
        content: [{ type: 'text', text: REQUEST_TEXTS[wanted ? 'openedSome' : 'opened'](group, tools) }],
        structuredContent: { group, tools },
      }
    },
  })
}

function checkLocked({ groups: { locked, selectors } }: Pick<MetaToolDeps, 'groups'>, tools: readonly Tool[]): void {
  for (const [name, group] of locked)
    for (const [i, text] of group.tools.entries()) {
      const own = tools.find((tool) => matchesSelector(parseSelector(text, selectors), tool, 'possible'))
      if (own)
        throw new ConfigError(
          `groups.${name}.tools[${i}]`,
          `"${text}" names ${own.id} too, which is needed to open the group; name the servers, as in "files:*"`,
        )
    }
}

/** A locked group with a tool that the caller may use. */
interface LockedGroup {
  readonly name: string
  readonly group: Group
  /** Whether the group is still closed for this session. */
  readonly isClosed: boolean
}

/** Returns the locked groups with a tool that this caller may use, open or not, sorted by name. */
export function lockedGroupsFor(gate: LockedGate, view: View): readonly LockedGroup[] {
  const found: LockedGroup[] = []
  for (const [name, group] of [...gate.locks.groups].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const members = gate.membersOf(name)
    const isOpen = members.some((id) => view.has(id))
    if (isOpen || members.some((id) => isOnlyLocked(view, id))) found.push({ name, group, isClosed: !isOpen })
  }
  return found
}

/** Returns whether only locks hide a tool. The caller must not learn about other hidden tools. */
function isOnlyLocked(view: View, id: string): boolean {
  if (view.caller.session === undefined) return false
  const { outcome, reasons } = view.explain(id)
  return outcome === 'wait' && reasons.every((reason) => reason.code === 'group_locked' || reason.outcome === 'ask')
}

export function isByRequest({ group }: LockedGroup): boolean {
  return group.unlock === 'request'
}

/** Returns the description of `request_tools`, with the closed groups and their hints. */
export function toRequestDescription(locked: readonly LockedGroup[]): string {
  const closed = locked.filter((one) => one.isClosed && isByRequest(one))
  if (closed.length === 0) return `${REQUEST_TEXTS.description} All are open.`
  const lines = closed.map(({ name, group }) => `\n- ${name}: ${aboutGroup(name, group)}`)
  return `${REQUEST_TEXTS.description} The groups:${lines.join('')}`
}

/** Returns the description of `search_tools`, with the groups that it finds beyond the caller's list. */
export function toSearchDescription(
  description: string,
  locked: readonly LockedGroup[],
  session: string | undefined,
): string {
  const beyond = locked.filter(
    ({ group, isClosed }) => session === undefined || (isClosed && group.unlock === 'search'),
  )
  if (beyond.length === 0) return description
  const lines = beyond.map(({ name, group }) => `\n- ${aboutGroup(name, group)}`)
  return `${description} It also finds tools that are not in your list:${lines.join('')}`
}

function aboutGroup(name: string, { title = name, hint }: Group): string {
  return hint === undefined ? title : `${title}. ${hint}`
}
