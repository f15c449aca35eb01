import * as z from 'zod'
import type { GatewayConfig } from '../config.ts'
import { entryCheck } from '../policy.ts'
import { callsSchema, capSchema } from '../schema/calls.ts'
import { type Section, withDefaults } from '../section.ts'

export const calls: Section<GatewayConfig['calls']> = withDefaults(callsSchema, (reading) => {
  const cap = capSchema.superRefine(entryCheck(reading, (one) => ({ concurrency: [one] })))
  return callsSchema
    .extend({ concurrency: z.array(cap).exactOptional() })
    .transform(({ concurrency = [], ...rest }) => ({ ...rest, concurrency }))
})
