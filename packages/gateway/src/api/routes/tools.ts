import { type Caller, createGate, type Tool, type View } from '@toolgate/core'
import { expose, EXPOSE_TARGETS, type ExposeError, type ExposeTarget, type ExposeWarning } from '@toolgate/core/expose'
import { isItemId, kindOfId, nearestOf, titleOf } from '@toolgate/core/internal'
import { redactor, type Redactor } from '@toolgate/core/redact'
import type { ItemKind } from '@toolgate/core/toolset'
import { ITEM_KINDS } from '@toolgate/core/words'
import { findCaller, isApprover, maySee, type NamedCallers, WHOSE } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { itemId, oneOf, parseQuery, required, type Route } from '../request.ts'
import type { CallersBody, ToolBody, ToolExport, ServerRow, ToolRow, ToolsBody, WhyBody } from '../wire.ts'

/** `GET /api/tools?as=` or `?caller=<json>`, `&app=` and `&kind=`: every tool, or every item of a kind, with that caller's decision and its reasons. */
export function toolsRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person }) => {
    const { app, kind = 'tool', ...whose } = parseQuery(query, { ...WHOSE, kind: oneOf(ITEM_KINDS) })
    const { name, caller } = findCaller(callers(), whose, person)
    const view = await deps.view(caller, app)
    return {
      as: name,
      ...(app === undefined ? {} : { app }),
      policyRevision: deps.policyRevision(),
      catalogRevision: deps.catalogRevision(),
      kind,
      tools: itemsOf(kind, deps).map((tool) => toRow(tool, view, deps)),
      servers: deps.servers().map((row) => serverFor(person, row)),
      groups: deps.groups(),
    } satisfies ToolsBody
  }
}

function itemsOf(kind: ItemKind, { tools, items }: ApiDeps): readonly Tool[] {
  return kind === 'tool' ? tools() : (items?.() ?? []).filter((item) => item.kind === kind)
}

/** Only approvers see who has an instance of a server. Others get the counts. */
function serverFor(person: Caller, { instances, ...row }: ServerRow): ServerRow {
  if (!instances) return row
  const { users = [], ...counts } = instances
  if (!isApprover(person)) return { ...row, instances: counts }
  return { ...row, instances: { ...counts, users: users.filter((user) => maySee(person, user)) } }
}

/** Returns an item with its decision in a view. */
function toRow(tool: Tool, view: View, deps: ApiDeps): ToolRow {
  const { outcome, reasons } = view.explain(tool.id)
  const { redactText } = deps.redact ?? redactor
  const title = titleOf(tool)
  return {
    id: tool.id,
    kind: tool.kind,
    wireName: tool.uri ?? deps.wireName(tool.id) ?? '',
    ...(title === undefined ? {} : { title: redactText(title) }),
    description: redactText(tool.description),
    tags: tool.tags,
    outcome,
    visible: view.has(tool.id),
    reasons,
  }
}

/** `GET /api/tool?tool=&as=` or `&caller=<json>`, and `&app=`: one tool, or one listed item of another kind, in full. */
export function toolRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person }) => {
    const { tool: asked, app, ...whose } = parseQuery(query, { tool: itemId, ...WHOSE })
    const id = required('tool', asked)
    const { caller } = findCaller(callers(), whose, person)
    const tool = (isItemId(id) ? (deps.items?.() ?? []) : deps.tools()).find((known) => known.id === id)
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
      // Providers and frameworks get tools only.
      exports: tool.kind === 'tool' ? await exportTool(tool, redact) : [],
    } satisfies ToolBody
  }
}

/** `GET /api/why?tool=&as=` or `&caller=<json>`, and `&app=`: every layer's answer about one item, the deciding one first. */
export function whyRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person }) => {
    const { tool, app, ...whose } = parseQuery(query, { tool: itemId, ...WHOSE })
    const id = required('tool', tool)
    const { name, caller } = findCaller(callers(), whose, person)
    const view = await deps.view(caller, app)
    // A resource need not be listed to be decided.
    if (!isItemId(id) && !deps.tools().some((known) => known.id === id)) throw unknownTool(id, deps)
    const { outcome, reasons, schemaWarnings } = view.explain(id)
    return {
      tool: id,
      kind: kindOfId(id),
      as: name,
      ...(app === undefined ? {} : { app }),
      outcome,
      visible: view.has(id),
      reasons,
      ...(schemaWarnings ? { schemaWarnings } : {}),
    } satisfies WhyBody
  }
}

/** Suggests an id, as people copy the wire name from their client, or misspell an id. */
function unknownTool(id: string, deps: ApiDeps): ApiFault {
  const tools = isItemId(id) ? (deps.items?.() ?? []) : deps.tools()
  const suggestion =
    tools.find((tool) => deps.wireName(tool.id) === id || tool.name === id)?.id ??
    nearestOf(
      id,
      tools.map((tool) => tool.id),
    )
  const hint = suggestion ? ` Did you mean ${JSON.stringify(suggestion)}?` : ' GET /api/tools lists the known ones.'
  return new ApiFault('tool_unknown', `No tool has the id ${JSON.stringify(id)}.${hint}`)
}

/** `GET /api/callers`: the callers that `as` may name, each with its number of visible tools. */
export function callersRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person }) => {
    parseQuery(query, {})
    const rows = [...callers().values()]
      .filter(({ caller }) => maySee(person, caller))
      .map(async ({ name, for: kind, caller }) => ({
        user: name,
        roles: caller.roles ?? [],
        for: kind,
        visible: (await deps.view(caller)).size,
      }))
    return { callers: await Promise.all(rows) } satisfies CallersBody
  }
}

/** Returns the tool's export for each provider, whether or not a caller sees it. */
async function exportTool(tool: Tool, redact: Redactor): Promise<readonly ToolExport[]> {
  const gate = createGate({ tools: [tool] })
  try {
    const view = await gate.view({})
    return EXPOSE_TARGETS.map((target) => exportTo(target, view, redact))
  } finally {
    await gate.close()
  }
}

function exportTo(target: ExposeTarget, view: View, redact: Redactor): ToolExport {
  const { tools, warnings, errors, tokens } = expose(view, target)
  return {
    target,
    definition: redactTexts(plain(tools), redact),
    warnings: warnings.map((warning) => redact.redactText(toSentence(warning))),
    errors: errors.map((error: ExposeError) => redact.redactText(error.message)),
    ...(errors.length > 0 ? {} : { tokens: tokens.count }),
  }
}

function toSentence({ path, feature, from, to, action }: ExposeWarning): string {
  const where = path === '' ? '' : ` at ${path}`
  return `${feature}${where}: ${from} is ${action}${to === undefined ? '' : `, to ${to}`}`
}

/** Drops functions, which some SDKs take, and unwraps a list of one tool. */
function plain(tools: object): unknown {
  const shown: unknown = JSON.parse(JSON.stringify(tools))
  return Array.isArray(shown) && shown.length === 1 ? shown[0] : shown
}

/** Redacts texts of a server. Key names do not matter here: in a schema they are parameters. */
function redactTexts(value: unknown, redact: Pick<Redactor, 'redactText'>): unknown {
  if (typeof value === 'string') return redact.redactText(value)
  if (Array.isArray(value)) return value.map((item) => redactTexts(item, redact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactTexts(item, redact)]))
}
