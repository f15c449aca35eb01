/** Returns at most `max` UTF-16 units of a text; what was cut ends in `…`, and no character is halved. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  return `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}
