import { isObject } from '../schema/node.ts'
import { type ForeignDefinition, notAFunction, otherFields, type ReadEntry } from './definition.ts'
import { readOpenApi } from './openapi.ts'

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
