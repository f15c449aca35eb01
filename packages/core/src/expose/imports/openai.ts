import { isObject } from '../schema/node.ts'
import { type ForeignDefinition, notAFunction, otherFields, type ReadEntry } from './definition.ts'

/** A function without parameters takes none. */
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
