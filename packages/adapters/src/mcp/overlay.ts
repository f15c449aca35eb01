import { ConfigError, type ToolAnnotations, type ToolDefinition } from '@toolgate/core'
import { toNamedMap } from '@toolgate/core/internal'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import { checkOverlayFields, type ToolOverlay } from '../shared/overlay.ts'
import { isPlainObject } from '../shared/mcp-result.ts'

/** What the operator says of a server's tools, by name or by glob: `{ 'read_*': { tags: ['read'] } }`. */
export type McpOverlay = Readonly<Record<string, ToolOverlay>>

/** An overlay that was read: every pattern is one. */
export type ParsedOverlay = readonly (readonly [pattern: string, matches: (name: string) => boolean, ToolOverlay])[]

/** @throws {ConfigError} for an unknown field */
export function parseOverlay(overlay: McpOverlay = {}): ParsedOverlay {
  return [...toNamedMap('overlay', overlay)].map(([pattern, given]) => {
    checkOverlayFields(pattern, given)
    const glob = parseGlob(pattern)
    return [pattern, (name) => matchesGlob(glob, name), given]
  })
}

export interface Claims {
  readonly namespace: string | undefined
  readonly overlay: ParsedOverlay
  readonly trustHints: boolean
}

type Words = Pick<ToolDefinition, 'name' | 'title' | 'description' | 'inputSchema' | 'outputSchema' | 'icons' | '_meta'>

/**
 * Gives the definition of a tool that a server lists: its own words, under the operator's overlay.
 *
 * The hints are the server's claim unless the operator trusts it, or says them himself: then his count, and of the
 * server's only those that tighten.
 *
 * @throws {ConfigError} for what is no tool, or can only be run in a way that is not governed
 */
export function toDefinition(listed: unknown, { namespace, overlay, trustHints }: Claims): ToolDefinition {
  const { execution, annotations: said, ...tool } = isPlainObject(listed) ? listed : {}
  const { name, title, description, inputSchema, outputSchema, icons, _meta } = tool as Words
  if (isPlainObject(execution) && execution['taskSupport'] === 'required')
    throw new ConfigError('tool', 'can only be run as a task, which is not supported')
  const given = overlay.filter(([, matches]) => typeof name === 'string' && matches(name)).map(([, , one]) => one)
  const stated = given.flatMap(({ annotations }) => annotations ?? [])
  const claimed = isPlainObject(said) ? (said as ToolAnnotations) : {}
  const isVouchedFor = trustHints || stated.length > 0
  const kept = trustHints || stated.length === 0 ? claimed : tightening(claimed)
  return {
    namespace,
    name,
    title,
    description,
    inputSchema,
    outputSchema,
    icons: icons ?? undefined,
    _meta: _meta ?? undefined,
    annotations: Object.assign({}, kept, ...stated) as ToolAnnotations,
    hintsTrusted: isVouchedFor,
    tags: given.flatMap(({ tags = [] }) => tags),
    requiredScopes: given.flatMap(({ requiredScopes = [] }) => requiredScopes),
    groups: given.flatMap(({ groups = [] }) => groups),
    category: given.findLast(({ category }) => category !== undefined)?.category,
  }
}

/** Nothing that an `allow` could go by. */
function tightening(claimed: ToolAnnotations): ToolAnnotations {
  const { title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = claimed
  return {
    ...(title !== undefined && { title }),
    ...(readOnlyHint === false && { readOnlyHint }),
    ...(destructiveHint === true && { destructiveHint }),
    ...(idempotentHint === false && { idempotentHint }),
    ...(openWorldHint === true && { openWorldHint }),
  }
}
