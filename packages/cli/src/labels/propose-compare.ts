import { isObject, type JsonObject } from '@toolgate/values/json'

interface Listed {
  readonly name: string
  readonly inputSchema: unknown
  readonly annotations?: unknown
}

/** How a person who decides a call of a tool compares what it would write with what is there. */
export interface ProposedCompare {
  readonly text: string
  readonly with: string
  readonly input: Readonly<Record<string, string>>
}

const WRITES = /^(?:write|create|update|put|save|set|replace|overwrite)_/
/** The first that a server has. */
const READS = ['read_text', 'read', 'get', 'fetch', 'view', 'load', 'cat', 'show']
const TEXT = /^(?:new_?|file_?)?(?:contents?|text|body|data)$/i

/**
 * Proposes with which tool of its server what a tool writes can be compared: `write_file` with `read_text_file`, by a path that
 * both take. `undefined` where no tool that is annotated as read-only has that name and needs only what the call has.
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

/** The names of the fields that are texts. */
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
