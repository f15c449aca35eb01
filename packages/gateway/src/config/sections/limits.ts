import * as z from 'zod'
import type { GatewayConfig } from '../config.ts'
import { entryCheck } from '../policy.ts'
import { limitSchema } from '../schema/limits.ts'
import { type Section, withDefaults } from '../section.ts'

const schema = z.array(limitSchema).describe('At most max uses in any window of so many seconds.')

/** Each limit is text or an object. */
export const limits: Section<GatewayConfig['limits']> = withDefaults(
  schema,
  (reading) => z.array(limitSchema.superRefine(entryCheck(reading, (limit) => ({ limits: [limit] })))),
  [],
)
