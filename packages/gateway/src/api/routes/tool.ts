import { redactor } from '@toolgate/core/redact'
import { findCaller, type NamedCaller, WHOSE } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { parseQuery, required, text } from '../query.ts'
import { exportTool, redactTexts } from '../tool-exports.ts'
import type { ToolBody } from '../wire.ts'
import type { Route } from './route.ts'
import { toRow } from './tools.ts'
import { unknownTool } from './why.ts'

/** `GET /api/tool?tool=&as=` or `&caller=<json>`, and `&app=`: one tool with all there is to say of it. */
export function toolRoute(deps: ApiDeps, callers: ReadonlyMap<string, NamedCaller>): Route {
  return async ({ query, person }) => {
    const { tool: asked, app, ...whose } = parseQuery(query, { tool: text, ...WHOSE })
    const id = required('tool', asked)
    const { caller } = findCaller(callers, whose, person)
    const tool = deps.tools().find((known) => known.id === id)
    if (!tool) throw unknownTool(id, deps)
    const { redact = redactor } = deps
    const { inputSchema, outputSchema, annotations } = tool
    return {
      tool: toRow(tool, await deps.view(caller, app), deps),
      inputSchema: redactTexts(inputSchema, redact),
      ...(outputSchema === undefined ? {} : { outputSchema: redactTexts(outputSchema, redact) }),
      annotations: redactTexts(annotations, redact),
      groups: deps.groups().flatMap(({ name, tools }) => (tools.includes(id) ? [name] : [])),
      limits: deps.limitsOf?.(tool) ?? [],
      exports: await exportTool(tool, redact),
    } satisfies ToolBody
  }
}
