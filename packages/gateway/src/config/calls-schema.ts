import type { CapPart } from '@toolgate/core/internal'
import { z } from 'zod'

const CAP = /^\S+:(\d{1,7})$/
const MAX_RUNNING = 1_000_000
const MAX_CHARS = 1_000_000_000
const MAX_MS = 86_400_000
const CAP_PARTS = ['tool', 'user', 'tenant', 'session', 'chat'] as const satisfies readonly CapPart[]

function whole(min: number, max: number, what: string) {
  const expected = `a number of ${what} from ${min} to ${max}`
  return z.int().min(min, expected).max(max, expected)
}

export const capSchema = z.union([
  z
    .string()
    .regex(CAP, 'selector:max, such as "browser:*:2"')
    .refine((cap) => {
      const max = Number(CAP.exec(cap)?.[1] ?? 1)
      return max >= 1 && max <= MAX_RUNNING
    }, `selector:max with max from 1 to ${MAX_RUNNING}`),
  z.strictObject({
    match: z.string().min(1, 'text that is not empty').describe('A selector.'),
    max: whole(1, MAX_RUNNING, 'calls').describe('How many calls run at once.'),
    per: z
      .array(z.enum(CAP_PARTS))
      .describe('What is counted apart. Default: [tool]. []: all calls that match, together.')
      .optional(),
    waitMs: whole(0, 3_600_000, 'milliseconds')
      .describe('How long a call waits for its turn. 0 refuses at once. Default: 10000.')
      .optional(),
    maxWaiting: whole(0, MAX_RUNNING, 'calls').describe('How many calls may wait. Default: 100.').optional(),
  }),
])

export const concurrencySchema = z.array(capSchema)

const bounds = {
  deadlineMs: whole(1, MAX_MS, 'milliseconds')
    .describe('Ends any call, also one whose progress goes on. Default: ten times the longest callTimeoutMs.')
    .optional(),
  maxOutputChars: whole(1000, MAX_CHARS, 'characters')
    .describe('A longer output is cut, and says so. Default: 10000000.')
    .optional(),
}

export const callsSchema = z
  .strictObject({ ...bounds, concurrency: concurrencySchema.describe('How many calls run at once.').optional() })
  .describe('What bounds each call.')

/** Caps are checked one by one, so that one bad cap does not hide another. */
export const callsShellSchema = z.strictObject({ ...bounds, concurrency: z.unknown().optional() })

export const approvalsSchema = z
  .strictObject({
    ttlMs: whole(1, MAX_MS, 'milliseconds')
      .describe('How long an approval holds, from asking to its use. Default: 600000.')
      .optional(),
  })
  .describe('What people are asked to approve.')
