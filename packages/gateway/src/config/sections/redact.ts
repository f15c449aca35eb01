import { ConfigError } from '@toolgate/core'
import { createRedactor } from '@toolgate/values/redact'
import type * as z from 'zod'
import type { GatewayConfig } from '../config.ts'
import { reportIn } from '../reading.ts'
import { redactSchema } from '../schema/audit.ts'
import { type Section, withDefaults } from '../section.ts'

/** Keys and patterns are checked one by one, so that every problem is reported. */
const redacting = redactSchema.transform(({ keys = [], patterns = [] }, ctx) => {
  for (const [i, key] of keys.entries()) reportUnusable(ctx, ['keys', i], { keys: [key] })
  for (const [i, pattern] of patterns.entries()) reportUnusable(ctx, ['patterns', i], { patterns: [pattern] })
  return { keys, patterns }
})

function reportUnusable(
  ctx: z.RefinementCtx,
  at: readonly (string | number)[],
  options: Parameters<typeof createRedactor>[0],
): void {
  try {
    createRedactor(options)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    reportIn(ctx, at, error.problem)
  }
}

export const redact: Section<GatewayConfig['redact']> = withDefaults(
  redactSchema.describe('What is hidden beside what looks like a secret by itself.'),
  () => redacting,
)
