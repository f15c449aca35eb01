import type { OutcomeWord, ServerRow, ToolRow } from './wire.ts'

export const OUTCOMES: readonly OutcomeWord[] = ['allow', 'ask', 'wait', 'deny']

export interface ToolFilter {
  /** Words that must all occur in the id, title, description, tags or reasons. */
  readonly words: string
  /** Empty: every outcome. */
  readonly outcome: string
}

/** The tools of one server, or of no server at all. */
export interface ToolSection {
  readonly name: string
  readonly server: ServerRow | undefined
  /** All of them, whatever the filter. */
  readonly tools: readonly ToolRow[]
  readonly shown: readonly ToolRow[]
}

/** Gives how many tools have each outcome. */
export function countOutcomes(tools: readonly ToolRow[]): Readonly<Record<OutcomeWord, number>> {
  const counts = { allow: 0, ask: 0, wait: 0, deny: 0 }
  for (const { outcome } of tools) counts[outcome]++
  return counts
}

export function filterTools(tools: readonly ToolRow[], filter: ToolFilter): readonly ToolRow[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean)
  return tools.filter((tool) => {
    if (filter.outcome !== '' && tool.outcome !== filter.outcome) return false
    if (words.length === 0) return true
    const text = searchable(tool)
    return words.every((word) => text.includes(word))
  })
}

/** Groups tools by the server that offers them. Without a filter, a server without tools has a section too. */
export function toSections(
  tools: readonly ToolRow[],
  servers: readonly ServerRow[],
  filter: ToolFilter,
): readonly ToolSection[] {
  const byServer = new Map<string, ToolRow[]>(servers.map(({ name }) => [name, []]))
  for (const tool of tools) {
    const name = toNamespace(tool.id)
    const section = byServer.get(name)
    if (section) section.push(tool)
    else byServer.set(name, [tool])
  }
  const sections = [...byServer].map(([name, own]) => ({
    name,
    server: servers.find((server) => server.name === name),
    tools: own,
    shown: filterTools(own, filter),
  }))
  return sections.filter(({ shown }) => shown.length > 0 || !isFiltering(filter))
}

export function isFiltering({ words, outcome }: ToolFilter): boolean {
  return words.trim() !== '' || outcome !== ''
}

/** The part of a tool id before the colon; empty where there is none. */
export function toNamespace(id: string): string {
  return id.includes(':') ? id.slice(0, id.indexOf(':')) : ''
}

function searchable(tool: ToolRow): string {
  const reasons = tool.reasons.flatMap(({ code, text, message, policy }) => [code, text, message ?? '', policy ?? ''])
  return [tool.id, tool.wireName, tool.title ?? '', tool.description, ...tool.tags, ...reasons].join('\n').toLowerCase()
}
