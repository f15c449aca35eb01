import type { GroupRow, OutcomeWord, ToolRow, ToolsBody } from './wire.ts'
import { toNamespace } from './tool-list.ts'

/** What one caller may, cut down to what the matrix shows. */
export interface CallerColumn {
  readonly user: string
  readonly tools: ReadonlyMap<string, ToolStand>
}

export interface ToolStand {
  readonly outcome: OutcomeWord
  readonly visible: boolean
  /** What decided, for people. */
  readonly why: string
}

/** A row of the matrix: a group, or what of a server is in no group. */
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
  /** The reason that most of the hidden ones have. */
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

/** Gives the rows: the groups, and the servers for what is in none. */
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

/** Gives what a caller sees of some tools. */
export function toCell({ tools }: CallerColumn, ids: readonly string[]): MatrixCell {
  const stands = ids.map((id) => tools.get(id)).filter((stand) => stand !== undefined)
  const seen = stands.filter(({ visible }) => visible)
  return {
    visible: seen.length,
    total: ids.length,
    asks: seen.filter(({ outcome }) => outcome === 'ask').length,
    why: mostCommon(stands.filter(({ visible }) => !visible).map(({ why }) => why)),
  }
}

function mostCommon(texts: readonly string[]): string {
  const counts = Map.groupBy(texts, (text) => text)
  let best = ''
  let most = 0
  for (const [text, { length }] of counts) if (length > most) [best, most] = [text, length]
  return best
}
