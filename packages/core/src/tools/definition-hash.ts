import { canonicalize } from '../util/json.ts'
import { sha256Hex } from '../util/hash.ts'
import type { JsonSchema, Tool, ToolAnnotations, ToolIcon, ToolMeta } from './tool.ts'

/** All that a model or a person is told of a tool, as plain JSON. */
export interface Definition {
  readonly id: string
  readonly title: string | null
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema: JsonSchema | null
  readonly annotations: ToolAnnotations
  /** Absent where there are none, so that the hash of a tool without them is what it was before they were kept. */
  readonly icons?: readonly ToolIcon[]
  readonly _meta?: ToolMeta
  readonly strict?: boolean
}

/**
 * Gives all that a model or a person is told of a tool: what an upstream can change behind their backs.
 *
 * Tags, category, scopes and whether hints are trusted are not of it: the operator's overlay says those, nobody
 * else can, and a change of them is a change of the configuration.
 */
export function definitionOf(tool: Tool): Definition {
  const { id, title, description, inputSchema, outputSchema, annotations, icons, _meta, strict } = tool
  return {
    id,
    title: title ?? null,
    description,
    inputSchema,
    outputSchema: outputSchema ?? null,
    annotations,
    ...(icons && { icons }),
    ...(_meta && { _meta }),
    ...(strict !== undefined && { strict }),
  }
}

const hashes = new WeakMap<Tool, string>()

/** Gives the SHA-256 of a tool's whole definition, in RFC 8785 form. Key order alone is no change. */
export function definitionHash(tool: Tool): string {
  let hash = hashes.get(tool)
  if (hash === undefined) {
    hash = sha256Hex(canonicalize(definitionOf(tool)))
    hashes.set(tool, hash)
  }
  return hash
}
