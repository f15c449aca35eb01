import * as z from 'zod'
import { text, texts } from './values.ts'

/** The name of a key. */
export const KEY_ID: RegExp = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

export const callerSchema = z.strictObject({
  key: z
    .string()
    .min(8, 'a key of at least 8 characters')
    .describe('The API key itself. Prefer ${VAR} or keyHash.')
    .exactOptional(),
  keyHash: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 lower-case hex digits')
    .describe('The SHA-256 of the key.')
    .exactOptional(),
  for: z
    .enum(['mcp', 'console', 'host'])
    .describe(
      'mcp: an agent. console: a person (API, console, approvals). host: a program that runs agents. Default: mcp.',
    )
    .exactOptional(),
  id: z
    .string()
    .regex(KEY_ID, '1 to 64 letters, digits, ".", "_" and "-"')
    .describe('The name of the key. Required where a user has several for one use.')
    .exactOptional(),
  expires: z
    .union([z.iso.date(), z.iso.datetime({ offset: true })])
    .describe('When the key ends: 2027-01-31, or 2027-01-31T12:00:00Z. Default: never.')
    .exactOptional(),
  apps: z
    .array(text)
    .min(1, 'at least one app')
    .describe('The apps that the key opens. Default: all, and /mcp.')
    .exactOptional(),
  user: text,
  tenant: text.exactOptional(),
  roles: texts.exactOptional(),
  scopes: texts.exactOptional(),
  attributes: z
    .record(z.string(), z.unknown())
    .describe('Anything that conditions need: caller.attributes.')
    .exactOptional(),
})
export type CallerInput = z.infer<typeof callerSchema>
