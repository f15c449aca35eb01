import type { CapPart } from '@toolgate/core/call'
import * as z from 'zod'
import { receiverSchema } from './notify.ts'
import { whole } from './values.ts'

const CAP = /^\S+:(\d{1,7})$/
const MAX_RUNNING = 1_000_000
const MAX_CHARS = 1_000_000_000
const MAX_MS = 86_400_000
const MAX_WAIT_MS = 300_000
const MAX_RECEIVERS = 100
const CAP_PARTS = ['tool', 'user', 'tenant', 'session', 'chat'] as const satisfies readonly CapPart[]

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
      .exactOptional(),
    waitMs: whole(0, 3_600_000, 'milliseconds')
      .describe('How long a call waits for its turn. 0 refuses at once. Default: 10000.')
      .exactOptional(),
    maxWaiting: whole(0, MAX_RUNNING, 'calls').describe('How many calls may wait. Default: 100.').exactOptional(),
  }),
])

export const callsSchema = z
  .strictObject({
    deadlineMs: whole(1, MAX_MS, 'milliseconds')
      .describe('Ends any call, also one whose progress goes on. Default: ten times the longest callTimeoutMs.')
      .exactOptional(),
    maxOutputChars: whole(1000, MAX_CHARS, 'characters')
      .describe('A longer output is cut, and says so. Default: 10000000.')
      .exactOptional(),
    concurrency: z.array(capSchema).describe('How many calls run at once.').exactOptional(),
  })
  .describe('What bounds each call.')

export const approvalsSchema = z
  .strictObject({
    ttlMs: whole(1, MAX_MS, 'milliseconds')
      .describe('How long an approval holds, from asking to its use. Default: 600000.')
      .exactOptional(),
    notify: z
      .array(receiverSchema)
      .max(MAX_RECEIVERS, `at most ${MAX_RECEIVERS} receivers`)
      .describe('Who gets a message when a call waits for a person, and when that ends. A reload applies it.')
      .exactOptional(),
    wait: z
      .strictObject({
        ms: whole(0, MAX_WAIT_MS, 'milliseconds').describe('0 answers at once. Default: 0.'),
      })
      .describe(
        'How long a call is held open for a decision, if its client opens no links and runs no tasks. A reload applies it.',
      )
      .exactOptional(),
  })
  .describe('What people are asked to approve.')

const LIFE = /^[1-9]\d{0,4}[mhd]$/
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const MAX_LIFE_MS = 30 * 86_400_000

export const grantsSchema = z
  .strictObject({
    max: z
      .string()
      .regex(LIFE, 'a time such as "30m", "8h" or "7d", at most "30d"')
      .refine((life) => toMs(life) <= MAX_LIFE_MS, 'a time of at most "30d"')
      .describe('The longest life of a grant: "30m", "8h", "7d". At most "30d".'),
    maxUses: whole(1, 1000, 'calls')
      .describe('The most calls of one grant, besides the approved one. Default: 100.')
      .exactOptional(),
    by: z
      .enum(['other'])
      .describe('other: only another person than the one who asked may grant. Default: whoever may approve.')
      .exactOptional(),
  })
  .describe('Lets approvers also approve further calls like the approved one. Default: they cannot.')

/** Returns a time such as `8h` in milliseconds. */
export function toMs(life: string): number {
  return Number(life.slice(0, -1)) * (UNIT_MS[life.slice(-1)] ?? 0)
}

const DRAIN = 'a number of milliseconds from 0 to 3600000'
export const drainSchema = z
  .int()
  .min(0, DRAIN)
  .max(3_600_000, DRAIN)
  .describe('How long running calls may take when the gateway stops. Default: 30000.')
