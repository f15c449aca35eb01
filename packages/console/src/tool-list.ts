import { isHeldBack, stateOfGroup } from './states.ts'
import type { AppRow, GroupRow, OutcomeWord, ServerRow, ToolRow, ToolsBody } from './wire.ts'

export const OUTCOMES: readonly OutcomeWord[] = ['allow', 'ask', 'wait', 'deny']

export interface ToolListFilter {
  /** Words that must all occur in the id, title, description, tags, reasons or groups. */
  readonly words: string
  /** The outcome to show. Empty: all. */
  readonly outcome: string
  /** Shows only this app's tools. Absent: all apps. */
  readonly app?: AppRow | undefined
}

/** A group with its tools, or a server with its tools that are in no group. */
export interface ToolSection {
  readonly key: string
  readonly name: string
  readonly group?: GroupRow
  readonly server?: ServerRow
  /** All tools, before the filter. */
  readonly tools: readonly ToolRow[]
  readonly shown: readonly ToolRow[]
}

/** One displayed line of the list. */
export type ListItem =
  | { readonly kind: 'section'; readonly key: string; readonly section: ToolSection }
  | {
      readonly kind: 'tool'
      readonly key: string
      readonly tool: ToolRow
      /** The group of the section. Its head shows what applies to all its tools. */
      readonly group: string | undefined
      readonly isLast: boolean
    }

/** Returns how many tools have each outcome. */
export function countOutcomes(tools: readonly ToolRow[]): Readonly<Record<OutcomeWord, number>> {
  const counts = { allow: 0, ask: 0, wait: 0, deny: 0 }
  for (const { outcome } of tools) counts[outcome]++
  return counts
}

export function filterTools(tools: readonly ToolRow[], filter: ToolListFilter, groupWords = ''): readonly ToolRow[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean)
  return tools.filter((tool) => {
    if (filter.outcome !== '' && tool.outcome !== filter.outcome) return false
    if (words.length === 0) return true
    const text = searchable(tool)
    return words.every((word) => text.includes(word) || groupWords.includes(word))
  })
}

/**
 * Returns the tools by group, then the tools in no group by server. Items of other kinds are in no group. Groups that
 * are held back come first. A tool in several groups appears in each. Without a filter, empty groups and servers have a
 * section too.
 */
export function toSections(
  { kind, tools, groups, servers }: Pick<ToolsBody, 'kind' | 'tools' | 'groups' | 'servers'>,
  filter: ToolListFilter,
): readonly ToolSection[] {
  // Groups and apps contain only tools. For items of other kinds, the API decides within the app.
  const isTools = kind === 'tool'
  const offered = isTools && filter.app ? new Set(filter.app.tools) : undefined
  const own = offered ? tools.filter(({ id }) => offered.has(id)) : tools
  const inGroups = isTools ? groups : []
  const known = filter.app ? inGroups.filter(({ name }) => filter.app?.groups.includes(name)) : inGroups
  const byId = new Map(own.map((tool) => [tool.id, tool]))
  const grouped = new Set(known.flatMap((group) => group.tools))
  const sections = [
    ...known
      .toSorted((a, b) => Number(isHeldBack(stateOfGroup(b))) - Number(isHeldBack(stateOfGroup(a))))
      .map((group) => {
        const members = group.tools.map((id) => byId.get(id)).filter((tool) => tool !== undefined)
        const words = `${group.name}\n${group.title ?? ''}\ngroup:${group.name}`.toLowerCase()
        return {
          key: `group ${group.name}`,
          name: group.name,
          group,
          tools: members,
          shown: filterTools(members, filter, words),
        }
      }),
    ...byServer(
      own.filter(({ id }) => !grouped.has(id)),
      servers,
      filter,
    ),
  ]
  return sections.filter(({ shown }) => shown.length > 0 || !isFiltering(filter))
}

/** Returns the lines of the list: each section, followed by its tools unless it is closed. */
export function toItems(sections: readonly ToolSection[], closed: ReadonlySet<string>): readonly ListItem[] {
  return sections.flatMap((section): ListItem[] => [
    { kind: 'section', key: section.key, section },
    ...(closed.has(section.key)
      ? []
      : section.shown.map((tool, i) => ({
          kind: 'tool' as const,
          key: `${section.key} ${tool.id}`,
          tool,
          group: section.group?.name,
          isLast: i === section.shown.length - 1,
        }))),
  ])
}

export function isFiltering({ words, outcome, app }: ToolListFilter): boolean {
  return words.trim() !== '' || outcome !== '' || app !== undefined
}

/** Returns the server in an id of any kind, or an empty text. */
export function toNamespace(id: string): string {
  const rest = withoutKind(id)
  return rest.includes(':') ? rest.slice(0, rest.indexOf(':')) : ''
}

/** Returns the rest of an id: the name of a tool or a prompt, a URI, or a URI template. */
export function toName(id: string): string {
  const rest = withoutKind(id)
  return rest.slice(rest.indexOf(':') + 1)
}

function withoutKind(id: string): string {
  return id.replace(/^(?:resource|prompt):/, '')
}

function byServer(
  tools: readonly ToolRow[],
  servers: readonly ServerRow[],
  filter: ToolListFilter,
): readonly ToolSection[] {
  const rows = new Map<string, ToolRow[]>(servers.map(({ name }) => [name, []]))
  for (const tool of tools) {
    const name = toNamespace(tool.id)
    const section = rows.get(name)
    if (section) section.push(tool)
    else rows.set(name, [tool])
  }
  return [...rows]
    .map(([name, own]) => {
      const server = servers.find((one) => one.name === name)
      return { key: `server ${name}`, name, ...(server ? { server } : {}), tools: own, shown: filterTools(own, filter) }
    })
    .toSorted((a, b) => Number(isDown(b.server)) - Number(isDown(a.server)))
}

function isDown(server: ServerRow | undefined): boolean {
  return server !== undefined && server.status !== 'ready'
}

/** The searchable text of each row, cached between keystrokes. */
const texts = new WeakMap<ToolRow, string>()

function searchable(tool: ToolRow): string {
  const known = texts.get(tool)
  if (known !== undefined) return known
  const reasons = tool.reasons.flatMap(({ code, text, message, policy }) => [code, text, message ?? '', policy ?? ''])
  const text = [tool.id, tool.wireName, tool.title ?? '', tool.description, ...tool.tags, ...reasons]
    .join('\n')
    .toLowerCase()
  texts.set(tool, text)
  return text
}
