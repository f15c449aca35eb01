import { type Caller, type OutcomeWord, type ReasonCode, REASONS } from '@toolgate/core'
import type { EarlierCall, ExpectedAnswers, PolicyTest, SnapshotItem, StatedHistory } from '@toolgate/change'
import type { GroupState } from '@toolgate/core/groups'
import * as z from 'zod'

/** One schema for each key that the parser reads. */
type KeysOf<T> = { readonly [Key in keyof Required<T>]: z.ZodType }

const OUTCOMES = ['allow', 'ask', 'wait', 'deny'] as const satisfies readonly OutcomeWord[]

const text = z.string()
const id = text.min(1).describe('Its id, such as files:read_file.')
const ids = z.array(id)
const json = z.unknown()

const callerSchema = z.strictObject({
  user: text.exactOptional(),
  tenant: text.exactOptional(),
  roles: z.array(text).exactOptional(),
  scopes: z.array(text).exactOptional(),
  session: text.min(1).exactOptional(),
  chat: z.strictObject({ id: text, type: text.exactOptional() }).exactOptional(),
  agent: text.exactOptional(),
  client: text.describe('The OAuth client that the user works with.').exactOptional(),
  actor: text.describe('Who acts for the user now, if somebody else does.').exactOptional(),
  actChain: z.array(text).exactOptional(),
  keyMadeBy: text.exactOptional(),
  makerChain: z.array(text).exactOptional(),
  aliases: z.array(text).exactOptional(),
  run: text.exactOptional(),
  attributes: z.record(text, json).describe('Anything that conditions need: caller.attributes.').exactOptional(),
} satisfies KeysOf<Caller>)

const toolSchema = z.strictObject({
  id,
  kind: z.enum(['resource', 'template', 'prompt']).describe('Default: a tool.').exactOptional(),
  namespace: text.describe('The server. Default: what the id begins with.').exactOptional(),
  name: text.describe('Default: what the id ends with.').exactOptional(),
  title: text.exactOptional(),
  description: text.exactOptional(),
  tags: z.array(text).exactOptional(),
  category: text.exactOptional(),
  requiredScopes: z.array(text).exactOptional(),
  labels: json.exactOptional(),
  trusted: z.boolean().exactOptional(),
  annotations: z.record(text, json).exactOptional(),
  hintsTrusted: z.boolean().exactOptional(),
  fields: z.record(text, json).exactOptional(),
  inputSchema: z.record(text, json).describe('The JSON Schema of its input.').exactOptional(),
  outputSchema: z.record(text, json).exactOptional(),
  groups: z.array(text).exactOptional(),
  addressees: z.array(text).exactOptional(),
  original: json.exactOptional(),
  strict: z.boolean().exactOptional(),
  uri: text.exactOptional(),
  mimeType: text.exactOptional(),
  size: z.number().exactOptional(),
  arguments: json.exactOptional(),
} satisfies KeysOf<SnapshotItem>)

const earlierCallSchema = z.strictObject({
  tool: id,
  input: json.exactOptional(),
  output: json.exactOptional(),
  failed: z.boolean().describe('It ended with an error.').exactOptional(),
  ago: text
    .regex(/^\d{1,9}(ms|s|m|h|d)$/)
    .describe('How long ago: 30s, 5m, 2h, 1d. Default: just now.')
    .exactOptional(),
} satisfies KeysOf<EarlierCall>)

const historySchema = z
  .strictObject({
    said: z
      .union([text, z.array(text)])
      .describe('What the user has written.')
      .exactOptional(),
    labels: z.array(text).describe('Labels that have risen.').exactOptional(),
    calls: z.array(earlierCallSchema).describe('Earlier calls, the earliest first.').exactOptional(),
    run: z.boolean().describe('false: the calls belong to no run. Default: true.').exactOptional(),
    lost: z.boolean().describe('Nobody knows it: rules get their strictest answer.').exactOptional(),
  } satisfies KeysOf<StatedHistory>)
  .describe('What has happened before. It is taken as it is stated.')

const groupStateSchema = z.strictObject({
  available: z.boolean(),
  unknown: z.boolean().exactOptional(),
  reason: text.exactOptional(),
  detail: text.exactOptional(),
  suggestion: text.exactOptional(),
  since: z.number().exactOptional(),
} satisfies KeysOf<GroupState>)

