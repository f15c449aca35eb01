import { type Caller, createGate, type Tool, type View } from '@toolgate/core'
import { expose, EXPOSE_TARGETS, type ExposeError, type ExposeTarget, type ExposeWarning } from '@toolgate/expose'
import { isItemId, kindOfId, originalHash, titleOf } from '@toolgate/core/internal'
import { nearestOf } from '@toolgate/values'
import { readOwnJson, toJsonText } from '@toolgate/values/json'
import type { MayStill } from '@toolgate/core/decide'
import { mayStillNow } from '@toolgate/core/call'
import { whatWouldAllow } from '@toolgate/change/internal'
import { ITEM_KINDS } from '@toolgate/core/words'
import { redactor, type Redactor } from '@toolgate/values/redact'
import { findCaller, isApprover, maySee, maySeeListsOf, type NamedCallers, WHOSE } from '../callers.ts'
import { nextTurn } from '../../../util/next-turn.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../../../model/faults.ts'
import { itemId, oneOf, parseQuery, required, type Route, taggedJson } from '../request.ts'
import { reasonFor } from '../rule-text.ts'
import { shortMayStill, type ToolRows, withRefusals } from '../tool-rows.ts'
import { mayCallAs } from '../own-agent.ts'
import { countStates } from '../../../servers/instances/instances.ts'
import { mayStillOf, placing, wouldAllowOf } from './policy.ts'
import type {
  CallersBody,
  ToolBody,
  ListRow,
  ToolExport,
  ServerRow,
  ToolRow,
  ToolsBody,
  WhyBody,
} from '../../../model/rows.ts'

/** `GET /api/tools?as=` or `?caller=<json>`, `&app=` and `&kind=`: every tool, or every item of a kind, with that caller's decision and its reasons. */
export function toolsRoute(deps: ApiDeps, callers: NamedCallers, rows: ToolRows): Route {
  return listRoute(deps, callers, { rows, write: async (...what) => `"tools":${await rows.write(...what)}` })
}

/** `GET /api/tools/columns`: the same in columns. */
export function toolColumnsRoute(deps: ApiDeps, callers: NamedCallers, rows: ToolRows): Route {
  return listRoute(deps, callers, { rows, write: async (...what) => `"columns":${await rows.writeColumns(...what)}` })
}

interface ListForm {
  readonly rows: ToolRows
  /** Writes the field with the items. */
  readonly write: (...what: Parameters<ToolRows['write']>) => Promise<string>
}

function listRoute(deps: ApiDeps, callers: NamedCallers, { rows, write }: ListForm): Route {
  return async ({ query, person, request }) => {
    const { app, kind = 'tool', ...whose } = parseQuery(query, { ...WHOSE, kind: oneOf(ITEM_KINDS) })
    const { name, caller } = findCaller(callers, whose, person)
    await deps.refreshGroups?.()
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
      ...(app === undefined ? {} : { app }),
      policyRevision: deps.policyRevision(),
      catalogRevision: deps.catalogRevision(),
      kind,
      servers: deps.servers().map((row) => serverFor(person, row)),
      groups: deps.groups(),
      ...(shown.lists.length > 0 ? { lists: shown.lists } : {}),
    } satisfies Omit<ToolsBody, 'tools'>
    return taggedJson(request, `${JSON.stringify(body).slice(0, -1)},${items}}`)
  }
}

/** What a person may look at of a caller's catalog. */
interface Shown {
  readonly tools: readonly Tool[]
  readonly items: readonly Tool[]
  readonly lists: readonly ListRow[]
}

/** Returns the catalog of a caller; without their own lists, for a person who may not see these. */
function shownTo(person: Caller, caller: Caller, { tools, items, listsOf }: ApiDeps): Shown {
  const lists = listsOf?.(caller) ?? []
  if (lists.length === 0 || maySeeListsOf(person, caller))
    return { tools: tools(caller), items: items?.(caller) ?? [], lists }
  const withheld = lists.map(({ server }): ListRow => ({ server, state: 'withheld' }))
  return { tools: tools(), items: items?.() ?? [], lists: withheld }
}

/** Returns whose list of its server an item was looked up in. */
function listOf(id: string, { lists }: Shown): ListRow | undefined {
  const [kind, server] = id.split(':', 2)
  return lists.find((list) => list.server === (isItemId(id) ? server : kind))
}

/** Instances are counted within the tenant of a person. Only approvers see whose they are. */
export function serverFor(person: Caller, { instances, ...row }: ServerRow): ServerRow {
  if (!instances) return row
  const users = (instances.users ?? []).filter((user) => maySee(person, user))
  return { ...row, instances: { ...countStates(users), ...(isApprover(person) && { users }) } }
}

interface RowDeps extends ApiDeps {
  readonly person: Caller
  readonly mayStill: readonly MayStill[]
}

