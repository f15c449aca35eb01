import {
  type CallContext,
  ConfigError,
  defineTool,
  type Tool,
  type ToolAnnotations,
  type ToolDefinition,
} from '@toolgate/core'
import { isErrorOf } from '@toolgate/values'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import type { InputHandling, ToolOverlay } from '@toolgate/core/tools'
import { withoutNulls } from './nulls.ts'
import { findPatternProblem } from './output-patterns.ts'
import { addedBy, type OverlayEntries, Overlays } from './overlays.ts'
import { inOrderOfNames, renamed, toServedName } from './served-name.ts'

/** What the operator declares about tools of a server. */
export interface ServerOverlay extends ToolOverlay {
  /** Replaces the server's own title for clients. Pins keep the server's own. */
  readonly title?: string | undefined
  /** Replaces the server's own description for clients. Pins keep the server's own. */
  readonly description?: string | undefined
  /** `false` hides the tool from everybody. */
  readonly enabled?: boolean | undefined
}

/** What the operator declares about a server and its tools. */
export interface ServerClaims {
  readonly namespace: string | undefined
  /** Overlays by tool name or glob. Every overlay that matches a tool applies; later ones take precedence. */
  readonly overlays: OverlayEntries<ServerOverlay>
  /** Whether the server's hints count as the operator's own. Otherwise they only tighten. */
  readonly trustHints: boolean
  /** Decides what happens to inputs that a tool's schema rejects. Default: `checked`. */
  readonly inputs?: InputHandling | undefined
  /** Whether tools that only run as tasks can be called. Default: such tools are left out. */
  readonly runsTasks?: (() => boolean) | undefined
  /** Returns the function that calls the tool with this name on the server. */
  readonly executeOf: (name: string, execution: unknown) => (input: unknown, call: CallContext) => unknown
}

/** A listed tool that is not offered, or that is offered without one of its parts. */
export interface LeftOutTool {
  readonly tool: string
  readonly error: Error
  /** The part that is left out. Absent if the tool is not offered. A tool without its name has another one. */
  readonly part?: 'name' | 'outputSchema'
}

interface KnownTool {
  /** The tool, as the server listed it. */
  readonly listed: unknown
  readonly text: string
  readonly tool: Tool
  readonly isEnabled: boolean
  /** Why its output schema is left out. */
  readonly lacks: Error | undefined
}

/**
 * The tools that a server lists, under the operator's overlay.
 *
 * A tool that is listed again unchanged stays the same object, so decisions about it stay cached and running calls do
 * not see a change. One invalid tool does not affect the others.
 */
export class ServerTools {
  readonly #claims: ServerClaims
  readonly #overlays: Overlays<ServerOverlay>
  #known = new Map<string, KnownTool>()
  #leftOut: readonly LeftOutTool[] = []

  constructor(claims: ServerClaims) {
    this.#claims = claims
    this.#overlays = new Overlays(claims.overlays)
  }

