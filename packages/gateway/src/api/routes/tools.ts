import type { Tool, View } from '@toolgate/core'
import { redactor } from '@toolgate/core/redact'
import { findCaller, type NamedCaller, WHOSE } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { parseQuery } from '../query.ts'
import type { ToolRow, ToolsBody } from '../wire.ts'
import type { Route } from './route.ts'

/** `GET /api/tools?as=` or `?caller=<json>`, and `&app=`: every tool, with what is decided of it for that caller and why. */
export function toolsRoute(deps: ApiDeps, callers: ReadonlyMap<string, NamedCaller>): Route {
  return async ({ query, person }) => {
    const { app, ...whose } = parseQuery(query, WHOSE)
    const { name, caller } = findCaller(callers, whose, person)
    const view = await deps.view(caller, app)
    return {
      as: name,
      ...(app === undefined ? {} : { app }),
      policyRevision: deps.policyRevision(),
      catalogRevision: deps.catalogRevision(),
      tools: deps.tools().map((tool) => toRow(tool, view, deps)),
      servers: deps.servers(),
      groups: deps.groups(),
    } satisfies ToolsBody
  }
}

/** Gives a tool with what is decided of it in a view. */
export function toRow(tool: Tool, view: View, deps: ApiDeps): ToolRow {
  const { outcome, reasons } = view.explain(tool.id)
  const { redactText } = deps.redact ?? redactor
  return {
    id: tool.id,
    wireName: deps.wireName(tool.id) ?? '',
    ...(tool.title === undefined ? {} : { title: redactText(tool.title) }),
    description: redactText(tool.description),
    tags: tool.tags,
    outcome,
    visible: view.has(tool.id),
    reasons,
  }
}
