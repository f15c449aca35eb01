import * as z from 'zod'
import type { GatewayConfig } from '../config.ts'
import { type Section, withDefaults } from '../section.ts'

const searchSchema = z
  .union([
    z.enum(['auto', 'always', 'never']),
    z.strictObject({
      offer: z.enum(['auto', 'always', 'never']).describe('Default: auto.').exactOptional(),
      above: z
        .int()
        .min(1, 'a number of tools from 1 to 100000')
        .max(100_000, 'a number of tools from 1 to 100000')
        .describe('auto also offers them to those whose list has more tools than this.')
        .exactOptional(),
    }),
  ])
  .describe('When search_tools, get_tool_details and call_tool are offered. auto: where something is locked.')

/** By default, the search tools are offered to callers with locked groups. */
export const search: Section<GatewayConfig['search']> = withDefaults(searchSchema, () =>
  searchSchema.transform((input) =>
    typeof input === 'string' ? { offer: input } : { ...input, offer: input.offer ?? ('auto' as const) },
  ),
)
