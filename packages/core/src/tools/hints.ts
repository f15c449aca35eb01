import type { Tool } from './tool.ts'

export const HINTS = ['read-only', 'destructive', 'idempotent', 'open-world'] as const
export type Hint = (typeof HINTS)[number]

/**
 * Answers whether a tool has a hint for certain: by its own author, or by the operator.
 *
 * Only this may satisfy an `allow`: what an untrusted upstream claims grants nothing.
 */
export function certainlyHas(tool: Tool, hint: Hint): boolean {
  return tool.hintsTrusted && claims(tool, hint)
}

/**
 * Answers whether a tool may have a hint, which is what a `deny` or an `ask` goes by.
 *
 * An untrusted claim can add a hint here and never take one away: MCP's default holds beside it.
 */
export function possiblyHas(tool: Tool, hint: Hint): boolean {
  return claims(tool, hint) || (!tool.hintsTrusted && DEFAULT_HINTS.has(hint))
}

/** What MCP 2026-07-28 assumes of a tool without annotations. */
const DEFAULT_HINTS: ReadonlySet<Hint> = new Set<Hint>(['destructive', 'open-world'])

function claims({ annotations }: Tool, hint: Hint): boolean {
  switch (hint) {
    case 'read-only':
      return annotations.readOnlyHint === true
    case 'destructive':
      return annotations.readOnlyHint !== true && annotations.destructiveHint !== false
    case 'idempotent':
      return annotations.idempotentHint === true
    case 'open-world':
      return annotations.openWorldHint !== false
  }
}
