import type { Tool } from '@toolgate/core'
import type { GatewayConfig } from '@toolgate/gateway'
import type { ServeDeps } from '../commands/serve.ts'
import { printable } from '../io.ts'
import { proposeCompare } from '../labels/propose-compare.ts'

/** The answer of a server at a trial start. */
type ProbedServer = { readonly tools: readonly Tool[] } | { readonly problem: string }

/** Starts servers of a configuration, and stops them. Serves, stores and records nothing. */
export async function probeServers(
  names: readonly string[],
  config: GatewayConfig,
  start: ServeDeps['start'],
): Promise<ReadonlyMap<string, ProbedServer>> {
  const { warnings: _, ...rest } = config
  const gateway = await start({
    ...rest,
    listen: { host: '127.0.0.1', port: 0 },
    // The servers' own annotations are wanted, without the configuration's.
    servers: config.servers
      .filter(({ name }) => names.includes(name))
      .map((server) => ({ ...server, trustHints: true })),
    groups: [],
    apps: [],
    aliases: {},
    limits: [],
    policy: [{ allow: ['*'] }],
    audit: { store: 'memory', mode: 'batched' },
    state: { store: 'memory' },
    drainMs: 0,
  })
  try {
    await gateway.ready
    const { tools } = gateway.gate.catalog.snapshot()
    return new Map(
      gateway
        .servers()
        .map(({ name, status, reason }) => [
          name,
          status === 'ready'
            ? { tools: tools.filter(({ namespace }) => namespace === name) }
            : { problem: printable(reason ?? status) },
        ]),
    )
  } finally {
    await gateway.close()
  }
}

export const TAGS = ['read', 'write', 'ask'] as const
export type Tag = (typeof TAGS)[number]

/** Returns the tag of a tool. Absent hints have MCP's defaults: the tool writes, and may destroy. */
export function tagOf({ annotations: { readOnlyHint, destructiveHint } }: Tool): Tag {
  if (readOnlyHint === true) return 'read'
  return destructiveHint === false ? 'write' : 'ask'
}

/**
 * Returns the overlay for a server's entry: a tag for each of its tools, and a reading tool for each writing tool, so
 * that people can compare.
 */
export function tagsOf(tools: readonly Tool[]): object {
  if (tools.length === 0) return {}
  const entries = tools.map((tool) => {
    const compare = proposeCompare(tool, tools)
    return [tool.name, { tags: [tagOf(tool)], ...(compare && { compare }) }] as const
  })
  return { tools: Object.fromEntries(entries) }
}

/** The comment before the overlay. */
export const REVIEW = 'What the server says of its tools. Review it: your word counts, not its own.'
