import { canonicalize, type JsonObject } from '@toolgate/values/json'
import { sha256Hex } from '@toolgate/values'
import type { ItemKind } from './tool-id.ts'
import type { JsonSchema, PromptArgument, Tool, ToolAnnotations, ToolIcon, ToolMeta } from './tool.ts'

/** All fields of a tool that a model or a person sees, as plain JSON. */
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
  /** Absent for tools, like all fields that only other kinds have. */
  readonly kind?: ItemKind
  readonly name?: string
  readonly mimeType?: string
  readonly arguments?: readonly PromptArgument[]
}

/**
 * Returns all fields of a tool that a model or a person sees. An upstream can change them at any time.
 *
 * The size and the modification time of a resource are not included, because they change with its content and are not text
 * that anybody reads. Tags, category, scopes and `hintsTrusted` are not included, because only the operator can set them,
 * in the configuration.
 */
export function definitionOf(tool: Tool): Definition {
  const { id, title, description, inputSchema, outputSchema, icons, _meta, fields, strict } = tool
  const annotations = tool.kind === 'tool' ? tool.annotations : withoutTime(tool.annotations)
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
    ...(tool.kind !== 'tool' && ofItem(tool)),
  }
}

/** Returns a tool's definition as its server lists it, without the texts and annotations of the host. */
export function originalDefinitionOf(tool: Tool): Definition {
  return definitionOf(tool.original ? { ...tool, title: undefined, ...tool.original } : tool)
}

function ofItem({ kind, name, mimeType, arguments: given }: Tool): Partial<Definition> {
  return { kind, name, ...(mimeType !== undefined && { mimeType }), ...(given && { arguments: given }) }
}

/** ISO 8601, as MCP requires. Any other text stays in the definition, because people and models read it. */
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/

function withoutTime({ lastModified, ...rest }: Tool['annotations']): ToolAnnotations {
  return lastModified === undefined || TIME.test(lastModified) ? rest : ({ lastModified, ...rest } as ToolAnnotations)
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
