import { defineTool, type Tool, type ToolAnnotations } from '@toolgate/core'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import type { ServerConfig, ToolOverlay } from '../config/config.ts'
import type { McpTool } from '../upstream/upstream.ts'

type Execute = NonNullable<Parameters<typeof defineTool>[0]['execute']>

/**
 * Gives the catalog's tool for one that an upstream lists: its own words, under the operator's overlay.
 *
 * The hints are the upstream's claim unless the operator trusts it, or says them himself: then his count, and
 * of the upstream's only those that tighten.
 *
 * @throws {ConfigError} for a tool that cannot be offered
 */
export function toTool(server: ServerConfig, listed: McpTool, execute: Execute): Tool {
  const overlays = [...server.tools]
    .filter(([pattern]) => matchesGlob(parseGlob(pattern), listed.name))
    .map(([, overlay]) => overlay)
  const stated = mergeAnnotations(overlays)
  const claimed = listed.annotations ?? {}
  return defineTool({
    namespace: server.name,
    name: listed.name,
    title: listed.title,
    description: listed.description,
    inputSchema: listed.inputSchema,
    outputSchema: listed.outputSchema,
    icons: listed.icons ?? undefined,
    _meta: listed._meta ?? undefined,
    annotations:
      stated === undefined || server.trustHints ? { ...claimed, ...stated } : { ...tightening(claimed), ...stated },
    hintsTrusted: server.trustHints || stated !== undefined,
    tags: overlays.flatMap(({ tags = [] }) => tags),
    requiredScopes: overlays.flatMap(({ requiredScopes = [] }) => requiredScopes),
    category: overlays.findLast(({ category }) => category !== undefined)?.category,
    execute,
  })
}

function mergeAnnotations(overlays: readonly ToolOverlay[]): ToolAnnotations | undefined {
  const stated = overlays.flatMap(({ annotations }) => annotations ?? [])
  return stated.length === 0 ? undefined : Object.assign({}, ...stated)
}

/** What an upstream that is not trusted may say beside the operator: nothing that an `allow` could go by. */
function tightening({
  title,
  readOnlyHint,
  destructiveHint,
  idempotentHint,
  openWorldHint,
}: ToolAnnotations): ToolAnnotations {
  return {
    ...(title === undefined ? {} : { title }),
    ...(readOnlyHint === false ? { readOnlyHint } : {}),
    ...(destructiveHint === true ? { destructiveHint } : {}),
    ...(idempotentHint === false ? { idempotentHint } : {}),
    ...(openWorldHint === true ? { openWorldHint } : {}),
  }
}
