/** A piece of a text to be replaced, and the name in its marker. */
export interface Span {
  readonly start: number
  readonly end: number
  readonly name: string
}

const OPENING = '[redacted:'
const MARKER = /\[redacted:([a-z0-9-]{1,40})\]/g

export function toMarker(name: string): string {
  return `${OPENING}${name}]`
}

/**
 * Replaces each span by a marker; overlapping spans become one. A marker that is already there stays.
 *
 * Only a marker with a known name counts: any other text between the brackets may be someone else's.
 */
export function replaceSpans(text: string, spans: readonly Span[], names: ReadonlySet<string>): string {
  const merged = merge(outsideMarkers(text, spans, names))
  let result = ''
  let at = 0
  for (const { start, end, name } of merged) {
    result += text.slice(at, start) + toMarker(name)
    at = end
  }
  return result + text.slice(at)
}

function merge(spans: readonly Span[]): Span[] {
  const merged: Span[] = []
  for (const span of spans.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = merged.at(-1)
    if (last && span.start < last.end) {
      if (span.end > last.end) merged[merged.length - 1] = { ...last, end: span.end }
    } else merged.push(span)
  }
  return merged
}

/** Removes existing markers from the ends of the spans. Markers in the middle are replaced with the span. */
function outsideMarkers(text: string, spans: readonly Span[], names: ReadonlySet<string>): readonly Span[] {
  const markers = text.includes(OPENING) ? findMarkers(text, names) : []
  if (markers.length === 0) return spans
  let first = 0
  const kept: Span[] = []
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    while ((markers[first]?.end ?? Infinity) <= span.start) first++
    const cut = cutAtMarkers(span, markers, first)
    if (cut.start < cut.end) kept.push(cut)
  }
  return kept
}

interface Range {
  readonly start: number
  readonly end: number
}

function cutAtMarkers(span: Span, markers: readonly Range[], first: number): Span {
  let { start, end } = span
  let low = first
  for (let marker = markers[low]; marker && marker.start <= start; marker = markers[++low]) start = marker.end
  let high = low
  while ((markers[high]?.start ?? Infinity) < end) high++
  for (let marker = markers[--high]; marker && high >= low && marker.end >= end; marker = markers[--high])
    end = marker.start
  return { ...span, start, end }
}

function findMarkers(text: string, names: ReadonlySet<string>): Range[] {
  const found: Range[] = []
  for (const match of text.matchAll(MARKER)) {
    if (names.has(match[1] ?? '')) found.push({ start: match.index, end: match.index + match[0].length })
  }
  return found
}

/** Returns whether a character is a letter, a digit, `_` or `-`, as in keys and most tokens. */
export function isWordCode(code: number): boolean {
  return isAlnum(code) || code === UNDERSCORE || code === DASH
}

export function isAlnum(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57)
}

export function isBlank(code: number): boolean {
  return code === 32 || code === 9
}

export function isQuote(code: number): boolean {
  return code === 34 || code === 39 || code === 96
}

export const UNDERSCORE = 95
export const DASH = 45
export const DOT = 46
export const BACKSLASH = 92
export const COLON = 58
export const EQUALS = 61
export const PERCENT = 37
export const SLASH = 47
