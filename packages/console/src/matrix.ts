import type { GroupRow, OutcomeWord, ToolRow, ToolsBody } from './wire.ts'
import { toNamespace } from './tool-list.ts'

/** What the matrix shows of one caller. */
export interface CallerColumn {
  readonly user: string
  readonly tools: ReadonlyMap<string, ToolDecision>
}

export interface ToolDecision {
  readonly outcome: OutcomeWord
  readonly visible: boolean
  /** The deciding reason, for people. */
  readonly why: string
}

/** A row of the matrix: a group, or the tools of a server that are in no group. */
export interface MatrixRow {
  readonly key: string
  readonly name: string
  readonly title: string | undefined
  readonly group: GroupRow | undefined
  /** Tool ids. */
  readonly tools: readonly string[]
}

export interface MatrixCell {
  readonly visible: number
  readonly total: number
  readonly asks: number
  /** The most common reason of the hidden tools. */
  readonly why: string
}

export function toColumn(user: string, tools: readonly ToolRow[]): CallerColumn {
  return {
    user,
    tools: new Map(
      tools.map(({ id, outcome, visible, reasons }) => [id, { outcome, visible, why: reasons[0]?.text ?? '' }]),
    ),
  }
}

/** Returns the rows: the groups, and the servers with tools in no group. */
export function toRows({ tools, groups }: Pick<ToolsBody, 'tools' | 'groups'>): readonly MatrixRow[] {
  const grouped = new Set(groups.flatMap((group) => group.tools))
  const rest = Map.groupBy(
    tools.map(({ id }) => id).filter((id) => !grouped.has(id)),
    toNamespace,
  )
  return [
    ...groups.map((group) => ({
      key: `group ${group.name}`,
      name: group.name,
      title: group.title,
      group,
      tools: group.tools,
    })),
    ...[...rest].map(([name, ids]) => ({
      key: `server ${name}`,
      name,
      title: undefined,
      group: undefined,
      tools: ids,
    })),
  ]
}

/** Returns what a caller sees of some tools. */
export function toCell({ tools }: CallerColumn, ids: readonly string[]): MatrixCell {
  const decisions = ids.map((id) => tools.get(id)).filter((decision) => decision !== undefined)
  const seen = decisions.filter(({ visible }) => visible)
  return {
    visible: seen.length,
    total: ids.length,
    asks: seen.filter(({ outcome }) => outcome === 'ask').length,
    why: mostCommon(decisions.filter(({ visible }) => !visible).map(({ why }) => why)),
  }
}

function mostCommon(texts: readonly string[]): string {
  const counts = Map.groupBy(texts, (text) => text)
  let best = ''
  let most = 0
  for (const [text, { length }] of counts) if (length > most) [best, most] = [text, length]
  return best
}
