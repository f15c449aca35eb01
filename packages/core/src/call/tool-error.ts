/** The audit keeps less; so much is enough for it to see a secret whole. */
const MAX_LENGTH = 16_384
const SAID_NOTHING = 'the tool answered with an error'

/** Returns `true` for an MCP result with `isError: true`: the tool ran and reports that it failed. Never throws. */
export function isToolError(output: unknown): boolean {
  if (typeof output !== 'object' || output === null) return false
  try {
    if (!Object.hasOwn(output, 'isError')) return false
    const { isError, content } = output as { readonly isError?: unknown; readonly content?: unknown }
    return isError === true && (content === undefined || Array.isArray(content))
  } catch {
    return false
  }
}

/** Returns what such a tool said, as one text; `undefined` for any other output. */
export function toolErrorOf(output: unknown): string | undefined {
  return isToolError(output) ? textOf((output as { readonly content?: readonly unknown[] }).content ?? []) : undefined
}

function textOf(content: readonly unknown[]): string {
  let text = ''
  try {
    for (const block of content) {
      if (text.length > MAX_LENGTH) break
      const said = (block as { readonly text?: unknown } | null)?.text
      if (typeof said === 'string') text += text === '' ? said.slice(0, MAX_LENGTH) : `\n${said.slice(0, MAX_LENGTH)}`
    }
  } catch {
    // A block that throws when it is read has said nothing.
  }
  return text === '' ? SAID_NOTHING : text.slice(0, MAX_LENGTH)
}
