import * as z from 'zod'
import { oauthSchema } from './oauth.ts'
import { oidcSchema } from './oidc.ts'
import { replicaSchema, storesSchema } from './stores.ts'
import { callsSchema, approvalsSchema, drainSchema } from './schema/calls.ts'
import { timeoutMs, variableName } from './schema/values.ts'
import {
  namesSchema,
  instructionsSchema,
  serversSchema,
  pinsSchema,
  definitionsSchema,
  instancesSchema,
} from './schema/servers.ts'
import { callerSchema } from './schema/callers.ts'
import { groupsSchema, aliasesSchema } from './schema/groups.ts'
import { labelsSchema, historySchema, policySchema, appsSchema } from './schema/policy.ts'
import { listenSchema, publicUrlSchema, metricsSchema } from './schema/listen.ts'
import { auditSchema, redactSchema, stateSchema } from './schema/audit.ts'
import { limitSchema } from './schema/limits.ts'

export const searchSchema = z
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

export const watchSchema = z
  .boolean()
  .describe(
    'Applies a change of this file by itself if it only tightens. Others wait for "toolgate reload". Default: false.',
  )

export const secretCommandsSchema = z
  .strictObject({
    env: z
      .record(variableName, z.string())
      .describe('Their variables, besides PATH and HOME: { VAULT_TOKEN: "${VAULT_TOKEN}" }.')
      .exactOptional(),
    timeoutMs: timeoutMs.describe('For each. Default: 10000.').exactOptional(),
  })
  .describe('How the commands of ${command:…} run: at the start and at each reload, without a shell.')

/**
 * The shape of a written `toolgate.yaml`, without defaults and with paths as written.
 *
 * The message of a check states the expected value; the found value is added before it. The published JSON Schema is
 * made from the same schemas and their descriptions.
 */
export const configSchema = z
  .strictObject({
    listen: listenSchema.exactOptional(),
    publicUrl: publicUrlSchema.exactOptional(),
    servers: serversSchema,
    names: namesSchema.exactOptional(),
    instructions: instructionsSchema
      .describe('Sent to each client at its start, for the model, before those of the servers that it sees.')
      .exactOptional(),
    instances: instancesSchema.exactOptional(),
    callers: z.array(callerSchema).describe('Who may come, by API key.').exactOptional(),
    oauth: oauthSchema.exactOptional(),
    oidc: oidcSchema.exactOptional(),
    groups: groupsSchema.exactOptional(),
    aliases: aliasesSchema.exactOptional(),
    labels: labelsSchema.exactOptional(),
    history: historySchema.exactOptional(),
    apps: appsSchema.exactOptional(),
    policy: z
      .array(policySchema)
      .min(1, 'at least one policy')
      .describe(
        'Required. Policies are combined by meeting: each can only tighten. [{ allow: ["*"] }] allows everything.',
      ),
    limits: z.array(limitSchema).describe('At most max uses in any window of so many seconds.').exactOptional(),
    calls: callsSchema.exactOptional(),
    drainMs: drainSchema.exactOptional(),
    approvals: approvalsSchema.exactOptional(),
    audit: auditSchema.exactOptional(),
    state: stateSchema.exactOptional(),
    stores: storesSchema.exactOptional(),
    replica: replicaSchema.exactOptional(),
    redact: redactSchema.describe('What is hidden beside what looks like a secret by itself.').exactOptional(),
    search: searchSchema.exactOptional(),
    secretCommands: secretCommandsSchema.exactOptional(),
    watch: watchSchema.exactOptional(),
    metrics: metricsSchema.describe('GET /metrics, for Prometheus.').exactOptional(),
    pins: pinsSchema.exactOptional(),
    definitions: definitionsSchema.exactOptional(),
  })
  .describe('The configuration of a Toolgate gateway, toolgate.yaml.')

/** The schemas of lists and mappings whose entries are checked one by one. */
export const callersSchema = configSchema.shape.callers.unwrap()
export const policiesSchema = configSchema.shape.policy
export const limitsSchema = configSchema.shape.limits.unwrap()

/** Returns the JSON Schema (2020-12) of `toolgate.yaml`, for editors, as the text of `toolgate.schema.json`. */
export function configJsonSchema(): string {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { io: 'input' })
  return `${JSON.stringify({ $schema, title: 'toolgate.yaml', ...schema }, undefined, 2)}\n`
}
