import { findText } from '@toolgate/values'

/** The parts of a pattern between its stars: `read_*_x` is `['read_', '_x']`. */
export type Glob = readonly string[]

export function parseGlob(pattern: string): Glob {
  return pattern.split(/\*+/)
}

/** Matches in time linear in the text: each part is searched once, from the left. */
export function matchesGlob(glob: Glob, text: string): boolean {
  const first = glob[0] ?? ''
  if (glob.length === 1) return text === first
  const last = glob.at(-1) ?? ''
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  const end = text.length - last.length
  let at = first.length
  for (let part = 1; part < glob.length - 1; part++) {
    const piece = glob[part] as string
    const found = findText(text, piece, at)
    if (found === -1 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}