  get tools(): readonly Tool[] {
    return [...this.#known.values()].flatMap(({ tool, isEnabled }) => (isEnabled ? [tool] : []))
  }

  /** The names of all listed tools, including disabled ones. */
  get names(): readonly string[] {
    return [...this.#known.keys()]
  }

  get leftOut(): readonly LeftOutTool[] {
    return this.#leftOut
  }

  /** The patterns of the overlay that match no tool. */
  get unmatched(): readonly string[] {
    return this.#overlays.unmatchedBy(this.names)
  }

  /** Replaces the tools with the server's latest list. */
  read(list: readonly unknown[]): void {
    const known = new Map<string, KnownTool>()
    const leftOut: LeftOutTool[] = []
    for (const [i, listed] of inOrderOfNames('tool', list)) {
      try {
        const one = this.#toKnown(listed)
        const { name } = one.tool
        const own = nameOf(listed, i)
        if (known.has(name))
          throw new ConfigError('tool', `is listed twice as ${JSON.stringify(name)}; the first counts`)
        known.set(name, one)
        if (own !== name) leftOut.push({ tool: own, error: renamed(name), part: 'name' })
        if (one.lacks) leftOut.push({ tool: own, error: one.lacks, part: 'outputSchema' })
      } catch (error) {
        leftOut.push({ tool: nameOf(listed, i), error: error instanceof Error ? error : new Error(String(error)) })
      }
    }
    this.#known = known
    this.#leftOut = leftOut
  }

  #toKnown(listed: unknown): KnownTool {
    const name = toServedName('tool', isObject(listed) ? listed['name'] : undefined)
    const before = typeof name === 'string' ? this.#known.get(name) : undefined
    if (before && before.listed === listed) return before
    const text = toJsonText(listed)
    if (before?.text === text) return { ...before, listed }
    const overlays = this.#overlays.of(name)
    const made = this.#toOffered(isObject(listed) ? withoutNulls(listed) : {}, overlays)
    return { listed, text, ...made, isEnabled: lastOf(overlays, 'enabled') ?? true }
  }

  /** A tool with an invalid output schema is offered without it, because no call depends on it. */
  #toOffered(listed: JsonObject, overlays: readonly ServerOverlay[]): Pick<KnownTool, 'tool' | 'lacks'> {
    const { outputSchema, ...rest } = listed
    try {
      const tool = this.#toTool(listed, overlays)
      const problem = findPatternProblem(tool.outputSchema, 'outputSchema')
      if (problem === undefined) return { tool, lacks: undefined }
      return { tool: this.#toTool(rest, overlays), lacks: new ConfigError('tool', problem) }
    } catch (error) {
      if (!isErrorOf(error, ConfigError) || error.code !== 'schema_invalid' || !isObject(outputSchema)) throw error
      return { tool: this.#toTool(rest, overlays), lacks: error }
    }
  }

  /** @throws {ConfigError} for a tool that cannot be offered, or that can only be run as a task */
  #toTool({ annotations, ...listed }: JsonObject, overlays: readonly ServerOverlay[]): Tool {
    const { namespace, trustHints, inputs, runsTasks, executeOf } = this.#claims
    // `defineTool` checks each of these fields.
    const { name, title, description, inputSchema, outputSchema, icons, _meta, ...fields } =
      listed as unknown as ToolDefinition
    checkFields(fields, runsTasks?.() ?? false)
    const stated = overlays.flatMap((overlay) => overlay.annotations ?? [])
    const claimed: ToolAnnotations = isObject(annotations) ? annotations : {}
    const shown = { title: lastOf(overlays, 'title'), description: lastOf(overlays, 'description') }
    const isReplaced = stated.length > 0 || shown.title !== undefined || shown.description !== undefined
    return defineTool({
      namespace,
      name: toServedName('tool', name) as string,
      title: shown.title ?? title,
      description: shown.description ?? description,
      inputSchema,
      outputSchema,
      inputs,
      icons,
      _meta,
      fields: Object.keys(fields).length === 0 ? undefined : fields,
      annotations: Object.assign({}, trustHints || stated.length === 0 ? claimed : tightening(claimed), ...stated),
      original: isReplaced ? { title, description: description ?? '', annotations: claimed } : undefined,
      hintsTrusted: trustHints || stated.length > 0,
      ...addedBy(overlays),
      groups: overlays.flatMap(({ groups = [] }) => groups),
      addressees: overlays.flatMap(({ addressees = [] }) => addressees),
      execute: executeOf(name, (fields as JsonObject)['execution']),
    })
  }
}

/** The maximum length of the JSON of unknown fields, in characters. It is the limit for schemas too. */
const MAX_FIELD_CHARS = 64 * 1024

/**
 * @throws {ConfigError} for a tool that only runs as a task if tasks are not supported, and for fields that are too
 * large
 */
function checkFields(fields: JsonObject, runsTasks: boolean): void {
  const { execution } = fields
  if (!runsTasks && isObject(execution) && execution['taskSupport'] === 'required')
    throw new ConfigError('tool', 'can only be run as a task, which is not supported')
  if (toJsonText(fields).length > MAX_FIELD_CHARS)
    throw new ConfigError('tool', `has unknown fields of more than ${MAX_FIELD_CHARS} characters`)
}

/** Returns a field from the last overlay that sets it. */
function lastOf<Field extends keyof ServerOverlay>(
  overlays: readonly ServerOverlay[],
  field: Field,
): ServerOverlay[Field] {
  return overlays.findLast((overlay) => overlay[field] !== undefined)?.[field]
}

/**
 * Returns the annotations of an untrusted server without the hints that could loosen a decision. No `allow` rule
 * depends on the remaining hints, which are added to the operator's own. If the operator has no hints, all of the
 * server's hints are kept, since none of them is trusted.
 */
function tightening({
  readOnlyHint,
  destructiveHint,
  idempotentHint,
  openWorldHint,
  ...others
}: ToolAnnotations): ToolAnnotations {
  return {
    ...others,
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
