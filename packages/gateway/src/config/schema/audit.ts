import * as z from 'zod'
import { text, texts, SPAN, SPAN_HELP } from './values.ts'

const INPUT_KEY = /^(?:[\da-fA-F]{64}|[\w+/-]{43}=?)$/
const inputKey = z.string().regex(INPUT_KEY, '32 bytes in hex or base64; "openssl rand -hex 32" makes one')

export const auditSchema = z.strictObject({
  store: z
    .enum(['postgres', 'sqlite', 'jsonl', 'memory'])
    .describe('postgres: one audit of all replicas, in stores.postgres. Default: postgres with stores, else sqlite.')
    .exactOptional(),
  path: text
    .describe(
      'Default: .toolgate/audit.db or .toolgate/audit.jsonl. With durable: disk, a folder of this replica alone; default .toolgate/audit.',
    )
    .exactOptional(),
  durable: z
    .enum(['shared', 'disk'])
    .describe(
      'Of postgres. disk: a call waits for the disk of its replica, which ships records within a second. shared (default): for the database.',
    )
    .exactOptional(),
  mode: z
    .enum(['batched', 'required'])
    .describe('required: each record is durable before the call goes on. batched (default): within a second.')
    .exactOptional(),
  preview: z
    .boolean()
    .describe('Whether the redacted beginning of each input is kept beside its hash. Default: true.')
    .exactOptional(),
  inputs: z
    .union([
      z.enum(['redacted', 'facts']),
      z.strictObject({
        keep: z.literal('sealed'),
        key: inputKey.describe(
          '32 bytes in hex or base64, such as "${TOOLGATE_INPUT_KEY}". Who has it can open inputs.',
        ),
        olderKeys: z
          .array(inputKey)
          .max(100, 'at most 100 keys')
          .describe('Earlier keys: they still open what they have sealed.')
          .exactOptional(),
        keepFor: z
          .string()
          .regex(SPAN, SPAN_HELP)
          .describe('How long inputs are kept, such as 7d. Their records stay. Default: as long as the records.')
          .exactOptional(),
      }),
    ])
    .describe(
      'What is kept of inputs beside the preview. facts: what the conditions in force read of each call, for toolgate what-if; texts that are only compared as keyed hashes. keep: sealed: that, and the whole input, encrypted with a key of yours. Default: redacted, nothing.',
    )
    .exactOptional(),
  checkpoints: z
    .union([
      z.literal(false),
      z.strictObject({
        path: text
          .describe(
            'Default: in a folder checkpoints beside the audit. Better on another disk, or shipped to another host.',
          )
          .exactOptional(),
        keyFile: text
          .describe('An Ed25519 private key in PEM. Default: made at first use, beside the checkpoints.')
          .exactOptional(),
        everyRecords: z
          .int()
          .min(1, 'a number from 1 to 1000000')
          .max(1_000_000, 'a number from 1 to 1000000')
          .exactOptional(),
        everySeconds: z
          .int()
          .min(1, 'a number from 1 to 86400')
          .max(86_400, 'a number from 1 to 86400')
          .exactOptional(),
      }),
    ])
    .describe('Signed checkpoints, which show that a tail was cut off. Default: each 1000 records, and each minute.')
    .exactOptional(),
  witness: z
    .strictObject({
      file: text.describe('A file on another disk that each signed checkpoint is appended to.').exactOptional(),
      url: text.describe('The submission prefix of a C2SP tlog-witness.').exactOptional(),
      key: text.describe('The public key of the witness at url: name+id+key.').exactOptional(),
    })
    .describe('Of an audit that replicas share: who sees each signed checkpoint, so that a forged log is found.')
    .exactOptional(),
  rotate: z
    .strictObject({
      bytes: z.int().min(100_000, 'a number from 100000').describe('Once the file has so many bytes.').exactOptional(),
      every: z.string().regex(SPAN, SPAN_HELP).describe('Once its first record is so old, such as 1d.').exactOptional(),
    })
    .describe('When a file of JSON lines is closed and another begun. Default with retain: each day; else never.')
    .exactOptional(),
  retain: z
    .string()
    .regex(SPAN, SPAN_HELP)
    .describe(
      'How long records are kept, such as 90d. Older ones are removed; the others still verify. Default: for ever.',
    )
    .exactOptional(),
})

export const redactSchema = z.strictObject({
  keys: texts.describe('Further keys whose values are secret, such as internal_pin.').exactOptional(),
  patterns: texts.describe('Further values that are secret, as patterns in RE2 syntax.').exactOptional(),
})

export const stateSchema = z
  .strictObject({
    store: z.enum(['sqlite', 'memory']).describe('Default: sqlite.').exactOptional(),
    path: text.describe('Default: .toolgate/state.db. Several gateways of one machine may share it.').exactOptional(),
  })
  .describe('Where approvals, halts, preferences and the pins of tools are kept. memory: gone when the gateway ends.')
