import * as z from 'zod'
import { text } from './values.ts'

/** The formats of messages: those of two chats, and signed JSON for programs. */
const NOTIFY_FORMATS = ['slack', 'teams', 'json'] as const

/** A receiver of notifications, as people write it. */
export const receiverSchema = z.strictObject({
  url: z
    .string()
    .regex(/^https?:\/\/[^/?#\s]\S*$/, 'a URL of http or https')
    .max(2_000, 'a URL of at most 2000 characters')
    .describe(
      'Gets a POST for each message. Write it as ${VAR} or ${file:…}: who has the URL of a chat can post there.',
    ),
  format: z.enum(NOTIFY_FORMATS).describe('`json` is for programs.'),
  name: z
    .string()
    .regex(/^[\w.@-]{1,64}$/, 'at most 64 letters, digits and any of "_.@-"')
    .describe('Default: the host of the URL.')
    .exactOptional(),
  for: z
    .array(text)
    .min(1, 'a tenant at least')
    .describe('The tenants. Default: all, and calls without a tenant.')
    .exactOptional(),
  secret: z
    .string()
    .min(16, 'at least 16 characters')
    .max(512, 'at most 512 characters')
    .describe('Signs the messages of `json` (Standard Webhooks). `whsec_` and base64, or any text.')
    .exactOptional(),
  input: z
    .boolean()
    .describe('Whether messages have the input, with its secrets masked. Default: false.')
    .exactOptional(),
})
