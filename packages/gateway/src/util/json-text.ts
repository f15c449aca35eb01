import { BRACE, BRACE_END, BRACKET, BRACKET_END, COLON, COMMA, endOfString, QUOTE } from '@toolgate/values/json'

/** The position of a value in a JSON text, including the white space around it. */
export interface TextSpan {
  readonly start: number
  readonly end: number
}

/**
 * Finds the values at some paths of keys in a JSON text, in one pass and without parsing it.
 *
 * A path is missing from the result if it is absent, if one of its keys is escaped, or if it occurs twice, because then
 * it is ambiguous.
 *
 * @example
 * findMembers('{"id":7,"result":{"tools":[]}}', ['id', 'result.tools']).get('result.tools') // { start: 26, end: 28 }
 */
export function findMembers<Path extends string>(text: string, paths: readonly Path[]): ReadonlyMap<Path, TextSpan> {
  const wanted = new Map<string, Path>(paths.map((path) => [path, path]))
  const maxDepth = Math.max(...paths.map((path) => path.split('.').length))
  const found = new Map<Path, TextSpan>()
  const twice = new Set<Path>()
  /** The path of the current member at each depth; `undefined` in an array. */
  const under: (string | undefined)[] = []
  /** The start of the current wanted member at each depth. */
  const starts: (number | undefined)[] = []
  let depth = 0
  let key: TextSpan = { start: 0, end: 0 }
  const begin = (at: number): void => {
    const parent = depth === 1 ? '' : under[depth - 1]
    const name = text.slice(key.start, key.end)
    under[depth] = parent === undefined || name.includes('.') ? undefined : depth === 1 ? name : `${parent}.${name}`
    starts[depth] = wanted.has(under[depth] ?? '') ? at : undefined
  }
  const end = (at: number): void => {
    const path = wanted.get(under[depth] ?? '')
    const start = starts[depth]
    if (path !== undefined && start !== undefined) {
      if (found.has(path)) twice.add(path)
      found.set(path, { start, end: at })
    }
    under[depth] = starts[depth] = undefined
  }
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const last = endOfString(text, i)
        if (depth <= maxDepth) key = { start: i + 1, end: last }
        i = last
        break
      }
      case COLON:
        if (depth <= maxDepth) begin(i + 1)
        break
      case BRACE:
      case BRACKET:
        if (++depth <= maxDepth) under[depth] = starts[depth] = undefined
        break
      case COMMA:
        if (depth <= maxDepth) end(i)
        break
      case BRACE_END:
      case BRACKET_END:
        if (depth <= maxDepth) end(i)
        depth--
    }
  }
  for (const path of twice) found.delete(path)
  return found
}

/** Returns the texts of the items of a JSON array, or `undefined` if the text is not an array. */
export function splitItems(text: string): readonly string[] | undefined {
  const list = text.trim()
  if (list.charCodeAt(0) !== BRACKET || list.charCodeAt(list.length - 1) !== BRACKET_END) return undefined
  const items: string[] = []
  let depth = 0
  let start = 1
  for (let i = 0; i < list.length; i++) {
    switch (list.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(list, i)
        break
      case BRACE:
      case BRACKET:
        depth++
        break
      case COMMA:
        if (depth !== 1) break
        items.push(list.slice(start, i))
        start = i + 1
        break
      case BRACE_END:
      case BRACKET_END:
        depth--
    }
  }
  const last = list.slice(start, -1)
  return items.length === 0 && last.trim() === '' ? [] : [...items, last]
}
