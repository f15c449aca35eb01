/**
 * Counts the members that a JSON text writes - its colons outside of strings - without parsing it.
 *
 * Gives `undefined` for arrays and objects nested deeper than `maxDepth`: `JSON.parse` takes any depth, at half a second
 * and hundreds of megabytes for a few of brackets, and everything that walks the value afterwards runs out of stack.
 */
export function countMembers(text: string, maxDepth: number): number | undefined {
  let count = 0
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === QUOTE) i = endOfString(text, i)
    else if (unit === COLON) count++
    else if (unit === BRACE || unit === BRACKET) {
      if (++depth > maxDepth) return undefined
    } else if (unit === BRACE_END || unit === BRACKET_END) depth--
  }
  return count
}

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a]
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Gives the position of the quote that ends the string begun at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return end
  }
  return text.length
}
