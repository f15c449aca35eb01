import path from 'node:path'
import * as z from 'zod'
import type { GatewayConfig } from './config.ts'
import { drainSchema } from './schema/calls.ts'
import { metricsSchema, publicUrlSchema } from './schema/listen.ts'
import { historySchema } from './schema/policy.ts'
import { secretCommandsSchema } from './schema/secret-commands.ts'
import { definitionsSchema, instancesSchema, instructionsSchema, namesSchema, pinsSchema } from './schema/servers.ts'
import { plain, type Section, withDefaults } from './section.ts'
import { aliases } from './sections/aliases.ts'
import { approvals } from './sections/approvals.ts'
import { apps } from './sections/apps.ts'
import { audit } from './sections/audit.ts'
import { callers } from './sections/callers.ts'
import { calls } from './sections/calls.ts'
import { grants } from './sections/grants.ts'
import { groups } from './sections/groups.ts'
import { labels } from './sections/labels.ts'
import { limits } from './sections/limits.ts'
import { listen } from './sections/listen.ts'
import { oauth, oidc } from './sections/oauth.ts'
import { policy } from './sections/policy.ts'
import { proxy } from './sections/proxy.ts'
import { redact } from './sections/redact.ts'
import { search } from './sections/search.ts'
import { servers } from './sections/servers.ts'
import { state } from './sections/state.ts'
import { replica, stores } from './sections/stores.ts'
import { watch } from './sections/watch.ts'

/** The parts of a configuration that are sections of its file. The others are about the file itself. */
type SectionKey = Exclude<
  keyof GatewayConfig,
  'file' | 'text' | 'textHash' | 'notRun' | 'ran' | 'secrets' | 'warnings' | 'places' | 'policySource'
>

/**
 * The sections of `toolgate.yaml`, in the order in which they are read and published. To add a section, add its value to
 * `GatewayConfig`, a file to `sections/`, and a row.
 */
export const SECTIONS: { readonly [Key in SectionKey]-?: Section<GatewayConfig[Key]> } = {
  listen,
  publicUrl: plain(publicUrlSchema),
  // Before what is reached through it.
  proxy,
  servers,
  names: plain(namesSchema),
  instructions: plain(
    instructionsSchema.describe(
      'Sent to each client at its start, for the model, before those of the servers that it sees.',
    ),
  ),
  // By default, the folders of instances are beside the configuration.
  instances: withDefaults(instancesSchema, ({ configDir }) =>
    instancesSchema.transform(({ path: folder, ...bounds }) => ({
      ...bounds,
      path: path.resolve(configDir, folder ?? '.toolgate/instances'),
    })),
  ),
  callers,
  oauth,
  oidc,
  groups,
  aliases,
  labels,
  history: plain(historySchema),
  apps,
  policy,
  limits,
  grants,
  calls,
  drainMs: plain(drainSchema),
  approvals,
  audit,
  state,
  stores,
  replica,
  redact,
  search,
  secretCommands: plain(secretCommandsSchema),
  watch,
  // By default, the metrics need a console key.
  metrics: withDefaults(metricsSchema.describe('GET /metrics, for Prometheus.'), () =>
    metricsSchema.transform((input) => ({ public: input.public ?? false })),
  ),
  pins: plain(pinsSchema),
  definitions: plain(definitionsSchema),
}

/** Returns the JSON Schema (2020-12) of `toolgate.yaml`, for editors, as the text of `toolgate.schema.json`. */
export function configJsonSchema(): string {
  const written = Object.entries(SECTIONS).map(([key, { schema, isRequired }]) => [
    key,
    isRequired ? schema : schema.exactOptional(),
  ])
  const file = z
    .strictObject(Object.fromEntries(written))
    .describe('The configuration of a Toolgate gateway, toolgate.yaml.')
  const { $schema, ...schema } = z.toJSONSchema(file, { io: 'input' })
  return `${JSON.stringify({ $schema, title: 'toolgate.yaml', ...schema }, undefined, 2)}\n`
}
