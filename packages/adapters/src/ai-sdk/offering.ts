import type { Tool, View } from '@toolgate/core'
import { expose, toWireName } from '@toolgate/expose'
import { compareToolIds } from '@toolgate/core/tools'
import { isAsyncGenerator, isFunction } from '../shared/fields.ts'
import { importedFrom, type ImportedTool } from './import-tools.ts'
import type { GuardOptions } from './options.ts'
import { type ImportedSchema, toSchema } from './schemas.ts'

type Accepted = GuardOptions['acceptUnenforceable']

/** The tools that a run offers its model, by id. */
export interface Offering {
  readonly all: readonly WireTool[]
  /** By wire name. */
  readonly byName: ReadonlyMap<string, WireTool>
  readonly byId: ReadonlyMap<string, WireTool>
  /** Visible tools that cannot be offered, with the reason. For the developer. */
  readonly warnings: readonly string[]
}

/** Returns the tools that a view offers. Equal callers share a view and its offering. */
export function offeringOf(view: View, accepted: Accepted): Offering {
  if (accepted !== undefined) return offer(view, view.tools, NOTHING, accepted)
  let offering = kept.get(view)
  if (!offering) kept.set(view, (offering = offer(view, view.tools, NOTHING, accepted)))
  return offering
}

/** Returns an offering with the tools that a later view of the same run adds, or the same offering if it adds none. */
export function widenOffering(offering: Offering, view: View, accepted: Accepted): Offering {
  const more = view.tools.filter(({ id }) => !offering.byId.has(id))
  return more.length === 0 ? offering : offer(view, more, offering, accepted)
}

const NOTHING: Offering = { all: [], byName: new Map(), byId: new Map(), warnings: [] }
const kept = new WeakMap<View, Offering>()

function offer(view: View, tools: readonly Tool[], before: Offering, accepted: Accepted): Offering {
  const byName = new Map(before.byName)
  const warnings = [...before.warnings]
  const own: Tool[] = []
  const add = (offered: WireTool): void => {
    const problem = problemOf(offered, byName, accepted)
    if (problem === undefined) byName.set(offered.name, offered)
    else warnings.push(problem)
  }
  for (const tool of tools) {
    const offered = offerImported(tool)
    if (offered) add(offered)
    else own.push(tool)
  }
  for (const offered of offerOwn(view, own, (text) => warnings.push(text))) add(offered)
  const all = [...byName.values()]
  if (before.all.length + own.length > 0) all.sort((a, b) => compareToolIds(a.id, b.id))
  return { all, byName, byId: new Map(all.map((offered) => [offered.id, offered])), warnings }
}

function problemOf(
  { id, name, isEnforceable }: WireTool,
  byName: ReadonlyMap<string, WireTool>,
  accepted: Accepted,
): string | undefined {
  const other = byName.get(name)
  if (other) return `"${id}" cannot be offered: on the wire it has the name of "${other.id}".`
  if (isEnforceable || accepted === true || (Array.isArray(accepted) && accepted.includes(id))) return undefined
  return `"${id}" is not offered: it is not executed here, so nothing can stop it (acceptUnenforceable).`
}

/** A tool of a gate, for the SDK. */
export interface WireTool {
  readonly id: string
  /** The tool's name for the model. */
  readonly name: string
  readonly tool: Tool
  readonly imported: ImportedTool | undefined
  /** The SDK's tool without `execute`. All runs share it. */
  readonly definition: object
  /** Whether the tool yields its output item by item. The SDK must know before the call. */
  readonly isGenerator: boolean
  readonly isEnforceable: boolean
}

/** Returns an imported tool for the SDK; `undefined` for any other. */
function offerImported(tool: Tool): WireTool | undefined {
  let offered = offeredByTool.get(tool)
  if (offered) return offered
  const imported = importedFrom(tool.execute)
  if (!imported) return undefined
  const { execute, needsApproval: _, ...rest } = imported.tool
  const { schema } = imported
  offered = {
    id: tool.id,
    name: toWireName(tool),
    tool,
    imported,
    definition: schema ? { ...rest, ...withParsed(rest, schema), inputSchema: schema.forSdk } : rest,
    isGenerator: isAsyncGenerator(execute),
    isEnforceable: imported.isEnforceable,
  }
  offeredByTool.set(tool, offered)
  return offered
}

/** Returns the tool's own functions that get its input, so that they get it as the schema returned it. */
function withParsed(
  tool: Omit<ImportedTool['tool'], 'execute' | 'needsApproval'>,
  { asParsed }: Pick<ImportedSchema, 'asParsed'>,
): object {
  const own = { onInputAvailable: tool.onInputAvailable, toModelOutput: tool.toModelOutput }
  const wrapped = Object.entries(own).flatMap(([name, fn]) =>
    isFunction(fn)
      ? [[name, async (given: { readonly input: unknown }) => fn({ ...given, input: await asParsed(given.input) })]]
      : [],
  )
  return Object.fromEntries(wrapped) as object
}

/** Keyed by tool, which never changes. */
const offeredByTool = new WeakMap<Tool, WireTool>()

/**
 * Returns the gate's own tools, such as those of an MCP server, for the SDK. Tools that the SDK cannot take are left
 * out.
 */
function offerOwn(view: View, tools: readonly Tool[], onWarning: (text: string) => void): readonly WireTool[] {
  if (tools.length === 0) return []
  const own = tools.length === view.size ? view : view.narrow({ activeTools: tools.map(({ id }) => id) })
  const { tools: definitions, names, errors } = expose(own, 'ai-sdk')
  for (const { tool, message } of errors) onWarning(`"${tool}" cannot be offered: it ${message}.`)
  return tools.flatMap((tool) => {
    const name = names.toName(tool.id)
    const exposed = name === undefined ? undefined : definitions[name]
    if (name === undefined || !exposed) return []
    const { id } = tool
    const definition = { ...exposed, inputSchema: toSchema(exposed.inputSchema.jsonSchema) }
    return [{ id, name, tool, imported: undefined, definition, isGenerator: false, isEnforceable: true }]
  })
}
