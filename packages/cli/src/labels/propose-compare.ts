import { isObject, type JsonObject } from '@toolgate/values/json'

interface Listed {
  readonly name: string
  readonly inputSchema: unknown
  readonly annotations?: unknown
}

/** The reading tool whose output a person compares with the content that a call would write. */
export interface ProposedCompare {
  readonly text: string
  readonly with: string
  readonly input: Readonly<Record<string, string>>
}

const WRITES = /^(?:write|create|update|put|save|set|replace|overwrite)_/
/** The names of reading tools. The first one that the server has is proposed. */
const READS = ['read_text', 'read', 'get', 'fetch', 'view', 'load', 'cat', 'show']
const TEXT = /^(?:new_?|file_?)?(?:contents?|text|body|data)$/i

/**
 * Proposes the reading tool of a writing tool: `read_text_file` for `write_file`, by a path that both take. `undefined`
 * unless a tool annotated as read-only has one of those names and needs only fields of the call.
 */
export function proposeCompare(tool: Listed, others: readonly Listed[]): ProposedCompare | undefined {
  const verb = WRITES.exec(tool.name)
  const texts = textsOf(tool.inputSchema).filter((field) => TEXT.test(field))
  const [text] = texts
  if (!verb || text === undefined || texts.length > 1) return undefined
  const noun = tool.name.slice(verb[0].length)
  const taken = textsOf(tool.inputSchema)
  for (const read of READS) {
    const reader = others.find(({ name }) => name === `${read}_${noun}`)
    if (!reader || !isReadOnly(reader.annotations)) continue
    const needed = requiredOf(reader.inputSchema)
    if (needed.length === 0 || needed.includes(text) || !needed.every((field) => taken.includes(field))) continue
    const input = Object.fromEntries(needed.map((field) => [field, `input.${field}`]))
    return { text: `input.${text}`, with: reader.name, input }
  }
  return undefined
}

function isReadOnly(annotations: unknown): boolean {
  return isObject(annotations) && annotations['readOnlyHint'] === true
}

/** Returns the names of the fields that are texts. */
function textsOf(schema: unknown): readonly string[] {
  const properties: JsonObject = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {}
  return Object.entries(properties).flatMap(([name, field]) =>
    isObject(field) && field['type'] === 'string' && /^[^.\s]{1,100}$/.test(name) ? [name] : [],
  )
}

function requiredOf(schema: unknown): readonly string[] {
  const required = isObject(schema) ? schema['required'] : undefined
  return Array.isArray(required) ? required.filter((field) => typeof field === 'string') : []
}
