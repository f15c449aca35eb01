import type { Answer } from '../../heart/route.ts'
import type { Caller, Tool, View } from '@toolgate/core'
import { kindOfId, originalHash, titleOf } from '@toolgate/core/tools'
import type { MayStill } from '@toolgate/core/decide'
import { mayStillNow } from '@toolgate/core/call'
import { whatWouldAllow } from '@toolgate/change/internal'
import { ITEM_KINDS } from '@toolgate/core/words'
import { createNamedCallers, findCaller, type NamedCallers, parseWhose, WHOSE } from '../http/callers.ts'
import { nextTurn } from '../../util/next-turn.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { groups, type GroupsRoom } from '../groups/start.ts'
import { policy } from '../policy/start.ts'
import { type PlacedRules, mayStillOf, placing, wouldAllowOf } from '../policy/placed.ts'
import { createLimitsOf } from './limits-of.ts'
import { exportTool, redactTexts } from './exports.ts'
import { serverOf } from '../../model/server-of.ts'
import { checkKnown, itemsIn, listOf, type ShownItems, rejectionOf, shownTo, unknownTool } from './shown.ts'
import { serverFor } from '../http/server-for.ts'
import { wireNameOf } from '../http/wire-name.ts'
import type { FindSubject } from '../../heart/route.ts'
import { itemId, oneOf, parseQuery, queryOf, required, taggedJson } from '../http/request.ts'
import { reasonFor } from '../http/rule-text.ts'
import { shortMayStill, ToolRows, withRefusals } from './tool-rows.ts'
import type { ToolBody, ToolRow, ToolsBody, WhyBody } from '../../model/rows.ts'

/** Provides the rows of catalogs. */
export const room: Room<ToolRows> = {
  name: 'tools',
  needs: [groups, policy],
  open(heart, rooms) {
    const callers = createNamedCallers(() => heart.revisions.current.callers, heart.door.people)
    const rows = new ToolRows(heart)
    const limitsOf = createLimitsOf(heart)
    const deps: ToolsDeps = { ...heart, callers, hits: rooms.ask(policy), groups: rooms.ask(groups), limitsOf }
    const subject: FindSubject = ({ request, person }) => ({
      caller: findCaller(callers, parseWhose(queryOf(request)), person).caller,
    })
    const by = 'person'
    return {
      service: rows,
      routes: [
        { method: 'GET', path: '/api/tools', by, answer: toolsRoute(deps, rows), subject },
        { method: 'GET', path: '/api/tools/columns', by, answer: toolColumnsRoute(deps, rows), subject },
        { method: 'GET', path: '/api/tool', by, answer: toolRoute(deps), subject },
        { method: 'GET', path: '/api/why', by, answer: whyRoute(deps), subject },
      ],
    }
  },
}

interface ToolsDeps extends Pick<Heart, 'gate' | 'servers' | 'catalog' | 'redact'>, PlacedRules {
  readonly callers: NamedCallers
  readonly groups: GroupsRoom | undefined
  limitsOf(tool: Tool): readonly string[]
}

/**
 * `GET /api/tools?as=` or `?caller=<json>`, `&app=` and `&kind=`: every tool, or every item of a kind, with the
 * decision for that caller and its reasons.
 */
function toolsRoute(deps: ToolsDeps, rows: ToolRows): Answer {
  return listRoute(deps, { rows, write: async (...what) => `"tools":${await rows.write(...what)}` })
}

/** `GET /api/tools/columns`: the same data in columns. */
function toolColumnsRoute(deps: ToolsDeps, rows: ToolRows): Answer {
  return listRoute(deps, { rows, write: async (...what) => `"columns":${await rows.writeColumns(...what)}` })
}

interface ListForm {
  readonly rows: ToolRows
  /** Writes the field with the items. */
  readonly write: (...what: Parameters<ToolRows['write']>) => Promise<string>
}

function listRoute(deps: ToolsDeps, { rows, write }: ListForm): Answer {
  return async ({ query, person, request }) => {
    const { app, kind = 'tool', ...whose } = parseQuery(query, { ...WHOSE, kind: oneOf(ITEM_KINDS) })
    const { name, caller, rolesFrom } = findCaller(deps.callers, whose, person)
    await deps.groups?.refresh()
    const catalog = (): readonly Tool[] => {
      const { tools, items } = shownTo(person, caller, deps)
      return kind === 'tool' ? tools : items
    }
    const decided = await withRefusals(await rows.decide({ caller, app, person }, catalog))
    const shown = shownTo(person, caller, deps)
    const hashOf = (tool: Tool) => (listOf(tool.id, shown) ? originalHash(tool) : undefined)
    const items = await write(decided, { kind, hashOf })
    const body = {
      as: name,
      ...(rolesFrom && { rolesFrom }),
      ...(app === undefined ? {} : { app }),
      policyRevision: deps.gate.policyRevision,
      catalogRevision: deps.gate.catalog.revision,
      kind,
      servers: deps.servers.fleet.rows().map((row) => serverFor(person, row)),
      groups: deps.groups?.rows() ?? [],
      ...(shown.lists.length > 0 ? { lists: shown.lists } : {}),
    } satisfies Omit<ToolsBody, 'tools'>
    return taggedJson(request, `${JSON.stringify(body).slice(0, -1)},${items}}`)
  }
}

