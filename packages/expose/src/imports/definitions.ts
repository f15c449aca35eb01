import { isObject } from '../schema/node.ts'
import { type ForeignNote, readOpenApi } from './openapi.ts'

/** One tool as a provider's request defines it, its fields not yet checked. */
export interface ForeignDefinition {
  readonly name: unknown
  /** The name in the request, if it differs from `name`. */
  readonly wireName?: string
  readonly namespace?: unknown
  readonly description?: unknown
  readonly inputSchema?: unknown
  readonly outputSchema?: unknown
  readonly strict?: unknown
  /** Fields that a tool cannot keep. */
  readonly lost: Readonly<Record<string, unknown>>
  /** The lost parts of its schemas, by RFC 6901 pointers into the provider's own schema. */
  readonly notes?: readonly ForeignNote[]
}

/** An entry of a list of tools that no gate can govern, such as a search that the provider runs itself. */
interface NotAFunction {
  readonly notAFunction: string
}

/** Returns the kind of an entry that is not a function: its type, or one of its fields. */
export function notAFunction(what: unknown): NotAFunction {
  return { notAFunction: typeof what === 'string' && what !== '' ? what : 'of an unknown type' }
}

/** Reads one entry of a request's list of tools, which may define several. */
export type ReadEntry = (entry: Readonly<Record<string, unknown>>) => readonly (ForeignDefinition | NotAFunction)[]

/** Returns the unknown fields that are not empty. */
function otherFields(
  entry: Readonly<Record<string, unknown>>,
  known: readonly string[],
): Readonly<Record<string, unknown>> {
  const others = Object.entries(entry).filter(
    ([key, value]) => !known.includes(key) && value !== undefined && value !== null,
  )
  return Object.fromEntries(others)
}

/** The schema of a function without parameters. */
const NO_PARAMETERS = { type: 'object', properties: {} }

/** Reads the tools of Chat Completions and of Responses, namespaces too. */
export const readOpenAi: ReadEntry = (entry) => {
  const { type, name: namespace, tools } = entry
  if (type !== 'namespace' || !Array.isArray(tools)) return readTool(entry)
  return tools.filter(isObject).flatMap((tool) => readTool(tool).map((read) => ({ ...read, namespace })))
}

const readTool: ReadEntry = (entry) => {
  const { type, function: inner } = entry
  if (type !== 'function') return [notAFunction(type)]
  if (!isObject(inner)) return [readFunction(entry, ['type'])]
  const read = readFunction(inner, [])
  return [{ ...read, lost: { ...read.lost, ...otherFields(entry, ['type', 'function']) } }]
}

function readFunction(fields: Readonly<Record<string, unknown>>, known: readonly string[]): ForeignDefinition {
  const { name, description, parameters, strict, output_schema: outputSchema } = fields
  return {
    name,
    description,
    inputSchema: parameters ?? NO_PARAMETERS,
    outputSchema,
    strict,
    lost: otherFields(fields, [...known, 'name', 'description', 'parameters', 'strict', 'output_schema']),
  }
}

/** Reads the tools of Messages. Those with another type than `custom` are the provider's own. */
export const readAnthropic: ReadEntry = (entry) => {
  const { type = 'custom', name, description, input_schema: inputSchema, strict } = entry
  if (type !== 'custom' && type !== null) return [notAFunction(type)]
  const lost = otherFields(entry, ['type', 'name', 'description', 'input_schema', 'strict'])
  return [{ name, description, inputSchema, strict, lost }]
}

/** Reads the tools of `generateContent`, and function declarations alone, with schemas in either of Gemini's two forms. */
export const readGemini: ReadEntry = (entry) => {
  const { functionDeclarations, ...others } = entry
  if ('name' in entry) return [readDeclaration(entry)]
  const own = Object.keys(others).map(notAFunction)
  const declared = Array.isArray(functionDeclarations) ? functionDeclarations.filter(isObject) : []
  return [...declared.map(readDeclaration), ...own]
}

const KNOWN = ['name', 'description', 'parameters', 'parametersJsonSchema', 'response', 'responseJsonSchema']

function readDeclaration(declaration: Readonly<Record<string, unknown>>): ForeignDefinition {
  const { name, description, parameters, parametersJsonSchema, response, responseJsonSchema } = declaration
  const input =
    parametersJsonSchema === undefined ? readOpenApi(parameters) : { schema: parametersJsonSchema, notes: [] }
  const output = responseJsonSchema === undefined ? readOpenApi(response) : { schema: responseJsonSchema, notes: [] }
  return {
    ...readName(name),
    description,
    inputSchema: input.schema ?? { type: 'object', properties: {} },
    outputSchema: output.schema,
    lost: otherFields(declaration, KNOWN),
    notes: [...input.notes, ...output.notes.map((note) => ({ ...note, feature: `outputSchema ${note.feature}` }))],
  }
}

/** `expose` writes `_` before a name that Gemini would refuse for its first character. */
function readName(name: unknown): Pick<ForeignDefinition, 'name' | 'wireName'> {
  return typeof name === 'string' && /^_[^A-Za-z_]/.test(name) ? { name: name.slice(1), wireName: name } : { name }
}

/** Reads the tools of Converse's `toolConfig`. */
export const readBedrock: ReadEntry = ({ toolSpec, ...others }) => {
  if (!isObject(toolSpec)) return [notAFunction(Object.keys(others).join(', '))]
  const { name, description, inputSchema, strict } = toolSpec
  const lost = otherFields(toolSpec, ['name', 'description', 'inputSchema', 'strict'])
  return [{ name, description, inputSchema: isObject(inputSchema) ? inputSchema['json'] : undefined, strict, lost }]
}
