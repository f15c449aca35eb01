import * as z from 'zod'
import { text } from './values.ts'

const MAX_USES = 1_000_000
const MAX_WINDOW_SECONDS = 31 * 24 * 60 * 60

/** The dimensions by which the gate counts separately. */
const LIMIT_PARTS = ['tenant', 'tool', 'chat', 'user', 'actor', 'client'] as const

const LIMIT = /^\S+:(\d{1,9})\/(\d{1,9})$/

const limitTextSchema = z
  .string()
  .regex(LIMIT, 'selector:max/seconds, such as "files:write_file:5/60"')
  .refine((limit) => {
    const [, max = 1, seconds = 1] = (LIMIT.exec(limit) ?? []).map(Number)
    return max >= 1 && max <= MAX_USES && seconds >= 1 && seconds <= MAX_WINDOW_SECONDS
  }, `selector:max/seconds with max from 1 to ${MAX_USES} and seconds from 1 to ${MAX_WINDOW_SECONDS}`)

export const limitSchema = z.union([
  limitTextSchema,
  z.strictObject({
    match: text.describe('A selector.'),
    max: z
      .int()
      .min(1, `a number of uses from 1 to ${MAX_USES}, with a cost to 2^53 - 1`)
      .max(Number.MAX_SAFE_INTEGER, `a number of uses from 1 to ${MAX_USES}, with a cost to 2^53 - 1`)
      .describe(`How many uses in any window of that length: up to ${MAX_USES}; with a cost up to 2^53 - 1.`),
    windowMs: z
      .int()
      .min(1, `a number of milliseconds from 1 to ${MAX_WINDOW_SECONDS * 1000}`)
      .max(MAX_WINDOW_SECONDS * 1000, `a number of milliseconds from 1 to ${MAX_WINDOW_SECONDS * 1000}`),
    per: z
      .array(z.enum(LIMIT_PARTS))
      .describe('What is counted apart. Default: tenant, tool, chat and user. Required with a cost.')
      .exactOptional(),
    cost: text
      .describe('How much of max a call takes: CEL over input, caller and tool, such as units(input.amount, 2).')
      .exactOptional(),
    maxCost: z
      .int()
      .min(0, 'a whole number from 0')
      .describe('What a call costs whose input does not say it, and the most that a call may cost.')
      .exactOptional(),
    settle: text
      .describe('What a call of a trusted tool has really cost: CEL over its structured output too.')
      .exactOptional(),
    refund: z.literal('failed').describe('failed: a call that fails costs nothing.').exactOptional(),
    unit: z
      .union([text, z.strictObject({ name: text, per: z.int().exactOptional() })])
      .describe('What is counted: searches, or { name: EUR, per: 100 } where 100 of them are one EUR.')
      .exactOptional(),
    message: text
      .describe('What a refused caller is told. {cost}, {left}, {max} and {wait} stand for what the limit knows.')
      .exactOptional(),
  }),
])