interface RowDeps extends ToolsDeps {
  readonly person: Caller
  readonly mayStill: readonly MayStill[]
}

/** Returns an item with its decision in a view. */
function toRow(tool: Tool, view: View, shown: ShownItems, { person, mayStill, ...deps }: RowDeps): ToolRow {
  const { outcome, reasons } = view.explain(tool.id)
  const { redactText } = deps.redact
  const title = titleOf(tool)
  return {
    id: tool.id,
    kind: tool.kind,
    wireName: tool.uri ?? wireNameOf(deps, tool.id, view) ?? '',
    ...(title === undefined ? {} : { title: redactText(title) }),
    description: redactText(tool.description),
    ...(listOf(tool.id, shown) ? { hash: originalHash(tool) } : {}),
    tags: tool.tags,
    outcome,
    visible: view.has(tool.id),
    reasons: reasons.map((one) => reasonFor(person, one)),
    ...shortMayStill(mayStill),
  }
}

/**
 * `GET /api/tool?tool=&as=` or `&caller=<json>`, and `&app=`: one tool, or one listed item of another kind, with all
 * fields.
 */
function toolRoute(deps: ToolsDeps): Answer {
  return async ({ query, person }) => {
    const { tool: asked, app, ...whose } = parseQuery(query, { tool: itemId, ...WHOSE })
    const id = required('tool', asked)
    const { caller } = findCaller(deps.callers, whose, person)
    const shown = shownTo(person, caller, deps)
    const tool = itemsIn(id, shown).find((known) => known.id === id)
    if (!tool) throw unknownTool(id, shown, deps, person)
    const { redact } = deps
    const { inputSchema, outputSchema, annotations, addressees } = tool
    const view = await deps.gate.view(caller, { app })
    const mayStill = await mayStillNow(view, id, { rest: nextTurn })
    return {
      tool: toRow(tool, view, shown, { ...deps, person, mayStill }),
      ...(await mayStillOf(mayStill, deps, person)),
      inputSchema: redactTexts(inputSchema, redact),
      ...(outputSchema === undefined ? {} : { outputSchema: redactTexts(outputSchema, redact) }),
      annotations: redactTexts(annotations, redact),
      ...(addressees.length === 0 ? {} : { addressees }),
      groups: (deps.groups?.rows() ?? []).flatMap(({ name, tools }) => (tools.includes(id) ? [name] : [])),
      limits: deps.limitsOf(tool),
      // Only tools can be exported to providers and frameworks.
      exports: tool.kind === 'tool' ? await exportTool(tool, redact) : [],
    } satisfies ToolBody
  }
}

/**
 * `GET /api/why?tool=&as=` or `&caller=<json>`, and `&app=`: the answer of every layer about one item, the deciding one
 * first.
 */
function whyRoute(deps: ToolsDeps): Answer {
  return async ({ query, person }) => {
    const { tool, app, ...whose } = parseQuery(query, { tool: itemId, ...WHOSE })
    const id = required('tool', tool)
    const { name, caller, rolesFrom } = findCaller(deps.callers, whose, person)
    const view = await deps.gate.view(caller, { app })
    const list = checkKnown(id, { person, caller }, deps)
    const { outcome, reasons, answers, shadow, schemaWarnings } = view.explain(id)
    const rejection = rejectionOf(id, person, deps)
    const placed = await placing(deps, person, [...reasons, ...(shadow?.reasons ?? [])])
    const may = deps.servers.fleet.mayOf(serverOf(id))
    return {
      tool: id,
      kind: kindOfId(id),
      as: name,
      ...(rolesFrom && { rolesFrom }),
      ...(app === undefined ? {} : { app }),
      outcome,
      visible: view.has(id),
      reasons: reasons.map(placed),
      answers,
      ...(await mayStillOf(await mayStillNow(view, id, { rest: nextTurn }), deps, person)),
      ...(shadow && { shadow: { outcome: shadow.outcome, reasons: shadow.reasons.map(placed) } }),
      ...wouldAllowOf(whatWouldAllow(view, id), deps, person),
      ...(schemaWarnings ? { schemaWarnings } : {}),
      ...(rejection === undefined ? {} : { leftOut: deps.redact.redactText(rejection) }),
      ...(list ? { list } : {}),
      ...(may.length === 0 ? {} : { may }),
    } satisfies WhyBody
  }
}
