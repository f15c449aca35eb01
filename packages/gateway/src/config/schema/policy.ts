import * as z from 'zod'
import { name, text, texts, timeoutMs } from './values.ts'
import { instructionsSchema } from './servers.ts'

export const labelsSchema = z
  .record(z.string(), texts)
  .describe(
    'Which tools give their output which labels: { trusted: ["contacts:*"], private: ["crm:*"] }. Without trusted it is untrusted.',
  )

const historyMs = timeoutMs.exactOptional()

export const historySchema = z
  .strictObject({
    calledMs: historyMs.describe('How long what was called counts. Default: 3600000.'),
    labelMs: historyMs.describe('How long a label counts after it last rose. Default: 86400000.'),
  })
  .describe('What is known of callers without a run, where rules ask.')

const approverCount = z.int().min(1, 'a number of people from 1 to 10').max(10, 'a number of people from 1 to 10')

export const clauseSchema = z.union([
  text,
  z.strictObject({
    id: text.exactOptional(),
    match: z.union([text, z.array(text).min(1, 'at least one selector')]).describe('Which tools it is about.'),
    when: text.describe('CEL over caller and tool: holds only where this is true.').exactOptional(),
    unless: text.describe('CEL over caller and tool: does not hold where this is true.').exactOptional(),
    input: text.describe('CEL over input, caller and tool: known only when the tool is called.').exactOptional(),
    message: text
      .describe('On a denial: told to the caller. Without it the tool is as if it did not exist.')
      .exactOptional(),
    by: z.literal('other').describe('Under ask: another person than the one who asks must approve.').exactOptional(),
    login: z
      .string()
      .regex(/^[1-9]\d{0,5}[smh]$/, 'a time such as "30s", "5m" or "1h"')
      .describe("Under ask: the longest time since the approver's login, such as 5m.")
      .exactOptional(),
    approvers: z
      .union([approverCount, z.record(text, approverCount)])
      .describe(
        'Under ask: how many different people must approve: 2, or for each role, in place of the role approver: { finance: 1, security: 1 }.',
      )
      .exactOptional(),
    edit: z
      .boolean()
      .describe('Under ask: whether an approver may change the input. Every clause that asks must allow it.')
      .exactOptional(),
    mode: z
      .literal('shadow')
      .describe('Under deny and ask: records what the clause would do, and does nothing else.')
      .exactOptional(),
  }),
])

const clauses = z.array(clauseSchema)

/** A policy whose clauses are still to be checked one by one, so that one bad clause does not hide another. */
export const policyShellSchema = z.strictObject({
  name: text.exactOptional(),
  allow: z.array(z.unknown()).exactOptional(),
  deny: z.array(z.unknown()).exactOptional(),
  ask: z.array(z.unknown()).exactOptional(),
  requireTags: texts.exactOptional(),
  mode: z
    .literal('shadow')
    .describe('Calls are decided as if the policy were absent, and their records say what it would do.')
    .exactOptional(),
})

export const policySchema = policyShellSchema.extend({
  allow: clauses
    .describe('Present: a tool is allowed only where one of these holds. [] allows nothing.')
    .exactOptional(),
  deny: clauses.describe('Denied where one of these holds.').exactOptional(),
  ask: clauses.describe('A person must approve where one of these holds.').exactOptional(),
  requireTags: texts.describe('A tool without all of these is denied.').exactOptional(),
})

/** An app whose policies are still to be checked, clause by clause. */
export const appShellSchema = z.strictObject({
  title: text.exactOptional(),
  import: z
    .array(
      z.union([
        text,
        z.strictObject({
          group: text,
          visibility: z
            .enum(['conditional', 'hidden'])
            .describe('conditional: offered only while the group is available. hidden: not offered.')
            .exactOptional(),
        }),
      ]),
    )
    .describe('Groups, by name.')
    .exactOptional(),
  tools: z.array(text).describe('Selectors of tools beside those of its groups; group: excepted.').exactOptional(),
  policy: z.array(z.unknown()).exactOptional(),
  instructions: instructionsSchema
    .describe("Sent to each client of this app at its start, for the model, after the gateway's own.")
    .exactOptional(),
})

const appSchema = appShellSchema.extend({
  policy: z.array(policySchema).describe("Met with the gateway's: it can only tighten.").exactOptional(),
})

export const appsSchema = z
  .record(name, appSchema)
  .describe('Named bundles of groups and tools, each served at /mcp/<name>.')
