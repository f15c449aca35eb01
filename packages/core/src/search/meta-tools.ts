import { type CallOutcome, InputRequired } from '../call/outcome.ts'
import type { Caller } from '../ports/caller.ts'
import { isRequestTool, markOwnTool, markPassingTool } from '../tools/own-tool.ts'
import { type CallContext, defineTool, type JsonSchema, type Tool } from '../tools/tool.ts'
import { checkShape, shapeOf } from '@toolgate/values'
import { type Calling, callingOf } from './calling.ts'
import { MAX_QUERY_LENGTH } from './rank.ts'
import { type CheckedSearcher, checkSearcher, type SearcherOptions } from './searcher.ts'
import { DEFAULT_LIMIT, MAX_LIMIT, SEARCH_DETAILS, type SearchDetail, type SearchHit } from './search.ts'

interface MetaToolOptions extends SearcherOptions {
  /** Which meta-tools. Default: all three. `call_tool` is for clients whose list of tools cannot grow. */
  readonly names?: readonly MetaToolName[]
  readonly namespace?: string
  /**
   * Opens the found tools for the caller: `(caller, ids) => gate.locks.found(caller, ids)`. If absent, `search_tools`
   * finds no locked tools.
   */
  readonly onFound?: (caller: Caller, ids: readonly string[]) => void
  /** The host's own tools that searches leave out, since callers have them or have no use for them. */
  readonly own?: (tool: Tool) => boolean
  /** Returns the output in the form of the host's protocol. Default: the value; the output, or the text, of the call. */
  readonly toOutput?: (answer: MetaAnswer) => unknown
}

/** The result of a meta-tool, before it is put into the form of a protocol. */
export type MetaAnswer =
  | {
      readonly kind: 'value'
      readonly value: SearchAnswer | { readonly tools: readonly (ToolDetails | UnknownDetails)[] }
    }
  /** The outcome of `call_tool`. */
  | { readonly kind: 'outcome'; readonly outcome: CallOutcome }
  /** `call_tool` was to call itself. */
  | { readonly kind: 'refusal'; readonly text: string }

interface SearchAnswer {
  readonly tools: readonly (Omit<SearchHit, 'id' | 'kind' | 'score' | 'tags'> & { readonly name: string })[]
  /** Advice if nothing was found, or the tools that can be used only from the next step on. */
  readonly hint?: string
}

type ToolDetails = { readonly name: string } & Partial<
  Pick<Tool, 'title' | 'description' | 'inputSchema' | 'outputSchema' | 'annotations'>
>

/** The result for an unknown tool, and the same for a hidden one. */
interface UnknownDetails {
  readonly name: string
  readonly error: string
}

/**
 * Returns the tools with which a model finds tools: `search_tools`, `get_tool_details` and `call_tool`.
 *
 * They are ordinary tools, tagged `meta` and subject to policy. Each works on the view of its call: it never finds,
 * describes or runs a tool that the view hides. `call_tool` makes a separate call, with the same decision, limits,
 * approvals and records as the client's.
 *
 * @throws {ConfigError} `tool_invalid` for an invalid namespace
 * @example
 * const gate = createGate({ tools: [...tools, ...metaTools()], policy: { deny: [{ match: 'call_tool', unless: "'ops' in caller.roles" }] } })
 */
