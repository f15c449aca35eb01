import type { CallOutcome } from '../call/outcome.ts'
import type { Caller } from '../caller.ts'
import { isRequestTool, markOwnTool } from '../tools/own-tool.ts'
import { type CallContext, defineTool, type Tool } from '../tools/tool.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { type Calling, callingOf } from './calling.ts'
import { META_INPUTS, META_TEXTS, type MetaToolName, notAvailable } from './meta-texts.ts'
import { DEFAULT_LIMIT, MAX_LIMIT, type SearchDetail, type SearchHit } from './search.ts'

export interface MetaToolOptions {
  /** Which of them. Default: all three. `call_tool` is for clients whose list of tools cannot grow. */
  readonly names?: readonly MetaToolName[]
  readonly namespace?: string
  /**
   * Opens what a search has found, for its caller: `(caller, ids) => gate.locks.found(caller, ids)`. Where it is absent,
   * `search_tools` finds nothing that is locked.
   */
  readonly onFound?: (caller: Caller, ids: readonly string[]) => void
  /** Tools of the host's own that no search finds, as those who ask have them, or have no use for them. */
  readonly own?: (tool: Tool) => boolean
  /** In the form that the host's protocol wants of an output. Default: the value; the output, or the text, of the call. */
  readonly toOutput?: (answer: MetaAnswer) => unknown
}

/** What a meta-tool has found out, before it is put into the form of a protocol. */
export type MetaAnswer =
  | { readonly kind: 'value'; readonly value: SearchAnswer | DetailsAnswer }
  /** `call_tool` came to this. */
  | { readonly kind: 'outcome'; readonly outcome: CallOutcome }
  /** `call_tool` was asked for itself. */
  | { readonly kind: 'refusal'; readonly text: string }

export interface SearchAnswer {
  readonly tools: readonly (Omit<SearchHit, 'id' | 'score' | 'tags'> & { readonly name: string })[]
  /** What to do when nothing was found, or what can be used only from the next step on. */
  readonly hint?: string
}

export interface DetailsAnswer {
  readonly tools: readonly (ToolDetails | UnknownDetails)[]
}

export type ToolDetails = { readonly name: string } & Partial<
  Pick<Tool, 'title' | 'description' | 'inputSchema' | 'outputSchema' | 'annotations'>
>

/** The same for a tool that is hidden and one that does not exist. */
export interface UnknownDetails {
  readonly name: string
  readonly error: string
}

/**
 * Gives the tools with which a model finds tools: `search_tools`, `get_tool_details` and `call_tool`.
 *
 * They are tools like others, tagged `meta` and under policy themselves. Each answers from the view it was called
 * through: what that view hides, it neither finds nor describes nor runs. `call_tool` makes a call of its own, with
 * the same decision, limits, approvals and records as one that the client makes.
 *
 * @throws {ConfigError} `tool_invalid` for a namespace that cannot be used
 * @example
 * const gate = createGate({ tools: [...tools, ...metaTools()], policy: { deny: [{ match: 'call_tool', unless: "'ops' in caller.roles" }] } })
 */
export function metaTools(options: MetaToolOptions = {}): readonly Tool[] {
  checkShape('metaTools', options, OPTIONS)
  const { names = META_NAMES, namespace, toOutput = toPlainOutput } = options
  return META_NAMES.filter((name) => names.includes(name)).map((name) => {
    const answer = ANSWERS[name]
    const tool = defineTool({
      namespace,
      name,
      ...META_TEXTS[name],
      inputSchema: META_INPUTS[name],
      tags: ['meta'],
      // What it calls may be anything, so of `call_tool` nothing is claimed.
      annotations: name === 'call_tool' ? {} : { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
      execute: async (input: never, call: CallContext) => toOutput(await answer(input, callingOf(call), options)),
    })
    made.set(tool, name)
    return markOwnTool(tool)
  })
}

const OPTIONS = shapeOf<MetaToolOptions>({ names: true, namespace: true, onFound: true, own: true, toOutput: true })
const META_NAMES = ['search_tools', 'get_tool_details', 'call_tool'] as const
/** How many of a host's own may stand before what is looked for. */
const MAX_OWN = 4
const made = new WeakMap<Tool, MetaToolName>()

type MetaToolHandler = (input: never, calling: Calling, options: MetaToolOptions) => MetaAnswer | Promise<MetaAnswer>

const ANSWERS: Readonly<Record<MetaToolName, MetaToolHandler>> = {
  search_tools: search,
  get_tool_details: describe,
  call_tool: callOther,
}

interface SearchInput {
  readonly query: string
  readonly limit?: number
  readonly detail?: SearchDetail
}

/** Leaves out the meta-tools: who asks has them. */
function search(
  { query, limit = DEFAULT_LIMIT, detail = 'descriptions' }: SearchInput,
  calling: Calling,
  { onFound, own }: MetaToolOptions,
): MetaAnswer {
  const options = { limit: Math.min(MAX_LIMIT, limit + META_NAMES.length + MAX_OWN), detail }
  const all = onFound ? calling.searchLocked(query, options) : calling.search(query, options)
  const hits = all.filter(({ id }) => !isLeftOut(calling.get(id), own)).slice(0, limit)
  const locked = hits.map(({ id }) => id).filter((id) => calling.get(id) === undefined)
  if (locked.length > 0) onFound?.(calling.caller, locked)
  const tools = hits.map(({ id, score: _, tags: __, ...told }) => ({ name: calling.toName(id), ...told }))
  return { kind: 'value', value: withHint(tools, locked.map(calling.toName)) }
}

function withHint(tools: SearchAnswer['tools'], opened: readonly string[]): SearchAnswer {
  if (tools.length === 0) return { tools, hint: META_TEXTS.nothing_found }
  return opened.length === 0 ? { tools } : { tools, hint: `${META_TEXTS.opened} ${opened.join(', ')}.` }
}

function isLeftOut(tool: Tool | undefined, own: MetaToolOptions['own']): boolean {
  return tool !== undefined && (made.has(tool) || isRequestTool(tool) || own?.(tool) === true)
}

function describe({ names }: { readonly names: readonly string[] }, calling: Calling): MetaAnswer {
  return { kind: 'value', value: { tools: [...new Set(names)].map((name) => detailsOf(name, calling)) } }
}

function detailsOf(name: string, calling: Calling): ToolDetails | UnknownDetails {
  const tool = calling.get(calling.toId(name))
  if (!tool) return { name, error: notAvailable(name) }
  const { title, description, inputSchema, outputSchema, annotations } = tool
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    inputSchema,
    ...(outputSchema && { outputSchema }),
    annotations,
  }
}

interface CallInput {
  readonly name: string
  readonly arguments?: Readonly<Record<string, unknown>>
}

/** One call is one call: through itself it could be any number, and each would count against no one's limit but its own. */
async function callOther({ name, arguments: input = {} }: CallInput, calling: Calling): Promise<MetaAnswer> {
  const tool = calling.get(calling.toId(name))
  if (tool && made.get(tool) === 'call_tool') return { kind: 'refusal', text: META_TEXTS.calls_itself }
  return { kind: 'outcome', outcome: await calling.call(name, input) }
}

function toPlainOutput(answer: MetaAnswer): unknown {
  switch (answer.kind) {
    case 'value':
      return answer.value
    case 'refusal':
      return answer.text
    case 'outcome':
      return answer.outcome.status === 'done' ? answer.outcome.output : answer.outcome.text
  }
}
