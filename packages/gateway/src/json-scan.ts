/** The characters that structure a JSON text, as UTF-16 units. */
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COLON = 0x3a
export const COMMA = 0x2c
export const BRACE = 0x7b
export const BRACE_END = 0x7d
export const BRACKET = 0x5b
export const BRACKET_END = 0x5d

/** Returns the position of the quote that ends the string begun at `start`; of the end of the text if none does. */
export function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1)
  if (end === -1) return text.length
  if (text.charCodeAt(end - 1) !== BACKSLASH) return end
  // Searching again after each escaped quote costs more than looking at each character.
  for (let i = start + 1; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === BACKSLASH) i++
    else if (unit === QUOTE) return i
  }
  return text.length
}
