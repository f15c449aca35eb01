import type { Answer } from '../../heart/route.ts'
import type { Caller, Tool } from '@toolgate/core'
import { nextTurn } from '../../util/next-turn.ts'
import { createNamedCallers, type NamedCaller, type NamedCallers } from '../http/callers.ts'
import { createRightsKey } from '../http/rights.ts'
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
    const { gate, revisions, servers } = heart
    const deps = { gate, revisions, servers, callers, decisions, groups: () => rooms.ask(groupsRoom)?.rows() ?? [] }
    return { routes: [{ method: 'GET', path: '/api/matrix', by: 'person', answer: matrixRoute(deps) }] }
  },
}

interface MatrixDeps extends Pick<Heart, 'gate' | 'revisions' | 'servers'> {
  readonly callers: NamedCallers
  readonly decisions: ToolRows
  groups(): readonly GroupRow[]
}

/** The maximum number of groups of people, as each needs the decisions about all tools. */
const MAX_GROUPS = 24
/** The maximum number of tools in an open row. */
const MAX_TOOLS = 1000

const FILTERS = {
  text: shortText,
  tenant: shortText,
  role: shortText,
  from: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  limit: wholeNumber(1, MAX_GROUPS),
  open: shortText,
}

/** A row with its tools, as indexes in the catalog. */
type Members = MatrixRow & { readonly members: readonly number[]; readonly ids: readonly string[] }

/**
 * `GET /api/matrix?text=&tenant=&role=&from=&limit=&open=`: the part of each group that people see: the configured
 * callers, and those who signed in. People with equal rights are decided once, and columns that are equal are one. Only
 * tools that all callers share count. `open`: the key of a row whose tools are shown one by one.
 */
function matrixRoute({ callers, decisions, groups: groupRows, ...heart }: MatrixDeps): Answer {
  return async ({ query, person }) => {
    const { from = 0, limit = 12, open, ...filter } = parseQuery(query, FILTERS)
    const all = peopleOf(callers, person)
    const mine = all.filter((one) => matches(one, filter))
    const keyOf = await createRightsKey(heart)
    const groups = [...Map.groupBy(mine, ({ for: kind, caller }) => `${kind} ${keyOf(caller)}`).values()]
    const { tools } = heart.gate.catalog.snapshot()
    const rows = toRows(tools, groupRows())
    const opened = rows.find(({ key }) => key === open)
    const members = opened?.members.slice(0, MAX_TOOLS) ?? []
    const columns = new Map<string, MatrixHead>()
    for (const group of groups.slice(from, from + limit)) {
      const [{ caller, for: kind }] = group as [NamedCaller]
      // Lets other requests run, because cached decisions resolve without a pause.
      await nextTurn()
      const allowed = await decisions.decide({ caller, person }, () => tools)
      // What a limit refuses now depends on what each user has used.
      const decided = group.length === 1 ? await withRefusals(allowed, members) : allowed
      const shows = {
        cells: rows.map((row) => toCell(row.members, row.ids.length, decided.rows)),
        ...(opened && { tools: members.map((at) => toDecision(decided.rows[at])) }),
      }
      const key = JSON.stringify([kind, shows])
      columns.set(key, joined(columns.get(key), group, shows))
    }
    return {
      total: groups.length,
      from,
      people: mine.length,
      tenants: distinct(all.flatMap(({ caller }) => caller.tenant ?? [])),
      roles: distinct(all.flatMap(({ caller }) => caller.roles ?? [])),
      rows: rows.map(({ members: _, ids: __, ...row }) => row),
      columns: [...columns.values()],
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

type MatrixHead = MatrixBody['columns'][number]

/** The maximum number of names in a column. */
const MAX_NAMES = 5

/** Returns the configured callers, then those who signed in. */
function peopleOf(callers: NamedCallers, person: Caller): readonly NamedCaller[] {
  return [...callers(person).values(), ...callers.signedIn(person)]
}

function matches(
  { name, caller }: NamedCaller,
  { text, tenant, role }: Partial<Record<'text' | 'tenant' | 'role', string>>,
) {
  const { roles = [], user = '' } = caller
  if ((tenant !== undefined && caller.tenant !== tenant) || (role !== undefined && !roles.includes(role))) return false
  const asked = text?.toLowerCase()
  return (
    asked === undefined || [name, user, caller.tenant ?? '', ...roles].some((one) => one.toLowerCase().includes(asked))
  )
}

/** Adds people to the column that shows what they see. Tenant and roles stay if all of them have the same. */
function joined(
  known: MatrixHead | undefined,
  group: readonly NamedCaller[],
  shows: Pick<MatrixHead, 'cells' | 'tools'>,
): MatrixHead {
  const [{ name, for: kind, caller }] = group as [NamedCaller]
  const names = [...(known?.names ?? []), ...group.slice(0, MAX_NAMES).map((one) => one.name)].slice(0, MAX_NAMES)
  const { tenant } = caller
  const sets = group.map((one) => new Set(one.caller.roles))
  const isOfTenant = tenant !== undefined && (!known || known.tenant === tenant)
  return {
    user: known?.user ?? name,
    people: (known?.people ?? 0) + group.length,
    names,
    ...(isOfTenant && { tenant }),
    roles: (known?.roles ?? caller.roles ?? []).filter((role) => sets.every((roles) => roles.has(role))),
    for: kind,
    ...shows,
  }
}

function distinct(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].toSorted()
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
