import { nearestOf } from '@toolgate/core/internal'
import { findCaller, type NamedCaller, WHOSE } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { parseQuery, required, text } from '../query.ts'
import type { WhyBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/why?tool=&as=` or `&caller=<json>`, and `&app=`: every layer's answer about one tool, the deciding one first. */
export function whyRoute(deps: ApiDeps, callers: ReadonlyMap<string, NamedCaller>): Route {
  return async ({ query, person }) => {
    const { tool, app, ...whose } = parseQuery(query, { tool: text, ...WHOSE })
    const id = required('tool', tool)
    const { name, caller } = findCaller(callers, whose, person)
    const view = await deps.view(caller, app)
    if (!deps.tools().some((known) => known.id === id)) throw unknownTool(id, deps)
    const { outcome, reasons, schemaWarnings } = view.explain(id)
    return {
      tool: id,
      as: name,
      ...(app === undefined ? {} : { app }),
      outcome,
      visible: view.has(id),
      reasons,
      ...(schemaWarnings ? { schemaWarnings } : {}),
    } satisfies WhyBody
  }
}

/** People copy the name that their client shows, which is the one on the wire, or misspell an id. */
export function unknownTool(id: string, deps: ApiDeps): ApiFault {
  const tools = deps.tools()
  const meant =
    tools.find((tool) => deps.wireName(tool.id) === id || tool.name === id)?.id ??
    nearestOf(
      id,
      tools.map((tool) => tool.id),
    )
  const hint = meant ? ` Did you mean ${JSON.stringify(meant)}?` : ' GET /api/tools lists the known ones.'
  return new ApiFault('tool_unknown', `No tool has the id ${JSON.stringify(id)}.${hint}`)
}
