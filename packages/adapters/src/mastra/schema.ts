import type { StandardSchema } from '@toolgate/core'
import { validateToolInput } from '@mastra/core/tools'
import type { Tool } from '@mastra/core/tools'

/** A schema as a tool of Mastra keeps it, whatever library it was written with. */
export type MastraSchema = NonNullable<Tool['inputSchema']>

/**
 * Gives the schema by which the gate checks inputs: the tool's own, with the indulgence that Mastra has for what models
 * write - `null` for what is optional, an object as a text.
 */
export function schemaForGate(schema: MastraSchema): StandardSchema {
  const { '~standard': standard } = schema
  const validate = (value: unknown): unknown => {
    const strict = standard.validate(value)
    if (strict instanceof Promise || strict.issues === undefined) return strict
    const { data, error } = validateToolInput(schema, value)
    return error ? strict : { value: data }
  }
  return { '~standard': { ...standard, validate } }
}

/**
 * Gives a schema that says the same to a model and takes any input: the gate is who refuses one, so that it is refused
 * with its reason and on record.
 */
export function schemaForModel(schema: StandardSchema): MastraSchema {
  const validate = (value: unknown) => ({ value })
  return { '~standard': { ...schema['~standard'], validate } } as unknown as MastraSchema
}

/** The same of a JSON Schema. */
export function jsonSchemaForModel(schema: object): MastraSchema {
  const give = () => schema as Record<string, unknown>
  return schemaForModel({ '~standard': { version: 1, vendor: 'toolgate', jsonSchema: { input: give, output: give } } })
}

export const ANY_SCHEMA: MastraSchema = jsonSchemaForModel({})
