import {
  type CallContext,
  ConfigError,
  defineTool,
  type Tool,
  type ToolAnnotations,
  type ToolDefinition,
} from '@toolgate/core'
import { isObject, type JsonObject, type ToolOverlay } from '@toolgate/core/internal'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'

/** What the operator declares about a server's tools. */
export interface ServerClaims {
  readonly namespace: string | undefined
  /** By name or glob. All that match a tool apply; later ones take precedence. */
  readonly overlays: Iterable<readonly [pattern: string, overlay: ToolOverlay]>
  /** Whether the server's hints count as the operator's own. Otherwise they only tighten. */
  readonly trustHints: boolean
  /** Returns the function that calls the tool of that name on the server. */
  readonly executeOf: (name: string) => (input: unknown, call: CallContext) => unknown
}

/** A listed tool that is not offered. */
export interface LeftOutTool {
  readonly tool: string
  readonly error: Error
}

interface Known {
  /** As the server listed it. */
  readonly listed: unknown
  readonly text: string
  readonly tool: Tool
}

type Overlay = readonly [pattern: string, matches: (name: string) => boolean, overlay: ToolOverlay]

/**
 * The tools that a server lists, under the operator's overlay.
 *
 * A tool that is listed again unchanged stays the same object, so decisions about it stay cached and running calls do
 * not see a change. One invalid tool does not affect the others.
 */
export class ServerTools {
  readonly #claims: ServerClaims
  readonly #overlays: readonly Overlay[]
  #known = new Map<string, Known>()
  #leftOut: readonly LeftOutTool[] = []

  constructor(claims: ServerClaims) {
    this.#claims = claims
    this.#overlays = [...claims.overlays].map(([pattern, overlay]) => {
      const glob = parseGlob(pattern)
      return [pattern, (name) => matchesGlob(glob, name), overlay]
    })
  }

  get tools(): readonly Tool[] {
    return [...this.#known.values()].map(({ tool }) => tool)
  }

  get leftOut(): readonly LeftOutTool[] {
    return this.#leftOut
  }

  /** The patterns of the overlay that match no tool. */
  get unmatched(): readonly string[] {
    const names = [...this.#known.keys()]
    return this.#overlays.flatMap(([pattern, matches]) => (names.some(matches) ? [] : [pattern]))
  }

  /** Replaces the tools with the server's latest list. */
  read(list: readonly unknown[]): void {
    const known = new Map<string, Known>()
    const leftOut: LeftOutTool[] = []
    for (const [i, listed] of list.entries()) {
      try {
        const one = this.#toKnown(listed)
        if (known.has(one.tool.name)) throw new ConfigError('tool', 'is listed twice; the first counts')
        known.set(one.tool.name, one)
      } catch (error) {
        leftOut.push({ tool: nameOf(listed, i), error: error instanceof Error ? error : new Error(String(error)) })
      }
    }
    this.#known = known
    this.#leftOut = leftOut
  }

  #toKnown(listed: unknown): Known {
    const { name } = isObject(listed) ? listed : {}
    const before = typeof name === 'string' ? this.#known.get(name) : undefined
    if (before && before.listed === listed) return before
    const text = JSON.stringify(listed)
    if (before?.text === text) return { ...before, listed }
    return { listed, text, tool: this.#toTool(isObject(listed) ? listed : {}) }
  }

  /** @throws {ConfigError} for a tool that cannot be offered, or that can only be run as a task */
  #toTool({ execution, annotations, ...listed }: JsonObject): Tool {
    const { namespace, trustHints, executeOf } = this.#claims
    if (isObject(execution) && execution['taskSupport'] === 'required')
      throw new ConfigError('tool', 'can only be run as a task, which is not supported')
    // `defineTool` checks each of them.
    const { name, title, description, inputSchema, outputSchema, icons, _meta } = listed as unknown as ToolDefinition
    const overlays = this.#overlays
      .filter(([, matches]) => typeof name === 'string' && matches(name))
      .map(([, , overlay]) => overlay)
    const stated = overlays.flatMap((overlay) => overlay.annotations ?? [])
    const claimed: ToolAnnotations = isObject(annotations) ? annotations : {}
    return defineTool({
      namespace,
      name,
      title,
      description,
      inputSchema,
      outputSchema,
      icons: icons ?? undefined,
      _meta: _meta ?? undefined,
      annotations: Object.assign({}, trustHints || stated.length === 0 ? claimed : tightening(claimed), ...stated),
      hintsTrusted: trustHints || stated.length > 0,
      tags: overlays.flatMap(({ tags = [] }) => tags),
      requiredScopes: overlays.flatMap(({ requiredScopes = [] }) => requiredScopes),
      groups: overlays.flatMap(({ groups = [] }) => groups),
      category: overlays.findLast(({ category }) => category !== undefined)?.category,
      execute: executeOf(name),
    })
  }
}

/**
 * Returns those hints of an untrusted server that can only tighten: no `allow` rule depends on them. They are added to
 * the operator's own hints. Without those, all of the server's hints are kept, since none of them is trusted.
 */
function tightening({
  title,
  readOnlyHint,
  destructiveHint,
  idempotentHint,
  openWorldHint,
}: ToolAnnotations): ToolAnnotations {
  return {
    ...(title !== undefined && { title }),
    ...(readOnlyHint === false && { readOnlyHint }),
    ...(destructiveHint === true && { destructiveHint }),
    ...(idempotentHint === false && { idempotentHint }),
    ...(openWorldHint === true && { openWorldHint }),
  }
}

const MAX_NAME_LENGTH = 128

function nameOf(listed: unknown, index: number): string {
  const name = isObject(listed) ? listed['name'] : undefined
  return typeof name === 'string' && name !== '' ? name.slice(0, MAX_NAME_LENGTH).toWellFormed() : `tools[${index}]`
}
