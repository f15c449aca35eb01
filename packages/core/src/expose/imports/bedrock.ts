import { isObject } from '../schema/node.ts'
import { notAFunction, otherFields, type ReadEntry } from './definition.ts'

/** Reads the tools of Converse's `toolConfig`. */
export const readBedrock: ReadEntry = ({ toolSpec, ...others }) => {
  if (!isObject(toolSpec)) return [notAFunction(Object.keys(others).join(', '))]
  const { name, description, inputSchema, strict } = toolSpec
  const lost = otherFields(toolSpec, ['name', 'description', 'inputSchema', 'strict'])
  return [{ name, description, inputSchema: isObject(inputSchema) ? inputSchema['json'] : undefined, strict, lost }]
}
