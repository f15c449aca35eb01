import type { JsonSchema } from '../tools/tool.ts'
import { MAX_QUERY_LENGTH } from './query.ts'
import { DEFAULT_LIMIT, MAX_LIMIT, SEARCH_DETAILS } from './search.ts'

export type MetaToolName = 'search_tools' | 'get_tool_details' | 'call_tool'

/** The one table of what the meta-tools say to a model. */
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

/** Names in questions and answers are as long as an id can be at most. */
const NAME: JsonSchema = { type: 'string', minLength: 1, maxLength: 257, description: 'As search_tools gives it' }

export const META_INPUTS: Readonly<Record<MetaToolName, JsonSchema>> = {
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

/** Says the same of a hidden tool as of one that does not exist. */
export function notAvailable(name: string): string {
  return `Tool "${name}" ${META_TEXTS.not_available}`
}
