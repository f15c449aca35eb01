import type { Answer } from '../../heart/route.ts'
import type { Tool } from '@toolgate/core'
import { nextTurn } from '../../util/next-turn.ts'
import { createNamedCallers, type NamedCallers } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { groups as groupsRoom } from '../groups/start.ts'
import { room as toolsRoom } from '../tools/routes.ts'
import { parseQuery, shortText, wholeNumber } from '../http/request.ts'
import { type RowDecision, type ToolRows, withRefusals } from '../tools/tool-rows.ts'
import type { GroupRow, MatrixBody, MatrixCell, MatrixRow } from '../../model/rows.ts'

export const room: Room = {
  name: 'matrix',
  needs: [groupsRoom, toolsRoom],
  open(heart, rooms) {
    const decisions = rooms.ask(toolsRoom)
    if (!decisions) return undefined
    const callers = createNamedCallers(() => heart.revisions.current.callers, heart.door.people)
    const deps = { gate: heart.gate, callers, decisions, groups: () => rooms.ask(groupsRoom)?.rows() ?? [] }
    return { routes: [{ method: 'GET', path: '/api/matrix', by: 'person', answer: matrixRoute(deps) }] }
  },
}

interface MatrixDeps extends Pick<Heart, 'gate'> {
  readonly callers: NamedCallers
  readonly decisions: ToolRows
  groups(): readonly GroupRow[]
}

/** The maximum number of callers, as each needs the decisions about all tools. */
const MAX_CALLERS = 24
/** The maximum number of tools in an open row. */
const MAX_TOOLS = 1000

/** A row with its tools, as indexes in the catalog. */
type Members = MatrixRow & { readonly members: readonly number[]; readonly ids: readonly string[] }

/**
 * `GET /api/matrix?from=&limit=&open=`: the part of each group that configured callers see, in the order of
 * `/api/callers`. Only tools that all callers share count. `open`: the key of a row whose tools are shown one by one.
 */
function matrixRoute({ gate, callers, decisions, groups: groupRows }: MatrixDeps): Answer {
  return async ({ query, person }) => {
    const {
      from = 0,
      limit = 12,
      open,
    } = parseQuery(query, {
      from: wholeNumber(0, Number.MAX_SAFE_INTEGER),
      limit: wholeNumber(1, MAX_CALLERS),
      open: shortText,
    })
    const mine = [...callers(person).values()]
    const { tools } = gate.catalog.snapshot()
    const rows = toRows(tools, groupRows())
    const opened = rows.find(({ key }) => key === open)
    const members = opened?.members.slice(0, MAX_TOOLS) ?? []
    const columns: MatrixBody['columns'][number][] = []
    for (const { name, for: kind, caller } of mine.slice(from, from + limit)) {
      // Lets other requests run, because cached decisions resolve without a pause.
      await nextTurn()
      const all = await decisions.decide({ caller, person }, () => tools)
      const { rows: decided } = await withRefusals(all, members)
      columns.push({
        user: name,
        ...(caller.tenant === undefined ? {} : { tenant: caller.tenant }),
        roles: caller.roles ?? [],
        for: kind,
        cells: rows.map((row) => toCell(row.members, row.ids.length, decided)),
        ...(opened && { tools: members.map((at) => toDecision(decided[at])) }),
      })
    }
    return {
      total: mine.length,
      from,
      rows: rows.map(({ members: _, ids: __, ...row }) => row),
      columns,
      ...(opened && {
        open: {
          key: opened.key,
          tools: members.map((at) => tools[at]?.id ?? ''),
          more: opened.members.length - members.length,
        },
      }),
    } satisfies MatrixBody
  }
}

/** Returns the rows: the groups, and the servers with tools in no group. */
export function toRows(tools: readonly Pick<Tool, 'id'>[], groups: readonly GroupRow[]): readonly Members[] {
  const places = new Map(tools.map(({ id }, at) => [id, at]))
  const grouped = new Set(groups.flatMap((group) => group.tools))
  const rest = new Map<string, number[]>()
  for (const [at, { id }] of tools.entries()) {
    if (grouped.has(id)) continue
    const server = id.includes(':') ? id.slice(0, id.indexOf(':')) : ''
    const known = rest.get(server)
    if (known) known.push(at)
    else rest.set(server, [at])
  }
  return [
    ...groups.map(({ tools: ids, ...group }): Members => {
      const { name, title } = group
      const members = ids.map((id) => places.get(id)).filter((at) => at !== undefined)
      return {
        key: `group ${name}`,
        name,
        ...(title !== undefined && { title }),
        group,
        tools: ids.length,
        members,
        ids,
      }
    }),
    ...[...rest].map(([name, members]): Members => {
      const ids = members.map((at) => tools[at]?.id ?? '')
      return { key: `server ${name}`, name, tools: members.length, members, ids }
    }),
  ]
}

type CellDecision = Pick<RowDecision, 'outcome' | 'visible' | 'why' | 'mayStill'>

/** Returns how many of the tools a caller sees, and the most common reason for those that they do not see. */
export function toCell(members: readonly number[], total: number, decided: readonly CellDecision[]): MatrixCell {
  const reasons = new Map<string, number>()
  let visible = 0
  let asks = 0
  let depends = 0
  for (const at of members) {
    const decision = decided[at]
    if (decision?.visible === true) {
      visible++
      if (decision.outcome === 'ask') asks++
      if (decision.mayStill?.some(({ on }) => on !== 'now')) depends++
    } else if (decision) reasons.set(decision.why, (reasons.get(decision.why) ?? 0) + 1)
  }
  const [why] = [...reasons].reduce((most, one) => (one[1] > most[1] ? one : most), ['', 0])
  return { visible, total, asks, depends, why }
}

function toDecision(decision: RowDecision | undefined): CellDecision {
  if (!decision) return { outcome: 'deny', visible: false, why: '' }
  const { outcome, visible, why, mayStill } = decision
  return { outcome, visible, why, ...(mayStill && { mayStill }) }
}
