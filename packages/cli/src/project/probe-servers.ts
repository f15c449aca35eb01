import type { Tool } from '@toolgate/core'
import type { GatewayConfig } from '@toolgate/gateway'
import type { ServeDeps } from '../commands/serve.ts'
import { printable } from '../io.ts'
import { proposeCompare } from '../labels/propose-compare.ts'

/** What a server answered at a trial start. */
type ProbedServer = { readonly tools: readonly Tool[] } | { readonly problem: string }

/** Starts servers of a configuration, and ends them. Nothing is served to others, kept or recorded. */
export async function probeServers(
  names: readonly string[],
  config: GatewayConfig,
  start: ServeDeps['start'],
): Promise<ReadonlyMap<string, ProbedServer>> {
  const { warnings: _, ...rest } = config
  const gateway = await start({
    ...rest,
    listen: { host: '127.0.0.1', port: 0 },
    // Their own word is what is to be written down.
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

/** Absent hints mean what MCP says: it writes, and may destroy. */
export function tagOf({ annotations: { readOnlyHint, destructiveHint } }: Tool): Tag {
  if (readOnlyHint === true) return 'read'
  return destructiveHint === false ? 'write' : 'ask'
}

/** Returns the overlay of a server's entry: a tag for each of its tools, and how to compare what they write with what is there. */
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