const unlockingSchema = z.union([
  z.strictObject({ request: text }),
  z.strictObject({ event: text }),
  z.strictObject({ found: ids }),
])

const reason = z.enum(Object.keys(REASONS) as [ReasonCode, ...ReasonCode[]])

const expectSchema = z
  .strictObject({
    visible: ids.describe('Everything that the caller sees, in order.').exactOptional(),
    sees: ids.describe('Ids that the caller sees.').exactOptional(),
    hides: ids.describe('Ids that the caller does not see.').exactOptional(),
    notices: z.array(text).describe('What the instructions tell the model, in order.').exactOptional(),
    call: z.record(id, z.enum(OUTCOMES)).describe('What a call of each tool comes to.').exactOptional(),
    reasons: z
      .record(id, z.array(reason))
      .describe('The codes of the decision, the deciding one first.')
      .exactOptional(),
    clause: z.record(id, text).describe('The clause that decides: policy#deny[1], or policy#id.').exactOptional(),
    text: z.record(id, text).describe('What the model is told.').exactOptional(),
  } satisfies KeysOf<ExpectedAnswers>)
  .describe('What must be so.')

const testSchema = z.strictObject({
  shows: text.min(1).describe('What the test shows, as a sentence.'),
  caller: z
    .union([text, callerSchema])
    .describe("A caller's name, such as vera, or vera of acme with a tenant; or a caller.")
    .exactOptional(),
  app: text.exactOptional(),
  at: text
    .regex(/^\d{4}-\d\d-\d\dT/)
    .describe('The time, such as 2026-01-31T09:00:00Z.')
    .exactOptional(),
  availability: z
    .record(text, z.union([z.boolean(), groupStateSchema]))
    .describe('What is down: a group, { web: false }, or a server, { "server:files": false }.')
    .exactOptional(),
  unlocked: z.array(unlockingSchema).describe('What the session has opened.').exactOptional(),
  visibility: ids.exactOptional(),
  activeTools: ids.exactOptional(),
  history: historySchema.exactOptional(),
  used: z
    .record(text, z.int().min(0))
    .describe('How much of a limit is used: { "files:write_file:5/60": 5 }.')
    .exactOptional(),
  input: json.describe('The input of each call. ${configDir} is the folder of the configuration.').exactOptional(),
  expect: expectSchema,
} satisfies KeysOf<PolicyTest>)

/** The shape of a test file. Core checks `tests`, because it knows the valid names. */
export const fileSchema = z.strictObject({
  config: text
    .min(1)
    .describe('The configuration. Default: --config, or toolgate.yaml beside the file.')
    .exactOptional(),
  catalog: text.min(1).describe('The file of a catalog that "toolgate snapshot" has written.').exactOptional(),
  tools: z
    .array(z.union([text.min(1), z.looseObject({ id: text.min(1) })]))
    .describe('Tools in the file itself: an id, or { id, inputSchema, … }.')
    .exactOptional(),
  callers: z
    .record(text, z.looseObject({}))
    .describe('Callers by name, beside those of the configuration.')
    .exactOptional(),
  tests: z.array(json).describe('The tests. Each is by itself.'),
})

/** The complete shape, without the names that depend on a configuration. */
const wholeSchema = fileSchema
  .extend({
    tools: z
      .array(z.union([id, toolSchema]))
      .describe(fileSchema.shape.tools.description ?? '')
      .exactOptional(),
    callers: z
      .record(text, callerSchema)
      .describe(fileSchema.shape.callers.description ?? '')
      .exactOptional(),
    tests: z.array(testSchema).describe(fileSchema.shape.tests.description ?? ''),
  })
  .describe('Tests of the policy of a Toolgate gateway, *.test.yaml.')

/** Returns the JSON Schema (2020-12) of a file of tests, for editors, as the text of `toolgate-tests.schema.json`. */
export function testsJsonSchema(): string {
  const { $schema, ...schema } = z.toJSONSchema(wholeSchema, { io: 'input' })
  return `${JSON.stringify({ $schema, title: '*.test.yaml', ...schema }, undefined, 2)}\n`
}