/** Returns an item with its decision in a view. */
function toRow(tool: Tool, view: View, shown: Shown, { person, mayStill, ...deps }: RowDeps): ToolRow {
  const { outcome, reasons } = view.explain(tool.id)
  const { redactText } = deps.redact ?? redactor
  const title = titleOf(tool)
  return {
    id: tool.id,
    kind: tool.kind,
    wireName: tool.uri ?? deps.wireName(tool.id, view) ?? '',
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

/** `GET /api/tool?tool=&as=` or `&caller=<json>`, and `&app=`: one tool, or one listed item of another kind, in full. */
export function toolRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person }) => {
    const { tool: asked, app, ...whose } = parseQuery(query, { tool: itemId, ...WHOSE })
    const id = required('tool', asked)
    const { caller } = findCaller(callers, whose, person)
    const shown = shownTo(person, caller, deps)
    const tool = itemsIn(id, shown).find((known) => known.id === id)
    if (!tool) throw unknownTool(id, shown, deps)
    const { redact = redactor } = deps
    const { inputSchema, outputSchema, annotations, addressees } = tool
    const view = await deps.view(caller, app)
    const mayStill = await mayStillNow(view, id, { rest: nextTurn })
    return {
      tool: toRow(tool, view, shown, { ...deps, person, mayStill }),
      ...(await mayStillOf(mayStill, deps, person)),
      inputSchema: redactTexts(inputSchema, redact),
      ...(outputSchema === undefined ? {} : { outputSchema: redactTexts(outputSchema, redact) }),
      annotations: redactTexts(annotations, redact),
      ...(addressees.length === 0 ? {} : { addressees }),
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
    const { name, caller } = findCaller(callers, whose, person)
    const view = await deps.view(caller, app)
    const list = checkKnown(id, { person, caller }, deps)
    const { outcome, reasons, answers, shadow, schemaWarnings } = view.explain(id)
    const placed = await placing(deps, person, [...reasons, ...(shadow?.reasons ?? [])])
    return {
      tool: id,
      kind: kindOfId(id),
      as: name,
      ...(app === undefined ? {} : { app }),
      outcome,
      visible: view.has(id),
      reasons: reasons.map(placed),
      answers,
      ...(await mayStillOf(await mayStillNow(view, id, { rest: nextTurn }), deps, person)),
      ...(shadow && { shadow: { outcome: shadow.outcome, reasons: shadow.reasons.map(placed) } }),
      ...wouldAllowOf(whatWouldAllow(view, id), deps, person),
      ...(schemaWarnings ? { schemaWarnings } : {}),
      ...(list ? { list } : {}),
    } satisfies WhyBody
  }
}

/**
 * Returns whose list an item was looked up in, if it is of a list for each user.
 *
 * @throws {ApiFault} `tool_unknown` for what the person may not see, or is not there
 */
export function checkKnown(
  id: string,
  { person, caller }: { readonly person: Caller; readonly caller: Caller },
  deps: ApiDeps,
): ListRow | undefined {
  const shown = shownTo(person, caller, deps)
  const list = listOf(id, shown)
  // A resource need not be listed to be decided.
  const isKnown = (isItemId(id) && list?.state !== 'withheld') || itemsIn(id, shown).some((known) => known.id === id)
  if (!isKnown) throw unknownTool(id, shown, deps)
  return list
}

function itemsIn(id: string, { tools, items }: Shown): readonly Tool[] {
  return isItemId(id) ? items : tools
}

/** Returns every item that a person may look at of a caller's catalog. */
export function knownItems(person: Caller, caller: Caller, deps: ApiDeps): readonly Tool[] {
  const { tools, items } = shownTo(person, caller, deps)
  return [...tools, ...items]
}

/** Suggests an id, as people copy the wire name from their client, or misspell an id. */
function unknownTool(id: string, shown: Shown, deps: ApiDeps): ApiFault {
  const tools = itemsIn(id, shown)
  const suggestion =
    tools.find((tool) => deps.wireName(tool.id) === id || tool.name === id)?.id ??
    nearestOf(
      id,
      tools.map((tool) => tool.id),
    )
  const list = listOf(id, shown)
  if (list?.state === 'unknown')
    return new ApiFault(
      'tool_unknown',
      `No tool has the id ${JSON.stringify(id)}: the server "${list.server}" has not listed for ${JSON.stringify(list.user)} yet${list.reason ? ` (${list.reason})` : ''}.`,
    )
  const hint = suggestion ? ` Did you mean ${JSON.stringify(suggestion)}?` : ' GET /api/tools lists the known ones.'
  return new ApiFault('tool_unknown', `No tool has the id ${JSON.stringify(id)}.${hint}`)
}

/** `GET /api/callers`: the callers that `as` may name, each with its number of visible tools. */
export function callersRoute(deps: ApiDeps, callers: NamedCallers): Route {
  return async ({ query, person }) => {
    parseQuery(query, {})
    const rows = [...callers(person).values()].map(async ({ name, for: kind, caller }) => ({
      user: name,
      ...(caller.tenant === undefined ? {} : { tenant: caller.tenant }),
      roles: caller.roles ?? [],
      for: kind,
      ...(mayCallAs(deps, { person, caller }) ? { mayCall: true as const } : {}),
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
  const shown: unknown = readOwnJson(toJsonText(tools), 'exact')
  return Array.isArray(shown) && shown.length === 1 ? shown[0] : shown
}

/** Redacts texts of a server. Key names do not matter here: in a schema they are parameters. */
function redactTexts(value: unknown, redact: Pick<Redactor, 'redactText'>): unknown {
  if (typeof value === 'string') return redact.redactText(value)
  if (Array.isArray(value)) return value.map((item) => redactTexts(item, redact))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactTexts(item, redact)]))
}
