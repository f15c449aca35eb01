import { z } from 'zod'
import { configSchema } from './schema.ts'

/** Gives the JSON Schema (2020-12) of `toolgate.yaml`, for editors, as the text of `toolgate.schema.json`. */
export function configJsonSchema(): string {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { io: 'input' })
  return `${JSON.stringify({ $schema, title: 'toolgate.yaml', ...schema }, undefined, 2)}\n`
}
