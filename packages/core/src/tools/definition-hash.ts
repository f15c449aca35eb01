import { canonicalize } from '../canonical.ts'
import { sha256Hex } from '../hash.ts'
import type { Tool } from './tool.ts'

const hashes = new WeakMap<Tool, string>()

/** Gives the SHA-256 of all that a model or a person is told of a tool, in RFC 8785 form. Key order alone is no change. */
export function definitionHash(tool: Tool): string {
  let hash = hashes.get(tool)
  if (hash === undefined) {
    const { id, title, description, inputSchema, outputSchema, annotations } = tool
    hash = sha256Hex(
      canonicalize({
        id,
        title: title ?? null,
        description,
        inputSchema,
        outputSchema: outputSchema ?? null,
        annotations,
      }),
    )
    hashes.set(tool, hash)
  }
  return hash
}