export function metaTools(options: MetaToolOptions = {}): readonly Tool[] {
  checkShape('metaTools', options, OPTIONS)
  const { names = META_NAMES, namespace, toOutput = toPlainOutput } = options
  const searcher = checkSearcher('metaTools', options)
  return META_NAMES.filter((name) => names.includes(name)).map((name) => {
    const answer = ANSWERS[name]
    const tool = defineTool({
      namespace,
      name,
      ...META_TEXTS[name],
      inputSchema: META_INPUTS[name],
      tags: ['meta'],
      // `call_tool` may call any tool, so it has no hints.
      annotations: name === 'call_tool' ? {} : { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
      execute: async (input: never, call: CallContext) => {
        const answered = await answer(input, callingOf(call), { ...options, searcher })
        return toInputRequired(answered) ?? toOutput(answered)
      },
    })
    made.set(tool, name)
    if (name === 'call_tool') markPassingTool(tool)
    return markOwnTool(tool)
  })
}

const OPTIONS = shapeOf<MetaToolOptions>({
  names: true,
  namespace: true,
  onFound: true,
  own: true,
  toOutput: true,
  searcher: true,
  searchDeadlineMs: true,
  onWarning: true,
})
const META_NAMES = ['search_tools', 'get_tool_details', 'call_tool'] as const
/** How many of the host's own tools may rank before the wanted ones. */
const MAX_OWN = 4
const made = new WeakMap<Tool, MetaToolName>()

/** The options of the tools, with a checked searcher. */
type Opened = Pick<MetaToolOptions, 'onFound' | 'own'> & { readonly searcher: CheckedSearcher | undefined }
type MetaToolHandler = (input: never, calling: Calling, options: Opened) => MetaAnswer | Promise<MetaAnswer>

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

/** Leaves out the meta-tools, since the caller has them. */
async function search(
  { query, limit = DEFAULT_LIMIT, detail = 'descriptions' }: SearchInput,
  calling: Calling,
  { onFound, own, searcher }: Opened,
): Promise<MetaAnswer> {
  const options = { limit: Math.min(MAX_LIMIT, limit + META_NAMES.length + MAX_OWN), detail }
  const all = searcher
    ? await calling.searchBy(searcher, query, options, onFound !== undefined)
    : onFound
      ? calling.searchLocked(query, options)
      : calling.search(query, options)
  const hits = all.filter(({ id }) => !isLeftOut(calling.get(id), own)).slice(0, limit)
  const locked = hits.map(({ id }) => id).filter((id) => calling.get(id) === undefined)
  if (locked.length > 0) onFound?.(calling.caller, locked)
  const tools = hits.map(({ id, kind: _, score: __, tags: ___, ...shown }) => ({ name: calling.toName(id), ...shown }))
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

/** Calls another tool. It cannot call itself, since the inner calls would count against no other limit. */
async function callOther(
  { name, arguments: input = {} }: { readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> },
  calling: Calling,
): Promise<MetaAnswer> {
  const tool = calling.get(calling.toId(name))
  if (tool && made.get(tool) === 'call_tool') return { kind: 'refusal', text: META_TEXTS.calls_itself }
  return { kind: 'outcome', outcome: await calling.call(name, input) }
}

/** A retry of `call_tool` is the next round of the call that it made. */
function toInputRequired(answer: MetaAnswer): InputRequired | undefined {
  if (answer.kind !== 'outcome' || answer.outcome.status !== 'input_required') return undefined
  return new InputRequired(answer.outcome.payload, answer.outcome.continues)
}

function toPlainOutput(answer: MetaAnswer): unknown {
  switch (answer.kind) {
    case 'value':
      return answer.value
    case 'refusal':
      return answer.text
    case 'outcome':
      return answer.outcome.status === 'done' && answer.outcome.note === undefined
        ? answer.outcome.output
        : answer.outcome.text
  }
}

type MetaToolName = 'search_tools' | 'get_tool_details' | 'call_tool'

/** The texts of the meta-tools for a model. */
export const META_TEXTS = {
  search_tools: {
    title: 'Search tools',
    description:
      'Finds tools by what they do. Give a few words, such as "send email". The best match comes first; then ask get_tool_details for the input of the one you choose.',
  },
  get_tool_details: {
    title: 'Get tool details',
    description: 'Gives the full definitions of tools by their names, with the JSON Schema of their input.',
  },
  call_tool: {
    title: 'Call a tool',
    description:
      'Calls a tool that search_tools has found and that is not in your list of tools. Give its name and its arguments.',
  },
  nothing_found: 'No tool matches. Try other or fewer words.',
  opened: 'Opened for you, to be used from your next step on:',
  calls_itself: 'TOOL_CALL_BLOCKED: call_tool cannot call itself. Give the name of the tool that you want.',
  not_available: 'is not available. Find the names of tools with search_tools.',
} as const

/** A name is at most as long as an id. */
const NAME: JsonSchema = { type: 'string', minLength: 1, maxLength: 257, description: 'As search_tools gives it' }

const META_INPUTS: Readonly<Record<MetaToolName, JsonSchema>> = {
  search_tools: {
    type: 'object',
    properties: {
      query: { type: 'string', minLength: 1, maxLength: MAX_QUERY_LENGTH, description: 'A few words' },
      limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
      detail: {
        enum: [...SEARCH_DETAILS],
        default: 'descriptions',
        description: 'How much to tell of each tool; schemas are long',
      },
    },
    required: ['query'],
    additionalProperties: false,
  },
  get_tool_details: {
    type: 'object',
    properties: { names: { type: 'array', items: NAME, minItems: 1, maxItems: 20 } },
    required: ['names'],
    additionalProperties: false,
  },
  call_tool: {
    type: 'object',
    properties: { name: NAME, arguments: { type: 'object', description: 'The input of the tool' } },
    required: ['name'],
    additionalProperties: false,
  },
}

/** Returns the same text for a hidden tool and an unknown one. */
function notAvailable(name: string): string {
  return `Tool "${name}" ${META_TEXTS.not_available}`
}
