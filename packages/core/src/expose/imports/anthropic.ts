import { notAFunction, otherFields, type ReadEntry } from './definition.ts'

/** Reads the tools of Messages. Those with another type than `custom` are the provider's own. */
export const readAnthropic: ReadEntry = (entry) => {
  const { type = 'custom', name, description, input_schema: inputSchema, strict } = entry
  if (type !== 'custom' && type !== null) return [notAFunction(type)]
  const lost = otherFields(entry, ['type', 'name', 'description', 'input_schema', 'strict'])
  return [{ name, description, inputSchema, strict, lost }]
}
