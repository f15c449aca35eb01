import { canonicalize, type JsonObject } from '../util/json.ts'
import { sha256Hex } from '../util/hash.ts'
import type { JsonSchema, Tool, ToolAnnotations, ToolIcon, ToolMeta } from './tool.ts'

/** Everything that a model or a person sees of a tool, as plain JSON. */
export interface Definition {
  readonly id: string
  readonly title: string | null
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema: JsonSchema | null
  readonly annotations: ToolAnnotations
  /** Absent if there are none, so that the hash of a tool without icons does not change. */
  readonly icons?: readonly ToolIcon[]
  readonly _meta?: ToolMeta
  readonly fields?: JsonObject
  readonly strict?: boolean
}

/**
 * Returns everything that a model or a person sees of a tool, which an upstream can change at any time.
 *
 * Tags, category, scopes and `hintsTrusted` are not part of it: only the operator can set them, in the configuration.
 */
export function definitionOf(tool: Tool): Definition {
  const { id, title, description, inputSchema, outputSchema, annotations, icons, _meta, fields, strict } = tool
  return {
    id,
    title: title ?? null,
    description,
    inputSchema,
    outputSchema: outputSchema ?? null,
    annotations,
    ...(icons && { icons }),
    ...(_meta && { _meta }),
    ...(fields && { fields }),
    ...(strict !== undefined && { strict }),
  }
}

/** Returns a tool's definition as its server lists it, without the texts and annotations of the host. */
export function originalDefinitionOf(tool: Tool): Definition {
  return definitionOf(tool.original ? { ...tool, title: undefined, ...tool.original } : tool)
}

const hashes = new WeakMap<Tool, string>()

/** Returns the SHA-256 of a tool's definition in RFC 8785 form. The order of keys does not matter. */
export function definitionHash(tool: Tool): string {
  let hash = hashes.get(tool)
  if (hash === undefined) {
    hash = sha256Hex(canonicalize(definitionOf(tool)))
    hashes.set(tool, hash)
  }
  return hash
}

const originalHashes = new WeakMap<Tool, string>()

/** Returns the hash of a tool's original definition, which pins compare. */
export function originalHash(tool: Tool): string {
  if (!tool.original) return definitionHash(tool)
  let hash = originalHashes.get(tool)
  if (hash === undefined) originalHashes.set(tool, (hash = sha256Hex(canonicalize(originalDefinitionOf(tool)))))
  return hash
}
